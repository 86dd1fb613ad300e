//===- Passes.cpp - Registration of the group -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/Passes.h"

namespace mlir::llm {
namespace compress {
#define GEN_PASS_REGISTRATION
#include "passes/Compress/Passes.h.inc"
} // namespace compress

void registerCompressPasses() { compress::registerLLMCompressPasses(); }
} // namespace mlir::llm
