// llm-opt skip_feed_forward_invalid.mlir --load-pass-plugin=FirstPass.so
//   --skip-feed-forward=layers=1 --verify-diagnostics --split-input-file

// expected-error @below {{model 'target' has no layer 1, but 0 layers; --llm-raise-decoder outlines them}}
module {
  func.func @main() {
    return
  }
}

// -----

// expected-error @below {{model 'target' has no layer 1, but 1 layers}}
module {
  func.func @target.layer0(%hidden: tensor<?x4xf32>) -> tensor<?x4xf32>
      attributes {llm.layer = 0 : i64, llm.model = "target"} {
    return %hidden : tensor<?x4xf32>
  }
}

// -----

func.func @target.layer1(%hidden: tensor<?x4xf32>) -> tensor<?x4xf32>
    attributes {llm.layer = 1 : i64, llm.model = "target"} {
  // expected-error @below {{expected the hidden state that a layer returns to be an llm.add of the result of an llm.linear}}
  return %hidden : tensor<?x4xf32>
}
