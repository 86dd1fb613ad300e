// RUN: llm-opt %s --llm-raise-idioms --split-input-file | FileCheck %s --enable-var-scope

// Heads first becomes heads inside the last dimension; a rotary_dim that is the
// whole head is spelled 0; a padding mask is in its shortest form.
// CHECK-LABEL: func.func @four(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x?x8xf32>
// CHECK-NOT: llm.transpose
// CHECK: %[[R:.*]] = llm.rope %[[X]], %{{.*}}, %{{.*}} positions(%{{.*}}) {num_heads = 2 : i64}
// CHECK: %[[M:.*]] = llm.unsqueeze %{{.*}} axes [1, 2]
// CHECK: %[[Y:.*]] = llm.attention %[[R]], %[[R]], %[[X]] mask(%[[M]]) {causal
// CHECK-NEXT: return %[[Y]]
llm.weight @t : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<1.0> : tensor<16x2xf32>>>
func.func @four(%x: tensor<?x?x8xf32> {llm.dims = ["b", "s", ""]}, %p: tensor<?x?xi64> {llm.dims = ["b", "s"]}, %am: tensor<?x?xi64> {llm.dims = ["b", "s"]}) -> tensor<?x?x8xf32> {
  %four = llm.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
  %three = llm.constant dense<[0, 0, 8]> : tensor<3xi64>
  %w = llm.get_weight @t : tensor<16x2xf32>
  %r = llm.reshape %x, %four : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>
  %h = llm.transpose %r perm [0, 2, 1, 3] : tensor<?x?x2x4xf32> -> tensor<?x2x?x4xf32>
  %q = llm.rope %h, %w, %w positions(%p) {rotary_dim = 4 : i64} : (tensor<?x2x?x4xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x2x?x4xf32>
  %keep = llm.cast %am : tensor<?x?xi64> -> tensor<?x?xi1>
  %keep4 = llm.unsqueeze %keep axes [1, 2] : tensor<?x?xi1> -> tensor<?x1x1x?xi1>
  %len = llm.shape %p {start = 1 : i64} : tensor<?x?xi64> -> tensor<1xi64>
  %one = llm.constant dense<1> : tensor<1xi64>
  %to = llm.concat %one, %one, %len, %one {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xi64>
  %mask = llm.expand %keep4, %to : (tensor<?x1x1x?xi1>, tensor<4xi64>) -> tensor<?x1x?x?xi1>
  %y = llm.attention %q, %q, %h mask(%mask) {causal, num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x1x?x?xi1>) -> tensor<?x2x?x4xf32>
  %yt = llm.transpose %y perm [0, 2, 1, 3] : tensor<?x2x?x4xf32> -> tensor<?x?x2x4xf32>
  %z = llm.reshape %yt, %three : (tensor<?x?x2x4xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
  return %z : tensor<?x?x8xf32>
}
