//===- AttentionTest.cpp - attention over a paged cache -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

using namespace llm::test;

namespace {
struct Shape {
  int heads, kvHeads, size, valueSize;
  int window = 0;
  float softcap = 0;
  const char *cacheType = "f32";
};

/// Keys and values of one sequence, [slot][kvHeads * size], as the cache holds
/// them.
struct Sequence {
  int length; ///< slots after the step
  int fresh;  ///< tokens of the step, the last ones
  std::vector<float> keys, values;
};

/// A step over sequences, laid out in pages.
class Step {
public:
  Step(const Shape &shape, const std::vector<Sequence> &sequences, int pageSize,
       unsigned seed);
  const Shape &shape;
  int tokens = 0, width = 0;
  std::vector<int32_t> seq, begin, length, table;
  Buffer<uint8_t> keys, values;
};
} // namespace

static int elementBytes(const Shape &shape) {
  return std::string(shape.cacheType) == "f32" ? 4 : 2;
}

static float roundTo(const char *type, float value) {
  std::string name = type;
  if (name == "f16")
    return static_cast<_Float16>(value);
  if (name == "bf16")
    return BFloat16(value);
  return value;
}

static void put(uint8_t *at, const char *type, float value) {
  std::string name = type;
  if (name == "f32") {
    std::memcpy(at, &value, 4);
  } else if (name == "f16") {
    auto half = static_cast<_Float16>(value);
    std::memcpy(at, &half, 2);
  } else {
    BFloat16 half(value);
    std::memcpy(at, &half, 2);
  }
}

Step::Step(const Shape &shape, const std::vector<Sequence> &sequences,
           int pageSize, unsigned seed)
    : shape(shape), keys(0), values(0) {
  int pages = 0, longest = 0;
  for (const Sequence &s : sequences) {
    longest = std::max(longest, s.length);
    pages += pageSize ? (s.length + pageSize - 1) / pageSize : 0;
  }
  width = pageSize ? (longest + pageSize - 1) / pageSize : 1;
  // Pages in random order; one that nobody owns holds NaN.
  std::vector<int32_t> order(pages + 1);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  int slots = 0;
  if (pageSize)
    slots = (pages + 1) * pageSize;
  else
    for (const Sequence &s : sequences)
      slots += s.length;
  int bytes = elementBytes(shape);
  int keyWidth = shape.kvHeads * shape.size,
      valueWidth = shape.kvHeads * shape.valueSize;
  keys = Buffer<uint8_t>(static_cast<size_t>(slots) * keyWidth * bytes, 0xff);
  values =
      Buffer<uint8_t>(static_cast<size_t>(slots) * valueWidth * bytes, 0xff);
  table.assign(sequences.size() * width, -1);
  begin.push_back(0);
  int nextPage = 0, nextSlot = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence &s = sequences[i];
    for (int j = 0; j < s.length; ++j) {
      int slot;
      if (pageSize) {
        int32_t &page = table[i * width + j / pageSize];
        if (page < 0)
          page = order[nextPage++];
        slot = page * pageSize + j % pageSize;
      } else {
        table[i * width] = nextSlot;
        slot = nextSlot + j;
      }
      for (int d = 0; d < keyWidth; ++d)
        put(&keys[(static_cast<size_t>(slot) * keyWidth + d) * bytes],
            shape.cacheType, s.keys[j * keyWidth + d]);
      for (int d = 0; d < valueWidth; ++d)
        put(&values[(static_cast<size_t>(slot) * valueWidth + d) * bytes],
            shape.cacheType, s.values[j * valueWidth + d]);
    }
    nextSlot += s.length;
    length.push_back(s.length);
    seq.insert(seq.end(), s.fresh, static_cast<int32_t>(i));
    tokens += s.fresh;
    begin.push_back(tokens);
  }
}

static Buffer<float> run(const CompiledKernel &kernel, const Step &step,
                         const Buffer<float> &q, bool split) {
  const Shape &shape = step.shape;
  Buffer<float> out(
      static_cast<size_t>(step.tokens) * shape.heads * shape.valueSize, NAN);
  Buffer<int32_t> seq(step.seq.size()), begin(step.begin.size()),
      length(step.length.size()), table(step.table.size());
  std::copy(step.seq.begin(), step.seq.end(), seq.begin());
  std::copy(step.begin.begin(), step.begin.end(), begin.begin());
  std::copy(step.length.begin(), step.length.end(), length.begin());
  std::copy(step.table.begin(), step.table.end(), table.begin());
  std::vector<const void *> buffers{
      q.data(),     step.keys.data(), step.values.data(), seq.data(),
      begin.data(), length.data(),    table.data(),       out.data()};
  int64_t items = static_cast<int64_t>(step.tokens) * shape.kvHeads;
  if (!split) {
    kernel.call(step.tokens, buffers, {step.tokens, step.width}, 0, items);
  } else {
    for (int64_t i = items - 1; i >= 0; --i)
      kernel.call(step.tokens, buffers, {step.tokens, step.width}, i, i + 1);
  }
  EXPECT_TRUE(out.intact());
  return out;
}

static std::string params(const Shape &shape, int pageSize) {
  auto integer = [](const char *name, int value) {
    return std::string(name) + " = " + std::to_string(value) + " : i64, ";
  };
  return "{" + integer("heads", shape.heads) +
         integer("kv_heads", shape.kvHeads) + integer("size", shape.size) +
         integer("value_size", shape.valueSize) +
         integer("window", shape.window) + integer("page_size", pageSize) +
         "scale = 0.3 : f64, softcap = " + std::to_string(shape.softcap) +
         " : f64, cache_type = " + shape.cacheType + "}";
}

/// The output of one token in double, straight from the definition.
static std::vector<double> reference(const Shape &shape, const Sequence &s,
                                     int count, const float *q) {
  std::vector<double> out(shape.heads * shape.valueSize, 0.0);
  int perGroup = shape.heads / shape.kvHeads;
  int low = shape.window ? std::max(0, count - shape.window) : 0;
  for (int h = 0; h < shape.heads; ++h) {
    int kv = h / perGroup;
    std::vector<double> score(count);
    double top = -INFINITY, sum = 0;
    for (int j = low; j < count; ++j) {
      double dot = 0;
      for (int d = 0; d < shape.size; ++d)
        dot += double(q[h * shape.size + d]) *
               roundTo(shape.cacheType,
                       s.keys[(j * shape.kvHeads + kv) * shape.size + d]);
      dot *= 0.3f;
      if (shape.softcap > 0)
        dot = shape.softcap * std::tanh(dot / shape.softcap);
      score[j] = dot;
      top = std::max(top, dot);
    }
    for (int j = low; j < count; ++j)
      sum += std::exp(score[j] - top);
    for (int j = low; j < count; ++j)
      for (int d = 0; d < shape.valueSize; ++d)
        out[h * shape.valueSize + d] +=
            std::exp(score[j] - top) / sum *
            roundTo(shape.cacheType,
                    s.values[(j * shape.kvHeads + kv) * shape.valueSize + d]);
  }
  return out;
}

static Sequence makeSequence(const Shape &shape, int length, int fresh,
                             unsigned seed) {
  auto keys = randomFloats(
      static_cast<size_t>(length) * shape.kvHeads * shape.size, seed);
  auto values = randomFloats(
      static_cast<size_t>(length) * shape.kvHeads * shape.valueSize, seed + 1);
  return {length,
          fresh,
          {keys.begin(), keys.end()},
          {values.begin(), values.end()}};
}

static const Shape kShapes[] = {
    {3, 1, 64, 64},
    {4, 4, 8, 8},
    {6, 2, 20, 36},
    {8, 1, 128, 128, 0, 0, "bf16"},
    {4, 2, 16, 16, 70, 0, "f16"},
    {14, 2, 64, 64, 0, 30},
    {2, 2, 32, 48, 5, 2.5f},
};

TEST(Attention, AgainstDoubleAnyPageSize) {
  for (const std::string &cpu : testedCPUs())
    for (const Shape &shape : shapesFor(cpu, kShapes)) {
      // Prefill of 9 from nothing, one token after 199, a chunk after 60.
      std::vector<Sequence> sequences{makeSequence(shape, 9, 9, 10),
                                      makeSequence(shape, 200, 1, 20),
                                      makeSequence(shape, 67, 7, 30)};
      Buffer<float> q = randomFloats(17 * shape.heads * shape.size, 5);
      Buffer<float> first(0);
      for (int pageSize : {16, 24, 64, 0}) {
        CompiledKernel kernel("attention", params(shape, pageSize), cpu);
        Step step(shape, sequences, pageSize, 3);
        Buffer<float> out = run(kernel, step, q, false);
        EXPECT_TRUE(out == run(kernel, step, q, true)) << "split";
        if (pageSize != 16) {
          EXPECT_TRUE(out == first) << cpu << " page size " << pageSize;
          continue;
        }
        int width = shape.heads * shape.valueSize;
        for (int t = 0; t < step.tokens; ++t) {
          const Sequence &s = sequences[step.seq[t]];
          int count = s.length - (step.begin[step.seq[t] + 1] - 1 - t);
          std::vector<double> want =
              reference(shape, s, count, &q[t * shape.heads * shape.size]);
          for (int d = 0; d < width; ++d)
            ASSERT_NEAR(out[t * width + d], want[d], 4e-6)
                << cpu << " token " << t << " element " << d << " size "
                << shape.size;
        }
        first = out;
      }
    }
}

// A token's row is the same whether its successors are in the step or not, and
// whoever shares the step.
TEST(Attention, RowInvariance) {
  for (const std::string &cpu : testedCPUs())
    for (const Shape &shape : shapesFor(cpu, kShapes)) {
      CompiledKernel kernel("attention", params(shape, 16), cpu);
      Sequence whole = makeSequence(shape, 130, 130, 40);
      int qWidth = shape.heads * shape.size,
          width = shape.heads * shape.valueSize,
          keyWidth = shape.kvHeads * shape.size,
          valueWidth = shape.kvHeads * shape.valueSize;
      Buffer<float> q = randomFloats(130 * qWidth, 6);
      Step prefill(shape, {whole}, 16, 1);
      Buffer<float> all = run(kernel, prefill, q, false);
      for (int length : {1, 2, 63, 64, 65, 128, 130}) {
        Sequence part{
            length,
            1,
            {whole.keys.begin(), whole.keys.begin() + length * keyWidth},
            {whole.values.begin(), whole.values.begin() + length * valueWidth}};
        Step decode(shape, {makeSequence(shape, 33, 1, 50), part}, 16, 2);
        Buffer<float> two(2 * qWidth);
        std::copy(&q[0], &q[0] + qWidth, two.begin());
        std::copy(&q[(length - 1) * qWidth], &q[(length - 1) * qWidth] + qWidth,
                  two.begin() + qWidth);
        Buffer<float> out = run(kernel, decode, two, false);
        EXPECT_EQ(0, std::memcmp(&out[width], &all[(length - 1) * width],
                                 width * sizeof(float)))
            << cpu << " length " << length;
      }
    }
}

TEST(Attention, PaddingRowsAreZero) {
  Shape shape{4, 2, 16, 20};
  CompiledKernel kernel("attention", params(shape, 16), "native");
  Step step(shape, {makeSequence(shape, 5, 2, 1)}, 16, 1);
  step.seq.push_back(-1);
  step.tokens = 3;
  Buffer<float> q = randomFloats(3 * 4 * 16, 2);
  Buffer<float> out = run(kernel, step, q, false);
  for (int d = 0; d < 80; ++d) {
    EXPECT_NE(out[80 + d], 0);
    EXPECT_EQ(out[160 + d], 0);
  }
}
