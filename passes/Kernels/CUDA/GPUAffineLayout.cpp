//===- GPUAffineLayout.cpp - int4 weights for the GPU ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CUDA/GPUAffineLayout.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>

namespace mlir::llm {

std::optional<GPUAffineLayout> GPUAffineLayout::get(int64_t n, int64_t k,
                                                    int64_t bits,
                                                    int64_t groupSize,
                                                    bool zeros) {
  if (bits != kBits || n < 1 || k < 1 || n > kMaxSize || k > kMaxSize ||
      groupSize < 16 || groupSize > kMaxSize ||
      !llvm::isPowerOf2_64(static_cast<uint64_t>(groupSize)))
    return std::nullopt;
  return GPUAffineLayout{n, k, groupSize, zeros};
}

std::vector<uint32_t>
packGPUAffine(const GPUAffineLayout &layout,
              llvm::function_ref<uint8_t(int64_t, int64_t)> code,
              llvm::function_ref<float(int64_t, int64_t)> scale,
              llvm::function_ref<float(int64_t, int64_t)> zero) {
  std::vector<uint32_t> packed(layout.words(), 0);
  auto put = [&](int64_t word, float value) {
    std::memcpy(&packed[word], &value, sizeof(value));
  };
  for (int64_t row = 0; row < layout.n; ++row) {
    int64_t panel = row / GPUAffineLayout::kBlock;
    int64_t r = row % GPUAffineLayout::kBlock;
    for (int64_t tile = 0; tile < layout.tiles(); ++tile) {
      int64_t base = (panel * layout.tiles() + tile) * layout.tileWords();
      int64_t begin = tile * GPUAffineLayout::kTileK;
      int64_t count = std::min(GPUAffineLayout::kTileK, layout.k - begin);
      for (int64_t i = 0; i < count; ++i)
        packed[base + i / 4 * 4 + r / 2] |= uint32_t(code(row, begin + i) & 15)
                                            << (r % 2 * 16 + i % 4 * 4);
      for (int64_t g = 0; g < layout.groupsPerTile(); ++g) {
        int64_t group = begin / layout.groupSize + g;
        if (group >= layout.groups())
          break;
        int64_t at = base + layout.scalesOffset() + g * GPUAffineLayout::kBlock;
        put(at + r, scale(row, group));
        if (layout.zeros)
          put(at + layout.groupsPerTile() * GPUAffineLayout::kBlock + r,
              zero(row, group));
      }
    }
  }
  return packed;
}

} // namespace mlir::llm
