// RUN: llm-opt %s --llm-generate-host-function --split-input-file --verify-diagnostics

// expected-error@+1 {{defines no function @main}}
module {
  func.func private @main()
}

// -----

// expected-error@+1 {{was not converted; run --convert-llm-to-linalg first}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func private @other()
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {llm.logical_type = (tensor<4xf32>) -> tensor<4xf32>} {
  // expected-error@+1 {{a host function cannot call another function; inline it}}
  func.call @other() : () -> ()
  return %x : tensor<4xf32>
}
