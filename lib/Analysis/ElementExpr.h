//===- ElementExpr.h - One element of a tensor as an expression -*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Masks and positions are tensors whose elements are simple functions of their
// indices, spread over Range, Unsqueeze, LessOrEqual, Where, Trilu, Expand ...
// This analysis writes the element at symbolic indices as one expression, so
// that a pass can ask what a mask means instead of how it was spelled.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_ANALYSIS_ELEMENTEXPR_H
#define LLM_LIB_ANALYSIS_ELEMENTEXPR_H

#include "lib/Analysis/SymbolicShape.h"

#include <deque>

namespace mlir::llm {

/// An expression for one element. Nodes are owned by ElementAnalysis.
struct Element {
  enum class Kind {
    unknown,
    integer, ///< `expr`, over dimension and index symbols.
    real,    ///< `number`.
    load,    ///< The element of `tensor` at `indices`.
    equal,   ///< lhs == rhs, and so on.
    less,
    lessEqual,
    logicalNot, ///< not lhs; the operands of logic are conditions.
    logicalAnd,
    logicalOr,
    nonZero, ///< lhs != 0, as a condition.
    select,  ///< condition ? lhs : rhs.
    add,
    sub,
    mul,
    min,
    max,
    /// The sum of lhs over the elements up to this one along an axis; `expr` is
    /// the index along that axis, and lhs is the element at that index.
    prefixSum
  };
  Kind kind = Kind::unknown;
  SymbolicExpr expr;
  double number = 0;
  Value tensor;
  SmallVector<SymbolicExpr> indices;
  const Element *condition = nullptr, *lhs = nullptr, *rhs = nullptr;

  bool is(Kind other) const { return kind == other; }
  /// The constant that an integer or real node is.
  std::optional<double> getNumber() const;
};

/// Structural equality.
bool operator==(const Element &a, const Element &b);

class ElementAnalysis {
public:
  explicit ElementAnalysis(SymbolicShape &shapes) : shapes(shapes) {}

  /// A symbol that runs over [0, size).
  SymbolicExpr index(const SymbolicExpr &size);
  /// The element of `value` at `indices`, one for each of its dimensions.
  const Element *at(Value value, ArrayRef<SymbolicExpr> indices);
  /// Whether `expr` >= 0 for all symbol values, given the ranges of the index
  /// symbols.
  bool isNonNegative(const SymbolicExpr &expr) const;

private:
  const Element *compute(Value value, ArrayRef<SymbolicExpr> indices);
  const Element *make(Element element);
  const Element *integer(SymbolicExpr expr);
  const Element *unknown() { return make({}); }
  const Element *constant(DenseElementsAttr elements, Value value,
                          ArrayRef<SymbolicExpr> indices);
  const Element *binary(Operation *op, const Element *a, const Element *b);
  const Element *compare(Element::Kind kind, const Element *a,
                         const Element *b);
  const Element *negate(const Element *a);
  /// `indices` of a broadcast result, for an operand.
  SmallVector<SymbolicExpr> operandIndices(Value operand,
                                           ArrayRef<SymbolicExpr> indices);

  SymbolicShape &shapes;
  std::deque<Element> nodes;
  llvm::DenseMap<Symbol, SymbolicExpr> ranges; ///< Exclusive upper bounds.
  unsigned depth = 0;
};

} // namespace mlir::llm

#endif // LLM_LIB_ANALYSIS_ELEMENTEXPR_H
