// RUN: llm-opt %s --convert-llm-to-linalg --canonicalize --cse --split-input-file | FileCheck %s --enable-var-scope

// A reshape of known sizes is a view and nothing else.
// CHECK-LABEL: func.func @reshape_static(
// CHECK-NOT: cf.assert
// CHECK: tensor.reshape
// CHECK-NOT: linalg.generic
func.func @reshape_static(%x: tensor<2x6xf32>) -> tensor<3x4xf32> {
  %s = llm.constant dense<[3, -1]> : tensor<2xi64>
  %y = llm.reshape %x, %s : (tensor<2x6xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK-LABEL: func.func @reshape_dynamic(
// CHECK: "llm.reshape at node 'r': the shape is negative or too large"
// CHECK: "llm.reshape at node 'r': more than one size is -1"
// CHECK: "llm.reshape at node 'r': the shape does not hold the input's elements"
// CHECK: tensor.reshape
func.func @reshape_dynamic(%x: tensor<?x?xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  %y = llm.reshape %x, %s : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32> loc("r")
  return %y : tensor<?x?xf32>
}

// -----

// With allowzero a size of 0 stays one.
// CHECK-LABEL: func.func @allowzero(
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf32>, %[[S:.*]]: tensor<2xi64>
// CHECK-NOT: arith.cmpi eq, %{{.*}}, %c0 : index
// CHECK: tensor.reshape
func.func @allowzero(%x: tensor<?x?xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  %y = llm.reshape %x, %s {allowzero} : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: func.func @squeeze(
// CHECK: cf.assert %{{.*}}, "llm.squeeze at node 's': axis 0 is not of size 1"
func.func @squeeze(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %y = llm.squeeze %x axes [0] : tensor<?x?xf32> -> tensor<?xf32> loc("s")
  return %y : tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @shape(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>
// CHECK: %[[D:.*]] = tensor.dim %[[X]], %c0
// CHECK: %[[I:.*]] = arith.index_cast %[[D]] : index to i64
// CHECK: tensor.from_elements %[[I]], %c4_i64 : tensor<2xi64>
func.func @shape(%x: tensor<?x4xf32>) -> tensor<2xi64> {
  %s = llm.shape %x : tensor<?x4xf32> -> tensor<2xi64>
  return %s : tensor<2xi64>
}

// -----

// A result that claims more than the operands tell is checked.
// CHECK-LABEL: func.func @claims(
// CHECK: cf.assert %{{.*}}, "llm.expand at node 'e': the result's axis 0 must have size 3"
func.func @claims(%x: tensor<1x?xf32>, %s: tensor<2xi64>) -> tensor<3x?xf32> {
  %y = llm.expand %x, %s : (tensor<1x?xf32>, tensor<2xi64>) -> tensor<3x?xf32> loc("e")
  return %y : tensor<3x?xf32>
}

// -----

// CHECK-LABEL: func.func @range(
// CHECK: "llm.range at node 'n': the range has a delta of 0"
// CHECK: "llm.range at node 'n': the range is too long"
func.func @range(%a: tensor<i64>, %b: tensor<i64>, %d: tensor<i64>) -> tensor<?xi64> {
  %y = llm.range %a, %b, %d : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64> loc("n")
  return %y : tensor<?xi64>
}
