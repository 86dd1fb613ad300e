//===- AttentionTest.cpp - attention over a paged cache -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/AttentionSteps.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

using namespace llm::test;

/// The kernel for pages of 16, compiled once.
static const Attention &attentionFor(const AttentionShape &shape,
                                     const std::string &cpu) {
  static std::map<std::string, std::unique_ptr<Attention>> kernels;
  std::ostringstream key;
  key << shape << shape.headGroups << " " << shape.split << cpu;
  std::unique_ptr<Attention> &kernel = kernels[key.str()];
  if (!kernel)
    kernel = std::make_unique<Attention>(shape, 16, cpu);
  return *kernel;
}

static const AttentionShape kShapes[] = {
    {3, 1, 64, 64, 0, 0, "f32", 4, 2, 1, 3},
    {4, 4, 8, 8, 0, 0, "bf16", 7, 2, 2, 64},
    {6, 2, 20, 36, 0, 0, "f32", 4, 5, 2},
    {8, 1, 128, 128, 0, 0, "bf16", 1, 3, 1, 8},
    {4, 2, 16, 16, 70, 0, "f16", 32, 1, 1, 4},
    {14, 2, 64, 80, 0, 30, "bf16", 5, 2, 1, 5},
    {2, 2, 32, 48, 5, 2.5f, "f32", 3, 16, 2, 2},
    {5, 1, 1, 1, 0, 0, "bf16"},
    {2, 1, 96, 256, 0, 0, "f16"},
    {7, 1, 33, 17, 65, 0, "bf16", 6, 2, 1, 9},
    {1, 1, 256, 3, 300, 0, "f32", 17, 7, 1, 34},
    {2, 2, 64, 72, 0, 0, "f8E5M2", 4, 2, 2, 3},
    {6, 2, 64, 64, 0, 0, "i8", 8, 2, 2, 4},
    {3, 3, 40, 33, 0, 20, "i8", 5, 2, 3, 0},
    {26, 2, 48, 40, 0, 0, "bf16", 3, 2, 2, 4},
    {4, 1, 128, 80, 70, 0, "f8E4M3FN", 6, 2, 1, 8},
};

TEST(Attention, AgainstDoubleAnyPageSize) {
  for (const std::string &cpu : testedCPUs()) {
    SCOPED_TRACE(cpu);
    std::vector<AttentionShape> shapes = shapesFor(cpu, kShapes);
    for (const AttentionShape &shape : shapes) {
      // Prefill of 9 from nothing, one token after 199, a chunk after 60, and
      // one over the end of a span.
      std::vector<Sequence> sequences{
          makeSequence(shape, 9, 9, 10), makeSequence(shape, 200, 1, 20),
          makeSequence(shape, 67, 7, 30), makeSequence(shape, 259, 5, 40)};
      Buffer<float> q = randomFloats(22 * shape.queryWidth(), 5);
      Buffer<float> first(0);
      // Multiples of 16 are in blocks, the others in rows.
      std::vector<int> pageSizes{16, 24, 0};
      if (&shape == &shapes.front() || &shape == &shapes.back())
        pageSizes.insert(pageSizes.end(), {64, 4, 5, 1, 32, 48, 128});
      for (int pageSize : pageSizes) {
        std::unique_ptr<Attention> other;
        if (pageSize != 16)
          other = std::make_unique<Attention>(shape, pageSize, cpu);
        const Attention &attention = other ? *other : attentionFor(shape, cpu);
        Step step(shape, sequences, pageSize, 3);
        Buffer<float> out = attention.run(step, q);
        EXPECT_TRUE(out == attention.run(step, q, true)) << "split";
        if (pageSize != 16) {
          EXPECT_TRUE(out == first) << shape << " page size " << pageSize;
          continue;
        }
        expectReference(attention, step, sequences, q, out);
        first = out;
      }
    }
  }
}

// A row is the same alone as in any company: whatever tokens of whatever
// sequences share the step, and wherever a prompt is cut.
static void expectRowInvariance(float keyScale, float valueScale) {
  for (const std::string &cpu : testedCPUs())
    for (const AttentionShape &shape : shapesFor(cpu, kShapes)) {
      SCOPED_TRACE(cpu);
      const Attention &attention = attentionFor(shape, cpu);
      constexpr int kLength = 321;
      Sequence whole =
          makeSequence(shape, kLength, kLength, 40, keyScale, valueScale);
      int qWidth = shape.queryWidth(), width = shape.outWidth();
      Buffer<float> q = randomFloats(kLength * qWidth, 6);
      Buffer<float> all = attention.run(Step(shape, {whole}, 16, 1), q);
      for (auto [length, fresh] : {std::pair<int, int>{1, 1},
                                   {2, 1},
                                   {63, 1},
                                   {64, 13},
                                   {65, 65},
                                   {128, 1},
                                   {200, 72},
                                   {256, 7},
                                   {300, 1},
                                   {257, 2},
                                   {320, 1},
                                   {321, 33}}) {
        Step step(shape,
                  {makeSequence(shape, 33, 1, 50),
                   firstSlots(shape, whole, length, fresh),
                   makeSequence(shape, 91, 2, 60)},
                  16, 2);
        Buffer<float> mixed = randomFloats((fresh + 3) * qWidth, 7);
        std::copy(&q[(length - fresh) * qWidth], &q[0] + length * qWidth,
                  &mixed[qWidth]);
        Buffer<float> out = attention.run(step, mixed);
        EXPECT_EQ(0, std::memcmp(&out[width], &all[(length - fresh) * width],
                                 fresh * width * sizeof(float)))
            << shape << " slots " << length << " fresh " << fresh;
      }
    }
}

TEST(Attention, RowInvariance) { expectRowInvariance(1, 1); }

// Denormal elements, products and sums.
TEST(Attention, RowInvarianceOfDenormals) {
  expectRowInvariance(1e-37f, 1e-37f);
}

// One token of each sequence, by twos and by tens; more sequences than items.
TEST(Attention, DecodeBatches) {
  for (const std::string &cpu : testedCPUs())
    for (const AttentionShape &shape : shapesFor(cpu, kShapes)) {
      SCOPED_TRACE(cpu);
      const Attention &attention = attentionFor(shape, cpu);
      std::vector<Sequence> sequences;
      for (int i = 0; i < 12; ++i)
        sequences.push_back(
            makeSequence(shape, i == 5 ? 1100 : 1 + 37 * i, 1, 100 + i));
      int qWidth = shape.queryWidth(), width = shape.outWidth();
      Buffer<float> q = randomFloats(12 * qWidth, 9);
      Step step(shape, sequences, 16, 4);
      Buffer<float> all = attention.run(step, q);
      EXPECT_TRUE(all == attention.run(step, q, true)) << shape;
      expectReference(attention, step, sequences, q, all);
      for (int first : {0, 4, 11}) {
        int count = std::min(2, 12 - first);
        std::vector<Sequence> some(sequences.begin() + first,
                                   sequences.begin() + first + count);
        Buffer<float> part(count * qWidth);
        std::copy(&q[first * qWidth], &q[0] + (first + count) * qWidth,
                  part.begin());
        Buffer<float> out = attention.run(Step(shape, some, 16, 5), part);
        EXPECT_EQ(0, std::memcmp(&out[0], &all[first * width],
                                 count * width * sizeof(float)))
            << shape << " from " << first;
      }
    }
}

// A later token's infinity or NaN stays out of the rows before it.
TEST(Attention, LaterSlotsStayHidden) {
  for (const std::string &cpu : testedCPUs())
    for (AttentionShape shape : {AttentionShape{6, 2, 20, 36},
                                 {3, 1, 64, 64, 0, 0, "bf16"},
                                 {2, 2, 16, 16, 9, 0, "f16"},
                                 {2, 2, 32, 16, 9, 0, "bf16"},
                                 {3, 1, 64, 48, 0, 0, "i8"},
                                 {2, 1, 16, 16, 0, 0, "f8E4M3FN"}}) {
      SCOPED_TRACE(cpu);
      shape.tile = 32;
      Attention attention(shape, 16, cpu);
      Sequence plain = makeSequence(shape, 90, 90, 4), broken = plain;
      constexpr int kBad = 70;
      int keyWidth = shape.kvHeads * shape.size,
          valueWidth = shape.kvHeads * shape.valueSize;
      broken.keys[kBad * keyWidth + 1] = NAN;
      broken.values[kBad * valueWidth + 2] = INFINITY;
      broken.values[(kBad + 5) * valueWidth] = NAN;
      Buffer<float> q = randomFloats(90 * shape.queryWidth(), 6);
      int width = shape.outWidth();
      Buffer<float> want = attention.run(Step(shape, {plain}, 16, 1), q),
                    got = attention.run(Step(shape, {broken}, 16, 1), q);
      EXPECT_EQ(0, std::memcmp(&got[0], &want[0], kBad * width * sizeof(float)))
          << shape;
      EXPECT_FALSE(std::isfinite(got[kBad * width + 2])) << shape;
      // As the row is alone.
      Sequence before = firstSlots(shape, broken, kBad, 1);
      Buffer<float> own(shape.queryWidth());
      std::copy(&q[(kBad - 1) * shape.queryWidth()],
                &q[0] + kBad * shape.queryWidth(), own.begin());
      Buffer<float> alone = attention.run(Step(shape, {before}, 16, 1), own);
      EXPECT_EQ(0, std::memcmp(&alone[0], &got[(kBad - 1) * width],
                               width * sizeof(float)))
          << shape;
      // Past the window they are forgotten.
      if (shape.window)
        EXPECT_EQ(0, std::memcmp(&got[85 * width], &want[85 * width],
                                 5 * width * sizeof(float)));
    }
}

TEST(Attention, ExtremeValues) {
  // Scores so far apart that one slot has all the weight; so small that all
  // have the same; values near the ends of the range.
  for (const std::string &cpu : testedCPUs())
    for (const char *type : {"f32", "bf16", "i8"}) {
      SCOPED_TRACE(cpu);
      AttentionShape shape{4, 2, 24, 40, 0, 0, type};
      Attention attention(shape, 16, cpu);
      for (auto [query, key, value] :
           {std::tuple<float, float, float>{1e3f, 1e2f, 1},
            {1e-20f, 1e-25f, 1},
            {1, 1, 1e37f},
            {1, 1, 1e-37f},
            {1, 1, 1e-41f},
            {0, 1, 1},
            {1e15f, 1e15f, 1}}) {
        std::vector<Sequence> sequences{
            makeSequence(shape, 70, 3, 1, key, value),
            makeSequence(shape, 5, 5, 3, key, value)};
        Step step(shape, sequences, 16, 9);
        Buffer<float> q = randomFloats(8 * shape.queryWidth(), 8, query);
        Buffer<float> out = attention.run(step, q);
        expectReference(attention, step, sequences, q, out);
      }
    }
}

// Tiles, one token of each sequence, and split sequences.
TEST(Attention, PaddingRowsAreZero) {
  for (auto [fresh, split] : {std::pair<int, int>{2, 0}, {1, 0}, {2, 8}}) {
    AttentionShape shape{4, 2, 16, 20, 0, 0, "f32", 4, 2, 1, split};
    Attention attention(shape, 16, "native");
    Step step(shape, {makeSequence(shape, 5, fresh, 1)}, 16, 1);
    // As many sequences as tokens, the last one empty.
    if (fresh == 1) {
      step.begin.push_back(1);
      step.length.push_back(0);
      step.table.resize(2 * step.width);
    }
    step.seq.push_back(-1);
    step.tokens = fresh + 1;
    Buffer<float> q = randomFloats(3 * 4 * 16, 2);
    Buffer<float> out = attention.run(step, q);
    for (int d = 0; d < 80; ++d) {
      EXPECT_NE(out[d], 0);
      EXPECT_EQ(out[fresh * 80 + d], 0);
    }
  }
}
