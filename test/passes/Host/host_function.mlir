// RUN: llm-opt %s --convert-llm-to-linalg --llm-generate-host-function | FileCheck %s --check-prefix=MOVE
// RUN: llm-opt %s --llm-host-function-pipeline | FileCheck %s --check-prefix=CODE

// MOVE: rt.host_function @main entry "main" code @cpu : (tensor<?x4xf32>, tensor<2xi1>) -> tensor<?x4xf32>
// MOVE-SAME: constants = ["w"]
// MOVE-SAME: input_dims = {{\[}}["n", ""], []]
// MOVE-SAME: input_names = ["x", "input1"]
// MOVE-SAME: output_names = ["y"]
// MOVE: module @cpu
// MOVE: func.func @main(%{{.*}}: tensor<?x4xf32> {bufferization.writable = false
// MOVE-SAME: %{{.*}}: tensor<2xi8> {bufferization.writable = false}
// MOVE-SAME: %{{.*}}: tensor<4xf32> {bufferization.writable = false, llm.constant = "w:data"}

// Everything is in the LLVM dialect, and nothing is called but through the
// host's table.
// CODE: module @cpu
// CODE-DAG: "input 'x' is no tensor<?x4xf32>\00"
// CODE-DAG: "a tensor of the run has a negative or absurd size\00"
// CODE-DAG: "the memory limit is reached\00"
// CODE: llvm.func @main(%[[HOST:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// CODE: llvm.load %[[HOST]]
// CODE-NOT: llvm.call @{{_mlir|llm_|malloc|free|tanh}}
// CODE-NOT: func.call
// CODE-NOT: unrealized_conversion_cast
// CODE: }
llm.weight @w : tensor<4xf32> = #llm.dense<
  #llm.component<"data", tensor<4xf32>, dense<2.0> : tensor<4xf32>>>
func.func @main(%x: tensor<?x4xf32> {llm.name = "x", llm.dims = ["n", ""]}, %u: tensor<2xi1>)
    -> (tensor<?x4xf32> {llm.name = "y"}) {
  %w = llm.get_weight @w : tensor<4xf32>
  %s = llm.mul %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %y = llm.tanh %s : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
