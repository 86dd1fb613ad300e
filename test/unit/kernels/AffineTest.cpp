//===- AffineTest.cpp - Packed groups: layouts, linear, embedding ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llm::test;

namespace {
/// A weight in affine groups, kept as its definition has it.
struct Affine {
  int n, k, bits, groupSize;
  const char *scaleType;
  enum Zeros { None, Codes, Floats } zeros;

  int groups() const { return (k + groupSize - 1) / groupSize; }
  int code(int row, int i) const {
    return static_cast<int>((row * 7919u + i * 104729u + (row ^ i) * 31u) >>
                            3) &
           ((1 << bits) - 1);
  }
  float scale(int row, int g) const {
    float value = 0.01f + 0.001f * static_cast<float>((row * 13 + g * 7) % 50);
    return std::string(scaleType) == "f16" ? float(_Float16(value)) : value;
  }
  float zero(int row, int g) const {
    switch (zeros) {
    case None:
      return static_cast<float>(1 << (bits - 1));
    case Codes:
      return static_cast<float>((row * 5 + g * 3) & ((1 << bits) - 1));
    case Floats:
      return static_cast<float>(
          _Float16(0.3f * static_cast<float>((row + g) % 10)));
    }
    return 0;
  }
  float value(int row, int i) const {
    int g = i / groupSize;
    return (static_cast<float>(code(row, i)) - zero(row, g)) * scale(row, g);
  }
  /// The llm.weight of it, with inline components.
  std::string weight() const;
  /// The layout's entries but its kind.
  std::string layout() const;
};
} // namespace

static std::string hex(const std::vector<uint8_t> &bytes) {
  static const char digits[] = "0123456789ABCDEF";
  std::string result = "\"0x";
  for (uint8_t byte : bytes) {
    result += digits[byte >> 4];
    result += digits[byte & 15];
  }
  return result + "\"";
}

static std::string component(const char *name, const std::string &type,
                             const std::vector<uint8_t> &bytes) {
  return std::string("#llm.component<\"") + name + "\", " + type + ", dense<" +
         hex(bytes) + "> : " + type + ">";
}

static void append(std::vector<uint8_t> &bytes, const std::string &type,
                   float value) {
  uint8_t raw[4];
  if (type == "f16") {
    auto half = static_cast<_Float16>(value);
    std::memcpy(raw, &half, 2);
  } else {
    std::memcpy(raw, &value, 4);
  }
  bytes.insert(bytes.end(), raw, raw + (type == "f16" ? 2 : 4));
}

std::string Affine::weight() const {
  int rowBytes = groups() * groupSize * bits / 8,
      zeroBytes = (groups() * bits + 7) / 8;
  std::vector<uint8_t> codes(n * rowBytes), scales, zeroData;
  if (zeros == Codes)
    zeroData.resize(n * zeroBytes);
  for (int row = 0; row < n; ++row) {
    for (int i = 0; i < k; ++i)
      codes[row * rowBytes + i * bits / 8] |= code(row, i) << (i * bits % 8);
    for (int g = 0; g < groups(); ++g) {
      append(scales, scaleType, scale(row, g));
      if (zeros == Codes)
        zeroData[row * zeroBytes + g * bits / 8] |=
            static_cast<int>(zero(row, g)) << (g * bits % 8);
      if (zeros == Floats)
        append(zeroData, scaleType, zero(row, g));
    }
  }
  auto shape = [&](int columns, const std::string &type) {
    return "tensor<" + std::to_string(n) + "x" + std::to_string(columns) + "x" +
           type + ">";
  };
  std::string text =
      "llm.weight @w : " + shape(k, "f32") +
      " = #llm.affine<bits = " + std::to_string(bits) +
      ", group_size = " + std::to_string(groupSize) +
      ", data = " + component("data", shape(rowBytes, "ui8"), codes) +
      ", scales = " + component("scales", shape(groups(), scaleType), scales);
  if (zeros != None)
    text +=
        ", zeros = " + component("zeros",
                                 zeros == Codes ? shape(zeroBytes, "ui8")
                                                : shape(groups(), scaleType),
                                 zeroData);
  return text + ">";
}

static std::string entry(const char *name, int value) {
  return std::string(name) + " = " + std::to_string(value) + " : i64, ";
}

std::string Affine::layout() const {
  std::string text = entry("n", n) + entry("k", k) + entry("bits", bits) +
                     entry("group_size", groupSize) +
                     "scale_type = " + scaleType;
  if (zeros != None)
    text +=
        std::string(", zero_type = ") + (zeros == Codes ? "ui8" : scaleType);
  return text;
}

static const Affine kWeights[] = {
    {33, 40, 4, 32, "f32", Affine::None},
    {70, 200, 4, 128, "f16", Affine::Codes},
    {32, 96, 8, 32, "f32", Affine::Codes},
    {5, 77, 8, 64, "f16", Affine::None},
    {40, 100, 2, 64, "f32", Affine::None},
    {31, 64, 4, 64, "f16", Affine::Floats},
    {64, 333, 4, 16, "f32", Affine::None},
};

static std::string describe(const Affine &w) {
  return std::to_string(w.n) + "x" + std::to_string(w.k) + " bits " +
         std::to_string(w.bits) + " group " + std::to_string(w.groupSize);
}

TEST(Affine, EmbeddingRowsAndPanels) {
  for (const Affine &w : kWeights)
    for (const char *kind : {"rows_affine", "panel_affine"}) {
      std::string layout =
          "{kind = \"" + std::string(kind) + "\", " + w.layout() + "}";
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

static std::string linearParams(const Affine &w, int level, bool bias) {
  return "{" + entry("n", w.n) + entry("k", w.k) +
         entry("accuracy_level", level) +
         "bias = " + (bias ? "true" : "false") +
         ", layout = {kind = \"panel_affine\", " + w.layout() + "}}";
}

/// Rows of `width` elements [t, t + 1) in storage of their own.
template <typename T>
static Buffer<T> rowOf(const Buffer<T> &rows, int t, int width) {
  Buffer<T> row(width);
  std::copy(rows.begin() + t * width, rows.begin() + (t + 1) * width,
            row.begin());
  return row;
}

TEST(Affine, LinearF32IsTheDenseLinearOfItsValues) {
  constexpr int kMaxRows = 33;
  for (const std::string &cpu : testedCPUs())
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
            chain = std::fmaf(x[t * w.k + i], w.value(row, i), chain);
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

TEST(Affine, LinearInt8AgainstExactSums) {
  constexpr int kMaxRows = 33;
  for (const std::string &cpu : testedCPUs())
    for (const Affine &w : shapesFor(cpu, kWeights)) {
      Buffer<uint8_t> packed =
          pack(w.weight(), "{kind = \"panel_affine\", " + w.layout() + "}");
      int groups = w.groups(), width = groups * w.groupSize;
      CompiledKernel quantize("quantize_rows",
                              "{" + entry("k", w.k) + "group_size = " +
                                  std::to_string(w.groupSize) + " : i64}",
                              cpu);
      CompiledKernel kernel("linear", linearParams(w, 4, false), cpu);
      Buffer<float> x = randomFloats(kMaxRows * w.k, 1, 10);
      // A group of zeros, and one of numbers too small for a scale.
      for (int i = 0; i < w.groupSize && i < w.k; ++i) {
        x[2 * w.k + i] = 0;
        x[3 * w.k + i] = 1e-42f;
      }
      Buffer<int8_t> codes(kMaxRows * width, 77);
      Buffer<float> scales(kMaxRows * groups, NAN),
          sums(kMaxRows * groups, NAN);
      quantize.call(kMaxRows,
                    {x.data(), codes.data(), scales.data(), sums.data()},
                    {kMaxRows}, 0, kMaxRows);
      EXPECT_TRUE(codes.intact() && scales.intact() && sums.intact());
      for (int t = 0; t < kMaxRows; ++t)
        for (int g = 0; g < groups; ++g) {
          float top = 0;
          int begin = g * w.groupSize, end = std::min(w.k, begin + w.groupSize);
          for (int i = begin; i < end; ++i)
            top = std::max(top, std::fabs(x[t * w.k + i]));
          float scale = top / 127;
          float inverse = scale < 0x1p-120f ? 0 : 1 / scale;
          ASSERT_EQ(scales[t * groups + g], scale);
          int sum = 0;
          for (int i = begin; i < begin + w.groupSize; ++i) {
            int want = i < end ? static_cast<int>(
                                     std::nearbyintf(x[t * w.k + i] * inverse))
                               : 0;
            ASSERT_EQ(codes[t * width + i], want);
            sum += want;
          }
          ASSERT_EQ(sums[t * groups + g], sum);
        }
      int64_t panels = (w.n + 31) / 32;
      Buffer<float> alone(kMaxRows * w.n);
      for (int t = 0; t < kMaxRows; ++t) {
        Buffer<int8_t> inCodes = rowOf(codes, t, width);
        Buffer<float> inScales = rowOf(scales, t, groups),
                      inSums = rowOf(sums, t, groups), out(w.n, NAN);
        kernel.call(1,
                    {inCodes.data(), inScales.data(), inSums.data(),
                     packed.data(), out.data()},
                    {1}, 0, panels);
        EXPECT_TRUE(out.intact());
        std::copy(out.begin(), out.end(), &alone[t * w.n]);
        for (int row = 0; row < w.n; ++row) {
          float chain = 0;
          for (int g = 0; g < groups; ++g) {
            int dot = 0;
            for (int i = g * w.groupSize;
                 i < std::min(w.k, (g + 1) * w.groupSize); ++i)
              dot += w.code(row, i) * inCodes[i];
            float centred =
                std::fmaf(-w.zero(row, g), inSums[g], static_cast<float>(dot));
            chain = std::fmaf(centred, w.scale(row, g) * inScales[g], chain);
          }
          ASSERT_EQ(out[row], chain) << cpu << " " << describe(w);
        }
      }
      for (int rows : {1, 2, 3, 7, 8, 9, 33}) {
        Buffer<float> out(rows * w.n, NAN);
        for (int64_t panel = panels - 1; panel >= 0; --panel)
          kernel.call(rows,
                      {codes.data(), scales.data(), sums.data(), packed.data(),
                       out.data()},
                      {rows}, panel, panel + 1);
        EXPECT_EQ(0, std::memcmp(out.data(), alone.data(), rows * w.n * 4))
            << cpu << " " << describe(w) << " rows " << rows;
        EXPECT_TRUE(out.intact());
      }
    }
}
