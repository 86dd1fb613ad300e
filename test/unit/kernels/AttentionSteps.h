//===- AttentionSteps.h - Steps over a paged cache for tests ----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TEST_UNIT_KERNELS_ATTENTIONSTEPS_H
#define LLM_TEST_UNIT_KERNELS_ATTENTIONSTEPS_H

#include "test/unit/kernels/Harness.h"

namespace llm::test {

struct AttentionShape {
  int heads, kvHeads, size, valueSize;
  int window = 0;
  float softcap = 0;
  const char *cacheType = "f32";
  int tile = 4, minTiles = 2, headGroups = 1, split = 0;
  bool rows = false; ///< planes in rows, whatever the pages

  /// Whether planes lie in blocks of 16 slots.
  bool inBlocks(int pageSize) const {
    return !rows && pageSize && pageSize % 16 == 0 && size % 2 == 0;
  }
  int queryWidth() const { return heads * size; }
  int outWidth() const { return heads * valueSize; }
};
std::ostream &operator<<(std::ostream &os, const AttentionShape &shape);

/// Keys and values of one sequence, [slot][kvHeads * size].
struct Sequence {
  int length; ///< slots after the step
  int fresh;  ///< tokens of the step, the last ones
  std::vector<float> keys, values;
};
Sequence makeSequence(const AttentionShape &shape, int length, int fresh,
                      unsigned seed, float keyScale = 1, float valueScale = 1);
/// The first `length` slots, the last `fresh` of them in the step.
Sequence firstSlots(const AttentionShape &shape, const Sequence &whole,
                    int length, int fresh);

/// A step over sequences, laid out in pages of random order. Memory that no
/// sequence owns holds NaN.
struct Step {
  Step(const AttentionShape &shape, const std::vector<Sequence> &sequences,
       int pageSize, unsigned seed);
  AttentionShape shape;
  int tokens = 0, width = 0, pageSize;
  std::vector<int32_t> seq, begin, length, table;
  Buffer<uint8_t> keys, values;
  Buffer<float> keyScales, valueScales;
};

/// Where an element of a plane is, and a head's scale: in rows, or in blocks.
struct PlaneIndex {
  int heads, size;
  bool blocks;
  int unit; ///< elements side by side in a block
  PlaneIndex(const std::string &type, int heads, int size, bool blocks)
      : heads(heads), size(size), blocks(blocks),
        unit(type == "f32" || type == "f16" ? 1 : 2) {}
  size_t key(int slot, int head, int d) const;
  size_t value(int slot, int head, int d) const;
  size_t scale(int slot, int head) const;
};

/// `values`, elements of one head, as the cache holds them. Codes are scaled so
/// that the largest magnitude is about the largest code's; the scale.
float storeHead(const std::string &type, const float *values, int count,
                uint8_t *to);
/// What they are worth.
std::vector<double> readHead(const std::string &type, const float *values,
                             int count);

/// An attention kernel for `shape`, compiled for `cpu`.
class Attention {
public:
  Attention(const AttentionShape &shape, int pageSize, const std::string &cpu);
  /// The rows of out. `split` runs the items one by one, the last one first.
  Buffer<float> run(const Step &step, const Buffer<float> &q,
                    bool split = false) const;
  /// Whether queries and weights are rounded to bf16.
  bool roundsToBF16() const { return pairs; }

private:
  AttentionShape shape;
  bool pairs;
  CompiledKernel kernel, merge;
};

/// The outputs of a token that sees `count` slots, in double.
struct Reference {
  std::vector<double> out, spread; ///< spread: the mean of |value| by weight
  double top = 0;                  ///< the largest |score|
};
Reference reference(const AttentionShape &shape, const Sequence &sequence,
                    int count, const float *q, bool roundsToBF16);

/// Expects the rows of `out` to be the reference's, up to rounding.
void expectReference(const Attention &attention, const Step &step,
                     const std::vector<Sequence> &sequences,
                     const Buffer<float> &q, const Buffer<float> &out);

} // namespace llm::test

#endif // LLM_TEST_UNIT_KERNELS_ATTENTIONSTEPS_H
