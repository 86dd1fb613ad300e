//===- SymbolicExpr.h - Polynomials over dimension symbols ------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_ANALYSIS_SYMBOLICEXPR_H
#define LLM_LIB_ANALYSIS_SYMBOLICEXPR_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir::llm {

/// A dimension symbol: an index into the table of whoever hands it out. Symbols
/// stand for sizes, so their values are never negative.
using Symbol = unsigned;

/// A polynomial with int64 coefficients over symbols, or "unknown". Arithmetic
/// that overflows, or grows past a fixed number of terms, gives unknown, and so
/// does arithmetic on unknown.
class SymbolicExpr {
public:
  /// The constant 0.
  SymbolicExpr() = default;
  /*implicit*/ SymbolicExpr(int64_t value);
  static SymbolicExpr symbol(Symbol symbol);
  static SymbolicExpr unknown();

  bool isKnown() const { return known; }
  /// The value, where there is no symbol in it.
  std::optional<int64_t> getConstant() const;
  /// The symbol, where that is all there is.
  std::optional<Symbol> getSymbol() const;
  bool contains(Symbol symbol) const;
  /// Whether no term has a negative coefficient, so that the value is not
  /// negative whatever the symbols are.
  bool isNonNegative() const;

  SymbolicExpr operator+(const SymbolicExpr &other) const;
  SymbolicExpr operator-(const SymbolicExpr &other) const;
  SymbolicExpr operator*(const SymbolicExpr &other) const;
  SymbolicExpr operator-() const { return SymbolicExpr(0) - *this; }
  /// The quotient where it is exact for all values of the symbols (and is a
  /// monomial, or the divisor is one); else unknown.
  SymbolicExpr dividedBy(const SymbolicExpr &divisor) const;
  /// Each symbol replaced by what `value` gives for it.
  SymbolicExpr substitute(llvm::function_ref<SymbolicExpr(Symbol)> value) const;

  /// Both known and the same polynomial.
  bool operator==(const SymbolicExpr &other) const {
    return known && other.known && terms == other.terms;
  }
  bool operator!=(const SymbolicExpr &other) const { return !(*this == other); }

  std::string str(llvm::function_ref<std::string(Symbol)> name) const;

private:
  /// Sorted symbols, with repetition; empty for the constant term.
  using Monomial = std::vector<Symbol>;
  void add(const Monomial &monomial, int64_t coefficient);

  std::map<Monomial, int64_t> terms; ///< No coefficient is 0.
  bool known = true;
};

} // namespace mlir::llm

#endif // LLM_LIB_ANALYSIS_SYMBOLICEXPR_H
