//===- Passes.td - Code generation for NVIDIA GPUs ---------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes that wrap this directory's code generation. What writes kernels is in
// passes/Kernels.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TARGET_CUDA_PASSES
#define LLM_TARGET_CUDA_PASSES

include "mlir/Pass/PassBase.td"

def CompileGPUKernels : Pass<"llm-compile-gpu-kernels", "::mlir::ModuleOp"> {
  let summary = "Compile GPU modules to PTX and machine code";
  let description = [{
    Replaces each gpu.module that has an `#nvvm.target` by a gpu.binary of the
    same name: an object with the PTX, and one with the machine code where a
    ptxas is found. The variants that refer to the module get the registers,
    spilled bytes and shared bytes that ptxas reports. Modules without a target
    belong to the emulator and stay.

    ```mlir
    rt.kernel @norm family "rms_norm" params {dim = 64 : i64, epsilon = 1.0e-5 : f64} {
      rt.variant "norm" code @target_sm_90 {block_threads = 32 : i64}
    }
    gpu.module @target_sm_90 [#nvvm.target<chip = "sm_90">] { ... }
    // becomes
    rt.kernel @norm family "rms_norm" params {dim = 64 : i64, epsilon = 1.0e-5 : f64} {
      rt.variant "norm" code @target_sm_90 {block_threads = 32 : i64, registers = 24 : i64,
                                            shared_bytes = 0 : i64, spill_bytes = 0 : i64}
    }
    gpu.binary @target_sm_90 [
      #gpu.object<#nvvm.target<chip = "sm_90">, kernels = ..., assembly = "...">,
      #gpu.object<#nvvm.target<chip = "sm_90">, bin = "...">]
    ```
  }];
  let options = [
    Option<"toolkit", "toolkit", "std::string", "",
      "Root of the CUDA toolkit whose ptxas is used; default: CUDA_ROOT, CUDA_HOME, CUDA_PATH, PATH">,
    Option<"timeout", "timeout", "unsigned", "120",
      "Seconds that ptxas may take for a module">,
    Option<"dumpDirectory", "dump-dir", "std::string", "",
      "Also write MODULE.ptx and MODULE.cubin to this directory">
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect"];
  let statistics = [
    Statistic<"numModules", "modules", "GPU modules compiled">,
    Statistic<"numSpilling", "spilling", "Kernels that spill registers">
  ];
}

#endif // LLM_TARGET_CUDA_PASSES
