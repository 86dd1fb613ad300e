//===- MathExpansion.h - math without a library -----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CPU_MATHEXPANSION_H
#define LLM_LIB_TARGET_CPU_MATHEXPANSION_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace llm {

/// Rewrites the functions of `math` (scalars and vectors, f32 and narrower)
/// that LLVM would turn into calls of libm to arithmetic.
std::unique_ptr<mlir::Pass> createExpandMathPass();

} // namespace llm

#endif // LLM_LIB_TARGET_CPU_MATHEXPANSION_H
