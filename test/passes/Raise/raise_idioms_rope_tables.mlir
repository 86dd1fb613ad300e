// RUN: llm-opt %s --llm-fold-shapes --llm-raise-idioms=max-positions=3 --split-input-file | FileCheck %s --enable-var-scope

// As Hugging Face traces it: an outer product of frequencies and positions in a
// matmul, joined with itself, cos and sin, an attention factor of 1. The tables
// are cos(p), sin(p) and cos(p / 2), sin(p / 2) for p of 0 to 2.
// CHECK-DAG: llm.weight @rope.cos : tensor<3x2xf32> = {{.*}}dense<{{\[}}[1.000000e+00, 1.000000e+00], [0.540302277, 0.87758255], [-0.416146845, 0.540302277]]>
// CHECK-DAG: llm.weight @rope.sin : tensor<3x2xf32> = {{.*}}dense<{{\[}}[0.000000e+00, 0.000000e+00], [0.841470957, 0.47942555], [0.909297406, 0.841470957]]>
// CHECK-LABEL: func.func @computed(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x?x8xf32>
// CHECK-SAME: %[[P:[a-z0-9]*]]: tensor<?x?xi64>
// CHECK-DAG: %[[COS:.*]] = llm.get_weight @rope.cos
// CHECK-DAG: %[[SIN:.*]] = llm.get_weight @rope.sin
// CHECK: llm.rope %[[X]], %[[COS]], %[[SIN]] positions(%[[P]]) {num_heads = 2 : i64}
// CHECK-NOT: llm.cos
llm.weight @inv : tensor<2xf32> = #llm.dense<#llm.component<"data", tensor<2xf32>, dense<[1.0, 0.5]> : tensor<2xf32>>>
func.func @computed(%x: tensor<?x?x8xf32> {llm.dims = ["b", "s", ""]}, %p: tensor<?x?xi64> {llm.dims = ["b", "s"]}) -> tensor<?x2x?x4xf32> {
  %t = llm.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
  %x4 = llm.reshape %x, %t : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>
  %h = llm.transpose %x4 perm [0, 2, 1, 3] : tensor<?x?x2x4xf32> -> tensor<?x2x?x4xf32>
  %inv = llm.get_weight @inv : tensor<2xf32>
  %inv3 = llm.unsqueeze %inv axes [0, 2] : tensor<2xf32> -> tensor<1x2x1xf32>
  %b = llm.shape %p {start = 0 : i64, end = 1 : i64} : tensor<?x?xi64> -> tensor<1xi64>
  %ones = llm.constant dense<1> : tensor<2xi64>
  %shape = llm.concat %b, %ones {axis = 0 : i64} : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
  %invb = llm.expand %inv3, %shape : (tensor<1x2x1xf32>, tensor<3xi64>) -> tensor<?x2x1xf32>
  %p3 = llm.unsqueeze %p axes [1] : tensor<?x?xi64> -> tensor<?x1x?xi64>
  %pf = llm.cast %p3 : tensor<?x1x?xi64> -> tensor<?x1x?xf32>
  %m = llm.matmul %invb, %pf : (tensor<?x2x1xf32>, tensor<?x1x?xf32>) -> tensor<?x2x?xf32>
  %f = llm.transpose %m perm [0, 2, 1] : tensor<?x2x?xf32> -> tensor<?x?x2xf32>
  %e = llm.concat %f, %f {axis = -1 : i64} : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x4xf32>
  %one = llm.constant dense<1.0> : tensor<f32>
  %c0 = llm.cos %e : tensor<?x?x4xf32>
  %c1 = llm.mul %c0, %one : (tensor<?x?x4xf32>, tensor<f32>) -> tensor<?x?x4xf32>
  %s0 = llm.sin %e : tensor<?x?x4xf32>
  %s1 = llm.mul %s0, %one : (tensor<?x?x4xf32>, tensor<f32>) -> tensor<?x?x4xf32>
  %c = llm.unsqueeze %c1 axes [1] : tensor<?x?x4xf32> -> tensor<?x1x?x4xf32>
  %s = llm.unsqueeze %s1 axes [1] : tensor<?x?x4xf32> -> tensor<?x1x?x4xf32>
  %low, %high = llm.split %h {axis = 3 : i64} : (tensor<?x2x?x4xf32>) -> (tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>)
  %n = llm.neg %high : tensor<?x2x?x2xf32>
  %r = llm.concat %n, %low {axis = 3 : i64} : (tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>) -> tensor<?x2x?x4xf32>
  %y1 = llm.mul %h, %c : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %y2 = llm.mul %r, %s : (tensor<?x2x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %y = llm.add %y1, %y2 : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  return %y : tensor<?x2x?x4xf32>
}

// -----

// Interleaved, positions counted from 0 for all sequences alike, a product
// instead of a matmul, a factor of 2 (YaRN's), on [batch, seq, heads, size].
// CHECK-DAG: llm.weight @rope.cos : tensor<3x2xf32> = {{.*}}dense<{{\[}}[2.000000e+00, 2.000000e+00], [1.08060455, 1.7551651], [-0.832293689, 1.08060455]]>
// CHECK-LABEL: func.func @interleaved(
// CHECK: %[[R:.*]] = llm.range
// CHECK: %[[U:.*]] = llm.unsqueeze %[[R]] axes [0]
// CHECK: %[[P:.*]] = llm.expand %[[U]], %{{.*}} -> tensor<?x?xi64>
// CHECK: llm.rope %{{.*}} positions(%[[P]]) {interleaved, num_heads = 2 : i64}
func.func @interleaved(%h: tensor<?x?x2x4xf32> {llm.dims = ["b", "s", "", ""]}) -> tensor<?x?x2x4xf32> {
  %inv = llm.constant dense<[[1.0, 0.5]]> : tensor<1x2xf32>
  %zero = llm.constant dense<0> : tensor<i64>
  %onei = llm.constant dense<1> : tensor<i64>
  %two = llm.constant dense<2.0> : tensor<f32>
  %len = llm.shape %h {start = 1 : i64, end = 2 : i64} : tensor<?x?x2x4xf32> -> tensor<1xi64>
  %len0 = llm.squeeze %len axes [0] : tensor<1xi64> -> tensor<i64>
  %p = llm.range %zero, %len0, %onei : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %pf = llm.cast %p : tensor<?xi64> -> tensor<?xf32>
  %pu = llm.unsqueeze %pf axes [1] : tensor<?xf32> -> tensor<?x1xf32>
  %f = llm.mul %pu, %inv : (tensor<?x1xf32>, tensor<1x2xf32>) -> tensor<?x2xf32>
  %fu = llm.unsqueeze %f axes [2] : tensor<?x2xf32> -> tensor<?x2x1xf32>
  %f2 = llm.concat %fu, %fu {axis = 2 : i64} : (tensor<?x2x1xf32>, tensor<?x2x1xf32>) -> tensor<?x2x2xf32>
  %flat = llm.constant dense<[0, 4]> : tensor<2xi64>
  %e = llm.reshape %f2, %flat : (tensor<?x2x2xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  %c0 = llm.cos %e : tensor<?x4xf32>
  %s0 = llm.sin %e : tensor<?x4xf32>
  %c1 = llm.mul %two, %c0 : (tensor<f32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %s1 = llm.mul %two, %s0 : (tensor<f32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %c = llm.unsqueeze %c1 axes [1] : tensor<?x4xf32> -> tensor<?x1x4xf32>
  %s = llm.unsqueeze %s1 axes [1] : tensor<?x4xf32> -> tensor<?x1x4xf32>
  %i0 = llm.constant dense<0> : tensor<1xi64>
  %i1 = llm.constant dense<1> : tensor<1xi64>
  %i2 = llm.constant dense<2> : tensor<1xi64>
  %i3 = llm.constant dense<3> : tensor<1xi64>
  %end = llm.constant dense<9223372036854775807> : tensor<1xi64>
  %x1 = llm.slice %h, %i0, %end axes(%i3) steps(%i2) : (tensor<?x?x2x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?x2x2xf32>
  %x2 = llm.slice %h, %i1, %end axes(%i3) steps(%i2) : (tensor<?x?x2x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?x2x2xf32>
  %n = llm.neg %x2 : tensor<?x?x2x2xf32>
  %nu = llm.unsqueeze %n axes [4] : tensor<?x?x2x2xf32> -> tensor<?x?x2x2x1xf32>
  %xu = llm.unsqueeze %x1 axes [4] : tensor<?x?x2x2xf32> -> tensor<?x?x2x2x1xf32>
  %st = llm.concat %nu, %xu {axis = 4 : i64} : (tensor<?x?x2x2x1xf32>, tensor<?x?x2x2x1xf32>) -> tensor<?x?x2x2x2xf32>
  %fl = llm.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
  %r = llm.reshape %st, %fl : (tensor<?x?x2x2x2xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>
  %y1 = llm.mul %h, %c : (tensor<?x?x2x4xf32>, tensor<?x1x4xf32>) -> tensor<?x?x2x4xf32>
  %y2 = llm.mul %r, %s : (tensor<?x?x2x4xf32>, tensor<?x1x4xf32>) -> tensor<?x?x2x4xf32>
  %y = llm.add %y1, %y2 : (tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32>) -> tensor<?x?x2x4xf32>
  return %y : tensor<?x?x2x4xf32>
}

// -----

// Tables stored at full width, of which half is kept; half of each head turns.
// CHECK: llm.weight @rope.half : tensor<2x1xf32> = {{.*}}dense<{{\[}}[1.000000e+00], [3.000000e+00]]>
// CHECK-LABEL: func.func @partial(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<1x3x8xf32>
// CHECK: llm.rope %[[X]], %{{.*}}, %{{.*}} positions(%{{.*}}) {num_heads = 2 : i64, rotary_dim = 2 : i64} : (tensor<1x3x8xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<1x3xi64>)
llm.weight @wide : tensor<2x2xf32> = #llm.dense<#llm.component<"data", tensor<2x2xf32>, dense<[[1.0, 1.0], [3.0, 3.0]]> : tensor<2x2xf32>>>
func.func @partial(%x: tensor<1x3x8xf32>, %p: tensor<1x3xi64>) -> tensor<1x2x3x4xf32> {
  %t = llm.constant dense<[1, 3, 2, 4]> : tensor<4xi64>
  %x4 = llm.reshape %x, %t : (tensor<1x3x8xf32>, tensor<4xi64>) -> tensor<1x3x2x4xf32>
  %h = llm.transpose %x4 perm [0, 2, 1, 3] : tensor<1x3x2x4xf32> -> tensor<1x2x3x4xf32>
  %w = llm.get_weight @wide : tensor<2x2xf32>
  %c0 = llm.gather %w, %p {axis = 0 : i64} : (tensor<2x2xf32>, tensor<1x3xi64>) -> tensor<1x3x2xf32>
  %c = llm.unsqueeze %c0 axes [1] : tensor<1x3x2xf32> -> tensor<1x1x3x2xf32>
  %two = llm.constant dense<[2, 2]> : tensor<2xi64>
  %turn, %pass = llm.split %h sizes(%two) {axis = 3 : i64} : (tensor<1x2x3x4xf32>, tensor<2xi64>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>)
  %low, %high = llm.split %turn {axis = 3 : i64} : (tensor<1x2x3x2xf32>) -> (tensor<1x2x3x1xf32>, tensor<1x2x3x1xf32>)
  %n = llm.neg %high : tensor<1x2x3x1xf32>
  %r = llm.concat %n, %low {axis = 3 : i64} : (tensor<1x2x3x1xf32>, tensor<1x2x3x1xf32>) -> tensor<1x2x3x2xf32>
  %y1 = llm.mul %turn, %c : (tensor<1x2x3x2xf32>, tensor<1x1x3x2xf32>) -> tensor<1x2x3x2xf32>
  %y2 = llm.mul %r, %c : (tensor<1x2x3x2xf32>, tensor<1x1x3x2xf32>) -> tensor<1x2x3x2xf32>
  %y = llm.add %y1, %y2 : (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  %z = llm.concat %y, %pass {axis = -1 : i64} : (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x4xf32>
  return %z : tensor<1x2x3x4xf32>
}

// -----

// A table whose columns differ is not one number for each pair.
// CHECK-LABEL: func.func @uneven(
// CHECK-NOT: llm.rope
// CHECK: return
llm.weight @wide : tensor<2x2xf32> = #llm.dense<#llm.component<"data", tensor<2x2xf32>, dense<[[1.0, 1.0], [3.0, 4.0]]> : tensor<2x2xf32>>>
func.func @uneven(%x: tensor<1x2x3x2xf32>, %p: tensor<1x3xi64>) -> tensor<1x2x3x2xf32> {
  %w = llm.get_weight @wide : tensor<2x2xf32>
  %c0 = llm.gather %w, %p {axis = 0 : i64} : (tensor<2x2xf32>, tensor<1x3xi64>) -> tensor<1x3x2xf32>
  %c = llm.unsqueeze %c0 axes [1] : tensor<1x3x2xf32> -> tensor<1x1x3x2xf32>
  %low, %high = llm.split %x {axis = 3 : i64} : (tensor<1x2x3x2xf32>) -> (tensor<1x2x3x1xf32>, tensor<1x2x3x1xf32>)
  %n = llm.neg %high : tensor<1x2x3x1xf32>
  %r = llm.concat %n, %low {axis = 3 : i64} : (tensor<1x2x3x1xf32>, tensor<1x2x3x1xf32>) -> tensor<1x2x3x2xf32>
  %y1 = llm.mul %x, %c : (tensor<1x2x3x2xf32>, tensor<1x1x3x2xf32>) -> tensor<1x2x3x2xf32>
  %y2 = llm.mul %r, %c : (tensor<1x2x3x2xf32>, tensor<1x1x3x2xf32>) -> tensor<1x2x3x2xf32>
  %y = llm.add %y1, %y2 : (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  return %y : tensor<1x2x3x2xf32>
}
