//===- Passes.h - Smaller weights and arithmetic ----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_PASSES_H
#define LLM_PASSES_COMPRESS_PASSES_H

#include "dialects/KV/IR/KVDialect.h"
#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir::llm {

#define GEN_PASS_DECL
#include "passes/Compress/Passes.h.inc"

/// Registers the group's passes under their command-line names.
void registerCompressPasses();

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_PASSES_H
