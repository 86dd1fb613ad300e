// RUN: llm-opt %s --llm-fold-shapes --split-input-file | FileCheck %s --enable-var-scope

// Dynamic: the target says "as the input" where a symbol passes through.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: %[[X:.*]]: tensor<?x?x64xf32>
// CHECK: %[[T:.*]] = llm.constant dense<[0, 0, 4, 16]> : tensor<4xi64>
// CHECK: %[[Y:.*]] = llm.reshape %[[X]], %[[T]] : (tensor<?x?x64xf32>, tensor<4xi64>) -> tensor<?x?x4x16xf32>
// CHECK: return %[[Y]] : tensor<?x?x4x16xf32>
func.func @dynamic(%x: tensor<?x?x64xf32> {llm.dims = ["batch", "seq", ""]}) -> tensor<?x?x?x?xf32> {
  %s = llm.shape %x : tensor<?x?x64xf32> -> tensor<3xi64>
  %zero = llm.constant dense<0> : tensor<i64>
  %one = llm.constant dense<1> : tensor<1xi64>
  %b0 = llm.gather %s, %zero {axis = 0 : i64} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %b = llm.unsqueeze %b0 axes [0] : tensor<i64> -> tensor<1xi64>
  %l = llm.gather %s, %one {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
  %tail = llm.constant dense<[-1, 16]> : tensor<2xi64>
  %t = llm.concat %b, %l, %tail {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<2xi64>) -> tensor<4xi64>
  %y = llm.reshape %x, %t : (tensor<?x?x64xf32>, tensor<4xi64>) -> tensor<?x?x?x?xf32>
  return %y : tensor<?x?x?x?xf32>
}

// -----

// Static: everything is a number.
// CHECK-LABEL: func.func @static(
// CHECK-NOT: llm.shape
// CHECK: llm.constant dense<[6, 4]> : tensor<2xi64>
// CHECK: llm.reshape {{.*}} -> tensor<6x4xf32>
func.func @static(%x: tensor<2x3x4xf32>) -> tensor<?x?xf32> {
  %s = llm.shape %x : tensor<2x3x4xf32> -> tensor<3xi64>
  %two = llm.constant dense<2> : tensor<1xi64>
  %d = llm.gather %s, %two {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
  %m = llm.constant dense<-1> : tensor<1xi64>
  %t = llm.concat %m, %d {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %y = llm.reshape %x, %t : (tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// Constant: arithmetic on scalars and vectors of sizes and on small floats.
// CHECK-LABEL: func.func @constant(
// CHECK-DAG: %[[I:.*]] = llm.constant dense<[8, 3, -2]> : tensor<3xi64>
// CHECK-DAG: %[[F:.*]] = llm.constant dense<2.500000e-01> : tensor<f32>
// CHECK: return %[[I]], %[[F]] : tensor<3xi64>, tensor<f32>
func.func @constant() -> (tensor<3xi64>, tensor<f32>) {
  %a = llm.constant dense<[2, 7, -4]> : tensor<3xi64>
  %b = llm.constant dense<[4, 2, 2]> : tensor<3xi64>
  %mul = llm.mul %a, %b : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %div = llm.div %a, %b : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %c = llm.constant dense<[true, false, false]> : tensor<3xi1>
  %w = llm.where %c, %mul, %div : (tensor<3xi1>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %f = llm.constant dense<16.0> : tensor<f32>
  %s = llm.sqrt %f : tensor<f32>
  %r = llm.reciprocal %s : tensor<f32>
  return %w, %r : tensor<3xi64>, tensor<f32>
}

// -----

// Sizes beside each other: [b, k, r, t, d] to [b, k * r, t, d].
// CHECK-LABEL: func.func @repeat(
// CHECK: %[[E:.*]] = llm.constant dense<[1, 2, 3, 1, 8]> : tensor<5xi64>
// CHECK: %[[X:.*]] = llm.expand %{{.*}}, %[[E]] : (tensor<?x2x1x?x8xf32>, tensor<5xi64>) -> tensor<?x2x3x?x8xf32>
// CHECK: %[[T:.*]] = llm.constant dense<[0, 6, -1, 8]> : tensor<4xi64>
// CHECK: llm.reshape %[[X]], %[[T]] : (tensor<?x2x3x?x8xf32>, tensor<4xi64>) -> tensor<?x6x?x8xf32>
func.func @repeat(%x: tensor<?x2x?x8xf32> {llm.dims = ["b", "", "t", ""]}) -> tensor<?x?x?x?xf32> {
  %s = llm.shape %x : tensor<?x2x?x8xf32> -> tensor<4xi64>
  %i0 = llm.constant dense<0> : tensor<1xi64>
  %i1 = llm.constant dense<1> : tensor<1xi64>
  %i2 = llm.constant dense<2> : tensor<1xi64>
  %i3 = llm.constant dense<3> : tensor<1xi64>
  %b = llm.gather %s, %i0 {axis = 0 : i64} : (tensor<4xi64>, tensor<1xi64>) -> tensor<1xi64>
  %k = llm.gather %s, %i1 {axis = 0 : i64} : (tensor<4xi64>, tensor<1xi64>) -> tensor<1xi64>
  %t = llm.gather %s, %i2 {axis = 0 : i64} : (tensor<4xi64>, tensor<1xi64>) -> tensor<1xi64>
  %d = llm.gather %s, %i3 {axis = 0 : i64} : (tensor<4xi64>, tensor<1xi64>) -> tensor<1xi64>
  %five = llm.concat %b, %k, %i3, %t, %d {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xi64>
  %u = llm.unsqueeze %x axes [2] : tensor<?x2x?x8xf32> -> tensor<?x2x1x?x8xf32>
  %e = llm.expand %u, %five : (tensor<?x2x1x?x8xf32>, tensor<5xi64>) -> tensor<?x?x?x?x?xf32>
  %h = llm.mul %k, %i3 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %four = llm.concat %b, %h, %t, %d {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xi64>
  %y = llm.reshape %e, %four : (tensor<?x?x?x?x?xf32>, tensor<4xi64>) -> tensor<?x?x?x?xf32>
  return %y : tensor<?x?x?x?xf32>
}

// -----

// A slice, a reshape and an expansion that change nothing go.
// CHECK-LABEL: func.func @nothing(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>
// CHECK-NEXT: return %[[X]] : tensor<?x4xf32>
func.func @nothing(%x: tensor<?x4xf32> {llm.dims = ["n", ""]}) -> tensor<?x4xf32> {
  %begin = llm.constant dense<0> : tensor<1xi64>
  %end = llm.constant dense<9223372036854775807> : tensor<1xi64>
  %axis = llm.constant dense<0> : tensor<1xi64>
  %a = llm.slice %x, %begin, %end axes(%axis) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32>
  %s = llm.shape %x : tensor<?x4xf32> -> tensor<2xi64>
  %b = llm.reshape %a, %s : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  %c = llm.expand %b, %s : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  return %c : tensor<?x4xf32>
}

// -----

// A result's name that is another expression holds for the arguments too.
// CHECK-LABEL: func.func @learn(
// CHECK-SAME: tensor<?x16xf32> {llm.dims = ["n", "head"]}
// CHECK-SAME: -> (tensor<?x16xf32> {llm.dims = ["n", "head"]})
func.func @learn(%x: tensor<?x16xf32> {llm.dims = ["n", ""]}, %y: tensor<?x?xf32> {llm.dims = ["n", "head"]}) -> (tensor<?x?xf32> {llm.dims = ["n", "head"]}) {
  %t = llm.constant dense<[-1, 16]> : tensor<2xi64>
  %z = llm.reshape %x, %t : (tensor<?x16xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %z : tensor<?x?xf32>
}

// -----

// Constants that broadcast: one element against four, [4] against [1, 1].
// CHECK-LABEL: func.func @broadcast(
// CHECK: llm.constant dense<{{\[\[}}3.000000e+00, 6.000000e+00, 9.000000e+00, 1.200000e+01]]> : tensor<1x4xf32>
func.func @broadcast() -> tensor<1x4xf32> {
  %a = llm.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %b = llm.constant dense<3.0> : tensor<1x1xf32>
  %c = llm.mul %a, %b : (tensor<4xf32>, tensor<1x1xf32>) -> tensor<1x4xf32>
  return %c : tensor<1x4xf32>
}
