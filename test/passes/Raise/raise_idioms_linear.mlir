// RUN: llm-opt %s --llm-raise-idioms --split-input-file | FileCheck %s --enable-var-scope

// As exporters fold it: x times [in, out], and a bias on the left.
// CHECK-LABEL: func.func @folded(
// CHECK-SAME: %[[X:.*]]: tensor<?x?x4xf32>
// CHECK: %[[W:.*]] = llm.get_weight @w
// CHECK: %[[B:.*]] = llm.get_weight @b
// CHECK: %[[Y:.*]] = llm.linear %[[X]], %[[W]] bias(%[[B]]) {transposed} : (tensor<?x?x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
// CHECK-NEXT: return %[[Y]]
llm.weight @b : tensor<8xf32> = #llm.dense<#llm.component<"data", tensor<8xf32>, dense<1.0> : tensor<8xf32>>>
llm.weight @w : tensor<4x8xf32> = #llm.dense<#llm.component<"data", tensor<4x8xf32>, dense<2.0> : tensor<4x8xf32>>>
func.func @folded(%x: tensor<?x?x4xf32>) -> tensor<?x?x8xf32> {
  %w = llm.get_weight @w : tensor<4x8xf32>
  %b = llm.get_weight @b : tensor<8xf32>
  %z = llm.matmul %x, %w : (tensor<?x?x4xf32>, tensor<4x8xf32>) -> tensor<?x?x8xf32>
  %y = llm.add %b, %z : (tensor<8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}

// -----

// Through an explicit transpose the weight is [out, in]; tied to the embedding.
// Weights come in the order of their use, and those without one go.
// CHECK-NOT: @unused
// CHECK-LABEL: func.func @tied(
// CHECK-SAME: %[[IDS:.*]]: tensor<?x?xi64>
// CHECK: %[[E:.*]] = llm.get_weight @e
// CHECK: %[[H:.*]] = llm.embedding %[[IDS]], %[[E]]
// CHECK: llm.linear %[[H]], %[[E]] : (tensor<?x?x4xf32>, tensor<16x4xf32>) -> tensor<?x?x16xf32>
llm.weight @unused : tensor<4xf32> = #llm.dense<#llm.component<"data", tensor<4xf32>, dense<1.0> : tensor<4xf32>>>
llm.weight @e : tensor<16x4xf32> = #llm.dense<#llm.component<"data", tensor<16x4xf32>, dense<2.0> : tensor<16x4xf32>>>
func.func @tied(%ids: tensor<?x?xi64>) -> tensor<?x?x16xf32> {
  %e = llm.get_weight @e : tensor<16x4xf32>
  %t = llm.transpose %e perm [1, 0] : tensor<16x4xf32> -> tensor<4x16xf32>
  %h = llm.gather %e, %ids {axis = 0 : i64} : (tensor<16x4xf32>, tensor<?x?xi64>) -> tensor<?x?x4xf32>
  %y = llm.matmul %h, %t : (tensor<?x?x4xf32>, tensor<4x16xf32>) -> tensor<?x?x16xf32>
  return %y : tensor<?x?x16xf32>
}

// -----

// A static product with a constant in the graph; it becomes a weight.
// CHECK: llm.weight @constant : tensor<2x2xf32> = {{.*}}dense<{{\[}}[1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]>
// CHECK-LABEL: func.func @constant_weight(
// CHECK: llm.linear %{{.*}}, %{{.*}} {transposed} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
func.func @constant_weight(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = llm.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %y = llm.matmul %x, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// Batch and sequence flattened for a product (Gemm), a bias behind it, and
// unflattened: none of that is left.
// CHECK-LABEL: func.func @flattened(
// CHECK-SAME: %[[X:.*]]: tensor<?x?x4xf32>
// CHECK: %[[Y:.*]] = llm.linear %[[X]], %{{.*}} bias(%{{.*}}) : (tensor<?x?x4xf32>, tensor<8x4xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
// CHECK: %[[Z:.*]] = llm.linear %[[Y]], %{{.*}} bias(%{{.*}}) {transposed} : (tensor<?x?x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<?x?x4xf32>
// CHECK: return %[[Z]]
llm.weight @w : tensor<8x4xf32> = #llm.dense<#llm.component<"data", tensor<8x4xf32>, dense<2.0> : tensor<8x4xf32>>>
llm.weight @b : tensor<8xf32> = #llm.dense<#llm.component<"data", tensor<8xf32>, dense<1.0> : tensor<8xf32>>>
llm.weight @c : tensor<4xf32> = #llm.dense<#llm.component<"data", tensor<4xf32>, dense<1.0> : tensor<4xf32>>>
func.func @flattened(%x: tensor<?x?x4xf32> {llm.dims = ["b", "s", ""]}) -> tensor<?x?x4xf32> {
  %w = llm.get_weight @w : tensor<8x4xf32>
  %b = llm.get_weight @b : tensor<8xf32>
  %c = llm.get_weight @c : tensor<4xf32>
  %flat = llm.constant dense<[-1, 4]> : tensor<2xi64>
  %x2 = llm.reshape %x, %flat : (tensor<?x?x4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  %l = llm.linear %x2, %w bias(%b) : (tensor<?x4xf32>, tensor<8x4xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %m = llm.matmul %l, %w : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %a = llm.add %m, %c : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %shape = llm.shape %x : tensor<?x?x4xf32> -> tensor<3xi64>
  %y = llm.reshape %a, %shape : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>
  return %y : tensor<?x?x4xf32>
}
