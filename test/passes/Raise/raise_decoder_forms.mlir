// RUN: llm-opt %s --llm-raise-decoder --llm-verify-raise --split-input-file | FileCheck %s --enable-var-scope

// f16: weights keep their type, activations are f32, casts and f16 constants go;
// learned positions; per-head norms; a packed product; no cache inputs at all;
// static batch; a capped last product, whose rows are picked before it.

// CHECK-LABEL: func.func private @target.layer0(
// CHECK-SAME: %[[H:[a-z0-9]*]]: tensor<?x8xf32>
// CHECK: %[[W:.*]] = llm.get_weight @qkv : tensor<16x8xf16>
// CHECK: %[[A:.*]] = llm.linear %[[H]], %[[W]] : (tensor<?x8xf32>, tensor<16x8xf16>) -> tensor<?x16xf32>
// CHECK: %[[S:.*]]:3 = llm.split %[[A]] sizes(%{{.*}}) {axis = -1 : i64} : (tensor<?x16xf32>, tensor<3xi64>) -> (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
// CHECK: %[[Q:.*]] = llm.reshape %[[S]]#0, %{{.*}} : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<?x2x4xf32>
// CHECK: llm.rms_norm %[[Q]], %{{.*}} : (tensor<?x2x4xf32>, tensor<4xf16>) -> tensor<?x2x4xf32>
// CHECK: kv.append {{.*}} : <<layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 4], token>, <"v", f32, [1, 4], token>], page_size = 0, keys_rotated = false, window = 0>>
// CHECK: %[[HALF:.*]] = llm.constant dense<5.000000e-01> : tensor<f32>
// CHECK: llm.mul %{{.*}}, %[[HALF]] : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>

// CHECK-LABEL: func.func @target(
// CHECK-SAME: llm.max_context = 24 : i64
// CHECK-DAG: kv.read_step %{{.*}} "token"
// CHECK-DAG: kv.read_step %{{.*}} "position"
// CHECK: call @target.layer0
// CHECK: %[[R:.*]] = llm.gather
// CHECK: %[[L:.*]] = llm.linear %[[R]]
// CHECK: %[[T:.*]] = llm.tanh %[[L]]
// CHECK-NOT: llm.cast
// CHECK: return %[[T]]
llm.weight @e : tensor<32x8xf16> = #llm.dense<#llm.component<"data", tensor<32x8xf16>, dense<1.0> : tensor<32x8xf16>>>
llm.weight @p : tensor<24x8xf16> = #llm.dense<#llm.component<"data", tensor<24x8xf16>, dense<1.0> : tensor<24x8xf16>>>
llm.weight @n : tensor<4xf16> = #llm.dense<#llm.component<"data", tensor<4xf16>, dense<1.0> : tensor<4xf16>>>
llm.weight @qkv : tensor<16x8xf16> = #llm.dense<#llm.component<"data", tensor<16x8xf16>, dense<1.0> : tensor<16x8xf16>>>
func.func @main(%ids: tensor<1x?xi64> {llm.dims = ["", "s"]}, %pos: tensor<1x?xi64> {llm.dims = ["", "s"]}) -> tensor<1x?x32xf32> {
  %e = llm.get_weight @e : tensor<32x8xf16>
  %p = llm.get_weight @p : tensor<24x8xf16>
  %n = llm.get_weight @n : tensor<4xf16>
  %w = llm.get_weight @qkv : tensor<16x8xf16>
  %sizes = llm.constant dense<[8, 4, 4]> : tensor<3xi64>
  %four = llm.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
  %three = llm.constant dense<[0, 0, 8]> : tensor<3xi64>
  %half = llm.constant dense<0.5> : tensor<f16>
  %he = llm.embedding %ids, %e : (tensor<1x?xi64>, tensor<32x8xf16>) -> tensor<1x?x8xf16>
  %hp = llm.embedding %pos, %p : (tensor<1x?xi64>, tensor<24x8xf16>) -> tensor<1x?x8xf16>
  %h = llm.add %he, %hp : (tensor<1x?x8xf16>, tensor<1x?x8xf16>) -> tensor<1x?x8xf16>
  %a = llm.linear %h, %w : (tensor<1x?x8xf16>, tensor<16x8xf16>) -> tensor<1x?x16xf16>
  %q, %k, %v = llm.split %a sizes(%sizes) {axis = -1 : i64} : (tensor<1x?x16xf16>, tensor<3xi64>) -> (tensor<1x?x8xf16>, tensor<1x?x4xf16>, tensor<1x?x4xf16>)
  %q4 = llm.reshape %q, %four : (tensor<1x?x8xf16>, tensor<4xi64>) -> tensor<1x?x2x4xf16>
  %qn = llm.rms_norm %q4, %n {axis = 3 : i64} : (tensor<1x?x2x4xf16>, tensor<4xf16>) -> tensor<1x?x2x4xf16>
  %q3 = llm.reshape %qn, %three : (tensor<1x?x2x4xf16>, tensor<3xi64>) -> tensor<1x?x8xf16>
  %y = llm.attention %q3, %k, %v {causal, num_heads = 2 : i64, kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<1x?x8xf16>, tensor<1x?x4xf16>, tensor<1x?x4xf16>) -> tensor<1x?x8xf16>
  %s = llm.mul %y, %half : (tensor<1x?x8xf16>, tensor<f16>) -> tensor<1x?x8xf16>
  %h1 = llm.add %s, %h : (tensor<1x?x8xf16>, tensor<1x?x8xf16>) -> tensor<1x?x8xf16>
  %l = llm.linear %h1, %e : (tensor<1x?x8xf16>, tensor<32x8xf16>) -> tensor<1x?x32xf16>
  %f = llm.cast %l : tensor<1x?x32xf16> -> tensor<1x?x32xf32>
  %t = llm.tanh %f : tensor<1x?x32xf32>
  return %t : tensor<1x?x32xf32>
}

// -----

// GroupQueryAttention as the GenAI builder writes it: it rotates, and its
// lengths come from the mask; positions are the tokens' places. Two head sizes
// make two groups; a window and a sink belong to the layer.

// CHECK-LABEL: func.func private @target.layer0(
// CHECK-SAME: !kv.cache<<layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 4], token>, <"v", f32, [1, 4], token>], page_size = 0, keys_rotated = true, window = 0>,
// CHECK-SAME: <layers = 1, kv_heads = 2, planes = [<"k", f32, [2, 4], token>, <"v", f32, [2, 4], token>], page_size = 0, keys_rotated = true, window = 0>>
// CHECK: llm.rope {{.*}} positions(%{{.*}}) {num_heads = 2 : i64}
// CHECK: llm.rope {{.*}} positions(%{{.*}}) {num_heads = 1 : i64}
// CHECK: kv.append {{.*}} {group = 0 : i64, layer = 0 : i64}
// CHECK: kv.attend {{.*}} {group = 0 : i64, layer = 0 : i64, num_heads = 2 : i64, scale = 5.000000e-01 : f64, window = 7 : i64}
// CHECK-LABEL: func.func private @target.layer1(
// CHECK: kv.append {{.*}} {group = 1 : i64, layer = 0 : i64}
// CHECK: %[[SINK:.*]] = llm.constant dense<0.000000e+00> : tensor<2xf32>
// CHECK: kv.attend {{.*}} sink(%[[SINK]] : tensor<2xf32>) {group = 1 : i64, layer = 0 : i64, num_heads = 2 : i64
llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
llm.weight @k : tensor<4x8xf32> = #llm.dense<#llm.component<"data", tensor<4x8xf32>, dense<1.0> : tensor<4x8xf32>>>
llm.weight @t : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<1.0> : tensor<16x2xf32>>>
func.func @main(%ids: tensor<?x?xi64> {llm.dims = ["b", "s"]}, %am: tensor<?x?xi64> {llm.dims = ["b", "total"]},
    %k0: tensor<?x1x?x?xf32> {llm.dims = ["b", "", "p", "d"]}, %v0: tensor<?x1x?x?xf32> {llm.dims = ["b", "", "p", "d"]},
    %k1: tensor<?x2x?x?xf32> {llm.dims = ["b", "", "p", "d"]}, %v1: tensor<?x2x?x?xf32> {llm.dims = ["b", "", "p", "d"]})
    -> (tensor<?x?x32xf32>, tensor<?x1x?x?xf32> {llm.dims = ["b", "", "total", "d"]}, tensor<?x1x?x?xf32> {llm.dims = ["b", "", "total", "d"]},
        tensor<?x2x?x?xf32>, tensor<?x2x?x?xf32>) {
  %e = llm.get_weight @e : tensor<32x8xf32>
  %wk = llm.get_weight @k : tensor<4x8xf32>
  %t = llm.get_weight @t : tensor<16x2xf32>
  %one = llm.constant dense<1> : tensor<1xi64>
  %sum = llm.reduce sum %am axes [1] : tensor<?x?xi64> -> tensor<?xi64>
  %less = llm.sub %sum, %one : (tensor<?xi64>, tensor<1xi64>) -> tensor<?xi64>
  %len = llm.cast %less : tensor<?xi64> -> tensor<?xi32>
  %dim = llm.shape %am {start = 1 : i64} : tensor<?x?xi64> -> tensor<1xi64>
  %dim0 = llm.squeeze %dim axes [0] : tensor<1xi64> -> tensor<i64>
  %total = llm.cast %dim0 : tensor<i64> -> tensor<i32>
  %h = llm.embedding %ids, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  %k = llm.linear %h, %wk : (tensor<?x?x8xf32>, tensor<4x8xf32>) -> tensor<?x?x4xf32>
  %y, %p:2 = llm.group_query_attention %h, %k, %k past(%k0, %v0) lengths(%len, %total) rotary(%t, %t) {num_heads = 2 : i64, kv_heads = 1 : i64, scale = 0.5 : f64, window = 7 : i64}
    : (tensor<?x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x1x?x?xf32>, tensor<?x1x?x?xf32>, tensor<?xi32>, tensor<i32>, tensor<16x2xf32>, tensor<16x2xf32>) -> (tensor<?x?x8xf32>, tensor<?x1x?x?xf32>, tensor<?x1x?x?xf32>)
  %h1 = llm.add %h, %y : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %y1, %p1:2 = llm.group_query_attention %h1, %h1, %h1 past(%k1, %v1) lengths(%len, %total) rotary(%t, %t) {num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64, smooth_softmax}
    : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x2x?x?xf32>, tensor<?x2x?x?xf32>, tensor<?xi32>, tensor<i32>, tensor<16x2xf32>, tensor<16x2xf32>) -> (tensor<?x?x8xf32>, tensor<?x2x?x?xf32>, tensor<?x2x?x?xf32>)
  %h2 = llm.add %h1, %y1 : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %l = llm.linear %h2, %e : (tensor<?x?x8xf32>, tensor<32x8xf32>) -> tensor<?x?x32xf32>
  return %l, %p#0, %p#1, %p1#0, %p1#1 : tensor<?x?x32xf32>, tensor<?x1x?x?xf32>, tensor<?x1x?x?xf32>, tensor<?x2x?x?xf32>, tensor<?x2x?x?xf32>
}
