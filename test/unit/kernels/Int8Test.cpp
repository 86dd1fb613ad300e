//===- Int8Test.cpp - quantize_rows and linear from int8 ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Affine.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llm::test;

/// The row of codes takes an odd number of lines.
static int rowStride(int k) {
  return (((k + 15) / 16 * 16 + 63) / 64 | 1) * 64;
}

static int groupsOf(int k, int size) { return (k - 1) / size + 1; }

namespace {
/// What quantize_rows writes.
struct Quantized {
  Quantized(int rows, int k, int groupSize, int scaleGroup)
      : codes(rows * rowStride(k), 77),
        scales(rows * groupsOf(k, scaleGroup), NAN),
        offsets(rows * groupsOf(k, groupSize), 12345) {}
  Buffer<int8_t> codes;
  Buffer<float> scales;
  Buffer<int32_t> offsets;
};
} // namespace

static std::string quantizeParams(int k, int groupSize, int scaleGroup,
                                  int zero) {
  return "{" + entry("k", k) + entry("group_size", groupSize) +
         (scaleGroup == groupSize ? "" : entry("scale_group", scaleGroup)) +
         "zero = " + std::to_string(zero) + " : i64}";
}

/// Compares with the definition in docs/formats/kernel-families.md.
static void checkQuantized(const Quantized &got, const float *x, int rows,
                           int k, int groupSize, int scaleGroup, int zero,
                           const std::string &what) {
  int scales = groupsOf(k, scaleGroup), groups = groupsOf(k, groupSize);
  for (int t = 0; t < rows; ++t) {
    for (int s = 0; s < scales; ++s) {
      float top = 0;
      for (int i = s * scaleGroup; i < std::min(k, (s + 1) * scaleGroup); ++i)
        top = std::max(top, std::fabs(x[t * k + i]));
      ASSERT_EQ(got.scales[t * scales + s], top / 127) << what;
    }
    for (int g = 0; g < groups; ++g) {
      int begin = g * groupSize, end = std::min(k, begin + groupSize);
      float scale = got.scales[t * scales + begin / scaleGroup];
      float inverse = scale < 0x1p-120f ? 0 : 1 / scale;
      int sum = 0, padded = g + 1 == groups ? (k + 15) / 16 * 16 : end;
      for (int i = begin; i < padded; ++i) {
        int want =
            i < end ? static_cast<int>(std::nearbyintf(x[t * k + i] * inverse))
                    : 0;
        ASSERT_EQ(got.codes[t * rowStride(k) + i], want)
            << what << " row " << t << " input " << i;
        sum += want;
      }
      ASSERT_EQ(got.offsets[t * groups + g], -zero * sum) << what;
    }
  }
}

/// Rows of ordinary numbers, zeros, denormals, and the largest and smallest
/// that have a scale.
static Buffer<float> hardRows(int rows, int k) {
  Buffer<float> x(rows * k, 0);
  Buffer<float> draw = randomFloats(rows * k, 1);
  for (int t = 0; t < rows; ++t) {
    float scale = t == 2   ? 0
                  : t == 3 ? 1e-42f
                  : t == 4 ? 1e-36f
                  : t == 5 ? 1e37f
                           : 10;
    for (int i = 0; i < k; ++i)
      x[t * k + i] = draw[t * k + i] * scale;
  }
  return x;
}

TEST(Int8, QuantizeRows) {
  constexpr int kRows = 7;
  for (const std::string &cpu : testedCPUs())
    for (auto [k, groupSize, scaleGroup] : {std::tuple{1, 32, 32},
                                            {31, 32, 32},
                                            {33, 32, 128},
                                            {97, 64, 64},
                                            {256, 128, 128},
                                            {300, 32, 128},
                                            {83, 16, 48},
                                            {83, 1 << 20, 1 << 20},
                                            {40, 8, 8}})
      for (int zero : {1, 8, 128}) {
        if (zero != 8 && cpu != "native")
          continue;
        CompiledKernel kernel("quantize_rows",
                              quantizeParams(k, groupSize, scaleGroup, zero),
                              cpu);
        Buffer<float> x = hardRows(kRows, k);
        Quantized out(kRows, k, groupSize, scaleGroup);
        kernel.call(
            kRows,
            {x.data(), out.codes.data(), out.scales.data(), out.offsets.data()},
            {kRows}, 0, kRows);
        checkQuantized(out, x.data(), kRows, k, groupSize, scaleGroup, zero,
                       cpu + " k " + std::to_string(k) + " groups of " +
                           std::to_string(groupSize));
      }
}

static const Affine kWeights[] = {
    {33, 40, 4, 32, "f32", Affine::None},
    {70, 200, 4, 128, "f16", Affine::Codes},
    {32, 96, 8, 32, "f32", Affine::Codes},
    {5, 77, 8, 64, "f16", Affine::None},
    {40, 100, 2, 64, "f32", Affine::None},
    {31, 64, 4, 64, "f16", Affine::Floats},
    {64, 333, 4, 16, "f32", Affine::None},
    {1, 1, 4, 32, "f16", Affine::None},
    {47, 131, 8, 1 << 20, "f16", Affine::None}, // one scale a row
    {17, 521, 4, 256, "f32", Affine::Codes},
    {65, 160, 2, 32, "f16", Affine::Codes},
    {16, 288, 8, 128, "f32", Affine::Floats},
    // Whole steps of matrix tiles, of short groups and of long ones.
    {33, 1152, 4, 32, "f16", Affine::None},
    {47, 320, 4, 128, "f32", Affine::Codes},
    {40, 544, 8, 1 << 20, "f16", Affine::None},
    {36, 768, 4, 512, "f16", Affine::Codes},
    {33, 640, 8, 256, "f32", Affine::Floats},
    // Groups that factors split: whole ones, short ones, short parts.
    {33, 576, 4, 128, "f32", Affine::None, -1, 32},
    {65, 300, 4, 128, "f32", Affine::None, -1, 32},
    {34, 1152, 4, 128, "f32", Affine::None, -1, 32},
    {16, 77, 4, 48, "f32", Affine::None, -1, 16},
    {40, 203, 4, 64, "f32", Affine::None, -1, 32},
    {7, 5, 4, 32, "f32", Affine::None, -1, 8},
};

static std::string linearParams(const Affine &w, int scaleGroup, bool bias,
                                bool residual) {
  return "{" + entry("n", w.n) + entry("k", w.k) + entry("accuracy_level", 4) +
         (scaleGroup == w.groupSize ? ""
                                    : entry("activation_group", scaleGroup)) +
         "bias = " + (bias ? "true" : "false") +
         ", residual = " + (residual ? "true" : "false") +
         ", layout = {kind = \"panel_affine\", " + w.layout() + "}}";
}

/// The definition: exact sums of a group of weights, a chain over those that
/// share a scale of the inputs, one chain over these.
static float expected(MultiplyAdd multiplyAdd, const Affine &w,
                      const Quantized &in, int scaleGroup, int t, int row) {
  float outer = 0, inner = 0;
  int stride = rowStride(w.k);
  for (int g = 0; g < w.groups(); ++g) {
    int begin = g * w.groupSize, end = std::min(w.k, begin + w.groupSize);
    int dot = 0, sum = 0;
    for (int i = begin; i < end; ++i) {
      int input = in.codes[t * stride + i] * w.factor(row, i / w.sumGroup());
      dot += w.code(row, i) * input;
      sum += input;
    }
    float zero = w.zero(row, g);
    float centred =
        w.zeros == Affine::Floats
            ? multiplyAdd(-zero, static_cast<float>(sum),
                          static_cast<float>(dot))
            : static_cast<float>(dot - static_cast<int>(zero) * sum);
    if (begin % scaleGroup == 0)
      inner = 0;
    inner = multiplyAdd(centred, w.scale(row, g), inner);
    if (end == w.k || end % scaleGroup == 0)
      outer = multiplyAdd(
          inner, in.scales[t * groupsOf(w.k, scaleGroup) + begin / scaleGroup],
          outer);
  }
  return outer;
}

constexpr int kMaxRows = 101;

static const std::vector<int> kRowCounts{1,  2,  3,  4,  7,  8,       9,
                                         12, 13, 31, 32, 33, kMaxRows};

static void checkLinear(const Affine &w, const std::string &cpu,
                        const Buffer<float> &x, bool hasBias, bool hasResidual,
                        int groupsOfScale = 1,
                        const std::vector<int> &rowCounts = kRowCounts) {
  int scaleGroup = w.groupSize * groupsOfScale;
  std::string what =
      cpu + " " + describe(w) + " scales of " + std::to_string(scaleGroup);
  Buffer<uint8_t> made =
      pack(w.weight(), "{kind = \"panel_affine\", " + w.layout() + "}");
  Buffer<uint8_t> packed(made.size(), 0);
  std::copy(made.begin(), made.end(), packed.begin());
  int zero = w.zeros == Affine::None ? static_cast<int>(w.zero(0, 0)) : 1;
  CompiledKernel quantize("quantize_rows",
                          quantizeParams(w.k, w.sumGroup(), scaleGroup, zero),
                          cpu);
  CompiledKernel kernel("linear",
                        linearParams(w, scaleGroup, hasBias, hasResidual), cpu);
  MultiplyAdd multiplyAdd(cpu);
  int64_t panels = (w.n + 31) / 32;
  Buffer<float> bias = randomFloats(w.n, 2),
                residual = randomFloats(rowCounts.back() * w.n, 3);
  for (int rows : rowCounts) {
    // The last `rows` rows, so that one row is not always the same.
    int first = rows == 1 ? 6 : 0;
    Quantized in(rows, w.k, w.sumGroup(), scaleGroup);
    quantize.call(rows,
                  {x.data() + first * w.k, in.codes.data(), in.scales.data(),
                   in.offsets.data()},
                  {rows}, 0, rows);
    Buffer<float> added(rows * w.n, 0), shift(w.n, 0);
    std::copy(bias.begin(), bias.end(), shift.begin());
    std::copy(&residual[first * w.n], &residual[first * w.n] + rows * w.n,
              added.begin());
    std::vector<const void *> buffers{in.codes.data(), in.scales.data(),
                                      in.offsets.data(), packed.data()};
    if (hasBias)
      buffers.push_back(shift.data());
    if (hasResidual)
      buffers.push_back(added.data());
    Buffer<float> out(rows * w.n, NAN);
    buffers.push_back(out.data());
    for (int64_t panel = panels - 1; panel >= 0; --panel)
      kernel.call(rows, buffers, {rows}, panel, panel + 1);
    for (int t = 0; t < rows; ++t)
      for (int row = 0; row < w.n; ++row) {
        float want = expected(multiplyAdd, w, in, scaleGroup, t, row);
        if (hasBias)
          want += bias[row];
        if (hasResidual)
          want += residual[(first + t) * w.n + row];
        // Products that are rounded can be opposite infinities.
        float got = out[t * w.n + row];
        ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
            << got << " not " << want << ", " << what << " rows " << rows
            << " row " << t << " output " << row;
      }
  }
}

TEST(Int8, LinearAgainstExactSums) {
  for (const std::string &cpu : testedCPUs())
    for (const Affine &w : shapesFor(cpu, kWeights))
      checkLinear(w, cpu, hardRows(kMaxRows, w.k), false, false);
}

/// Several groups of weights to a scale of the inputs, the last one short.
TEST(Int8, LinearOfWiderScales) {
  for (const std::string &cpu : testedCPUs())
    for (const Affine &w : shapesFor(cpu, kWeights))
      for (int groups : {4, 5, 9})
        if (w.groups() > 1 && (groups == 4 || hasFeature(cpu, "avx2")))
          checkLinear(w, cpu, hardRows(kMaxRows, w.k), false, false, groups);
}

/// More rows than a block takes.
TEST(Int8, LinearOfManyRows) {
  constexpr int kRows = 1100;
  for (const Affine &w : {Affine{33, 320, 4, 32, "f16", Affine::None},
                          Affine{33, 1536, 4, 128, "f32", Affine::None, -1, 32},
                          Affine{40, 1024, 8, 1 << 20, "f16", Affine::None}})
    checkLinear(w, "native", hardRows(kRows, w.k), false, true,
                w.bits == 4 ? 4 : 1, {520, kRows});
}

/// A scale for all inputs of a row, of more than there are.
TEST(Int8, LinearOfOneScale) {
  for (const std::string &cpu : testedCPUs())
    checkLinear({33, 1088, 4, 32, "f16", Affine::None}, cpu,
                hardRows(kMaxRows, 1088), false, false, 1 << 15);
}

TEST(Int8, LinearAddsBiasAndResidual) {
  for (const std::string &cpu : testedCPUs())
    for (auto [bias, residual] :
         {std::pair{true, false}, {false, true}, {true, true}})
      checkLinear(kWeights[0], cpu, hardRows(kMaxRows, kWeights[0].k), bias,
                  residual);
}

/// Inputs and weights as far from zero as they can be, all of one sign: the
/// largest sums that narrow lanes must hold.
TEST(Int8, LinearOfExtremes) {
  for (const std::string &cpu : testedCPUs()) {
    if (cpu == "x86-64") // its lanes are wide
      continue;
    for (int bits : {2, 4, 8})
      for (int code : {0, (1 << bits) - 1})
        for (float input : {1.0f, -1.0f}) {
          Affine w{33, 136, bits, 128, "f32", Affine::None, code};
          Buffer<float> x(kMaxRows * w.k, 0);
          std::fill(x.begin(), x.end(), input);
          checkLinear(w, cpu, x, false, false);
        }
    // With factors also inputs whose signs change where lanes are halved.
    Affine w{33, 136, 4, 128, "f32", Affine::None, -1, 32, true};
    Buffer<float> x(kMaxRows * w.k, 0);
    for (int t = 0; t < kMaxRows; ++t)
      for (int i = 0; i < w.k; ++i)
        x[t * w.k + i] = ((i >> t % 4) & (t % 5 ? 1 : 0)) ^ (t & 1) ? -1 : 1;
    checkLinear(w, cpu, x, false, false);
  }
}

/// A NaN or an infinity shows in every output of its row, and in no other one.
TEST(Int8, NonFiniteInputs) {
  constexpr int kRows = 5, kInputs = 83;
  for (const std::string &cpu : testedCPUs())
    for (int bits : {4, 8})
      for (auto zeros : {Affine::None, Affine::Codes}) {
        Affine w{33, kInputs, bits, 32, "f32", zeros};
        Buffer<uint8_t> packed =
            pack(w.weight(), "{kind = \"panel_affine\", " + w.layout() + "}");
        int zero = zeros == Affine::None ? static_cast<int>(w.zero(0, 0)) : 1;
        CompiledKernel quantize("quantize_rows",
                                quantizeParams(w.k, 32, 64, zero), cpu);
        CompiledKernel kernel("linear", linearParams(w, 64, false, false), cpu);
        Buffer<float> x = randomFloats(kRows * kInputs, 1), out(kRows * w.n, 0);
        x[1 * kInputs] = NAN;
        x[2 * kInputs + 40] = INFINITY;
        x[3 * kInputs + kInputs - 1] = -INFINITY;
        x[3 * kInputs + kInputs - 2] = -NAN;
        Quantized in(kRows, w.k, 32, 64);
        quantize.call(
            kRows,
            {x.data(), in.codes.data(), in.scales.data(), in.offsets.data()},
            {kRows}, 0, kRows);
        kernel.call(kRows,
                    {in.codes.data(), in.scales.data(), in.offsets.data(),
                     packed.data(), out.data()},
                    {kRows}, 0, 2);
        for (int t = 0; t < kRows; ++t)
          for (int row = 0; row < w.n; ++row)
            EXPECT_EQ(std::isfinite(out[t * w.n + row]), t == 0 || t == 4)
                << cpu << " " << describe(w) << " row " << t;
      }
}

/// The whole path against the product in double precision: the error is that
/// of the activations' rounding, half a step of 1/127 of a group's maximum.
TEST(Int8, ErrorAgainstDouble) {
  Affine w{64, 512, 4, 32, "f16", Affine::Codes};
  Buffer<uint8_t> packed =
      pack(w.weight(), "{kind = \"panel_affine\", " + w.layout() + "}");
  CompiledKernel quantize("quantize_rows", quantizeParams(w.k, 32, 128, 1),
                          "native");
  CompiledKernel kernel("linear", linearParams(w, 128, false, false), "native");
  Buffer<float> x = randomFloats(w.k, 5), out(w.n, NAN);
  Quantized in(1, w.k, 32, 128);
  quantize.call(
      1, {x.data(), in.codes.data(), in.scales.data(), in.offsets.data()}, {1},
      0, 1);
  kernel.call(1,
              {in.codes.data(), in.scales.data(), in.offsets.data(),
               packed.data(), out.data()},
              {1}, 0, 2);
  for (int row = 0; row < w.n; ++row) {
    double want = 0, bound = 1e-4;
    for (int i = 0; i < w.k; ++i) {
      want += double(w.value(row, i)) * x[i];
      bound += std::fabs(double(w.value(row, i))) * in.scales[i / 128] * 0.51;
    }
    EXPECT_NEAR(out[row], want, bound);
  }
}
