// llm-opt skip_feed_forward.mlir --load-pass-plugin=FirstPass.so
//   --skip-feed-forward=layers=1 --canonicalize | FileCheck-22 skip_feed_forward.mlir
//
// Layers as --llm-raise-decoder leaves them, cut down to what matters here.

llm.weight @w : tensor<4x4xf32> = #llm.dense<#llm.component<"data", tensor<4x4xf32>, dense<1.0> : tensor<4x4xf32>>>

// CHECK-LABEL: func.func @target.layer0
// CHECK: llm.linear
// CHECK: %[[SUM:.+]] = llm.add
// CHECK: return %[[SUM]]
func.func @target.layer0(%hidden: tensor<?x4xf32>) -> tensor<?x4xf32>
    attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %w = llm.get_weight @w : tensor<4x4xf32>
  %down = llm.linear %hidden, %w : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %sum = llm.add %hidden, %down : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %sum : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @target.layer1
// CHECK-SAME: (%[[HIDDEN:.+]]: tensor<?x4xf32>)
// CHECK-NEXT: return %[[HIDDEN]]
func.func @target.layer1(%hidden: tensor<?x4xf32>) -> tensor<?x4xf32>
    attributes {llm.layer = 1 : i64, llm.model = "target"} {
  %w = llm.get_weight @w : tensor<4x4xf32>
  %down = llm.linear %hidden, %w : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %sum = llm.add %down, %hidden : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %sum : tensor<?x4xf32>
}
