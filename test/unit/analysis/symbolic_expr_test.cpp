//===- symbolic_expr_test.cpp - Polynomials over symbols ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/SymbolicExpr.h"

#include "gtest/gtest.h"

using mlir::llm::SymbolicExpr;

static const SymbolicExpr a = SymbolicExpr::symbol(0);
static const SymbolicExpr b = SymbolicExpr::symbol(1);
static const SymbolicExpr c = SymbolicExpr::symbol(2);

TEST(SymbolicExpr, ArithmeticIsThatOfPolynomials) {
  EXPECT_EQ((a + b) * (a - b), a * a - b * b);
  EXPECT_EQ(a + b, b + a);
  EXPECT_EQ(a * b * SymbolicExpr(2) - b * a, a * b);
  EXPECT_NE(a, b);
  EXPECT_EQ((a - a).getConstant(), 0);
  EXPECT_EQ((SymbolicExpr(3) * SymbolicExpr(4)).getConstant(), 12);
  EXPECT_FALSE(a.getConstant());
  EXPECT_EQ(a.getSymbol(), 0u);
  EXPECT_FALSE((a + SymbolicExpr(1)).getSymbol());
}

TEST(SymbolicExpr, DivisionIsExactOrUnknown) {
  EXPECT_EQ((a * b * SymbolicExpr(6)).dividedBy(b * SymbolicExpr(2)),
            a * SymbolicExpr(3));
  EXPECT_EQ((a * (b + c) * SymbolicExpr(8)).dividedBy(b + c),
            a * SymbolicExpr(8));
  EXPECT_EQ((a * b + a * c).dividedBy(a), b + c);
  EXPECT_FALSE(a.dividedBy(b).isKnown());
  EXPECT_FALSE((a + b).dividedBy(a).isKnown());
  EXPECT_FALSE(SymbolicExpr(7).dividedBy(SymbolicExpr(2)).isKnown());
  EXPECT_FALSE(a.dividedBy(SymbolicExpr(0)).isKnown());
}

TEST(SymbolicExpr, SymbolsAreNotNegative) {
  EXPECT_TRUE((a * b + SymbolicExpr(3)).isNonNegative());
  EXPECT_TRUE(SymbolicExpr(0).isNonNegative());
  EXPECT_FALSE((a - b).isNonNegative());
  EXPECT_FALSE(SymbolicExpr(-1).isNonNegative());
  EXPECT_FALSE(SymbolicExpr::unknown().isNonNegative());
}

TEST(SymbolicExpr, OverflowIsUnknown) {
  SymbolicExpr big(INT64_MAX);
  EXPECT_FALSE((big + SymbolicExpr(1)).isKnown());
  EXPECT_FALSE((big * a * SymbolicExpr(2)).isKnown());
  EXPECT_FALSE((SymbolicExpr(INT64_MIN) - SymbolicExpr(1)).isKnown());
  // Unknown stays unknown, and is equal to nothing.
  EXPECT_FALSE((SymbolicExpr::unknown() + a).isKnown());
  EXPECT_FALSE(SymbolicExpr::unknown() == SymbolicExpr::unknown());
  // A polynomial whose powers would not end.
  SymbolicExpr power = a + b;
  for (int i = 0; i < 16; ++i)
    power = power * (a + b + c);
  EXPECT_FALSE(power.isKnown());
}

TEST(SymbolicExpr, Substitution) {
  SymbolicExpr sum = a * b + c;
  SymbolicExpr replaced = sum.substitute([](unsigned symbol) {
    return symbol == 1 ? SymbolicExpr(2) : SymbolicExpr::symbol(symbol);
  });
  EXPECT_EQ(replaced, a * SymbolicExpr(2) + c);
}
