//===- InputAccumulator.h - Sums over the inputs of products ----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_INPUTACCUMULATOR_H
#define LLM_PASSES_COMPRESS_INPUTACCUMULATOR_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <vector>

namespace mlir::llm {

/// What is gathered about an input.
struct StatisticKinds {
  bool gram = false;   ///< the mean of x xᵀ
  bool norms = false;  ///< the means of |x| and of x², by channel
  bool ranges = false; ///< the least and the largest x, by channel
};

/// Sums over rows x of `width` channels, in double but for products within 512
/// rows; the same whatever the number of threads.
class InputAccumulator {
public:
  InputAccumulator(int64_t width, StatisticKinds kinds);

  /// Bytes that one of this width takes.
  static uint64_t bytes(int64_t width, StatisticKinds kinds);

  /// Adds `count` rows, finite, [count][width]. The result depends on how they
  /// are shared among calls.
  void add(const float *rows, int64_t count, MLIRContext *context);

  int64_t width() const { return channels; }
  int64_t rows() const { return total; }
  /// Rows [first, first + count) of the mean of x xᵀ, [count][width].
  void gram(int64_t first, int64_t count, float *out) const;
  std::vector<float> absMean() const { return mean(absSums); }
  std::vector<float> squareMean() const { return mean(squareSums); }
  const std::vector<float> &least() const { return lows; }
  const std::vector<float> &largest() const { return highs; }

private:
  void addProducts(const float *rows, int64_t count);
  void addChannels(const float *rows, int64_t count, MLIRContext *context);
  std::vector<float> mean(const std::vector<double> &sums) const;

  int64_t channels, total = 0;
  StatisticKinds kinds;
  std::vector<double> products; ///< [width][width], the upper triangle's tiles
  std::vector<double> absSums, squareSums;
  std::vector<float> lows, highs;
};

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_INPUTACCUMULATOR_H
