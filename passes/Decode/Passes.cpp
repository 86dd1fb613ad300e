//===- Passes.cpp - Registration of the group -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Decode/Passes.h"

namespace mlir::llm {
namespace decoding {
#define GEN_PASS_REGISTRATION
#include "passes/Decode/Passes.h.inc"
} // namespace decoding

void registerDecodePasses() { decoding::registerLLMDecodePasses(); }
} // namespace mlir::llm
