// RUN: llm-opt %s --llm-lower-checks | FileCheck %s --enable-var-scope

// CHECK-DAG: llvm.func @llm_check(i1, !llvm.ptr)
// CHECK-DAG: llvm.mlir.global internal constant @[[$SIZE:.*]]("a tensor of the run has a negative or absurd size\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[$TEXT:.*]]("no\00")

// CHECK-LABEL: func.func @f
// CHECK-SAME: %[[N:.*]]: index, %[[C:.*]]: i1
func.func @f(%n: index, %c: i1) -> memref<?x4xf32> {
  // CHECK: %[[A:.*]] = llvm.mlir.addressof @[[$TEXT]]
  // CHECK: llvm.call @llm_check(%[[C]], %[[A]])
  // CHECK-NOT: cf.assert
  cf.assert %c, "no"
  // CHECK: %[[W:.*]] = arith.index_cast %[[N]] : index to i64
  // CHECK: arith.cmpi sge, %[[W]]
  // CHECK: arith.cmpf olt
  // CHECK: llvm.mlir.addressof @[[$SIZE]]
  // CHECK: llvm.call @llm_check
  // CHECK: memref.alloc(%[[N]])
  %m = memref.alloc(%n) : memref<?x4xf32>
  return %m : memref<?x4xf32>
}

// A size known here needs no check.
// CHECK-LABEL: func.func @g
func.func @g() -> memref<4xf32> {
  // CHECK-NEXT: memref.alloc
  %m = memref.alloc() : memref<4xf32>
  return %m : memref<4xf32>
}
