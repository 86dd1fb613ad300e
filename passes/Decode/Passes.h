//===- Passes.h - How tokens are generated ----------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_DECODE_PASSES_H
#define LLM_PASSES_DECODE_PASSES_H

#include "dialects/Decode/IR/DecodeDialect.h"
#include "dialects/KV/IR/KVDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir::llm {

#define GEN_PASS_DECL
#include "passes/Decode/Passes.h.inc"

/// Registers the group's passes under their command-line names.
void registerDecodePasses();

} // namespace mlir::llm

#endif // LLM_PASSES_DECODE_PASSES_H
