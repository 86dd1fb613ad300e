// RUN: llm-opt %s --convert-llm-to-linalg --canonicalize --cse --split-input-file | FileCheck %s --enable-var-scope

// Static sizes: plain indexing maps, no check.
// CHECK-LABEL: func.func @static(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>, %[[Y:.*]]: tensor<4xf32>
// CHECK-NOT: cf.assert
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[Y]] : tensor<2x4xf32>, tensor<4xf32>)
// CHECK: arith.addf
// CHECK: -> tensor<2x4xf32>
func.func @static(%x: tensor<2x4xf32>, %y: tensor<4xf32>) -> tensor<2x4xf32> {
  %z = llm.add %x, %y : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

// -----

// Sizes that may be 1 at run time: checked, and read at index 0 where they are.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[Y:.*]]: tensor<?xf32>
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[DX:.*]] = tensor.dim %[[X]], %[[ZERO]]
// CHECK-DAG: %[[DY:.*]] = tensor.dim %[[Y]], %[[ZERO]]
// CHECK-DAG: %[[XONE:.*]] = arith.cmpi eq, %[[DX]], %[[ONE]]
// CHECK-DAG: %[[YONE:.*]] = arith.cmpi eq, %[[DY]], %[[ONE]]
// CHECK: cf.assert %{{.*}}, "llm.mul at node 'n7': sizes do not broadcast along axis 0"
// CHECK: %[[SIZE:.*]] = arith.select %[[XONE]], %[[DY]], %[[DX]]
// CHECK: tensor.empty(%[[SIZE]])
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[IX:.*]] = arith.select %[[XONE]], %[[ZERO]], %[[I]]
// CHECK: tensor.extract %[[X]][%[[IX]]]
// CHECK: %[[IY:.*]] = arith.select %[[YONE]], %[[ZERO]], %[[I]]
// CHECK: tensor.extract %[[Y]][%[[IY]]]
func.func @dynamic(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = llm.mul %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("n7")
  return %z : tensor<?xf32>
}

// -----

// f16 computes in f32 and is rounded by integer arithmetic; truth values arrive as bytes.
// CHECK-LABEL: func.func @narrow(
// CHECK-SAME: %{{.*}}: tensor<4xf16>, %[[C:.*]]: tensor<4xi8>
// CHECK-SAME: llm.logical_type = (tensor<4xf16>, tensor<4xi1>) -> tensor<4xf16>
// CHECK: ins(%[[C]]
// CHECK: arith.cmpi ne
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: math.exp %{{.*}} : f32
// CHECK: arith.bitcast %{{.*}} : i16 to f16
func.func @narrow(%x: tensor<4xf16>, %c: tensor<4xi1>) -> tensor<4xf16> {
  %e = llm.exp %x : tensor<4xf16>
  %z = llm.where %c, %e, %x : (tensor<4xi1>, tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  return %z : tensor<4xf16>
}

// -----

// bf16 is an integer in storage, and rounded to with integers: nothing of that
// type reaches LLVM.
// CHECK-LABEL: func.func @bf16(
// CHECK-SAME: %{{.*}}: tensor<4xi16>) -> tensor<4xi16>
// CHECK-SAME: llm.logical_type = (tensor<4xbf16>) -> tensor<4xbf16>
// CHECK-NOT: : bf16
// CHECK: %[[BITS:.*]] = arith.extui %{{.*}} : i16 to i32
// CHECK: %[[HIGH:.*]] = arith.shli %[[BITS]], %c16_i32
// CHECK: %[[X:.*]] = arith.bitcast %[[HIGH]] : i32 to f32
// CHECK: %[[Y:.*]] = math.exp %[[X]] : f32
// CHECK: %[[CODE:.*]] = arith.bitcast %[[Y]] : f32 to i32
// CHECK: %[[SUM:.*]] = arith.addi %[[CODE]], %c32767_i32
// CHECK: %[[ROUNDED:.*]] = arith.addi %[[SUM]],
// CHECK: %[[QUIET:.*]] = arith.ori %[[CODE]], %c4194304_i32
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[Y]], %[[Y]]
// CHECK: arith.select %[[NAN]], %[[QUIET]], %[[ROUNDED]]
// CHECK: arith.trunci %{{.*}} : i32 to i16
// CHECK-NOT: : bf16
// CHECK: return
func.func @bf16(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %e = llm.exp %x : tensor<4xbf16>
  return %e : tensor<4xbf16>
}

// -----

// Unsigned elements are signless in storage and keep their order.
// CHECK-LABEL: func.func @unsigned(
// CHECK-SAME: %{{.*}}: tensor<4xi8>, %{{.*}}: tensor<4xi8>
// CHECK: arith.maxui
func.func @unsigned(%x: tensor<4xui8>, %y: tensor<4xui8>) -> tensor<4xui8> {
  %z = llm.max %x, %y : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %z : tensor<4xui8>
}

// -----

// A 4-bit argument is packed bytes and its dynamic sizes.
// CHECK-LABEL: func.func @packed(
// CHECK-SAME: %[[B:.*]]: tensor<?xi8>, %[[N:.*]]: index) -> tensor<?x3xf32>
// CHECK: tensor.empty(%[[N]]) : tensor<?x3xi8>
// CHECK: tensor.extract %[[B]]
// CHECK: arith.shrsi
// CHECK: arith.sitofp
func.func @packed(%x: tensor<?x3xi4>) -> tensor<?x3xf32> {
  %z = llm.cast %x : tensor<?x3xi4> -> tensor<?x3xf32>
  return %z : tensor<?x3xf32>
}
