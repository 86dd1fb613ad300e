//===- PairsTest.cpp - linear and embedding over pairs of bf16 ------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Affine.h"

#include <cmath>
#include <gtest/gtest.h>
#include <xmmintrin.h>

using namespace llm::test;

/// Elements from one row of bf16 to the next: an odd number of lines.
static int rowStride(int k) { return (((k + 1) / 2 * 4 + 63) / 64 | 1) * 32; }

namespace {
/// [n][k] of bf16, and its panels of pairs.
struct Weight {
  int n, k;
  std::vector<BFloat16> values;
  Buffer<BFloat16> packed;

  Weight(int n, int k, float scale)
      : n(n), k(k), packed((n + 31) / 32 * ((k + 1) / 2) * 64, 0.0f) {
    Buffer<float> draw = randomFloats(n * k, 1, scale);
    values.assign(draw.begin(), draw.end());
    for (int row = 0; row < n; ++row)
      for (int i = 0; i < k; ++i)
        packed[((row / 32 * ((k + 1) / 2) + i / 2) * 32 + row % 32) * 2 +
               i % 2] = values[row * k + i];
  }
  float at(int row, int i) const { return values[row * k + i]; }
};
} // namespace

static std::string layout(int n, int k) {
  return "layout = {kind = \"panel_pairs\", " + entry("n", n) + entry("k", k) +
         "type = bf16}}";
}
static std::string params(int n, int k, int level) {
  return "{" + entry("n", n) + entry("k", k) + entry("accuracy_level", level) +
         layout(n, k);
}

static const std::pair<int, int> kShapes[] = {{33, 65}, {1, 1},    {70, 96},
                                              {31, 2},  {32, 577}, {47, 131},
                                              {96, 34}, {45, 320}};

TEST(Pairs, PackerAndEmbedding) {
  int n = 35, k = 7;
  Weight w(n, k, 1);
  std::string bytes;
  for (BFloat16 value : w.values) {
    char text[5];
    snprintf(text, sizeof(text), "%02X%02X", value.bits & 255, value.bits >> 8);
    bytes += text;
  }
  std::string type = "tensor<35x7xbf16>";
  Buffer<uint8_t> packed = pack(
      "llm.weight @w : " + type + " = #llm.dense<#llm.component<\"data\", " +
          type + ", dense<\"0x" + bytes + "\"> : " + type + ">>",
      "{kind = \"panel_pairs\", n = 35 : i64, k = 7 : i64, type = bf16}");
  ASSERT_EQ(packed.size(), w.packed.size() * 2);
  EXPECT_EQ(0, std::memcmp(packed.data(), w.packed.data(), packed.size()));
  for (const std::string &cpu : testedCPUs()) {
    CompiledKernel kernel(
        "embedding", "{" + entry("vocab", n) + entry("dim", k) + layout(n, k),
        cpu);
    Buffer<int32_t> token(n);
    for (int i = 0; i < n; ++i)
      token[i] = n - 1 - i;
    Buffer<float> out(n * k, NAN);
    kernel.call(n, {token.data(), w.packed.data(), out.data()}, {n}, 0, n);
    for (int t = 0; t < n; ++t)
      for (int i = 0; i < k; ++i)
        ASSERT_EQ(out[t * k + i], w.at(n - 1 - t, i));
  }
}

/// From f32 it is the chain over ascending inputs of every dense weight.
TEST(Pairs, LinearF32IsOneChain) {
  for (const std::string &cpu : testedCPUs()) {
    MultiplyAdd multiplyAdd(cpu);
    for (auto [n, k] : shapesFor(cpu, kShapes)) {
      Weight w(n, k, 1);
      CompiledKernel kernel("linear", params(n, k, 0), cpu);
      for (int rows : {1, 2, 3, 8, 9, 29, 45}) {
        Buffer<float> x(rows * k, 0), out(rows * n, NAN);
        Buffer<float> draw = randomFloats(rows * k, 2, 100);
        std::copy(draw.begin(), draw.end(), x.begin());
        for (int64_t panel = (n + 31) / 32 - 1; panel >= 0; --panel)
          kernel.call(rows, {x.data(), w.packed.data(), out.data()}, {rows},
                      panel, panel + 1);
        for (int t = 0; t < rows; ++t)
          for (int row = 0; row < n; ++row) {
            float chain = 0;
            for (int i = 0; i < k; ++i)
              chain = multiplyAdd(x[t * k + i], w.at(row, i), chain);
            ASSERT_EQ(out[t * n + row], chain)
                << cpu << " " << n << "x" << k << " rows " << rows;
          }
      }
    }
  }
}

/// What AMX computes of `k` inputs, tiles of 32: the chains of even and of odd
/// inputs from zero, added, then added to the sum; denormals are zeros.
static float sumOfTiles(const BFloat16 *x, const Weight &w, int row, int k) {
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  volatile float sum = 0;
  for (int tile = 0; tile < k; tile += 32) {
    volatile float even = 0, odd = 0;
    for (int i = tile; i < tile + 32; i += 2) {
      even = std::fmaf(x[i], w.at(row, i), even);
      odd = std::fmaf(x[i + 1], w.at(row, i + 1), odd);
    }
    volatile float both = even + odd;
    sum = sum + both;
  }
  _mm_setcsr(before);
  return sum;
}

/// From bf16 it is one chain over pairs, the second product first, the same
/// with the instruction and without; or the order of AMX.
TEST(Pairs, LinearBF16) {
  for (const std::string &cpu : testedCPUs()) {
    MultiplyAdd multiplyAdd(cpu);
    for (auto [n, k] : shapesFor(cpu, kShapes)) {
      Weight w(n, k, 0.1f);
      CompiledKernel cast("cast_rows", "{k = " + std::to_string(k) + " : i64}",
                          cpu);
      CompiledKernel kernel("linear", params(n, k, 3), cpu);
      int stride = rowStride(k);
      for (int rows : {1, 2, 3, 8, 9, 29, 45}) {
        Buffer<float> x(rows * k, 0), out(rows * n, NAN);
        // Denormals, too, where they have a defined result.
        bool tiles = hasFeature(cpu, "amx-bf16") && k % 32 == 0;
        Buffer<float> draw = randomFloats(
            rows * k, 2, tiles && (rows + n) % 2 == 0 ? 1e-37f : 100);
        std::copy(draw.begin(), draw.end(), x.begin());
        Buffer<BFloat16> narrow(rows * stride, NAN);
        cast.call(rows, {x.data(), narrow.data()}, {rows}, 0, rows);
        for (int t = 0; t < rows; ++t)
          for (int i = 0; i < (k + 1) / 2 * 2; ++i)
            ASSERT_EQ(narrow[t * stride + i].bits,
                      BFloat16(i < k ? x[t * k + i] : 0.0f).bits)
                << cpu << " k " << k << " input " << i;
        for (int64_t panel = (n + 31) / 32 - 1; panel >= 0; --panel)
          kernel.call(rows, {narrow.data(), w.packed.data(), out.data()},
                      {rows}, panel, panel + 1);
        for (int t = 0; t < rows; ++t)
          for (int row = 0; row < n; ++row) {
            float chain = 0;
            if (tiles) {
              float want = sumOfTiles(&narrow[t * stride], w, row, k);
              ASSERT_EQ(out[t * n + row], want)
                  << cpu << " " << n << "x" << k << " rows " << rows << " row "
                  << t << " output " << row;
              continue;
            }
            for (int i = 0; i < k; i += 2) {
              const BFloat16 *pair = &narrow[t * stride + i];
              if (i + 1 < k)
                chain = multiplyAdd(pair[1], w.at(row, i + 1), chain);
              chain = multiplyAdd(pair[0], w.at(row, i), chain);
            }
            ASSERT_EQ(out[t * n + row], chain)
                << cpu << " " << n << "x" << k << " rows " << rows << " row "
                << t << " output " << row;
          }
      }
    }
  }
}
