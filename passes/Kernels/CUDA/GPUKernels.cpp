//===- GPUKernels.cpp - Kernel families for the GPU
//--------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CUDA/GPUKernels.h"

namespace mlir::llm {

void populateCUDAKernels(KernelRegistry &registry) {
  for (StringRef target : {"cuda", "cuda-emulator"}) {
    registry.add(target, "linear", generateGPULinear);
    registry.add(target, "rms_norm", generateGPURMSNorm);
  }
}

} // namespace mlir::llm
