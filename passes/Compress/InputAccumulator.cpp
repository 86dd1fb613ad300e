//===- InputAccumulator.cpp - Sums over the inputs of products ------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/InputAccumulator.h"

#include "mlir/IR/Threading.h"

#include <algorithm>
#include <cmath>
#include <limits>

// BLAS; matrices are column major.
extern "C" void sgemm_(const char *transA, const char *transB, const int *m,
                       const int *n, const int *k, const float *alpha,
                       const float *a, const int *lda, const float *b,
                       const int *ldb, const float *beta, float *c,
                       const int *ldc);

namespace mlir::llm {

/// Sides of the squares that the products are computed in, and rows that are
/// summed in f32.
static constexpr int64_t kTile = 192, kRows = 512;

InputAccumulator::InputAccumulator(int64_t width, StatisticKinds kinds)
    : channels(width), kinds(kinds) {
  if (kinds.gram)
    products.assign(width * width, 0);
  if (kinds.norms) {
    absSums.assign(width, 0);
    squareSums.assign(width, 0);
  }
  if (kinds.ranges) {
    lows.assign(width, std::numeric_limits<float>::infinity());
    highs.assign(width, -std::numeric_limits<float>::infinity());
  }
}

uint64_t InputAccumulator::bytes(int64_t width, StatisticKinds kinds) {
  auto w = static_cast<uint64_t>(width);
  return (kinds.gram ? w * w * sizeof(double) : 0) +
         (kinds.norms ? 2 * w * sizeof(double) : 0) +
         (kinds.ranges ? 2 * w * sizeof(float) : 0);
}

void InputAccumulator::add(const float *rows, int64_t count,
                           MLIRContext *context) {
  for (int64_t first = 0; first < count; first += kRows) {
    const float *block = rows + first * channels;
    int64_t some = std::min(kRows, count - first);
    if (kinds.gram)
      addProducts(block, some);
    if (kinds.norms || kinds.ranges)
      addChannels(block, some, context);
  }
  total += count;
}

void InputAccumulator::addProducts(const float *rows, int64_t count) {
  int64_t side = (channels + kTile - 1) / kTile;
  std::vector<float> sums(std::min(kTile, channels) *
                          std::min(kTile, channels));
  // One after the other: the serial OpenBLAS of Debian 12 (0.3.21) gives two
  // threads that call it at the same time one buffer between them.
  for (int64_t tile = 0; tile < side * side; ++tile) {
    int64_t top = tile / side * kTile, left = tile % side * kTile;
    if (left < top)
      continue;
    auto height = static_cast<int>(std::min(kTile, channels - top)),
         width = static_cast<int>(std::min(kTile, channels - left)),
         depth = static_cast<int>(count), stride = static_cast<int>(channels);
    const float one = 1, zero = 0;
    // Row major this is rows[:, left:]ᵀ times rows[:, top:], transposed.
    sgemm_("N", "T", &width, &height, &depth, &one, rows + left, &stride,
           rows + top, &stride, &zero, sums.data(), &width);
    for (int64_t i = 0; i < height; ++i) {
      double *out = products.data() + (top + i) * channels + left;
      for (int64_t j = 0; j < width; ++j)
        out[j] += sums[i * width + j];
    }
  }
}

void InputAccumulator::addChannels(const float *rows, int64_t count,
                                   MLIRContext *context) {
  parallelFor(context, 0, (channels + kTile - 1) / kTile, [&](size_t part) {
    int64_t first = static_cast<int64_t>(part) * kTile;
    int64_t last = std::min(first + kTile, channels);
    for (int64_t row = 0; row < count; ++row) {
      const float *x = rows + row * channels;
      for (int64_t c = first; kinds.norms && c < last; ++c) {
        double value = x[c];
        absSums[c] += std::abs(value);
        squareSums[c] += value * value;
      }
      for (int64_t c = first; kinds.ranges && c < last; ++c) {
        lows[c] = std::min(lows[c], x[c]);
        highs[c] = std::max(highs[c], x[c]);
      }
    }
  });
}

void InputAccumulator::gram(int64_t first, int64_t count, float *out) const {
  double scale = 1.0 / static_cast<double>(total);
  for (int64_t i = first; i < first + count; ++i)
    for (int64_t j = 0; j < channels; ++j)
      // By squares only the upper ones are there.
      *out++ = static_cast<float>(
          scale * products[std::min(i, j) * channels + std::max(i, j)]);
}

std::vector<float>
InputAccumulator::mean(const std::vector<double> &sums) const {
  std::vector<float> means(sums.size());
  std::transform(sums.begin(), sums.end(), means.begin(), [&](double sum) {
    return static_cast<float>(sum / static_cast<double>(total));
  });
  return means;
}

} // namespace mlir::llm
