//===- MaskAnalysis.h - What attention masks and positions mean -*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_ANALYSIS_MASKANALYSIS_H
#define LLM_LIB_ANALYSIS_MASKANALYSIS_H

#include "lib/Analysis/ElementExpr.h"

namespace mlir::llm {

/// Query i (0 is the first new token, at slot `past`) sees key slot j when
/// every condition below holds, and under no other condition.
struct MaskMeaning {
  /// j <= past + i.
  bool causal = false;
  /// j > past + i - window; 0: no such condition.
  int64_t window = 0;
  /// padding[b, j] is not zero; an argument of the function, [batch, slots] of
  /// integers or i1. Null: no such condition.
  Value padding;
};

/// What `mask` says when added to (floats) or selecting (i1) the scores
/// [batch, heads, queries, keys] of an attention: the sizes are those of the
/// scores, `past` the slots before the first query. On failure `reason` says
/// what was not understood.
std::optional<MaskMeaning> analyzeMask(SymbolicShape &shapes, Value mask,
                                       const SymbolicExpr &queries,
                                       const SymbolicExpr &keys,
                                       const SymbolicExpr &past,
                                       std::string &reason);

/// What a [batch, seq] (or [seq], or [1, seq]) tensor of rotary or learned
/// positions holds.
enum class PositionMeaning {
  unknown,
  /// A function argument's elements, token by token: `argument` is set.
  input,
  /// past + i, or the number of unmasked slots up to the token's own, less 1.
  /// These are the token's place in its sequence.
  counted
};
struct Positions {
  PositionMeaning meaning = PositionMeaning::unknown;
  Value argument;
};
/// `past` as above.
Positions analyzePositions(SymbolicShape &shapes, Value positions,
                           const SymbolicExpr &past);

} // namespace mlir::llm

#endif // LLM_LIB_ANALYSIS_MASKANALYSIS_H
