//===- symbolic_shape_test.cpp - Sizes and shape vectors ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/SymbolicShape.h"
#include "test/unit/analysis/ParseModule.h"

using namespace mlir::llm;

TEST(SymbolicShape, ReadsSumsAndProductsInNames) {
  ParsedModule parsed(R"mlir(
    func.func @f(%x: tensor<?x?xf32> {llm.dims = ["a", "past + seq"]}) {
      return
    })mlir");
  SymbolicShape shapes(parsed.func());
  EXPECT_EQ(shapes.getDim(parsed.func().getArgument(0), 1),
            shapes.parse("past") + shapes.parse("seq"));
  EXPECT_EQ(shapes.parse("2*a"), shapes.parse("a") * SymbolicExpr(2));
  EXPECT_EQ(shapes.parse("a+a"), shapes.parse("2 * a"));
  // What is no sum of products is one name.
  EXPECT_TRUE(shapes.parse("floor(a/2)").getSymbol());
  EXPECT_EQ(shapes.parse("floor(a/2)"), shapes.parse("floor(a/2)"));
  EXPECT_NE(shapes.parse("floor(a/2)"), shapes.parse("floor(a/3)"));
}

TEST(SymbolicShape, FollowsShapeChains) {
  ParsedModule parsed(R"mlir(
    func.func @f(%x: tensor<?x?x64xf32> {llm.dims = ["batch", "seq", ""]}) -> tensor<?x?x?x?xf32> {
      %s = llm.shape %x : tensor<?x?x64xf32> -> tensor<3xi64>
      %zero = llm.constant dense<0> : tensor<i64>
      %one = llm.constant dense<[1]> : tensor<1xi64>
      %two = llm.constant dense<[2]> : tensor<1xi64>
      %b = llm.gather %s, %zero {axis = 0 : i64} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
      %b1 = llm.unsqueeze %b axes [0] : tensor<i64> -> tensor<1xi64>
      %l = llm.slice %s, %one, %two : (tensor<3xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
      %tail = llm.constant dense<[-1, 16]> : tensor<2xi64>
      %t = llm.concat %b1, %l, %tail {axis = 0 : i64, test.name = "target"} : (tensor<1xi64>, tensor<1xi64>, tensor<2xi64>) -> tensor<4xi64>
      %y = llm.reshape %x, %t {test.name = "y"} : (tensor<?x?x64xf32>, tensor<4xi64>) -> tensor<?x?x?x?xf32>
      return %y : tensor<?x?x?x?xf32>
    })mlir");
  SymbolicShape shapes(parsed.func());
  SymbolicExpr batch = shapes.parse("batch"), seq = shapes.parse("seq");
  const SymbolicShape::Exprs *target =
      shapes.getElements(parsed.value("target"));
  ASSERT_TRUE(target);
  EXPECT_EQ(*target, (SymbolicShape::Exprs{batch, seq, -1, 16}));
  EXPECT_EQ(shapes.getDims(parsed.value("y")),
            llvm::ArrayRef(SymbolicShape::Exprs{batch, seq, 4, 16}));
  EXPECT_FALSE(shapes.getConstants(parsed.value("target")));
}

TEST(SymbolicShape, SharesNamesAndKeepsStrangersApart) {
  ParsedModule parsed(R"mlir(
    func.func @f(%x: tensor<?x4xf32> {llm.dims = ["n", ""]}, %y: tensor<?x4xf32> {llm.dims = ["n", ""]},
                 %z: tensor<?x4xf32>) {
      %xy = llm.concat %x, %y {axis = 0 : i64, test.name = "xy"} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      %xz = llm.concat %x, %z {axis = 0 : i64, test.name = "xz"} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      return
    })mlir");
  SymbolicShape shapes(parsed.func());
  EXPECT_EQ(shapes.getDim(parsed.value("xy"), 0),
            shapes.parse("n") * SymbolicExpr(2));
  EXPECT_FALSE(shapes.sameShape(parsed.value("xy"), parsed.value("xz")));
  EXPECT_TRUE(shapes.sameShape(parsed.func().getArgument(0),
                               parsed.func().getArgument(1)));
}

TEST(SymbolicShape, LearnsNamesFromResults) {
  ParsedModule parsed(R"mlir(
    func.func @f(%past: tensor<?x?x8xf32> {llm.dims = ["b", "past", ""]}, %new: tensor<?x?x8xf32> {llm.dims = ["b", "seq", ""]},
                 %mask: tensor<?x?xi64> {llm.dims = ["b", "total"]})
        -> (tensor<?x?x8xf32> {llm.dims = ["b", "total", ""]}) {
      %p = llm.concat %past, %new {axis = 1 : i64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
      return %p : tensor<?x?x8xf32>
    })mlir");
  SymbolicShape shapes(parsed.func());
  EXPECT_EQ(shapes.getDim(parsed.func().getArgument(2), 1),
            shapes.parse("past") + shapes.parse("seq"));
}

TEST(SymbolicShape, ClampsSlicesAsONNXDoes) {
  SymbolicExpr n = SymbolicExpr::symbol(0);
  auto bounds = [](SymbolicExpr start, SymbolicExpr end, SymbolicExpr size) {
    return clampSlice(start, end, size);
  };
  EXPECT_EQ(bounds(0, INT64_MAX, n).end, n);
  EXPECT_EQ(bounds(-8, INT64_MAX, 16).start, SymbolicExpr(8));
  EXPECT_EQ(bounds(-20, 4, 16).start, SymbolicExpr(0));
  EXPECT_EQ(bounds(0, 20, 16).end, SymbolicExpr(16));
  EXPECT_EQ(bounds(-n, INT64_MAX, n + SymbolicExpr(5)).start, SymbolicExpr(5));
  // Whether 4 is past the end of n is not known.
  EXPECT_FALSE(bounds(0, 4, n).end.isKnown());
  EXPECT_FALSE(bounds(-4, INT64_MAX, n).start.isKnown());
}

TEST(SymbolicShape, BroadcastsOnlyWhatIsSure) {
  ParsedModule parsed(R"mlir(
    func.func @f(%x: tensor<?x?xf32> {llm.dims = ["a", "b"]}, %y: tensor<?x1xf32> {llm.dims = ["a", ""]},
                 %z: tensor<?x?xf32> {llm.dims = ["c", "b"]}) {
      %s = llm.add %x, %y {test.name = "sure"} : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
      %t = llm.add %x, %z {test.name = "unsure"} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
      return
    })mlir");
  SymbolicShape shapes(parsed.func());
  EXPECT_TRUE(
      shapes.sameShape(parsed.value("sure"), parsed.func().getArgument(0)));
  // a against c: either may be 1.
  SymbolicExpr dim = shapes.getDim(parsed.value("unsure"), 0);
  EXPECT_NE(dim, shapes.parse("a"));
  EXPECT_NE(dim, shapes.parse("c"));
  EXPECT_EQ(shapes.getDim(parsed.value("unsure"), 1), shapes.parse("b"));
}

TEST(SymbolicShape, ComparesAndSelectsSizes) {
  // torch's expand: where(shape == -1, ones, shape).
  ParsedModule parsed(R"mlir(
    func.func @f(%x: tensor<?x3xf32> {llm.dims = ["n", ""]}) {
      %s = llm.shape %x : tensor<?x3xf32> -> tensor<2xi64>
      %m = llm.constant dense<-1> : tensor<i64>
      %two = llm.constant dense<2> : tensor<1xi64>
      %c = llm.equal %s, %m : (tensor<2xi64>, tensor<i64>) -> tensor<2xi1>
      %ones = llm.constant_of_shape %two {value = dense<1> : tensor<1xi64>} : tensor<1xi64> -> tensor<2xi64>
      %r = llm.where %c, %ones, %s {test.name = "r"} : (tensor<2xi1>, tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
      return
    })mlir");
  SymbolicShape shapes(parsed.func());
  const SymbolicShape::Exprs *elements = shapes.getElements(parsed.value("r"));
  ASSERT_TRUE(elements);
  EXPECT_EQ(*elements, (SymbolicShape::Exprs{shapes.parse("n"), 3}));
}
