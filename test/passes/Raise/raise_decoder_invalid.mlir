// RUN: llm-opt %s --llm-raise-decoder --split-input-file --verify-diagnostics | FileCheck %s --enable-var-scope

// Each graph is left as it is, with the reason.

// CHECK: func.func @not_causal({{.*}} attributes {llm.not_decoder = "llm.attention at node '/attn': it is not causal"}
// CHECK: llm.attention
llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
func.func @not_causal(%ids: tensor<?x?xi64> {llm.dims = ["b", "s"]}) -> tensor<?x?x32xf32> {
  %e = llm.get_weight @e : tensor<32x8xf32>
  %h = llm.embedding %ids, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  // expected-remark@unknown {{not raised to a decoder: it is not causal}}
  %y = llm.attention %h, %h, %h {num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32> loc("/attn")
  %l = llm.linear %y, %e : (tensor<?x?x8xf32>, tensor<32x8xf32>) -> tensor<?x?x32xf32>
  return %l : tensor<?x?x32xf32>
}

// -----

// CHECK: func.func @bias({{.*}}llm.not_decoder = "llm.attention: its mask is not understood: its elements are no conjunction of conditions on positions and padding"
llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
func.func @bias(%ids: tensor<?x?xi64> {llm.dims = ["b", "s"]}, %m: tensor<?x1x?x?xf32> {llm.dims = ["b", "", "s", "s"]}) -> tensor<?x?x32xf32> {
  %e = llm.get_weight @e : tensor<32x8xf32>
  %h = llm.embedding %ids, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  // expected-remark@+1 {{its mask is not understood}}
  %y = llm.attention %h, %h, %h mask(%m) {causal, num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x1x?x?xf32>) -> tensor<?x?x8xf32>
  %l = llm.linear %y, %e : (tensor<?x?x8xf32>, tensor<32x8xf32>) -> tensor<?x?x32xf32>
  return %l : tensor<?x?x32xf32>
}

// -----

// CHECK: func.func @none({{.*}}llm.not_decoder = "there is no attention"
llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
// expected-remark@+1 {{there is no attention}}
func.func @none(%ids: tensor<?x?xi64> {llm.dims = ["b", "s"]}) -> tensor<?x?x32xf32> {
  %e = llm.get_weight @e : tensor<32x8xf32>
  %h = llm.embedding %ids, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  %l = llm.linear %h, %e : (tensor<?x?x8xf32>, tensor<32x8xf32>) -> tensor<?x?x32xf32>
  return %l : tensor<?x?x32xf32>
}

// -----

// A running sum over the sequence looks at other tokens.
// CHECK: func.func @mixes({{.*}}llm.not_decoder = "llm.cumsum: it mixes tokens"
llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
func.func @mixes(%ids: tensor<?x4xi64> {llm.dims = ["b", ""]}) -> tensor<?x4x32xf32> {
  %e = llm.get_weight @e : tensor<32x8xf32>
  %h = llm.embedding %ids, %e : (tensor<?x4xi64>, tensor<32x8xf32>) -> tensor<?x4x8xf32>
  // expected-remark@+1 {{it mixes tokens}}
  %c = llm.cumsum %h {axis = 1 : i64} : tensor<?x4x8xf32>
  %y = llm.attention %c, %c, %c {causal, num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
  %l = llm.linear %y, %e : (tensor<?x4x8xf32>, tensor<32x8xf32>) -> tensor<?x4x32xf32>
  return %l : tensor<?x4x32xf32>
}

// -----

// CHECK: func.func @lost_cache({{.*}}llm.not_decoder = "llm.attention: its updated cache is no result of the model"
llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
func.func @lost_cache(%ids: tensor<?x?xi64> {llm.dims = ["b", "s"]}, %k: tensor<?x2x?x4xf32> {llm.dims = ["b", "", "p", ""]}, %v: tensor<?x2x?x4xf32> {llm.dims = ["b", "", "p", ""]}) -> (tensor<?x?x32xf32>, tensor<?x2x?x4xf32>) {
  %e = llm.get_weight @e : tensor<32x8xf32>
  %h = llm.embedding %ids, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  // expected-remark@+1 {{its updated cache is no result}}
  %y, %p:2 = llm.attention %h, %h, %h past(%k, %v) {causal, num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> (tensor<?x?x8xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>)
  %l = llm.linear %y, %e : (tensor<?x?x8xf32>, tensor<32x8xf32>) -> tensor<?x?x32xf32>
  return %l, %p#0 : tensor<?x?x32xf32>, tensor<?x2x?x4xf32>
}

// -----

// The encoder's states come in from outside.
// CHECK: func.func @cross({{.*}}llm.not_decoder = "llm.attention: it reads the model's input 1 other than as ids, positions, mask or cache"
llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
func.func @cross(%ids: tensor<?x?xi64> {llm.dims = ["b", "s"]}, %enc: tensor<?x?x8xf32> {llm.dims = ["b", "t", ""]}) -> tensor<?x?x32xf32> {
  %e = llm.get_weight @e : tensor<32x8xf32>
  %h = llm.embedding %ids, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  // expected-remark@+1 {{other than as ids, positions, mask or cache}}
  %y = llm.attention %h, %enc, %enc {causal, num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %l = llm.linear %y, %e : (tensor<?x?x8xf32>, tensor<32x8xf32>) -> tensor<?x?x32xf32>
  return %l : tensor<?x?x32xf32>
}

// -----

// Positions that are neither an input nor a count.
// CHECK: func.func @positions({{.*}}llm.not_decoder = "llm.rope: its positions are neither an input nor the tokens' places in their sequences"
llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
llm.weight @t : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<1.0> : tensor<16x2xf32>>>
func.func @positions(%ids: tensor<?x?xi64> {llm.dims = ["b", "s"]}, %pos: tensor<?x?xi64> {llm.dims = ["b", "s"]}) -> tensor<?x?x32xf32> {
  %e = llm.get_weight @e : tensor<32x8xf32>
  %t = llm.get_weight @t : tensor<16x2xf32>
  %two = llm.constant dense<2> : tensor<i64>
  %far = llm.mul %pos, %two : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi64>
  %h = llm.embedding %ids, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  // expected-remark@+1 {{its positions are neither an input nor}}
  %r = llm.rope %h, %t, %t positions(%far) {num_heads = 2 : i64} : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %y = llm.attention %r, %r, %h {causal, num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %l = llm.linear %y, %e : (tensor<?x?x8xf32>, tensor<32x8xf32>) -> tensor<?x?x32xf32>
  return %l : tensor<?x?x32xf32>
}

// -----

// Two inputs could be the token ids: both tables have the vocabulary's rows.
// CHECK: func.func @ambiguous({{.*}}llm.not_decoder = "llm.embedding: which input holds the token ids is not clear: 2 inputs could"
llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
func.func @ambiguous(%ids: tensor<?x?xi64> {llm.dims = ["b", "s"]}, %types: tensor<?x?xi64> {llm.dims = ["b", "s"]}) -> tensor<?x?x32xf32> {
  %e = llm.get_weight @e : tensor<32x8xf32>
  // expected-remark@+1 {{which input holds the token ids is not clear}}
  %a = llm.embedding %ids, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  %b = llm.embedding %types, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  %h = llm.add %a, %b : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %y = llm.attention %h, %h, %h {causal, num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %l = llm.linear %y, %e : (tensor<?x?x8xf32>, tensor<32x8xf32>) -> tensor<?x?x32xf32>
  return %l : tensor<?x?x32xf32>
}

// -----

// The embedding is added again in front of the second layer, so that two
// tensors go on from the first.
// CHECK: func.func @two_streams({{.*}}llm.not_decoder = "at node '/second': before this attention more than one tensor is carried on from the layer before, so layers are no functions of one hidden state"
// CHECK-NOT: func.func private
llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
// expected-remark@+1 {{more than one tensor is carried on}}
func.func @two_streams(%ids: tensor<?x?xi64> {llm.dims = ["b", "s"]}) -> tensor<?x?x32xf32> {
  %e = llm.get_weight @e : tensor<32x8xf32>
  %h = llm.embedding %ids, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  %y = llm.attention %h, %h, %h {causal, num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %z = llm.attention %y, %y, %y {causal, num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32> loc("/second")
  %s = llm.add %z, %h : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %l = llm.linear %s, %e : (tensor<?x?x8xf32>, tensor<32x8xf32>) -> tensor<?x?x32xf32>
  return %l : tensor<?x?x32xf32>
}
