//===- NormTest.cpp - rms_norm and layer_norm -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llm::test;

static constexpr int kDims[] = {1, 5, 16, 63, 64, 83, 576};
static constexpr int kRows = 5;

TEST(Norm, RMS) {
  for (const std::string &cpu : testedCPUs())
    for (int dim : shapesFor(cpu, kDims)) {
      CompiledKernel kernel("rms_norm",
                            "{dim = " + std::to_string(dim) +
                                " : i64, epsilon = 1.0e-5 : f64}",
                            cpu);
      Buffer<float> x = randomFloats(kRows * dim, 1, 3),
                    scale = randomFloats(dim, 2), out(kRows * dim, NAN),
                    apart(kRows * dim, NAN);
      kernel.call(kRows, {x.data(), scale.data(), out.data()}, {kRows}, 0,
                  kRows);
      for (int t = 0; t < kRows; ++t) {
        double sum = 0;
        for (int d = 0; d < dim; ++d)
          sum += double(x[t * dim + d]) * x[t * dim + d];
        double inverse = 1 / std::sqrt(sum / dim + 1e-5);
        for (int d = 0; d < dim; ++d) {
          double want = x[t * dim + d] * inverse * scale[d];
          EXPECT_NEAR(out[t * dim + d], want, 1e-6 * (1 + std::fabs(want)))
              << cpu << " dim " << dim;
        }
        kernel.call(1, {x.data(), scale.data(), apart.data()}, {kRows}, t,
                    t + 1);
      }
      EXPECT_TRUE(out == apart);
      EXPECT_TRUE(out.intact());
    }
}

TEST(Norm, Layer) {
  for (const std::string &cpu : testedCPUs())
    for (bool hasBias : {false, true})
      for (int dim : shapesFor(cpu, kDims)) {
        CompiledKernel kernel("layer_norm",
                              "{dim = " + std::to_string(dim) +
                                  " : i64, epsilon = 1.0e-3 : f64, bias = " +
                                  (hasBias ? "true}" : "false}"),
                              cpu);
        Buffer<float> x = randomFloats(kRows * dim, 1, 3),
                      scale = randomFloats(dim, 2), bias = randomFloats(dim, 3),
                      out(kRows * dim, NAN);
        for (float &value : x)
          value += 7; // a mean that the difference of squares would lose
        std::vector<const void *> buffers{x.data(), scale.data()};
        if (hasBias)
          buffers.push_back(bias.data());
        buffers.push_back(out.data());
        kernel.call(kRows, buffers, {kRows}, 0, kRows);
        for (int t = 0; t < kRows; ++t) {
          double sum = 0, squares = 0;
          for (int d = 0; d < dim; ++d)
            sum += x[t * dim + d];
          double mean = sum / dim;
          for (int d = 0; d < dim; ++d)
            squares += (x[t * dim + d] - mean) * (x[t * dim + d] - mean);
          double inverse = 1 / std::sqrt(squares / dim + 1e-3);
          for (int d = 0; d < dim; ++d) {
            double want = (x[t * dim + d] - mean) * inverse * scale[d] +
                          (hasBias ? bias[d] : 0);
            EXPECT_NEAR(out[t * dim + d], want, 4e-6 * (1 + std::fabs(want)))
                << cpu << " dim " << dim;
          }
        }
        EXPECT_TRUE(out.intact());
      }
}
