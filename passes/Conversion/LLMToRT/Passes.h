//===- Passes.h - Conversion to the rt dialect ------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_CONVERSION_LLMTORT_PASSES_H
#define LLM_PASSES_CONVERSION_LLMTORT_PASSES_H

#include "dialects/RT/IR/RTDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::llm {
#define GEN_PASS_DECL
#include "passes/Conversion/LLMToRT/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Conversion/LLMToRT/Passes.h.inc"
} // namespace mlir::llm

#endif // LLM_PASSES_CONVERSION_LLMTORT_PASSES_H
