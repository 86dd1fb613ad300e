//===- AffineGrid.h - The codes of a group of weights -----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_AFFINEGRID_H
#define LLM_PASSES_COMPRESS_AFFINEGRID_H

#include "passes/Compress/QuantizationMethod.h"

namespace mlir::llm {

/// How a group's elements become codes: clamp(round(x / scale), low, high) -
/// low, the zero point being -low.
struct AffineGrid {
  float scale = 0;
  float low = 0, high = 0;

  uint8_t zeroPoint() const {
    return static_cast<uint8_t>(static_cast<int>(-low));
  }
};

/// The grid of `count` elements, its scale not rounded.
AffineGrid chooseGrid(const float *x, int64_t count,
                      const QuantizationRequest &request);

/// Codes of `count` elements, a multiple of 4, one a byte.
void encode(const float *x, int64_t count, const AffineGrid &grid,
            uint8_t *out);

/// A row of the result while its groups are chosen.
class AffineRow {
public:
  AffineRow(const QuantizationRequest &request, QuantizedMatrix &out,
            int64_t row);

  /// The grids of a group's parts for its elements `x`, the scales as they are
  /// stored.
  void choose(int64_t group, const float *x,
              ::llvm::MutableArrayRef<AffineGrid> grids);
  /// A code of input `column`, to be filled in before `store`.
  uint8_t &code(int64_t column) { return codes[column]; }
  /// Packs the codes.
  void store();
  /// Whether the scales can be stored: no element moves for that by more than
  /// an eighth of the row's largest step.
  bool fits() const { return moved <= largest / 8; }

private:
  AffineGrid chooseOne(int64_t group, const float *x);
  void chooseFactors(int64_t group, const float *x,
                     ::llvm::MutableArrayRef<AffineGrid> grids);
  const QuantizationRequest &request;
  QuantizedMatrix &out;
  int64_t row;
  std::vector<uint8_t> codes;
  float largest = 0, moved = 0;
};

/// Components of zeros, as large as the request asks.
void allocate(const QuantizationRequest &request, QuantizedMatrix &out);

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_AFFINEGRID_H
