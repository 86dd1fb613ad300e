// RUN: llm-opt %s --convert-llm-to-linalg --canonicalize --cse --split-input-file | FileCheck %s --enable-var-scope

// Indices are checked in one sweep, then read; negative ones count from the
// end.
// CHECK-LABEL: func.func @gather(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>, %[[I:.*]]: tensor<?xi64>
// CHECK: %[[N:.*]] = tensor.dim %[[X]], %c0
// CHECK: %[[OK:.*]] = scf.for
// CHECK: arith.cmpi sge
// CHECK: arith.cmpi slt
// CHECK: cf.assert %[[OK]], "llm.gather at node 'g': an index is out of range"
// CHECK: linalg.generic
// CHECK: %[[AT:.*]] = arith.index_cast
// CHECK: %[[NEG:.*]] = arith.cmpi slt, %[[AT]], %c0
// CHECK: %[[SUM:.*]] = arith.addi %[[AT]], %[[N]]
// CHECK: %[[ROW:.*]] = arith.select %[[NEG]], %[[SUM]], %[[AT]]
// CHECK: tensor.extract %[[X]][%[[ROW]],
func.func @gather(%x: tensor<?x4xf32>, %i: tensor<?xi64>) -> tensor<?x4xf32> {
  %y = llm.gather %x, %i {axis = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32> loc("g")
  return %y : tensor<?x4xf32>
}

// -----

// Constant bounds of a slice fold away.
// CHECK-LABEL: func.func @slice_static(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>
// CHECK-NOT: cf.assert
// CHECK: tensor.empty() : tensor<3x4xf32>
// CHECK: arith.muli %{{.*}}, %c-2
// CHECK: arith.addi %{{.*}}, %c6
func.func @slice_static(%x: tensor<8x4xf32>) -> tensor<3x4xf32> {
  %b = llm.constant dense<6> : tensor<1xi64>
  %e = llm.constant dense<0> : tensor<1xi64>
  %a = llm.constant dense<0> : tensor<1xi64>
  %s = llm.constant dense<-2> : tensor<1xi64>
  %y = llm.slice %x, %b, %e axes(%a) steps(%s)
    : (tensor<8x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK-LABEL: func.func @slice_dynamic(
// CHECK: "llm.slice at node 's': an axis is out of range"
// CHECK: "llm.slice at node 's': a step is 0"
func.func @slice_dynamic(%x: tensor<?x?xf32>, %b: tensor<1xi64>, %e: tensor<1xi64>, %a: tensor<1xi64>,
                         %s: tensor<1xi64>) -> tensor<?x?xf32> {
  %y = llm.slice %x, %b, %e axes(%a) steps(%s)
    : (tensor<?x?xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32> loc("s")
  return %y : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: func.func @concat(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: tensor<2x?xf32>
// CHECK: cf.assert %{{.*}}, "llm.concat at node 'c': input 1 has another size along axis 1"
// CHECK: arith.addi %{{.*}}, %c2
// CHECK: tensor.extract %[[X]]
// CHECK: tensor.extract %[[Y]]
func.func @concat(%x: tensor<?x4xf32>, %y: tensor<2x?xf32>) -> tensor<?x4xf32> {
  %z = llm.concat %x, %y {axis = 0 : i64} : (tensor<?x4xf32>, tensor<2x?xf32>) -> tensor<?x4xf32> loc("c")
  return %z : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func.func @split(
// CHECK: "llm.split at node 'p': a part is negative or larger than the axis"
// CHECK: "llm.split at node 'p': the parts do not add up to the axis"
func.func @split(%x: tensor<?xf32>, %s: tensor<2xi64>) -> (tensor<?xf32>, tensor<?xf32>) {
  %a, %b = llm.split %x sizes(%s) {axis = 0 : i64}
    : (tensor<?xf32>, tensor<2xi64>) -> (tensor<?xf32>, tensor<?xf32>) loc("p")
  return %a, %b : tensor<?xf32>, tensor<?xf32>
}

// -----

// The input is copied before it is written to.
// CHECK-LABEL: func.func @scatter(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK: cf.assert %{{.*}}, "llm.scatter_nd at node 'u': an index is out of range"
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} outs(
// CHECK: scf.for {{.*}} iter_args(%[[T:.*]] = %[[COPY]])
// CHECK: tensor.extract %[[T]]
// CHECK: arith.addf
// CHECK: tensor.insert
func.func @scatter(%x: tensor<4xf32>, %i: tensor<2x1xi64>, %u: tensor<2xf32>) -> tensor<4xf32> {
  %y = llm.scatter_nd %x, %i, %u {reduction = "add"}
    : (tensor<4xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<4xf32> loc("u")
  return %y : tensor<4xf32>
}
