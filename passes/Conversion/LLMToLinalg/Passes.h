//===- Passes.h - From the llm dialect to linalg ---------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_CONVERSION_LLMTOLINALG_PASSES_H
#define LLM_PASSES_CONVERSION_LLMTOLINALG_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::llm {
/// On an argument that `--convert-llm-to-linalg` added: "weight:component", the
/// stored bytes that it stands for (StringAttr).
inline constexpr StringRef kConstantAttr = "llm.constant";
/// On a function that was converted: its type before (TypeAttr).
inline constexpr StringRef kLogicalTypeAttr = "llm.logical_type";

#define GEN_PASS_DECL
#include "passes/Conversion/LLMToLinalg/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Conversion/LLMToLinalg/Passes.h.inc"
} // namespace mlir::llm

#endif // LLM_PASSES_CONVERSION_LLMTOLINALG_PASSES_H
