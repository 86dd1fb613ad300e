//===- Passes.cpp - Registration of the group -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/KVCache/Passes.h"

namespace mlir::llm {
namespace kvcache {
#define GEN_PASS_REGISTRATION
#include "passes/KVCache/Passes.h.inc"
} // namespace kvcache

void registerKVCachePasses() { kvcache::registerLLMKVCachePasses(); }
} // namespace mlir::llm
