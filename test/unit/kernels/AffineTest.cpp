//===- AffineTest.cpp - Packed groups: layouts, linear, embedding ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Affine.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llm::test;

static const Affine kWeights[] = {
    {33, 40, 4, 32, "f32", Affine::None},
    {70, 200, 4, 128, "f16", Affine::Codes},
    {32, 96, 8, 32, "f32", Affine::Codes},
    {5, 77, 8, 64, "f16", Affine::None},
    {40, 100, 2, 64, "f32", Affine::None},
    {31, 64, 4, 64, "f16", Affine::Floats},
    {64, 333, 4, 16, "f32", Affine::None},
    {35, 300, 4, 128, "f32", Affine::None, -1, 32},
    {33, 77, 4, 48, "f32", Affine::None, -1, 16},
};

TEST(Affine, EmbeddingRowsAndPanels) {
  for (const Affine &w : kWeights)
    for (const char *kind : {"rows_affine", "panel_affine"}) {
      // Rows have groups as factors split them.
      Affine groups = w;
      if (kind == std::string("rows_affine")) {
        groups.groupSize = w.sumGroup();
        groups.factorGroup = 0;
      }
      std::string layout =
          "{kind = \"" + std::string(kind) + "\", " + groups.layout() + "}";
      Buffer<uint8_t> table = pack(w.weight(), layout);
      CompiledKernel kernel("embedding",
                            "{" + entry("vocab", w.n) + entry("dim", w.k) +
                                "layout = " + layout + "}",
                            "x86-64-v3");
      Buffer<int32_t> token(w.n);
      for (int i = 0; i < w.n; ++i)
        token[i] = w.n - 1 - i;
      Buffer<float> out(w.n * w.k, NAN);
      kernel.call(w.n, {token.data(), table.data(), out.data()}, {w.n}, 0, w.n);
      EXPECT_TRUE(out.intact());
      for (int t = 0; t < w.n; ++t)
        for (int i = 0; i < w.k; ++i)
          ASSERT_EQ(out[t * w.k + i], w.value(w.n - 1 - t, i))
              << kind << " " << describe(w) << " row " << t << " input " << i;
    }
}

/// What 32 bits do not hold of a scale and its factors is refused, not rounded.
TEST(Affine, RefusesOtherScalesAndFactors) {
  auto packs = [](const std::string &scale, const std::string &factor) {
    std::string weight =
        "llm.weight @w : tensor<1x8xf32> = #llm.affine<bits = 4, group_size = "
        "8, data = #llm.component<\"data\", tensor<1x4xui8>, dense<0> : "
        "tensor<1x4xui8>>, scales = #llm.component<\"scales\", "
        "tensor<1x1xf32>, dense<" +
        scale +
        "> : tensor<1x1xf32>>, factor_group = 8, factors = "
        "#llm.component<\"factors\", tensor<1x1xi8>, dense<" +
        factor + "> : tensor<1x1xi8>>>";
    return tryPack(weight, "{kind = \"panel_affine\", " + entry("n", 1) +
                               entry("k", 8) + entry("bits", 4) +
                               entry("group_size", 8) +
                               entry("factor_group", 8) + "scale_type = f32}")
        .has_value();
  };
  // 0, 2^-30, 1 + 1/64, the largest one.
  for (const char *scale : {"0.0", "0x30800000", "1.015625", "0x4FFE0000"})
    EXPECT_TRUE(packs(scale, "-15")) << scale;
  // -0, less than 2^-30, denormal, 1 + 1/128, negative, 2^33, no number.
  for (const char *scale :
       {"0x80000000", "0x307E0000", "1.0e-30", "0x00000001", "1.0078125",
        "-1.0", "0x50000000", "0x7F800000", "0x7FC00000"})
    EXPECT_FALSE(packs(scale, "15")) << scale;
  for (const char *factor : {"16", "-16", "127", "-128"})
    EXPECT_FALSE(packs("1.0", factor)) << factor;
}

static std::string linearParams(const Affine &w, int level, bool bias) {
  return "{" + entry("n", w.n) + entry("k", w.k) +
         entry("accuracy_level", level) +
         "bias = " + (bias ? "true" : "false") +
         ", layout = {kind = \"panel_affine\", " + w.layout() + "}}";
}

TEST(Affine, LinearF32IsTheDenseLinearOfItsValues) {
  constexpr int kMaxRows = 33;
  for (const std::string &cpu : testedCPUs()) {
    MultiplyAdd multiplyAdd(cpu);
    for (const Affine &w : shapesFor(cpu, kWeights)) {
      Buffer<uint8_t> packed =
          pack(w.weight(), "{kind = \"panel_affine\", " + w.layout() + "}");
      CompiledKernel kernel("linear", linearParams(w, 0, true), cpu);
      Buffer<float> x = randomFloats(kMaxRows * w.k, 1),
                    bias = randomFloats(w.n, 2);
      int64_t panels = (w.n + 31) / 32;
      Buffer<float> alone(kMaxRows * w.n);
      for (int t = 0; t < kMaxRows; ++t) {
        Buffer<float> in = rowOf(x, t, w.k), out(w.n, NAN);
        kernel.call(1, {in.data(), packed.data(), bias.data(), out.data()}, {1},
                    0, panels);
        EXPECT_TRUE(out.intact());
        std::copy(out.begin(), out.end(), &alone[t * w.n]);
      }
      for (int t = 0; t < kMaxRows; ++t)
        for (int row = 0; row < w.n; ++row) {
          float chain = 0;
          for (int i = 0; i < w.k; ++i)
            chain = multiplyAdd(x[t * w.k + i], w.value(row, i), chain);
          ASSERT_EQ(alone[t * w.n + row], chain + bias[row])
              << cpu << " " << describe(w);
        }
      for (int rows : {1, 2, 3, 7, 8, 9, 33}) {
        Buffer<float> out(rows * w.n, NAN);
        for (int64_t panel = panels - 1; panel >= 0; --panel)
          kernel.call(rows, {x.data(), packed.data(), bias.data(), out.data()},
                      {rows}, panel, panel + 1);
        EXPECT_EQ(0, std::memcmp(out.data(), alone.data(), rows * w.n * 4))
            << cpu << " " << describe(w) << " rows " << rows;
        EXPECT_TRUE(out.intact());
      }
    }
  }
}
