// RUN: llm-opt %s --llm-outline-loops | FileCheck %s --enable-var-scope

// CHECK-LABEL: func.func private @main_loop_0(
// CHECK-SAME: %[[N:.*]]: index, %[[A:.*]]: memref<?xf32>)
// CHECK-SAME: passthrough = ["noinline"]
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: scf.for %{{.*}} = %[[ZERO]] to %[[N]]
// CHECK: memref.store %{{.*}}, %[[A]]
// CHECK: return
// CHECK-NOT: @main_loop_1

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[Y:.*]]: memref<?xf32>, %[[K:.*]]: index
func.func @main(%x: memref<?xf32>, %y: memref<?xf32>, %k: index)
    attributes {llm.host_constants = []} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  // Equal loops share a function.
  // CHECK: call @main_loop_0(%[[K]], %[[X]])
  scf.for %i = %c0 to %k step %c1 {
    memref.store %f, %x[%i] : memref<?xf32>
  }
  // CHECK: call @main_loop_0(%[[K]], %[[Y]])
  scf.for %i = %c0 to %k step %c1 {
    memref.store %f, %y[%i] : memref<?xf32>
  }
  // What allocates stays; what it holds does not.
  // CHECK: scf.for
  // CHECK: memref.alloc
  // CHECK: call @main_loop_0
  // CHECK: memref.dealloc
  scf.for %i = %c0 to %k step %c1 {
    %m = memref.alloc(%k) : memref<?xf32>
    scf.for %j = %c0 to %k step %c1 {
      memref.store %f, %m[%j] : memref<?xf32>
    }
    memref.dealloc %m : memref<?xf32>
  }
  return
}

// Only host functions are touched.
// CHECK-LABEL: func.func @other(
// CHECK: scf.for
func.func @other(%x: memref<?xf32>, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  scf.for %i = %c0 to %k step %c1 {
    memref.store %f, %x[%i] : memref<?xf32>
  }
  return
}
