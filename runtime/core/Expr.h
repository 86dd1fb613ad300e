//===- Expr.h - Size expressions of a manifest ---------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_CORE_EXPR_H
#define LLM_RUNTIME_CORE_EXPR_H

#include "llm/ABI/manifest.pb.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <span>

namespace llm::runtime {

/// Most nodes and deepest stack that an expression may have.
inline constexpr int maxExprNodes = 4096;
inline constexpr int maxExprDepth = 64;

/// Whether `expr` can be evaluated over `numSymbols` symbols: at least one
/// node, known operators, indices in range, constants not negative, and exactly
/// one value left on a stack that never runs empty or deeper than maxExprDepth.
/// InvalidInput says what is wrong.
Status verifyExpr(const artifact::Expr &expr, int numSymbols);

/// The value of a verified expression. Constants and symbols are not negative,
/// so values grow with the symbols: a bound at the largest symbols holds for
/// all smaller ones. InvalidInput on overflow, division by zero, or a negative
/// symbol.
Expected<int64_t> evaluateExpr(const artifact::Expr &expr,
                               std::span<const int64_t> symbols);

} // namespace llm::runtime

#endif // LLM_RUNTIME_CORE_EXPR_H
