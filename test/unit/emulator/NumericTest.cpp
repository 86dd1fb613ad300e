//===- NumericTest.cpp - GPU kernels against double and the CPU -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/emulator/EmulatedKernel.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llm::test;

static std::string number(int64_t value) {
  return std::to_string(value) + " : i64";
}

/// Equal to about an ulp of the largest term: two orders of the same sum.
static void expectClose(const Buffer<float> &got, const Buffer<double> &want,
                        const Buffer<double> &scale, double tolerance,
                        const std::string &what) {
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * scale[i]) << what << " at " << i;
}

//===----------------------------------------------------------------------===//
// rms_norm
//===----------------------------------------------------------------------===//

TEST(Emulator, RMSNormAgainstDoubleAndCPU) {
  for (int dim : {1, 3, 31, 64, 65, 576, 1000, 4096}) {
    std::string params = "{dim = " + number(dim) + ", epsilon = 1.0e-5 : f64}";
    EmulatedKernel gpu = EmulatedKernel::generate("rms_norm", params);
    CompiledKernel cpu("rms_norm", params, "native");
    for (int rows = 1; rows <= 5; ++rows) {
      Buffer<float> x = randomFloats(rows * dim, 1, 3);
      Buffer<float> scale = randomFloats(dim, 2);
      Buffer<float> out(rows * dim, NAN), fromCPU(rows * dim, NAN);
      auto finding = gpu.launch(
          rows, {operand(x), operand(scale), operand(out)}, 2, {rows});
      ASSERT_FALSE(finding) << finding->toString();
      EXPECT_TRUE(out.intact());
      cpu.call(rows, {x.data(), scale.data(), fromCPU.data()}, {rows}, 0, rows);
      Buffer<double> want(rows * dim), size(rows * dim), cpuWant(rows * dim);
      for (int t = 0; t < rows; ++t) {
        double sum = 0;
        for (int i = 0; i < dim; ++i)
          sum += double(x[t * dim + i]) * x[t * dim + i];
        double factor = 1 / std::sqrt(sum / dim + 1e-5);
        for (int i = 0; i < dim; ++i) {
          want[t * dim + i] = x[t * dim + i] * factor * scale[i];
          size[t * dim + i] = std::fabs(want[t * dim + i]) + 1e-30;
          cpuWant[t * dim + i] = fromCPU[t * dim + i];
        }
      }
      std::string what =
          "dim " + std::to_string(dim) + ", rows " + std::to_string(rows);
      expectClose(out, want, size, 1e-6, what + ", double");
      expectClose(out, cpuWant, size, 1e-6, what + ", CPU");
    }
  }
}

//===----------------------------------------------------------------------===//
// linear
//===----------------------------------------------------------------------===//

namespace {
/// A weight of 4-bit groups as a file has it, and what it means.
struct Int4Weight {
  Int4Weight(int n, int k, int group, bool hasZeros, unsigned seed)
      : n(n), k(k), group(group), groups((k + group - 1) / group),
        hasZeros(hasZeros), scales(randomFloats(n * groups, seed, 0.1f)) {
    std::mt19937 engine(seed);
    for (int i = 0; i < n * groups * group; ++i)
      codes.push_back(engine() % 16);
    for (int i = 0; i < n * groups; ++i)
      zeros.push_back(hasZeros ? engine() % 16 : 8);
  }

  double value(int row, int i) const {
    int g = row * groups + i / group;
    return (int(codes[row * groups * group + i]) - int(zeros[g])) *
           double(scales[g]);
  }

  /// The llm.weight @w.
  std::string text() const {
    auto list = [](auto count, auto element) {
      std::string result = "[";
      for (int i = 0; i < count; ++i)
        result += (i ? ", " : "") + element(i);
      return result + "]";
    };
    auto component = [](const std::string &name, const std::string &type,
                        const std::string &value) {
      return name + " = #llm.component<\"" + name + "\", " + type + ", dense<" +
             value + "> : " + type + ">";
    };
    auto packed = [&](const std::vector<uint8_t> &values, int width) {
      int bytes = (width + 1) / 2;
      return list(n, [&](int row) {
        return list(bytes, [&](int i) {
          int low = values[row * width + 2 * i];
          int high = 2 * i + 1 < width ? values[row * width + 2 * i + 1] : 0;
          return std::to_string(low | high << 4);
        });
      });
    };
    auto size = [&](int width) {
      return "tensor<" + std::to_string(n) + "x" + std::to_string(width) + "x";
    };
    std::string scaleText = list(n, [&](int row) {
      return list(groups, [&](int g) {
        uint32_t bits;
        std::memcpy(&bits, &scales[row * groups + g], 4);
        char hex[16];
        snprintf(hex, sizeof(hex), "0x%08X", bits);
        return std::string(hex);
      });
    });
    std::string result = "llm.weight @w : " + size(k) +
                         "f32> = #llm.affine<bits = 4, "
                         "group_size = " +
                         std::to_string(group) + ", " +
                         component("data", size(groups * group / 2) + "ui8>",
                                   packed(codes, groups * group)) +
                         ", " +
                         component("scales", size(groups) + "f32>", scaleText);
    if (hasZeros)
      result += ", " + component("zeros", size((groups + 1) / 2) + "ui8>",
                                 packed(zeros, groups));
    return result + ">";
  }

  std::string layout(const std::string &kind,
                     const std::string &zeroType) const {
    return "{kind = \"" + kind + "\", n = " + number(n) + ", k = " + number(k) +
           ", bits = 4 : i64, group_size = " + number(group) +
           ", scale_type = f32" +
           (hasZeros ? ", zero_type = " + zeroType : "") + "}";
  }

  int n, k, group, groups;
  bool hasZeros;
  std::vector<uint8_t> codes, zeros;
  Buffer<float> scales;
};
} // namespace

TEST(Emulator, Int4LinearAgainstDoubleAndCPU) {
  struct {
    int n, k, group;
    bool zeros, bias;
  } shapes[] = {
      {1, 1, 32, false, false},    {3, 3, 32, true, true},
      {31, 31, 64, true, false},   {8, 64, 32, false, true},
      {64, 65, 32, true, true},    {65, 64, 128, false, false},
      {65, 576, 64, true, true},   {9, 1000, 128, true, false},
      {31, 1000, 32, false, true}, {576, 128, 16, true, false},
      {3, 1000, 256, true, true},  {1000, 3, 32, false, false},
  };
  for (auto [n, k, group, zeros, bias] : shapes) {
    Int4Weight weight(n, k, group, zeros, n + k);
    std::string size = "n = " + number(n) + ", k = " + number(k) +
                       ", bias = " + (bias ? "true" : "false");
    std::string gpuLayout = weight.layout("gpu_affine", "f32");
    std::string cpuLayout = weight.layout("panel_affine", "ui8");
    EmulatedKernel gpu = EmulatedKernel::generate(
        "linear", "{" + size + ", layout = " + gpuLayout + "}");
    CompiledKernel cpu("linear", "{" + size + ", layout = " + cpuLayout + "}",
                       "native");
    Buffer<uint8_t> packed = pack(weight.text(), gpuLayout);
    Buffer<uint8_t> panels = pack(weight.text(), cpuLayout);
    Buffer<float> offset = randomFloats(n, 9);
    Buffer<float> x = randomFloats(5 * k, 5);
    Buffer<float> fifth(n);
    for (int rows = 5; rows >= 1; --rows) {
      Buffer<float> out(rows * n, NAN), fromCPU(rows * n, NAN);
      Buffer<float> in(rows * k);
      std::copy(x.begin(), x.begin() + rows * k, in.begin());
      std::vector<Operand> operands{operand(in), operand(packed)};
      std::vector<const void *> buffers{in.data(), panels.data()};
      if (bias) {
        operands.push_back(operand(offset));
        buffers.push_back(offset.data());
      }
      operands.push_back(operand(out));
      buffers.push_back(fromCPU.data());
      auto finding =
          gpu.launch((n + 7) / 8 * rows, operands, operands.size() - 1, {rows});
      ASSERT_FALSE(finding) << finding->toString();
      EXPECT_TRUE(out.intact());
      cpu.call(rows, buffers, {rows}, 0, (n + 31) / 32);

      Buffer<double> want(rows * n), scale(rows * n), cpuWant(rows * n);
      for (int t = 0; t < rows; ++t)
        for (int j = 0; j < n; ++j) {
          double sum = bias ? offset[j] : 0, magnitude = 1e-3;
          for (int i = 0; i < k; ++i) {
            double term = x[t * k + i] * weight.value(j, i);
            sum += term;
            magnitude += std::fabs(term);
          }
          want[t * n + j] = sum;
          scale[t * n + j] = magnitude;
          cpuWant[t * n + j] = fromCPU[t * n + j];
        }
      std::string what = std::to_string(n) + " x " + std::to_string(k) +
                         ", group " + std::to_string(group) + ", rows " +
                         std::to_string(rows);
      expectClose(out, want, scale, 1e-6, what + ", double");
      expectClose(out, cpuWant, scale, 2e-6, what + ", CPU");
      // A row's bits do not depend on how many rows there are.
      if (rows == 5)
        std::copy(out.begin(), out.begin() + n, fifth.begin());
      EXPECT_EQ(0, std::memcmp(out.data(), fifth.data(), n * sizeof(float)))
          << what;
    }
  }
}
