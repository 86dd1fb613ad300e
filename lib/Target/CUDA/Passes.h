//===- Passes.h - Code generation for NVIDIA GPUs ---------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CUDA_PASSES_H
#define LLM_LIB_TARGET_CUDA_PASSES_H

#include "mlir/Pass/Pass.h"

namespace llm::cuda {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Target/CUDA/Passes.h.inc"

} // namespace llm::cuda

#endif // LLM_LIB_TARGET_CUDA_PASSES_H
