//===- LinearProgramTest.cpp - linear that ends in operators --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A linear with parameter `ops` leaves the bits that an elementwise kernel
// makes of what a linear per weight writes.
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Affine.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llm::test;

static constexpr int kMaxRows = 53;

static int codeStride(int k) {
  return (((k + 15) / 16 * 16 + 63) / 64 | 1) * 64;
}
static int pairStride(int k) { return (((k + 1) / 2 * 4 + 63) / 64 | 1) * 32; }

namespace {
/// Two weights of one layout and rows to multiply with them.
struct Product {
  int n, k;
  std::string layout; ///< a dictionary
  int level = 0;
  std::vector<Buffer<uint8_t>> weights;
};

/// What a kernel writes of rows of `n` outputs, in every form.
struct Outputs {
  explicit Outputs(int n, int rows = kMaxRows)
      : floats(rows * n, NAN), codes(rows * codeStride(n), 3),
        scales(rows * n, NAN), offsets(rows * n, 5),
        narrow(rows * pairStride(n), 7) {}
  std::vector<const void *> of(const std::string &form) const {
    if (form == "int8")
      return {codes.data(), scales.data(), offsets.data()};
    return {form == "bf16" ? static_cast<const void *>(narrow.data())
                           : floats.data()};
  }
  bool operator==(const Outputs &other) const {
    return floats == other.floats && codes == other.codes &&
           scales == other.scales && offsets == other.offsets &&
           narrow == other.narrow;
  }
  Buffer<float> floats;
  Buffer<int8_t> codes;
  Buffer<float> scales;
  Buffer<int32_t> offsets;
  Buffer<uint16_t> narrow;
};
} // namespace

static Buffer<uint8_t> bytesOf(const std::string &layout,
                               const std::string &type, uint32_t seed) {
  auto size = static_cast<size_t>(layoutBytes(layout));
  Buffer<uint8_t> bytes(size);
  size_t each = type == "f32" ? 4 : 2;
  Buffer<float> values = randomFloats(size / each, seed);
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t narrow = roundToBF16(values[i]);
    const void *from = each == 4 ? static_cast<const void *>(&values[i])
                                 : static_cast<const void *>(&narrow);
    std::memcpy(&bytes[i * each], from, each);
  }
  return bytes;
}

static Product dense(int n, int k, const char *kind, const char *type,
                     int level) {
  Product p{n,
            k,
            "{" + entry("n", n) + entry("k", k) + "kind = \"" + kind +
                "\", type = " + type + "}",
            level,
            {}};
  for (uint32_t seed : {11, 12})
    p.weights.push_back(bytesOf(p.layout, type, seed));
  return p;
}

static Product affine(int n, int k, Affine::Zeros zeros, int level) {
  Affine first{n, k, 4, 32, "f16", zeros}, second = first;
  second.onlyCode = 3;
  Product p{
      n, k, "{kind = \"panel_affine\", " + first.layout() + "}", level, {}};
  for (const Affine &w : {first, second})
    p.weights.push_back(pack(w.weight(), p.layout));
  return p;
}

/// `ops` over `weights` of the product's, into `form` (text of the parameters).
static void check(const std::string &cpu, const Product &p, int weights,
                  bool hasBias, const std::string &ops, const std::string &form,
                  const std::string &params) {
  std::string what = cpu + " " + p.layout + " level " +
                     std::to_string(p.level) + " " + ops + " " + params;
  std::string linear = "{" + entry("n", p.n) + entry("k", p.k) +
                       entry("accuracy_level", p.level) +
                       "bias = " + (hasBias ? "true" : "false") +
                       ", layout = " + p.layout;
  CompiledKernel plain("linear", linear + "}", cpu);
  CompiledKernel fused("linear", linear + ", ops = " + ops + params + "}", cpu);
  CompiledKernel chain(
      "elementwise", "{" + entry("width", p.n) + "ops = " + ops + params + "}",
      cpu);
  Buffer<float> x = randomFloats(kMaxRows * p.k, 1),
                bias = randomFloats(2 * p.n, 2);
  int groups = (p.k - 1) / 32 + 1;
  Buffer<int8_t> codes(kMaxRows * codeStride(p.k), 0);
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<int8_t>(i * 37 % 255 - 127);
  Buffer<float> scales = randomFloats(kMaxRows * groups, 3);
  Buffer<int32_t> offsets(kMaxRows * groups, 0);
  Buffer<uint16_t> pairs(kMaxRows * pairStride(p.k), 0);
  for (int t = 0; t < kMaxRows; ++t)
    for (int i = 0; i < p.k; ++i)
      pairs[t * pairStride(p.k) + i] = roundToBF16(x[t * p.k + i]);
  std::vector<const void *> inputs{x.data()};
  if (p.level == 3)
    inputs = {pairs.data()};
  if (p.level == 4)
    inputs = {codes.data(), scales.data(), offsets.data()};
  Buffer<float> first(p.n, 0), second(p.n, 0);
  std::copy(bias.begin(), bias.begin() + p.n, first.begin());
  std::copy(bias.begin() + p.n, bias.end(), second.begin());
  const void *biases[] = {first.data(), second.data()};

  int64_t panels = (p.n + 31) / 32;
  for (int rows : {1, 2, 8, 9, 24, 25, 53}) {
    std::vector<Buffer<float>> sums;
    std::vector<const void *> reads;
    for (int i = 0; i < weights; ++i) {
      sums.emplace_back(rows * p.n, NAN);
      std::vector<const void *> buffers = inputs;
      buffers.push_back(p.weights[i].data());
      if (hasBias)
        buffers.push_back(biases[i]);
      buffers.push_back(sums.back().data());
      plain.call(rows, buffers, {rows}, 0, panels);
      reads.push_back(sums.back().data());
    }
    Outputs want(p.n), got(p.n);
    for (const void *out : want.of(form))
      reads.push_back(out);
    chain.call(rows, reads, {rows}, 0, rows);

    std::vector<const void *> buffers = inputs;
    for (int i = 0; i < weights; ++i)
      buffers.push_back(p.weights[i].data());
    for (int i = 0; hasBias && i < weights; ++i)
      buffers.push_back(biases[i]);
    for (const void *out : got.of(form))
      buffers.push_back(out);
    int64_t each = form == "int8" ? 64 : 32, items = (p.n + each - 1) / each;
    for (int64_t item = items - 1; item >= 0; --item)
      fused.call(rows, buffers, {rows}, item, item + 1);
    EXPECT_TRUE(got == want) << what << " rows " << rows;
  }
}

/// The maxima of the panels, whatever the variant; of NaN and infinities none.
TEST(LinearProgram, LeavesMaxima) {
  for (const std::string &cpu : testedCPUs())
    for (int n : {5, 64, 83}) {
      Product p = dense(n, 37, "panel", "f32", 0);
      std::string params = "{" + entry("n", n) + entry("k", p.k) +
                           "maxima = true, bias = true, layout = " + p.layout +
                           "}";
      CompiledKernel kernel("linear", params, cpu);
      Buffer<float> x = randomFloats(kMaxRows * p.k, 1),
                    bias = randomFloats(n, 2);
      bias[0] = NAN;
      bias[1] = INFINITY;
      if (n == 83) // a panel without a finite output
        std::fill(bias.begin() + 32, bias.begin() + 64, -INFINITY);
      int panels = (n + 31) / 32;
      for (int rows : {1, 5, 12, 53}) {
        Buffer<float> out(rows * n, 0), maxima(rows * panels, NAN);
        kernel.call(rows,
                    {x.data(), p.weights[0].data(), bias.data(), out.data(),
                     maxima.data()},
                    {rows}, 0, panels);
        for (int t = 0; t < rows; ++t)
          for (int panel = 0; panel < panels; ++panel) {
            float want = -INFINITY;
            for (int i = panel * 32; i < std::min(n, panel * 32 + 32); ++i)
              if (std::isfinite(out[t * n + i]))
                want = std::max(want, out[t * n + i]);
            ASSERT_EQ(maxima[t * panels + panel], want)
                << cpu << " n " << n << " rows " << rows;
          }
        EXPECT_TRUE(maxima.intact());
      }
    }
}

TEST(LinearProgram, IsLinearThenElementwise) {
  const std::string gate = "[\"in0\", \"silu\", \"in1\", \"mul\"]",
                    gelu = "[\"in0\", \"gelu_tanh\"]";
  const std::string int8 = ", output = \"int8\", group_size = 32 : i64, "
                           "scale_group = 64 : i64, zero = 8 : i64",
                    bf16 = ", output = \"bf16\"";
  for (const std::string &cpu : testedCPUs()) {
    // All sizes on the host's own; the levels below AVX2 share the kinds.
    for (int n : {83, 5, 64, 160}) {
      if (cpu == "x86-64-v2")
        break;
      check(cpu, affine(n, 72, Affine::None, 4), 2, false, gate, "int8", int8);
      check(cpu, dense(n, 37, "panel_pairs", "bf16", 3), 2, n == 83, gate,
            "bf16", bf16);
      if (cpu != "native")
        break;
    }
    if (cpu == "x86-64")
      continue;
    check(cpu, affine(83, 72, Affine::Codes, 4), 2, true, gate, "f32", "");
    check(cpu, affine(33, 64, Affine::Codes, 0), 2, false, gate, "f32", "");
    check(cpu, dense(83, 37, "panel", "f32", 0), 1, true, gelu, "f32", "");
    check(cpu, dense(70, 40, "panel_pairs", "bf16", 0), 1, true, gelu, "int8",
          int8);
  }
}
