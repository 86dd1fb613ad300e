//===- GPUKernels.h - Kernel families for the GPU ---------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One generator per family of docs/formats/kernel-families.md, for the targets
// `cuda` and `cuda-emulator`. Each appends one gpu.func and accumulates in an
// order that depends on the kernel's static parameters only.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CUDA_GPUKERNELS_H
#define LLM_PASSES_KERNELS_CUDA_GPUKERNELS_H

#include "passes/Kernels/KernelFamily.h"

namespace mlir::llm {

/// `rms_norm`: a block per row.
LogicalResult generateGPURMSNorm(KernelBuilder &kernel);

/// `linear` over a `gpu_affine` weight, for few rows: a block per panel of
/// outputs and row. Refuses other layouts, and `accuracy_level` 4.
LogicalResult generateGPULinear(KernelBuilder &kernel);

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CUDA_GPUKERNELS_H
