// RUN: llm-opt %s --convert-llm-to-linalg --split-input-file | FileCheck %s --enable-var-scope

// The index replaces the coordinate along the axis, counted from either end.
// CHECK-LABEL: func.func @gather_elements(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>, %[[I:.*]]: tensor<?x2xi64>)
// CHECK: cf.assert %{{.*}}, "llm.gather_elements at node 'g': the indices reach past the input along axis 0"
// CHECK: cf.assert %{{.*}}, "llm.gather_elements at node 'g': an index is out of range"
// CHECK: linalg.generic
// CHECK: %[[ROW:.*]] = linalg.index 0
// CHECK: tensor.extract %[[I]]
// CHECK: %[[AT:.*]] = arith.select
// CHECK: tensor.extract %[[X]][%[[ROW]], %[[AT]]]
func.func @gather_elements(%x: tensor<?x4xf32>, %i: tensor<?x2xi64>) -> tensor<?x2xf32> {
  %y = llm.gather_elements %x, %i {axis = 1 : i64}
    : (tensor<?x4xf32>, tensor<?x2xi64>) -> tensor<?x2xf32> loc("g")
  return %y : tensor<?x2xf32>
}

// -----

// CHECK-LABEL: func.func @gather_nd(
// CHECK-SAME: %[[X:.*]]: tensor<?x3x4xf32>, %[[I:.*]]: tensor<?x1xi64>)
// CHECK: cf.assert %{{.*}}, "llm.gather_nd at node 'g': input and indices differ along axis 0"
// CHECK: cf.assert %{{.*}}, "llm.gather_nd at node 'g': an index is out of range"
// CHECK: linalg.generic
// CHECK: %[[B:.*]] = linalg.index 0
// CHECK: %[[C:.*]] = linalg.index 1
// CHECK: %[[AT:.*]] = arith.select
// CHECK: tensor.extract %[[X]][%[[B]], %[[AT]], %[[C]]]
func.func @gather_nd(%x: tensor<?x3x4xf32>, %i: tensor<?x1xi64>) -> tensor<?x4xf32> {
  %y = llm.gather_nd %x, %i {batch_dims = 1 : i64}
    : (tensor<?x3x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32> loc("g")
  return %y : tensor<?x4xf32>
}

// -----

// The input is copied before it is written to.
// CHECK-LABEL: func.func @scatter_elements(
// CHECK: cf.assert %{{.*}}, "llm.scatter_elements at node 's': the updates do not fit the indices along axis 0"
// CHECK: cf.assert %{{.*}}, "llm.scatter_elements at node 's': an index is out of range"
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} outs(
// CHECK: scf.for {{.*}} iter_args(%[[T:.*]] = %[[COPY]])
// CHECK: tensor.extract %[[T]]
// CHECK: arith.maximumf
// CHECK: tensor.insert
func.func @scatter_elements(%x: tensor<4xf32>, %i: tensor<?xi64>, %u: tensor<?xf32>) -> tensor<4xf32> {
  %y = llm.scatter_elements %x, %i, %u {axis = 0 : i64, reduction = "max"}
    : (tensor<4xf32>, tensor<?xi64>, tensor<?xf32>) -> tensor<4xf32> loc("s")
  return %y : tensor<4xf32>
}

// -----

// Nothing outside the input is read.
// CHECK-LABEL: func.func @pad(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>
// CHECK: cf.assert %{{.*}}, "llm.pad at node 'p': a pad is absurd"
// CHECK: cf.assert %{{.*}}, "llm.pad at node 'p': the pads cut off more than there is"
// CHECK: linalg.generic
// CHECK: scf.if
// CHECK-NEXT: tensor.extract %[[X]]
func.func @pad(%x: tensor<?xf32>, %p: tensor<2xi64>) -> tensor<?xf32> {
  %y = llm.pad %x, %p : (tensor<?xf32>, tensor<2xi64>) -> tensor<?xf32> loc("p")
  return %y : tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @reflect(
// CHECK: cf.assert %{{.*}}, "llm.pad at node 'p': there is no element to pad with along axis 0"
// CHECK: arith.remsi
func.func @reflect(%x: tensor<?xf32>, %p: tensor<2xi64>) -> tensor<?xf32> {
  %y = llm.pad %x, %p {mode = "reflect"} : (tensor<?xf32>, tensor<2xi64>) -> tensor<?xf32> loc("p")
  return %y : tensor<?xf32>
}
