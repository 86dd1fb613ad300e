// RUN: llm-opt %s --llm-raise-idioms --split-input-file | FileCheck %s --enable-var-scope

// x * cos + rotate_half(x) * sin on [batch, heads, seq, size]; the heads end up
// inside the last dimension.
// CHECK-LABEL: func.func @half(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x?x8xf32>
// CHECK-SAME: %[[P:[a-z0-9]*]]: tensor<?x?xi64>
// CHECK-DAG: %[[COS:.*]] = llm.get_weight @cos
// CHECK-DAG: %[[SIN:.*]] = llm.get_weight @sin
// CHECK: %[[R:.*]] = llm.rope %[[X]], %[[COS]], %[[SIN]] positions(%[[P]]) {num_heads = 2 : i64} : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
// CHECK: llm.reshape %[[R]]
// CHECK: llm.transpose
llm.weight @cos : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<1.0> : tensor<16x2xf32>>>
llm.weight @sin : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<0.0> : tensor<16x2xf32>>>
func.func @half(%x: tensor<?x?x8xf32> {llm.dims = ["b", "s", ""]}, %p: tensor<?x?xi64> {llm.dims = ["b", "s"]}) -> tensor<?x2x?x4xf32> {
  %t = llm.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
  %x4 = llm.reshape %x, %t : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>
  %h = llm.transpose %x4 perm [0, 2, 1, 3] : tensor<?x?x2x4xf32> -> tensor<?x2x?x4xf32>
  %cw = llm.get_weight @cos : tensor<16x2xf32>
  %sw = llm.get_weight @sin : tensor<16x2xf32>
  %c1 = llm.gather %cw, %p {axis = 0 : i64} : (tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x2xf32>
  %s1 = llm.gather %sw, %p {axis = 0 : i64} : (tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x2xf32>
  %c2 = llm.concat %c1, %c1 {axis = -1 : i64} : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x4xf32>
  %s2 = llm.concat %s1, %s1 {axis = -1 : i64} : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x4xf32>
  %c = llm.unsqueeze %c2 axes [1] : tensor<?x?x4xf32> -> tensor<?x1x?x4xf32>
  %s = llm.unsqueeze %s2 axes [1] : tensor<?x?x4xf32> -> tensor<?x1x?x4xf32>
  %i0 = llm.constant dense<0> : tensor<1xi64>
  %i2 = llm.constant dense<2> : tensor<1xi64>
  %i3 = llm.constant dense<3> : tensor<1xi64>
  %end = llm.constant dense<9223372036854775807> : tensor<1xi64>
  %low = llm.slice %h, %i0, %i2 axes(%i3) : (tensor<?x2x?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32>
  %high = llm.slice %h, %i2, %end axes(%i3) : (tensor<?x2x?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x?x2xf32>
  %n = llm.neg %high : tensor<?x2x?x2xf32>
  %r = llm.concat %n, %low {axis = 3 : i64} : (tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>) -> tensor<?x2x?x4xf32>
  %a = llm.mul %r, %s : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %b = llm.mul %c, %h : (tensor<?x1x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %y = llm.add %a, %b : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  return %y : tensor<?x2x?x4xf32>
}

// -----

// Split into halves, half tables, on [batch, seq, heads, size], static.
// CHECK-LABEL: func.func @pairs(
// CHECK: llm.rope %{{.*}}, %{{.*}}, %{{.*}} positions(%{{.*}}) {num_heads = 2 : i64} : (tensor<1x3x8xf32>
llm.weight @cos : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<1.0> : tensor<16x2xf32>>>
llm.weight @sin : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<0.0> : tensor<16x2xf32>>>
func.func @pairs(%h: tensor<1x3x2x4xf32>, %p: tensor<1x3xi64>) -> tensor<1x3x2x4xf32> {
  %cw = llm.get_weight @cos : tensor<16x2xf32>
  %sw = llm.get_weight @sin : tensor<16x2xf32>
  %c1 = llm.gather %cw, %p {axis = 0 : i64} : (tensor<16x2xf32>, tensor<1x3xi64>) -> tensor<1x3x2xf32>
  %s1 = llm.gather %sw, %p {axis = 0 : i64} : (tensor<16x2xf32>, tensor<1x3xi64>) -> tensor<1x3x2xf32>
  %c = llm.unsqueeze %c1 axes [2] : tensor<1x3x2xf32> -> tensor<1x3x1x2xf32>
  %s = llm.unsqueeze %s1 axes [2] : tensor<1x3x2xf32> -> tensor<1x3x1x2xf32>
  %x1, %x2 = llm.split %h {axis = 3 : i64} : (tensor<1x3x2x4xf32>) -> (tensor<1x3x2x2xf32>, tensor<1x3x2x2xf32>)
  %a = llm.mul %x1, %c : (tensor<1x3x2x2xf32>, tensor<1x3x1x2xf32>) -> tensor<1x3x2x2xf32>
  %b = llm.mul %x2, %s : (tensor<1x3x2x2xf32>, tensor<1x3x1x2xf32>) -> tensor<1x3x2x2xf32>
  %d = llm.mul %x2, %c : (tensor<1x3x2x2xf32>, tensor<1x3x1x2xf32>) -> tensor<1x3x2x2xf32>
  %e = llm.mul %x1, %s : (tensor<1x3x2x2xf32>, tensor<1x3x1x2xf32>) -> tensor<1x3x2x2xf32>
  %y1 = llm.sub %a, %b : (tensor<1x3x2x2xf32>, tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xf32>
  %y2 = llm.add %e, %d : (tensor<1x3x2x2xf32>, tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xf32>
  %y = llm.concat %y1, %y2 {axis = -1 : i64} : (tensor<1x3x2x2xf32>, tensor<1x3x2x2xf32>) -> tensor<1x3x2x4xf32>
  return %y : tensor<1x3x2x4xf32>
}

// -----

// Even and odd elements, stacked and flattened.
// CHECK-LABEL: func.func @interleaved(
// CHECK: llm.rope %{{.*}} positions(%{{.*}}) {interleaved, num_heads = 2 : i64} : (tensor<?x?x8xf32>
llm.weight @cos : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<1.0> : tensor<16x2xf32>>>
llm.weight @sin : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<0.0> : tensor<16x2xf32>>>
func.func @interleaved(%h: tensor<?x?x2x4xf32> {llm.dims = ["b", "s", "", ""]}, %p: tensor<?x?xi64> {llm.dims = ["b", "s"]}) -> tensor<?x?x2x4xf32> {
  %cw = llm.get_weight @cos : tensor<16x2xf32>
  %sw = llm.get_weight @sin : tensor<16x2xf32>
  %c1 = llm.gather %cw, %p {axis = 0 : i64} : (tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x2xf32>
  %s1 = llm.gather %sw, %p {axis = 0 : i64} : (tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x2xf32>
  %c = llm.unsqueeze %c1 axes [2] : tensor<?x?x2xf32> -> tensor<?x?x1x2xf32>
  %s = llm.unsqueeze %s1 axes [2] : tensor<?x?x2xf32> -> tensor<?x?x1x2xf32>
  %i0 = llm.constant dense<0> : tensor<1xi64>
  %i1 = llm.constant dense<1> : tensor<1xi64>
  %i2 = llm.constant dense<2> : tensor<1xi64>
  %i3 = llm.constant dense<3> : tensor<1xi64>
  %end = llm.constant dense<9223372036854775807> : tensor<1xi64>
  %x1 = llm.slice %h, %i0, %end axes(%i3) steps(%i2) : (tensor<?x?x2x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?x2x2xf32>
  %x2 = llm.slice %h, %i1, %end axes(%i3) steps(%i2) : (tensor<?x?x2x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?x2x2xf32>
  %a = llm.mul %x1, %c : (tensor<?x?x2x2xf32>, tensor<?x?x1x2xf32>) -> tensor<?x?x2x2xf32>
  %b = llm.mul %x2, %s : (tensor<?x?x2x2xf32>, tensor<?x?x1x2xf32>) -> tensor<?x?x2x2xf32>
  %d = llm.mul %x2, %c : (tensor<?x?x2x2xf32>, tensor<?x?x1x2xf32>) -> tensor<?x?x2x2xf32>
  %e = llm.mul %x1, %s : (tensor<?x?x2x2xf32>, tensor<?x?x1x2xf32>) -> tensor<?x?x2x2xf32>
  %y1 = llm.sub %a, %b : (tensor<?x?x2x2xf32>, tensor<?x?x2x2xf32>) -> tensor<?x?x2x2xf32>
  %y2 = llm.add %d, %e : (tensor<?x?x2x2xf32>, tensor<?x?x2x2xf32>) -> tensor<?x?x2x2xf32>
  %u1 = llm.unsqueeze %y1 axes [4] : tensor<?x?x2x2xf32> -> tensor<?x?x2x2x1xf32>
  %u2 = llm.unsqueeze %y2 axes [-1] : tensor<?x?x2x2xf32> -> tensor<?x?x2x2x1xf32>
  %st = llm.concat %u1, %u2 {axis = 4 : i64} : (tensor<?x?x2x2x1xf32>, tensor<?x?x2x2x1xf32>) -> tensor<?x?x2x2x2xf32>
  %f = llm.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
  %y = llm.reshape %st, %f : (tensor<?x?x2x2x2xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>
  return %y : tensor<?x?x2x4xf32>
}
