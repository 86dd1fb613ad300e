//===- Passes.cpp - Registration of the raise group -----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Passes.h"

namespace mlir::llm {
namespace raise {
#define GEN_PASS_REGISTRATION
#include "passes/Raise/Passes.h.inc"
} // namespace raise

void registerRaisePasses() { raise::registerLLMRaisePasses(); }
} // namespace mlir::llm
