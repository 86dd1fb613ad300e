//===- RowsTest.cpp - embedding, gather_rows, kv_append, rope -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/AttentionSteps.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llm::test;

template <typename T> static Buffer<T> bufferOf(std::vector<T> values) {
  Buffer<T> result(values.size());
  std::copy(values.begin(), values.end(), result.begin());
  return result;
}

static std::string text(const char *name, int64_t value) {
  return std::string(name) + " = " + std::to_string(value) + " : i64, ";
}

static std::string embeddingParams(int vocab, int dim, const char *layout) {
  return "{" + text("vocab", vocab) + text("dim", dim) + "layout = {" +
         text("n", vocab) + text("k", dim) + layout + "}}";
}

TEST(Rows, DenseEmbedding) {
  constexpr int kVocab = 70, kDim = 37;
  Buffer<float> table = randomFloats(kVocab * kDim, 1);
  Buffer<BFloat16> half(kVocab * kDim);
  std::copy(table.begin(), table.end(), half.begin());
  Buffer<float> panels(3 * 32 * kDim, NAN);
  for (int row = 0; row < kVocab; ++row)
    for (int d = 0; d < kDim; ++d)
      panels[((row / 32) * kDim + d) * 32 + row % 32] = table[row * kDim + d];
  // The last two are outside and clamp to the ends.
  Buffer<int32_t> token = bufferOf<int32_t>({5, 0, 69, 33, 31, 32, -4, 70});
  const int rows[8] = {5, 0, 69, 33, 31, 32, 0, 69};
  struct {
    const char *layout;
    const void *data;
    bool narrow;
  } cases[] = {{"kind = \"rows\", type = f32", table.data(), false},
               {"kind = \"rows\", type = bf16", half.data(), true},
               {"kind = \"panel\", type = f32", panels.data(), false}};
  for (const std::string &cpu : testedCPUs())
    for (const auto &test : cases) {
      CompiledKernel kernel("embedding",
                            embeddingParams(kVocab, kDim, test.layout), cpu);
      Buffer<float> out(8 * kDim, NAN);
      kernel.call(8, {token.data(), test.data, out.data()}, {8}, 0, 8);
      EXPECT_TRUE(out.intact());
      for (int t = 0; t < 8; ++t)
        for (int d = 0; d < kDim; ++d)
          EXPECT_EQ(out[t * kDim + d],
                    test.narrow ? static_cast<float>(half[rows[t] * kDim + d])
                                : table[rows[t] * kDim + d])
              << cpu << " " << test.layout;
    }
}

TEST(Rows, Gather) {
  constexpr int kDim = 37;
  Buffer<float> x = randomFloats(9 * kDim, 1), out(4 * kDim, NAN);
  Buffer<int32_t> row = bufferOf<int32_t>({8, 0, 3, 3});
  for (const std::string &cpu : testedCPUs()) {
    CompiledKernel kernel("gather_rows", "{dim = 37 : i64}", cpu);
    kernel.call(4, {x.data(), row.data(), out.data()}, {4}, 0, 4);
    EXPECT_TRUE(out.intact());
    for (int r = 0; r < 4; ++r)
      EXPECT_EQ(0, std::memcmp(&out[r * kDim], &x[row[r] * kDim], kDim * 4));
  }
}

TEST(Rows, Columns) {
  constexpr int kFrom = 41, kOffset = 3, kWidth = 37;
  for (const std::string &cpu : testedCPUs()) {
    CompiledKernel kernel(
        "columns", "{from = 41 : i64, offset = 3 : i64, width = 37 : i64}",
        cpu);
    Buffer<float> x = randomFloats(5 * kFrom, 1, 3), out(5 * kWidth);
    kernel.call(2, {x.data(), out.data()}, {5}, 0, 5);
    EXPECT_TRUE(out.intact());
    for (int r = 0; r < 5; ++r)
      EXPECT_EQ(0, std::memcmp(&out[r * kWidth], &x[r * kFrom + kOffset],
                               kWidth * 4));
  }
}

template <typename T>
static void checkAppend(const std::string &cpu, const char *type) {
  constexpr int kWidth = 37, kSlots = 10;
  CompiledKernel kernel(
      "kv_append", "{width = 37 : i64, cache_type = " + std::string(type) + "}",
      cpu);
  Buffer<float> x = randomFloats(4 * kWidth, 1, 100);
  // Ties, infinities, NaN and what rounds into infinity.
  float special[] = {1.00390625f, 1.01171875f, INFINITY, -INFINITY, NAN,
                     3.4e38f,     -0.0f,       1e-40f,   65520};
  std::copy(std::begin(special), std::end(special), x.begin());
  Buffer<int32_t> slot = bufferOf<int32_t>({7, 0, 3, 2}),
                  seq = bufferOf<int32_t>({0, 0, -1, 1});
  T untouched = static_cast<T>(-77.0f);
  Buffer<T> plane(kSlots * kWidth, untouched);
  kernel.call(4, {x.data(), slot.data(), seq.data(), plane.data()}, {4}, 0, 4);
  EXPECT_TRUE(plane.intact());
  for (int s = 0; s < kSlots; ++s)
    for (int d = 0; d < kWidth; ++d) {
      int t = s == 7 ? 0 : s == 0 ? 1 : s == 2 ? 3 : -1;
      auto got = static_cast<float>(plane[s * kWidth + d]);
      auto want = static_cast<float>(t < 0 ? untouched
                                           : static_cast<T>(x[t * kWidth + d]));
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(got)) << cpu << " " << type;
      else
        EXPECT_EQ(got, want) << cpu << " " << type << " slot " << s;
    }
}

TEST(Rows, Append) {
  for (const std::string &cpu : testedCPUs()) {
    checkAppend<float>(cpu, "f32");
    checkAppend<_Float16>(cpu, "f16");
    checkAppend<BFloat16>(cpu, "bf16");
  }
}

/// The code of `value`, to nearest, ties to even, too large ones the largest.
static uint8_t referenceCode(const std::string &type, float value) {
  if (type == "i8")
    return static_cast<uint8_t>(static_cast<int8_t>(
        std::nearbyint(std::clamp(value, -127.0f, 127.0f))));
  return roundToF8(type, value);
}

TEST(Rows, AppendQuantized) {
  constexpr int kHeads = 3, kSlots = 10;
  for (const std::string &cpu : testedCPUs())
    for (const char *type : {"i8", "f8E4M3FN", "f8E5M2"})
      for (int size : {1, 37, 64}) {
        int width = kHeads * size;
        float largest = std::string(type) == "i8"         ? 127.0f
                        : std::string(type) == "f8E4M3FN" ? 448.0f
                                                          : 57344.0f;
        CompiledKernel kernel("kv_append",
                              "{" + text("width", width) +
                                  text("heads", kHeads) +
                                  "cache_type = " + std::string(type) + "}",
                              cpu);
        Buffer<float> x = randomFloats(5 * width, 1, 100);
        // Numbers of every size; then zeros, and what counts as zero.
        for (int d = 0; d < width; ++d)
          x[d] = std::ldexp(x[d], -(d % 24));
        std::fill(&x[3 * width], &x[0] + 4 * width, 0.0f);
        for (int d = 0; d < width; ++d)
          x[4 * width + d] = std::ldexp(x[width + d], -130);
        Buffer<int32_t> slot = bufferOf<int32_t>({7, 0, 3, 2, 9}),
                        seq = bufferOf<int32_t>({0, 0, -1, 1, 1});
        Buffer<uint8_t> plane(kSlots * width, 0x55);
        Buffer<float> scales(kSlots * kHeads, -77.0f);
        kernel.call(
            5, {x.data(), slot.data(), seq.data(), plane.data(), scales.data()},
            {5}, 0, 5);
        EXPECT_TRUE(plane.intact());
        EXPECT_TRUE(scales.intact());
        for (int s : {7, 0, 3, 2, 9, 1})
          for (int h = 0; h < kHeads; ++h) {
            int t = s == 7 ? 0 : s == 0 ? 1 : s == 2 ? 3 : s == 9 ? 4 : -1;
            float scale = -77, inverse = 0, top = 0;
            for (int d = 0; t >= 0 && d < size; ++d)
              top = std::max(top, std::abs(x[t * width + h * size + d]));
            if (t >= 0)
              scale = top / largest;
            if (scale >= 0x1p-120f)
              inverse = 1 / scale;
            EXPECT_EQ(scales[s * kHeads + h], scale);
            for (int d = 0; d < size; ++d) {
              int want = t < 0
                             ? 0x55
                             : referenceCode(type, x[t * width + h * size + d] *
                                                       inverse);
              EXPECT_EQ(plane[(s * kHeads + h) * size + d], want)
                  << cpu << " " << type << " slot " << s << " element " << d;
            }
          }
      }
}

/// A plane in blocks from a step with whole blocks, parts of some, and padding
/// in between, against the same rows in a plane of rows. With `rotary`, keys
/// are rotated first.
static void checkAppendBlocks(const std::string &cpu, const std::string &type,
                              int heads, int size, bool isKey, int rotary,
                              bool interleaved) {
  int width = heads * size, half = rotary / 2;
  constexpr int kSlots = 96, kPositions = 50;
  std::string common = "{" + text("width", width) + text("heads", heads);
  CompiledKernel rows("kv_append", common + "cache_type = " + type + "}", cpu);
  std::string rotation = text("rotary_dim", rotary) +
                         text("positions", kPositions) +
                         "interleaved = " + (interleaved ? "true" : "false");
  if (rotary)
    common += rotation + ", ";
  CompiledKernel blocks("kv_append",
                        common + "plane = \"" +
                            (isKey ? "key_blocks" : "value_blocks") +
                            "\", cache_type = " + type + "}",
                        cpu);
  // A whole block, the end of one, a start, one broken by padding, one token
  // of a block, and a whole one again.
  std::vector<int32_t> slot, seq;
  auto add = [&](int first, int count, int sequence) {
    for (int i = 0; i < count; ++i) {
      slot.push_back(sequence < 0 ? 1 << 30 : first + i);
      seq.push_back(sequence);
    }
  };
  add(32, 16, 0);
  add(27, 5, 1);
  add(0, 7, 1);
  add(64, 8, 2);
  add(0, 1, -1);
  add(72, 7, 2);
  add(93, 1, 3);
  add(48, 16, 3);
  add(80, 5, 3);
  int tokens = static_cast<int>(slot.size());
  Buffer<float> x = randomFloats(tokens * width, 1, 100);
  x[3] = INFINITY;
  x[width + 1] = NAN;
  x[2 * width] = 1e-41f;
  Buffer<int32_t> slots = bufferOf(slot), seqs = bufferOf(seq),
                  position(tokens, 7);
  Buffer<float> cos = randomFloats(kPositions * half, 2),
                sin = randomFloats(kPositions * half, 3), rotated = x;
  for (int t = 0; t < tokens; ++t)
    position[t] = t % kPositions;
  if (rotary) {
    CompiledKernel rope(
        "rope",
        "{" + text("heads", heads) + text("size", size) + rotation + "}", cpu);
    rope.call(
        tokens,
        {x.data(), position.data(), cos.data(), sin.data(), rotated.data()},
        {tokens}, 0, tokens);
  }
  int bytes = type == "f32" ? 4 : type == "f16" || type == "bf16" ? 2 : 1;
  Buffer<uint8_t> want(kSlots * width * bytes, 0x55), got = want;
  Buffer<float> wantScales(kSlots * heads, -77), gotScales = wantScales;
  std::vector<const void *> in{rotated.data(), slots.data(), seqs.data(),
                               want.data()};
  if (bytes == 1)
    in.push_back(wantScales.data());
  rows.call(tokens, in, {tokens}, 0, tokens);
  in = {x.data(), slots.data(), seqs.data()};
  if (rotary)
    in.insert(in.end(), {position.data(), cos.data(), sin.data()});
  in.push_back(got.data());
  if (bytes == 1)
    in.push_back(gotScales.data());
  PlaneIndex rowAt(type, heads, size, false), blockAt(type, heads, size, true);
  // At once, and item by item, the last one first.
  for (bool apart : {false, true}) {
    std::fill(got.begin(), got.end(), 0x55);
    std::fill(gotScales.begin(), gotScales.end(), -77.0f);
    if (!apart)
      blocks.call(tokens, in, {tokens}, 0, tokens);
    else
      for (int t = tokens - 1; t >= 0; --t)
        blocks.call(tokens, in, {tokens}, t, t + 1);
    EXPECT_TRUE(got.intact());
    EXPECT_TRUE(gotScales.intact());
    for (int s = 0; s < kSlots; ++s)
      for (int h = 0; h < heads; ++h) {
        EXPECT_EQ(0, std::memcmp(&gotScales[blockAt.scale(s, h)],
                                 &wantScales[rowAt.scale(s, h)], 4));
        for (int d = 0; d < size; ++d) {
          size_t to = isKey ? blockAt.key(s, h, d) : blockAt.value(s, h, d);
          ASSERT_EQ(0, std::memcmp(&got[to * bytes],
                                   &want[rowAt.key(s, h, d) * bytes], bytes))
              << cpu << " " << type << " size " << size << " slot " << s
              << " head " << h << " element " << d
              << (isKey ? " of a key" : " of a value");
        }
      }
  }
}

TEST(Rows, AppendBlocks) {
  for (const std::string &cpu : testedCPUs())
    for (const char *type : {"f32", "f16", "bf16", "i8", "f8E4M3FN", "f8E5M2"})
      for (bool isKey : {false, true})
        checkAppendBlocks(cpu, type, 3, 52, isKey, 0, false);
}

TEST(Rows, AppendBlocksOddSizes) {
  for (const std::string &cpu : testedCPUs()) {
    checkAppendBlocks(cpu, "f32", 2, 37, true, 0, false);
    checkAppendBlocks(cpu, "f16", 1, 1, true, 0, false);
    checkAppendBlocks(cpu, "bf16", 2, 37, false, 0, false);
    checkAppendBlocks(cpu, "i8", 2, 5, false, 0, false);
    checkAppendBlocks(cpu, "bf16", 1, 2, true, 0, false);
  }
}

TEST(Rows, AppendRotated) {
  for (const std::string &cpu : testedCPUs()) {
    checkAppendBlocks(cpu, "f32", 2, 64, true, 64, false);
    checkAppendBlocks(cpu, "bf16", 3, 64, true, 64, false);
    checkAppendBlocks(cpu, "f16", 2, 20, true, 12, true);
    checkAppendBlocks(cpu, "i8", 2, 40, true, 40, true);
    checkAppendBlocks(cpu, "f8E4M3FN", 2, 20, true, 12, false);
  }
}

// One element per head makes its code the largest; these reach all others.
TEST(Rows, AppendRoundsToEven) {
  for (const std::string &cpu : testedCPUs())
    for (const char *type : {"i8", "f8E4M3FN", "f8E5M2"}) {
      constexpr int kSize = 4099;
      float largest = std::string(type) == "i8"         ? 127.0f
                      : std::string(type) == "f8E4M3FN" ? 448.0f
                                                        : 57344.0f;
      CompiledKernel kernel("kv_append",
                            "{" + text("width", kSize) + text("heads", 1) +
                                "cache_type = " + std::string(type) + "}",
                            cpu);
      // A scale of 1: every sixteenth of a code, down to half of the smallest.
      Buffer<float> x(kSize);
      for (int d = 0; d < kSize - 1; ++d)
        x[d] = std::string(type) == "i8"
                   ? static_cast<float>(d - 2048) / 32
                   : std::ldexp(static_cast<float>(16 + d % 16) / 16,
                                (d / 32) % 24 - 18) *
                         (d & 16 ? -1 : 1);
      for (int d = 0; d < kSize - 1; ++d)
        x[d] = std::clamp(x[d], -largest, largest);
      x[kSize - 1] = largest;
      Buffer<int32_t> zero(1, 0);
      Buffer<uint8_t> plane(kSize, 0x55);
      Buffer<float> scale(1);
      kernel.call(
          1, {x.data(), zero.data(), zero.data(), plane.data(), scale.data()},
          {1}, 0, 1);
      EXPECT_EQ(scale[0], 1);
      for (int d = 0; d < kSize; ++d)
        EXPECT_EQ(plane[d], referenceCode(type, x[d]))
            << cpu << " " << type << " of " << x[d];
      // A head with NaN or an infinity has a scale that says so.
      for (float bad : {NAN, INFINITY}) {
        x[5] = bad;
        kernel.call(
            1, {x.data(), zero.data(), zero.data(), plane.data(), scale.data()},
            {1}, 0, 1);
        EXPECT_FALSE(std::isfinite(scale[0]));
      }
    }
}

TEST(Rows, Rope) {
  constexpr int kHeads = 3, kPositions = 40;
  struct {
    int size, rotary;
    bool interleaved;
  } cases[] = {{64, 64, false}, {64, 64, true}, {20, 12, false},
               {20, 12, true},  {8, 2, false},  {37, 36, true}};
  for (const std::string &cpu : testedCPUs())
    for (auto [size, rotary, interleaved] : cases) {
      int half = rotary / 2, width = kHeads * size;
      CompiledKernel kernel(
          "rope",
          "{" + text("heads", kHeads) + text("size", size) +
              text("rotary_dim", rotary) + text("positions", kPositions) +
              "interleaved = " + (interleaved ? "true" : "false") + "}",
          cpu);
      Buffer<float> x = randomFloats(4 * width, 1), cos(kPositions * half),
                    sin(kPositions * half), out(4 * width, NAN);
      for (int p = 0; p < kPositions; ++p)
        for (int i = 0; i < half; ++i) {
          double angle = p * std::pow(10000.0, -2.0 * i / rotary);
          cos[p * half + i] = static_cast<float>(std::cos(angle));
          sin[p * half + i] = static_cast<float>(std::sin(angle));
        }
      Buffer<int32_t> position = bufferOf<int32_t>({0, 39, 7, 7});
      kernel.call(
          4, {x.data(), position.data(), cos.data(), sin.data(), out.data()},
          {4}, 0, 4);
      EXPECT_TRUE(out.intact());
      for (int t = 0; t < 4; ++t)
        for (int h = 0; h < kHeads; ++h) {
          const float *in = &x[t * width + h * size];
          std::vector<double> want(in, in + size);
          for (int i = 0; i < half; ++i) {
            int a = interleaved ? 2 * i : i;
            int b = interleaved ? 2 * i + 1 : i + half;
            double c = cos[position[t] * half + i],
                   s = sin[position[t] * half + i];
            want[a] = in[a] * c - in[b] * s;
            want[b] = in[b] * c + in[a] * s;
          }
          for (int d = 0; d < size; ++d)
            EXPECT_NEAR(out[t * width + h * size + d], want[d], 1e-6)
                << cpu << " size " << size << " rotary " << rotary;
        }
      Buffer<float> place = x;
      kernel.call(
          4,
          {place.data(), position.data(), cos.data(), sin.data(), place.data()},
          {4}, 0, 4);
      EXPECT_TRUE(place == out);
    }
}
