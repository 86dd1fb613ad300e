// RUN: llm-opt %s --convert-llm-to-linalg --canonicalize --cse --split-input-file | FileCheck %s --enable-var-scope

// Sums of f16 run in f32; the mean of nothing is 0 / 0.
// CHECK-LABEL: func.func @mean(
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf16>
// CHECK: %[[N:.*]] = tensor.dim %[[X]], %c1
// CHECK: linalg.generic
// CHECK: scf.for %{{.*}} = %c0 to %[[N]] step %c1 iter_args({{.*}}) -> (f32)
// CHECK: arith.extf
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK: -> tensor<?x1xf16>
func.func @mean(%x: tensor<?x?xf16>) -> tensor<?x1xf16> {
  %y = llm.reduce mean %x axes [-1] keepdims : tensor<?x?xf16> -> tensor<?x1xf16>
  return %y : tensor<?x1xf16>
}

// -----

// The largest of no integers is the smallest integer.
// CHECK-LABEL: func.func @max(
// CHECK-DAG: %[[LOW:.*]] = arith.constant -128 : i8
// CHECK: iter_args(%{{.*}} = %[[LOW]]) -> (i8)
// CHECK: arith.maxsi
func.func @max(%x: tensor<?xi8>) -> tensor<i8> {
  %y = llm.reduce max %x axes [0] : tensor<?xi8> -> tensor<i8>
  return %y : tensor<i8>
}

// -----

// Three sweeps: the largest, the exponentials, their sum; then the quotient.
// CHECK-LABEL: func.func @softmax(
// CHECK: arith.maximumf
// CHECK: linalg.generic
// CHECK: arith.subf
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK: linalg.generic
// CHECK: arith.divf
func.func @softmax(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = llm.softmax %x : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func.func @rms_norm(
// CHECK-SAME: %{{.*}}: tensor<?x?xf32>, %[[S:.*]]: tensor<8xf32>
// CHECK: cf.assert %{{.*}}, "llm.rms_norm at node 'n': scale and bias do not fit the input"
// CHECK: math.sqrt
// CHECK: tensor.extract %[[S]]
func.func @rms_norm(%x: tensor<?x?xf32>, %s: tensor<8xf32>) -> tensor<?x?xf32> {
  %y = llm.rms_norm %x, %s : (tensor<?x?xf32>, tensor<8xf32>) -> tensor<?x?xf32> loc("n")
  return %y : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: func.func @argmax(
// CHECK: cf.assert %{{.*}}, "llm.argmax at node 'a': the axis has no elements"
// CHECK: arith.cmpf oge
func.func @argmax(%x: tensor<?x?xf32>) -> tensor<?xi64> {
  %i = llm.argmax %x {axis = 1 : i64, select_last_index} : tensor<?x?xf32> -> tensor<?xi64> loc("a")
  return %i : tensor<?xi64>
}

// -----

// CHECK-LABEL: func.func @topk(
// CHECK: cf.assert %{{.*}}, "llm.topk at node 't': k is negative or larger than the axis"
// CHECK: scf.for {{.*}} -> (tensor<?x?xf32>, tensor<?x?xi64>)
func.func @topk(%x: tensor<?x8xf32>, %k: tensor<1xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>) {
  %v, %i = llm.topk %x, %k {axis = -1 : i64, largest, sorted}
    : (tensor<?x8xf32>, tensor<1xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>) loc("t")
  return %v, %i : tensor<?x?xf32>, tensor<?x?xi64>
}
