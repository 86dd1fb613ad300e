//===- LowerGPUModule.h - gpu.module to the nvvm dialect --------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CUDA_LOWERGPUMODULE_H
#define LLM_LIB_TARGET_CUDA_LOWERGPUMODULE_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace llm::cuda {

/// A copy of `module` alone in a builtin.module, which verifiers of operations
/// within look for.
mlir::OwningOpRef<mlir::ModuleOp>
isolateGPUModule(mlir::gpu::GPUModuleOp module);
/// The GPU module of `isolateGPUModule`.
mlir::gpu::GPUModuleOp getGPUModule(mlir::ModuleOp isolated);

/// Lowers the kernels of `module` (gpu, nvgpu, vector, memref, scf, affine,
/// arith, llvm, nvvm over statically shaped buffers) in place to llvm and nvvm
/// operations that take bare pointers and 64-bit sizes. Both PTX and the
/// emulator start from the result. Afterwards nothing else is left and no
/// function is called that is not defined here; either is reported, with the
/// location of the operation.
mlir::LogicalResult lowerGPUModule(mlir::gpu::GPUModuleOp module);

} // namespace llm::cuda

#endif // LLM_LIB_TARGET_CUDA_LOWERGPUMODULE_H
