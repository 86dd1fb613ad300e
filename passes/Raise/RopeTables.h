//===- RopeTables.h - Where cos and sin of a rotation come from -*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_RAISE_ROPETABLES_H
#define LLM_PASSES_RAISE_ROPETABLES_H

#include "lib/Analysis/ElementExpr.h"
#include "passes/Raise/Utils.h"

#include <map>

namespace mlir::llm {

/// Finds, for cos and sin spread over heads in whatever spelling, the tables
/// [positions, rotary / 2] and the positions that pick their rows. Where they
/// are computed from positions and frequencies, or stored at full width, makes
/// the tables.
class RopeTables {
public:
  struct Table {
    Value cos, sin;  ///< [rows, rotary / 2]
    Value positions; ///< [batch, seq]
    bool headsFirst; ///< The input is [batch, heads, seq, size].
  };

  RopeTables(func::FuncOp func, SymbolicShape &shapes, int64_t maxPositions)
      : func(func), shapes(shapes), maxPositions(maxPositions) {}

  /// For the rotation of `input` (rank 4) by `cos` and `sin`, which broadcast
  /// to it where `doubled`, else to half of it. New ops go before `user`.
  std::optional<Table> find(Operation *user, Value input, Value cos, Value sin,
                            bool doubled, bool interleaved);

private:
  /// One number of cos or sin, as the analysis writes it.
  struct Source {
    enum class Kind { table, cosine, sine } kind = Kind::table;
    double scale = 1;
    Value rows;                       ///< table: the embedding's result.
    Value angle;                      ///< cosine, sine: the operand.
    const Element *element = nullptr; ///< Row element, or the angle.
  };
  std::optional<Source> sourceOf(ElementAnalysis &elements, Value value,
                                 ArrayRef<SymbolicExpr> indices);
  Value halfTable(Value table, bool interleaved);
  Value computedTable(Source::Kind kind, ArrayRef<double> frequencies,
                      double scale);
  Value findPositions(Operation *user, ElementAnalysis &elements, Value angle,
                      const Element *position, const SymbolicExpr &b,
                      const SymbolicExpr &s, ArrayRef<SymbolicExpr> rows);
  /// `positions` as [batch, seq].
  Value spread(Operation *user, Value positions, Value input, bool headsFirst);

  func::FuncOp func;
  SymbolicShape &shapes;
  int64_t maxPositions;
  std::map<std::tuple<int, double, std::vector<double>>, Value> computed;
  llvm::DenseMap<std::pair<Value, unsigned>, Value> halves;
};

} // namespace mlir::llm

#endif // LLM_PASSES_RAISE_ROPETABLES_H
