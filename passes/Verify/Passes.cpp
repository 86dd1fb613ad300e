//===- Passes.cpp - Registration of the group -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Verify/Passes.h"

namespace mlir::llm {
namespace verify {
#define GEN_PASS_REGISTRATION
#include "passes/Verify/Passes.h.inc"
} // namespace verify

void registerVerifyPasses() { verify::registerLLMVerifyPasses(); }
} // namespace mlir::llm
