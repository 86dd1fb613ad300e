//===- EmulatorLowering.h - GPU kernels for the emulator --------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CUDA_EMULATORLOWERING_H
#define LLM_LIB_TARGET_CUDA_EMULATORLOWERING_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace llm::cuda {

/// Turns the kernels of `module` into code for the CPU: they are lowered to the
/// llvm and nvvm operations that PTX is made of (lowerGPUModule), and those
/// that concern more than one thread become calls through the table of
/// include/llm/ABI/emulator.h, as does a check before each access to memory.
/// For each kernel @k the result, in the llvm dialect, has a global @k, its
/// llm_emulator_kernel, to be exported. `module` is left unchanged. Reports
/// operations that the emulator does not have.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
lowerToEmulator(mlir::gpu::GPUModuleOp module);

} // namespace llm::cuda

#endif // LLM_LIB_TARGET_CUDA_EMULATORLOWERING_H
