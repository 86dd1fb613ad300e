// RUN: llm-opt %s --llm-raise-idioms --split-input-file | FileCheck %s --enable-var-scope

// Near misses, each of which computes something else.

// The gate is of another value.
// CHECK-LABEL: func.func @not_silu(
// CHECK-NOT: llm.silu
// CHECK: llm.mul
func.func @not_silu(%x: tensor<?x8xf32>, %z: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %s = llm.sigmoid %z : tensor<?x8xf32>
  %y = llm.mul %s, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// The square of another value; a sum in place of a mean; a power of 3.
// CHECK-LABEL: func.func @not_rms(
// CHECK-NOT: llm.rms_norm
// CHECK: return
llm.weight @w : tensor<8xf32> = #llm.dense<#llm.component<"data", tensor<8xf32>, dense<2.0> : tensor<8xf32>>>
func.func @not_rms(%x: tensor<?x8xf32>, %z: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %w = llm.get_weight @w : tensor<8xf32>
  %two = llm.constant dense<2.0> : tensor<f32>
  %three = llm.constant dense<3.0> : tensor<f32>
  %eps = llm.constant dense<1.0e-06> : tensor<f32>
  %p = llm.pow %z, %two : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %m = llm.reduce mean %p axes [-1] keepdims : tensor<?x8xf32> -> tensor<?x1xf32>
  %a = llm.add %m, %eps : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %s = llm.sqrt %a : tensor<?x1xf32>
  %n = llm.div %x, %s : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %y = llm.mul %w, %n : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %m1 = llm.reduce sum %p axes [-1] keepdims : tensor<?x8xf32> -> tensor<?x1xf32>
  %a1 = llm.add %m1, %eps : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %s1 = llm.sqrt %a1 : tensor<?x1xf32>
  %n1 = llm.div %z, %s1 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %y1 = llm.mul %w, %n1 : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %p2 = llm.pow %z, %three : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %m2 = llm.reduce mean %p2 axes [-1] keepdims : tensor<?x8xf32> -> tensor<?x1xf32>
  %a2 = llm.add %m2, %eps : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %s2 = llm.sqrt %a2 : tensor<?x1xf32>
  %n2 = llm.div %z, %s2 : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %y2 = llm.mul %w, %n2 : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y, %y1, %y2 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// A computed matrix is no weight.
// CHECK-LABEL: func.func @not_linear(
// CHECK: llm.matmul
func.func @not_linear(%x: tensor<?x4xf32>, %w: tensor<4x8xf32>) -> tensor<?x8xf32> {
  %y = llm.matmul %x, %w : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// The halves are swapped without a sign: no rotation.
// CHECK-LABEL: func.func @not_rope(
// CHECK-NOT: llm.rope
// CHECK: return
llm.weight @cos : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<1.0> : tensor<16x2xf32>>>
func.func @not_rope(%h: tensor<?x2x?x4xf32> {llm.dims = ["b", "", "s", ""]}, %p: tensor<?x?xi64> {llm.dims = ["b", "s"]}) -> tensor<?x2x?x4xf32> {
  %cw = llm.get_weight @cos : tensor<16x2xf32>
  %c1 = llm.gather %cw, %p {axis = 0 : i64} : (tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x2xf32>
  %c2 = llm.concat %c1, %c1 {axis = -1 : i64} : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x4xf32>
  %c = llm.unsqueeze %c2 axes [1] : tensor<?x?x4xf32> -> tensor<?x1x?x4xf32>
  %low, %high = llm.split %h {axis = 3 : i64} : (tensor<?x2x?x4xf32>) -> (tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>)
  %r = llm.concat %high, %low {axis = 3 : i64} : (tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>) -> tensor<?x2x?x4xf32>
  %a = llm.mul %r, %c : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %b = llm.mul %h, %c : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %y = llm.add %a, %b : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  return %y : tensor<?x2x?x4xf32>
}

// -----

// Softmax over the queries; a factor that differs by head.
// CHECK-LABEL: func.func @not_attention(
// CHECK-NOT: llm.attention
// CHECK: return
func.func @not_attention(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>, %f: tensor<1x2x1x1xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) {
  %kt = llm.transpose %k perm [0, 1, 3, 2] : tensor<1x2x3x4xf32> -> tensor<1x2x4x3xf32>
  %dots = llm.matmul %q, %kt : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32>
  %p = llm.softmax %dots {axis = 2 : i64} : tensor<1x2x3x3xf32>
  %y = llm.matmul %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %scaled = llm.mul %dots, %f : (tensor<1x2x3x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x3x3xf32>
  %p2 = llm.softmax %scaled {axis = 3 : i64} : tensor<1x2x3x3xf32>
  %y2 = llm.matmul %p2, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %y, %y2 : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>
}

// -----

// A mask that is not understood stays as it is.
// CHECK-LABEL: func.func @given_mask(
// CHECK-SAME: %[[M:[a-z0-9]*]]: tensor<1x1x3x3xf32>
// CHECK: llm.attention %{{.*}}, %{{.*}}, %{{.*}} mask(%[[M]]) {kv_heads
func.func @given_mask(%x: tensor<1x3x8xf32>, %m: tensor<1x1x3x3xf32>) -> tensor<1x3x8xf32> {
  %y = llm.attention %x, %x, %x mask(%m) {num_heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : (tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x1x3x3xf32>) -> tensor<1x3x8xf32>
  return %y : tensor<1x3x8xf32>
}
