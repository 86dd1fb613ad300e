//===- SymbolicExpr.cpp - Polynomials over dimension symbols --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/SymbolicExpr.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::llm;

/// Shape arithmetic of real models stays far below these.
static constexpr size_t kMaxTerms = 32;
static constexpr size_t kMaxDegree = 8;

SymbolicExpr::SymbolicExpr(int64_t value) {
  if (value != 0)
    terms[{}] = value;
}

SymbolicExpr SymbolicExpr::symbol(Symbol symbol) {
  SymbolicExpr expr;
  expr.terms[{symbol}] = 1;
  return expr;
}

SymbolicExpr SymbolicExpr::unknown() {
  SymbolicExpr expr;
  expr.known = false;
  return expr;
}

std::optional<int64_t> SymbolicExpr::getConstant() const {
  if (!known)
    return std::nullopt;
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

std::optional<Symbol> SymbolicExpr::getSymbol() const {
  if (known && terms.size() == 1 && terms.begin()->second == 1 &&
      terms.begin()->first.size() == 1)
    return terms.begin()->first.front();
  return std::nullopt;
}

bool SymbolicExpr::contains(Symbol symbol) const {
  return std::any_of(terms.begin(), terms.end(), [&](const auto &term) {
    return std::binary_search(term.first.begin(), term.first.end(), symbol);
  });
}

bool SymbolicExpr::isNonNegative() const {
  return known && std::all_of(terms.begin(), terms.end(),
                              [](const auto &term) { return term.second > 0; });
}

void SymbolicExpr::add(const Monomial &monomial, int64_t coefficient) {
  if (!known)
    return;
  auto [it, inserted] = terms.try_emplace(monomial, coefficient);
  if (!inserted && __builtin_add_overflow(it->second, coefficient, &it->second))
    *this = unknown();
  else if (it->second == 0)
    terms.erase(it);
  else if (terms.size() > kMaxTerms)
    *this = unknown();
}

SymbolicExpr SymbolicExpr::operator+(const SymbolicExpr &other) const {
  if (!known || !other.known)
    return unknown();
  SymbolicExpr sum = *this;
  for (const auto &[monomial, coefficient] : other.terms)
    sum.add(monomial, coefficient);
  return sum;
}

SymbolicExpr SymbolicExpr::operator-(const SymbolicExpr &other) const {
  return *this + other * SymbolicExpr(-1);
}

SymbolicExpr SymbolicExpr::operator*(const SymbolicExpr &other) const {
  if (!known || !other.known)
    return unknown();
  SymbolicExpr product;
  for (const auto &[a, x] : terms)
    for (const auto &[b, y] : other.terms) {
      Monomial monomial(a);
      monomial.insert(monomial.end(), b.begin(), b.end());
      std::sort(monomial.begin(), monomial.end());
      int64_t coefficient;
      if (monomial.size() > kMaxDegree ||
          __builtin_mul_overflow(x, y, &coefficient))
        return unknown();
      product.add(monomial, coefficient);
    }
  return product;
}

/// a / b as a term, where b divides a.
static std::optional<std::pair<std::vector<Symbol>, int64_t>>
divideTerm(const std::pair<const std::vector<Symbol>, int64_t> &a,
           const std::pair<const std::vector<Symbol>, int64_t> &b) {
  // INT64_MIN / -1 overflows.
  if (b.second == -1 ? a.second == INT64_MIN : a.second % b.second != 0)
    return std::nullopt;
  if (!std::includes(a.first.begin(), a.first.end(), b.first.begin(),
                     b.first.end()))
    return std::nullopt;
  std::vector<Symbol> rest;
  std::set_difference(a.first.begin(), a.first.end(), b.first.begin(),
                      b.first.end(), std::back_inserter(rest));
  return std::pair(std::move(rest), a.second / b.second);
}

SymbolicExpr SymbolicExpr::dividedBy(const SymbolicExpr &divisor) const {
  if (!known || !divisor.known || divisor.terms.empty())
    return unknown();
  SymbolicExpr quotient;
  if (terms.empty())
    return quotient;
  if (divisor.terms.size() == 1) {
    for (const auto &term : terms) {
      auto part = divideTerm(term, *divisor.terms.begin());
      if (!part)
        return unknown();
      quotient.add(part->first, part->second);
    }
    return quotient;
  }
  // A quotient of one term shows in every pair of corresponding terms; try the
  // pairs that the divisor's first term can make.
  for (const auto &term : terms) {
    auto part = divideTerm(term, *divisor.terms.begin());
    if (!part)
      continue;
    quotient = SymbolicExpr();
    quotient.add(part->first, part->second);
    if (divisor * quotient == *this)
      return quotient;
  }
  return unknown();
}

SymbolicExpr
SymbolicExpr::substitute(llvm::function_ref<SymbolicExpr(Symbol)> value) const {
  if (!known)
    return unknown();
  SymbolicExpr sum;
  for (const auto &[monomial, coefficient] : terms) {
    SymbolicExpr product(coefficient);
    for (Symbol symbol : monomial)
      product = product * value(symbol);
    sum = sum + product;
  }
  return sum;
}

std::string
SymbolicExpr::str(llvm::function_ref<std::string(Symbol)> name) const {
  if (!known)
    return "unknown";
  if (terms.empty())
    return "0";
  std::string text;
  for (const auto &[monomial, coefficient] : terms) {
    if (!text.empty())
      text += " + ";
    if (coefficient != 1 || monomial.empty())
      text += std::to_string(coefficient);
    for (size_t i = 0; i < monomial.size(); ++i) {
      if (i > 0 || coefficient != 1)
        text += " * ";
      text += name(monomial[i]);
    }
  }
  return text;
}
