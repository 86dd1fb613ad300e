//===- mask_analysis_test.cpp - What masks and positions mean -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/MaskAnalysis.h"
#include "test/unit/analysis/ParseModule.h"

using namespace mlir::llm;

/// Arguments of every function below: a past cache and a padding mask, whose
/// sizes give p, s and t (the past, the new tokens and both), and scalars of
/// the past and the total length.
static std::string wrap(llvm::StringRef body) {
  return (R"mlir(
    func.func @f(%pk: tensor<?x1x?x4xf32> {llm.dims = ["b", "", "p", ""]}, %ids: tensor<?x?xi64> {llm.dims = ["b", "s"]},
                 %am: tensor<?x?xi64> {llm.dims = ["b", "p + s"]}) {
      %i0 = llm.constant dense<0> : tensor<i64>
      %i1 = llm.constant dense<1> : tensor<i64>
      %f0 = llm.constant dense<0.0> : tensor<f32>
      %low = llm.constant dense<-3.4028234e+38> : tensor<f32>
      %past1 = llm.shape %pk {start = 2 : i64, end = 3 : i64} : tensor<?x1x?x4xf32> -> tensor<1xi64>
      %past = llm.squeeze %past1 axes [0] : tensor<1xi64> -> tensor<i64>
      %new1 = llm.shape %ids {start = 1 : i64, end = 2 : i64} : tensor<?x?xi64> -> tensor<1xi64>
      %new = llm.squeeze %new1 axes [0] : tensor<1xi64> -> tensor<i64>
      %total = llm.add %past, %new : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %q = llm.range %past, %total, %i1 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
      %k = llm.range %i0, %total, %i1 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
      %q2 = llm.unsqueeze %q axes [1] : tensor<?xi64> -> tensor<?x1xi64>
      %k2 = llm.unsqueeze %k axes [0] : tensor<?xi64> -> tensor<1x?xi64>
      %keep = llm.cast %am : tensor<?x?xi64> -> tensor<?x?xi1>
      %pad = llm.unsqueeze %keep axes [1, 2] : tensor<?x?xi1> -> tensor<?x1x1x?xi1>
)mlir" + body +
          "      return\n    }\n")
      .str();
}

static std::optional<MaskMeaning> meaningOf(llvm::StringRef body,
                                            std::string *reason = nullptr) {
  ParsedModule parsed(wrap(body));
  SymbolicShape shapes(parsed.func());
  std::string why;
  SymbolicExpr p = shapes.parse("p"), s = shapes.parse("s");
  auto meaning = analyzeMask(shapes, parsed.value("mask"), s, p + s, p, why);
  if (reason)
    *reason = why;
  // The argument dies with the module; whether there is one is what matters.
  if (meaning && meaning->padding)
    EXPECT_EQ(meaning->padding, parsed.func().getArgument(2));
  return meaning;
}

TEST(MaskAnalysis, BoolCausalAndPadding) {
  auto meaning = meaningOf(R"mlir(
      %c = llm.less_equal %k2, %q2 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
      %c4 = llm.unsqueeze %c axes [0, 1] : tensor<?x?xi1> -> tensor<1x1x?x?xi1>
      %m = llm.and %c4, %pad {test.name = "mask"} : (tensor<1x1x?x?xi1>, tensor<?x1x1x?xi1>) -> tensor<?x1x?x?xi1>
)mlir");
  ASSERT_TRUE(meaning);
  EXPECT_TRUE(meaning->causal);
  EXPECT_TRUE(meaning->padding);
  EXPECT_EQ(meaning->window, 0);
}

TEST(MaskAnalysis, AdditiveFromNegatedOrder) {
  // where(k > q, lowest, 0).
  auto meaning = meaningOf(R"mlir(
      %c = llm.greater %k2, %q2 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
      %m = llm.where %c, %low, %f0 {test.name = "mask"} : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
)mlir");
  ASSERT_TRUE(meaning);
  EXPECT_TRUE(meaning->causal);
  EXPECT_FALSE(meaning->padding);
}

TEST(MaskAnalysis, InvertedPaddingAndTriangle) {
  // (1 - mask) * lowest, with order from the triangle of a full matrix.
  auto meaning = meaningOf(R"mlir(
      %one = llm.constant dense<1.0> : tensor<f32>
      %total1 = llm.unsqueeze %total axes [0] : tensor<i64> -> tensor<1xi64>
      %shape = llm.concat %new1, %total1 {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
      %full = llm.constant_of_shape %shape {value = dense<-65504.0> : tensor<1xf32>} : tensor<2xi64> -> tensor<?x?xf32>
      %diag = llm.add %past, %i1 : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %tri = llm.trilu %full diagonal(%diag) {upper} : (tensor<?x?xf32>, tensor<i64>) -> tensor<?x?xf32>
      %amf = llm.cast %am : tensor<?x?xi64> -> tensor<?x?xf32>
      %inv = llm.sub %one, %amf : (tensor<f32>, tensor<?x?xf32>) -> tensor<?x?xf32>
      %inv4 = llm.unsqueeze %inv axes [1, 2] : tensor<?x?xf32> -> tensor<?x1x1x?xf32>
      %big = llm.mul %inv4, %low : (tensor<?x1x1x?xf32>, tensor<f32>) -> tensor<?x1x1x?xf32>
      %m = llm.add %tri, %big {test.name = "mask"} : (tensor<?x?xf32>, tensor<?x1x1x?xf32>) -> tensor<?x1x?x?xf32>
)mlir");
  ASSERT_TRUE(meaning);
  EXPECT_TRUE(meaning->causal);
  EXPECT_TRUE(meaning->padding);
}

TEST(MaskAnalysis, MaskedFillOfInvertedMask) {
  // inv = 1 - mask; where(inv != 0, lowest, inv).
  auto meaning = meaningOf(R"mlir(
      %one = llm.constant dense<1.0> : tensor<f32>
      %amf = llm.cast %am : tensor<?x?xi64> -> tensor<?x?xf32>
      %inv = llm.sub %one, %amf : (tensor<f32>, tensor<?x?xf32>) -> tensor<?x?xf32>
      %inv4 = llm.unsqueeze %inv axes [1, 2] : tensor<?x?xf32> -> tensor<?x1x1x?xf32>
      %b = llm.cast %inv4 : tensor<?x1x1x?xf32> -> tensor<?x1x1x?xi1>
      %m = llm.where %b, %low, %inv4 {test.name = "mask"} : (tensor<?x1x1x?xi1>, tensor<f32>, tensor<?x1x1x?xf32>) -> tensor<?x1x1x?xf32>
)mlir");
  ASSERT_TRUE(meaning);
  EXPECT_FALSE(meaning->causal);
  EXPECT_TRUE(meaning->padding);
}

TEST(MaskAnalysis, PaddingWhereOrderHidesNothing) {
  // order = lowest * (k > q); where(order + mask == 0, lowest, order), the way
  // of transformers' models with a static mask.
  auto meaning = meaningOf(R"mlir(
      %c = llm.greater %k2, %q2 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
      %cf = llm.cast %c : tensor<?x?xi1> -> tensor<?x?xf32>
      %order = llm.mul %cf, %low : (tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
      %amf = llm.cast %am : tensor<?x?xi64> -> tensor<?x?xf32>
      %am4 = llm.unsqueeze %amf axes [1, 2] : tensor<?x?xf32> -> tensor<?x1x1x?xf32>
      %sum = llm.add %order, %am4 : (tensor<?x?xf32>, tensor<?x1x1x?xf32>) -> tensor<?x1x?x?xf32>
      %both = llm.equal %sum, %f0 : (tensor<?x1x?x?xf32>, tensor<f32>) -> tensor<?x1x?x?xi1>
      %m = llm.where %both, %low, %order {test.name = "mask"} : (tensor<?x1x?x?xi1>, tensor<f32>, tensor<?x?xf32>) -> tensor<?x1x?x?xf32>
)mlir");
  ASSERT_TRUE(meaning);
  EXPECT_TRUE(meaning->causal);
  EXPECT_TRUE(meaning->padding);
}

TEST(MaskAnalysis, Window) {
  auto meaning = meaningOf(R"mlir(
      %w = llm.constant dense<5> : tensor<i64>
      %c = llm.less_equal %k2, %q2 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
      %from = llm.sub %q2, %w : (tensor<?x1xi64>, tensor<i64>) -> tensor<?x1xi64>
      %near = llm.greater %k2, %from : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
      %m = llm.and %c, %near {test.name = "mask"} : (tensor<?x?xi1>, tensor<?x?xi1>) -> tensor<?x?xi1>
)mlir");
  ASSERT_TRUE(meaning);
  EXPECT_TRUE(meaning->causal);
  EXPECT_EQ(meaning->window, 5);
}

TEST(MaskAnalysis, OffByOneIsNotCausal) {
  std::string reason;
  auto meaning = meaningOf(R"mlir(
      %c = llm.less %k2, %q2 {test.name = "mask"} : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
)mlir",
                           &reason);
  EXPECT_FALSE(meaning);
  EXPECT_NE(reason.find("requires"), std::string::npos) << reason;
}

TEST(MaskAnalysis, ForgottenPastIsNotCausal) {
  auto meaning = meaningOf(R"mlir(
      %r = llm.range %i0, %new, %i1 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
      %r2 = llm.unsqueeze %r axes [1] : tensor<?xi64> -> tensor<?x1xi64>
      %c = llm.less_equal %k2, %r2 {test.name = "mask"} : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
)mlir");
  EXPECT_FALSE(meaning);
}

TEST(MaskAnalysis, DisjunctionIsRefused) {
  // A prefix that all see: causal or padded.
  auto meaning = meaningOf(R"mlir(
      %c = llm.less_equal %k2, %q2 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
      %m = llm.or %c, %pad {test.name = "mask"} : (tensor<?x?xi1>, tensor<?x1x1x?xi1>) -> tensor<?x1x?x?xi1>
)mlir");
  EXPECT_FALSE(meaning);
}

TEST(MaskAnalysis, IndicesAsConditionsAreRefused) {
  // All slots but the first.
  EXPECT_FALSE(meaningOf(R"mlir(
      %b = llm.cast %k2 {test.name = "mask"} : tensor<1x?xi64> -> tensor<1x?xi1>
)mlir"));
}

TEST(MaskAnalysis, BiasIsRefused) {
  std::string reason;
  auto meaning = meaningOf(R"mlir(
      %bias = llm.constant dense<0.5> : tensor<f32>
      %c = llm.less_equal %k2, %q2 : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
      %m = llm.where %c, %bias, %low {test.name = "mask"} : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
)mlir",
                           &reason);
  EXPECT_FALSE(meaning);
  EXPECT_NE(reason.find("0.5"), std::string::npos) << reason;
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

static PositionMeaning positionsOf(llvm::StringRef body) {
  ParsedModule parsed(wrap(body));
  SymbolicShape shapes(parsed.func());
  return analyzePositions(shapes, parsed.value("positions"), shapes.parse("p"))
      .meaning;
}

TEST(PositionAnalysis, RangeFromPast) {
  EXPECT_EQ(positionsOf(R"mlir(
      %r = llm.unsqueeze %q axes [0] {test.name = "positions"} : tensor<?xi64> -> tensor<1x?xi64>
)mlir"),
            PositionMeaning::counted);
  // From 0 they are those of the keys, not of the new tokens.
  EXPECT_EQ(positionsOf(R"mlir(
      %r = llm.range %i0, %new, %i1 {test.name = "positions"} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
)mlir"),
            PositionMeaning::unknown);
}

TEST(PositionAnalysis, RunningSumOfMask) {
  auto body = [](llvm::StringRef less, llvm::StringRef name) {
    return (R"mlir(
      %sum = llm.cumsum %am {axis = 1 : i64} : tensor<?x?xi64>
      %c = llm.constant dense<)mlir" +
            less + R"mlir(> : tensor<i64>
      %pos = llm.sub %sum, %c : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi64>
      %zero = llm.equal %am, %i0 : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi1>
      %fill = llm.where %zero, %i1, %pos : (tensor<?x?xi1>, tensor<i64>, tensor<?x?xi64>) -> tensor<?x?xi64>
      %neg = llm.neg %new1 : tensor<1xi64>
      %end = llm.constant dense<9223372036854775807> : tensor<1xi64>
      %axis = llm.constant dense<1> : tensor<1xi64>
      %r = llm.slice %fill, %)mlir" +
            name +
            R"mlir(, %end axes(%axis) {test.name = "positions"} : (tensor<?x?xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xi64>
)mlir")
        .str();
  };
  EXPECT_EQ(positionsOf(body("1", "neg")), PositionMeaning::counted);
  EXPECT_EQ(positionsOf(body("1", "past1")), PositionMeaning::counted);
  EXPECT_EQ(positionsOf(body("2", "neg")), PositionMeaning::unknown);
}
