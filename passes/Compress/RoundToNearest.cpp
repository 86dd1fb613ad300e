//===- RoundToNearest.cpp - Codes from the weights alone ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/AffineGrid.h"

#include <algorithm>
#include <atomic>

namespace mlir::llm {

bool quantizeRoundToNearest(const QuantizationRequest &request,
                            QuantizedMatrix &out) {
  allocate(request, out);
  std::atomic<bool> fits = true;
  int64_t padded = request.paddedColumns(), size = request.partSize();
  int64_t blocks = (request.rows + kRowBlock - 1) / kRowBlock;
  request.parallelFor(blocks, [&](int64_t block) {
    int64_t first = block * kRowBlock;
    int64_t count = std::min(kRowBlock, request.rows - first);
    std::vector<float> values(count * padded);
    request.read(first, count, values.data());
    std::vector<AffineGrid> grids(request.partsOfGroup());
    for (int64_t row = 0; row < count; ++row) {
      const float *x = values.data() + row * padded;
      AffineRow result(request, out, first + row);
      int64_t at = 0;
      for (int64_t g = 0; g < request.groups(); ++g) {
        result.choose(g, x + g * request.groupSize, grids);
        for (const AffineGrid &grid : grids) {
          encode(x + at, size, grid, &result.code(at));
          at += size;
        }
      }
      result.store();
      if (!result.fits())
        fits = false;
    }
  });
  return fits;
}

} // namespace mlir::llm
