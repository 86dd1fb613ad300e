//===- ElementwiseTest.cpp - elementwise ----------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace llm::test;

/// |got - want| in units of the last place of an f32 `want`.
static double ulps(float got, double want) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) == std::isnan(got) ? 0 : INFINITY;
  auto rounded = static_cast<float>(want);
  if (got == rounded)
    return 0;
  double unit = std::max(
      std::ldexp(1.0,
                 std::max(std::ilogb(want == 0 ? 1e-45 : want), -126) - 23),
      std::ldexp(1.0, -149));
  return std::fabs(got - want) / unit;
}

namespace {
struct Unary {
  const char *name;
  std::function<double(double)> want;
  double low, high, maxUlps;
};
} // namespace

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Bounds: exp, log, erf and tanh are polynomials; what is built from them adds
// its own roundings. Where the sum cancels (gelu far left) the bound is
// absolute, see below.
static const Unary kUnary[] = {
    {"neg", [](double x) { return -x; }, -50, 50, 0},
    {"abs", [](double x) { return std::fabs(x); }, -50, 50, 0},
    {"exp", [](double x) { return std::exp(x); }, -87, 88, 2},
    {"log", [](double x) { return std::log(x); }, 1e-30, 1e4, 2},
    {"sqrt", [](double x) { return std::sqrt(x); }, 0, 1e6, 0.5},
    {"reciprocal", [](double x) { return 1 / x; }, 0.01, 100, 0.5},
    {"sigmoid", sigmoid, -80, 80, 4},
    {"tanh", [](double x) { return std::tanh(x); }, -12, 12, 4},
    {"silu", [](double x) { return x * sigmoid(x); }, -80, 80, 4},
    {"relu", [](double x) { return std::max(x, 0.0); }, -5, 5, 0},
    {"softplus", [](double x) { return std::log1p(std::exp(x)); }, -60, 60, 4},
    {"erf", [](double x) { return std::erf(x); }, -5, 5, 4},
    {"square", [](double x) { return x * x; }, -50, 50, 0.5},
    {"gelu_sigmoid", [](double x) { return x * sigmoid(1.702f * x); }, -40, 40,
     80}, // 1.702 x is rounded before exp: |x| ulps
};

TEST(Elementwise, UnaryAgainstDouble) {
  constexpr int kWidth = 37, kRows = 512, kCount = kWidth * kRows;
  for (const std::string &cpu : testedCPUs())
    for (const Unary &op : kUnary) {
      CompiledKernel kernel("elementwise",
                            std::string("{width = 37 : i64, ops = [\"in0\", "
                                        "\"") +
                                op.name + "\"], broadcast = [false]}",
                            cpu);
      Buffer<float> x(kCount), out(kCount, NAN);
      for (int i = 0; i < kCount; ++i)
        x[i] =
            static_cast<float>(op.low + (op.high - op.low) * i / (kCount - 1));
      kernel.call(kRows, {x.data(), out.data()}, {kRows}, 0, kRows);
      double worst = 0;
      float at = 0;
      for (int i = 0; i < kCount; ++i) {
        double error = ulps(out[i], op.want(x[i]));
        if (error > worst) {
          worst = error;
          at = x[i];
        }
      }
      // One more where products of a polynomial are rounded.
      double bound = op.maxUlps + (op.maxUlps > 1 && !hasFeature(cpu, "fma"));
      EXPECT_LE(worst, bound) << cpu << " " << op.name << " at " << at;
      EXPECT_TRUE(out.intact());
    }
}

TEST(Elementwise, Gelu) {
  constexpr int kCount = 4001;
  struct {
    const char *name;
    double (*want)(double);
  } cases[] = {
      {"gelu", [](double x) { return x / 2 * (1 + std::erf(x * M_SQRT1_2)); }},
      {"gelu_tanh", [](double x) {
         return x / 2 *
                (1 + std::tanh(M_2_SQRTPI * M_SQRT1_2 *
                               (x + 0.044715 * x * x * x)));
       }}};
  for (const std::string &cpu : testedCPUs())
    for (const auto &op : cases) {
      CompiledKernel kernel("elementwise",
                            std::string("{width = 4001 : i64, ops = [\"in0\", "
                                        "\"") +
                                op.name + "\"], broadcast = [false]}",
                            cpu);
      Buffer<float> x(kCount), out(kCount, NAN);
      for (int i = 0; i < kCount; ++i)
        x[i] = static_cast<float>(-10 + 20.0 * i / (kCount - 1));
      kernel.call(1, {x.data(), out.data()}, {1}, 0, 1);
      for (int i = 0; i < kCount; ++i)
        EXPECT_NEAR(out[i], op.want(x[i]), 4e-7 * (1 + std::fabs(x[i])))
            << cpu << " " << op.name << " at " << x[i];
    }
}

TEST(Elementwise, SpecialValues) {
  Buffer<float> x(8);
  float special[8] = {INFINITY, -INFINITY, NAN,   0.0f,
                      -0.0f,    1000,      -1000, 1e-40f};
  std::copy(special, special + 8, x.begin());
  struct {
    const char *name;
    double (*want)(double);
  } cases[] = {
      {"exp", [](double v) { return std::exp(v); }},
      {"sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }},
      {"tanh", [](double v) { return std::tanh(v); }},
      {"erf", [](double v) { return std::erf(v); }},
      {"relu", [](double v) { return std::isnan(v) ? v : std::max(v, 0.0); }},
  };
  for (const std::string &cpu : testedCPUs())
    for (const auto &op : cases) {
      CompiledKernel kernel(
          "elementwise",
          std::string("{width = 8 : i64, ops = [\"in0\", \"") + op.name +
              "\"]}",
          cpu);
      Buffer<float> out(8);
      kernel.call(1, {x.data(), out.data()}, {1}, 0, 1);
      for (int i = 0; i < 8; ++i)
        EXPECT_LE(ulps(out[i], op.want(x[i])), 2)
            << cpu << " " << op.name << "(" << x[i] << ") = " << out[i];
    }
}

TEST(Elementwise, ProgramWithBroadcastConstantsAndTwoOutputs) {
  constexpr int kWidth = 21, kRows = 3;
  for (const std::string &cpu : testedCPUs()) {
    // outputs: (in0 + in1) * 2 and min(max(in0 / in2, in1), in0 - in2)
    CompiledKernel kernel(
        "elementwise",
        "{width = 21 : i64, broadcast = [false, true, false], ops = [\"in0\", "
        "\"in1\", \"add\", \"const:0x40000000\", \"mul\", \"in0\", \"in2\", "
        "\"div\", \"in1\", \"max\", \"in0\", \"in2\", \"sub\", \"min\"]}",
        cpu);
    Buffer<float> a = randomFloats(kWidth * kRows, 1),
                  b = randomFloats(kWidth, 2),
                  c = randomFloats(kWidth * kRows, 3), first(kWidth * kRows),
                  second(kWidth * kRows);
    kernel.call(kRows,
                {a.data(), b.data(), c.data(), first.data(), second.data()},
                {kRows}, 0, kRows);
    for (int i = 0; i < kWidth * kRows; ++i) {
      float row = b[i % kWidth];
      EXPECT_EQ(first[i], (a[i] + row) * 2);
      EXPECT_EQ(second[i], std::min(std::max(a[i] / c[i], row), a[i] - c[i]));
    }
    // In place.
    Buffer<float> copy = a;
    kernel.call(kRows,
                {copy.data(), b.data(), c.data(), copy.data(), second.data()},
                {kRows}, 0, kRows);
    EXPECT_TRUE(copy == first);
  }
}
