//===- LinearTest.cpp - linear, dense -------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llm::test;

static constexpr int kBlock = 32;

/// [n][k] to [panel][k][32].
static Buffer<float> toPanels(const Buffer<float> &weight, int n, int k) {
  int panels = (n + kBlock - 1) / kBlock;
  Buffer<float> packed(static_cast<size_t>(panels) * k * kBlock);
  for (int row = 0; row < n; ++row)
    for (int i = 0; i < k; ++i)
      packed[(static_cast<size_t>(row / kBlock) * k + i) * kBlock +
             row % kBlock] = weight[static_cast<size_t>(row) * k + i];
  return packed;
}

static std::string params(int n, int k, bool bias) {
  std::string size = "n = " + std::to_string(n) +
                     " : i64, k = " + std::to_string(k) + " : i64";
  return "{" + size + ", bias = " + (bias ? "true" : "false") +
         ", layout = {kind = \"panel\", type = f32, " + size + "}}";
}

TEST(Linear, DenseAgainstDouble) {
  struct {
    int n, k;
    bool bias;
  } shapes[] = {{1, 1, false},  {31, 7, true},   {32, 64, false},
                {33, 65, true}, {100, 83, true}, {172, 64, false}};
  for (const std::string &cpu : testedCPUs())
    for (auto [n, k, hasBias] : shapesFor(cpu, shapes)) {
      CompiledKernel kernel("linear", params(n, k, hasBias), cpu);
      int64_t panels = (n + kBlock - 1) / kBlock;
      Buffer<float> weight = randomFloats(n * k, 1), bias = randomFloats(n, 2);
      Buffer<float> packed = toPanels(weight, n, k);
      constexpr int kMaxRows = 33;
      Buffer<float> x = randomFloats(kMaxRows * k, 3);
      auto run = [&](int rows, const float *input, float *output, int64_t begin,
                     int64_t end) {
        std::vector<const void *> buffers{input, packed.data()};
        if (hasBias)
          buffers.push_back(bias.data());
        buffers.push_back(output);
        kernel.call(rows, buffers, {rows}, begin, end);
      };
      // Every row alone.
      Buffer<float> alone(kMaxRows * n, NAN);
      for (int t = 0; t < kMaxRows; ++t) {
        Buffer<float> in(k), out(n, NAN);
        std::copy(&x[t * k], &x[t * k] + k, in.begin());
        run(1, in.data(), out.data(), 0, panels);
        EXPECT_TRUE(out.intact());
        std::copy(out.begin(), out.end(), &alone[t * n]);
      }
      for (int t = 0; t < kMaxRows; ++t)
        for (int j = 0; j < n; ++j) {
          double want = hasBias ? bias[j] : 0, size = 1;
          for (int i = 0; i < k; ++i) {
            double term = double(x[t * k + i]) * weight[j * k + i];
            want += term;
            size += std::fabs(term);
          }
          ASSERT_NEAR(alone[t * n + j], want, 2e-6 * size)
              << cpu << " " << n << "x" << k;
        }
      for (int rows : {1, 2, 3, 7, 8, 9, 33}) {
        Buffer<float> out(rows * n, NAN);
        run(rows, x.data(), out.data(), 0, panels);
        EXPECT_EQ(0, std::memcmp(out.data(), alone.data(), rows * n * 4))
            << cpu << " " << n << "x" << k << " rows " << rows;
        EXPECT_TRUE(out.intact());
        Buffer<float> split(rows * n, NAN);
        for (int64_t panel = panels - 1; panel >= 0; --panel)
          run(rows, x.data(), split.data(), panel, panel + 1);
        EXPECT_TRUE(split == out);
      }
    }
}
