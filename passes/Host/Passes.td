//===- Passes.td - Whole graphs as host functions ----------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Filing rule: passes of the generic path after --convert-llm-to-linalg, in
// the order of that pipeline.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_HOST_PASSES
#define LLM_HOST_PASSES

include "mlir/Pass/PassBase.td"

def GenerateHostFunctionPass : Pass<"llm-generate-host-function", "::mlir::ModuleOp"> {
  let summary = "Move a converted function into a code module, as a host function";
  let description = [{
    The function named by `function`, after `--convert-llm-to-linalg`, moves to
    the code module named by `code`; an `rt.host_function` of its former name
    takes its place, with the logical signature, the ONNX names and dimensions,
    and the weights that it reads. The host passes the stored parts of each, in
    the order of its format.

    ```mlir
    func.func @main(%x: tensor<4xf32> {llm.name = "x"}, %w: tensor<4xf32> {llm.constant = "w:data"})
        -> (tensor<4xf32> {llm.name = "y"})
    ```
    becomes
    ```mlir
    rt.host_function @main entry "main" code @cpu : (tensor<4xf32>) -> tensor<4xf32>
      {constants = ["w"], input_names = ["x"], output_names = ["y"]}
    module @cpu { func.func @main(...) }
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"main\"", "The function to convert">,
    Option<"code", "code", "std::string", "\"cpu\"", "The code module's name">
  ];
  let dependentDialects = ["::mlir::rt::RTDialect"];
}

def LowerChecksPass : Pass<"llm-lower-checks", "::mlir::ModuleOp"> {
  let summary = "Turn run-time checks and the sizes of allocations into calls";
  let description = [{
    Each `cf.assert` becomes a call of `llm_check` with the message as a global,
    which `--llm-lower-host-function` turns into a branch. A `memref.alloc` of a
    size that only the run knows is preceded by a check that the size is not
    negative and is below 2^47 bytes.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect"];
}

def ExpandScalarMathPass : Pass<"llm-expand-scalar-math", "::mlir::ModuleOp"> {
  let summary = "Write out functions that LLVM would call from a library";
  let description = [{
    exp, log, log1p, sin, cos, tanh, erf, powf and the float remainder on
    scalars of f32 and f64 become arithmetic in f64: within 1 ulp in f32, within
    a few in f64. What x86-64-v3 has an instruction for stays; code for older
    processors writes it out in its turn.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect"];
}

def OutlineLoopsPass : Pass<"llm-outline-loops", "::mlir::ModuleOp"> {
  let summary = "Make each loop nest of a host function a function";
  let description = [{
    LLVM takes far longer over one function of a thousand loops than over a
    thousand functions. Each outermost `scf.for` that neither allocates nor
    checks moves to a private function; equal ones, as the layers of a model
    have them, become one.

    ```mlir
    func.func private @main_loop_0(%a: memref<?xf32>, %n: index) attributes {passthrough = ["noinline"]} {
      scf.for %i = %c0 to %n step %c1 { ... }
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let statistics = [Statistic<"numLoops", "loops", "Number of functions made">];
}

def LowerHostFunctionPass : Pass<"llm-lower-host-function", "::mlir::ModuleOp"> {
  let summary = "Give a lowered function the signature of llm_host_fn";
  let description = [{
    Works on a code module in the LLVM dialect. The arguments of the function
    (expanded memref descriptors) are loaded from the tensors that the host
    passes, after rank, element type and static sizes were compared with the
    signature; results become tensors of the host. Allocation and release go
    through `llm_host`; a failed check, and an allocation that the host refuses,
    branch to one block that calls `fail` and returns 1. What was allocated
    until then is the host's to release.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // LLM_HOST_PASSES
