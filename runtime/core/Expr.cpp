//===- Expr.cpp - Size expressions of a manifest -----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Expr.h"

#include <algorithm>
#include <array>

namespace llm::runtime {

Status verifyExpr(const artifact::Expr &expr, int numSymbols) {
  using artifact::Expr;
  if (expr.nodes_size() == 0)
    return Status::invalidInput("a size expression is empty");
  if (expr.nodes_size() > maxExprNodes)
    return Status::invalidInput(
        "a size expression has " + std::to_string(expr.nodes_size()) +
        " nodes, more than " + std::to_string(maxExprNodes));
  int depth = 0;
  for (const Expr::Node &node : expr.nodes()) {
    switch (node.op()) {
    case Expr::CONSTANT:
      if (node.value() < 0)
        return Status::invalidInput("a size expression has the constant " +
                                    std::to_string(node.value()));
      ++depth;
      break;
    case Expr::SYMBOL:
      if (node.value() < 0 || node.value() >= numSymbols)
        return Status::invalidInput("a size expression reads symbol " +
                                    std::to_string(node.value()) + " of " +
                                    std::to_string(numSymbols));
      ++depth;
      break;
    case Expr::ADD:
    case Expr::MUL:
    case Expr::CEIL_DIV:
    case Expr::MIN:
    case Expr::MAX:
      if (depth < 2)
        return Status::invalidInput("an operator of a size expression lacks "
                                    "operands");
      --depth;
      break;
    default:
      return Status::invalidInput(
          "a size expression has the unknown operator " +
          std::to_string(node.op()));
    }
    if (depth > maxExprDepth)
      return Status::invalidInput("a size expression is nested too deeply");
  }
  if (depth != 1)
    return Status::invalidInput("a size expression leaves " +
                                std::to_string(depth) + " values");
  return Status::success();
}

Expected<int64_t> evaluateExpr(const artifact::Expr &expr,
                               std::span<const int64_t> symbols) {
  using artifact::Expr;
  std::array<int64_t, maxExprDepth + 1> stack;
  int depth = 0;
  for (const Expr::Node &node : expr.nodes()) {
    if (node.op() == Expr::CONSTANT) {
      stack[depth++] = node.value();
      continue;
    }
    if (node.op() == Expr::SYMBOL) {
      int64_t value = symbols[static_cast<size_t>(node.value())];
      if (value < 0)
        return Status::invalidInput("a symbol is negative");
      stack[depth++] = value;
      continue;
    }
    int64_t rhs = stack[--depth];
    int64_t &lhs = stack[depth - 1];
    switch (node.op()) {
    case Expr::ADD:
      if (__builtin_add_overflow(lhs, rhs, &lhs))
        return Status::invalidInput("a size overflows 63 bits");
      break;
    case Expr::MUL:
      if (__builtin_mul_overflow(lhs, rhs, &lhs))
        return Status::invalidInput("a size overflows 63 bits");
      break;
    case Expr::CEIL_DIV:
      if (rhs == 0)
        return Status::invalidInput("a size divides by zero");
      lhs = lhs / rhs + (lhs % rhs != 0);
      break;
    case Expr::MIN:
      lhs = std::min(lhs, rhs);
      break;
    default:
      lhs = std::max(lhs, rhs);
      break;
    }
  }
  return stack[0];
}

} // namespace llm::runtime
