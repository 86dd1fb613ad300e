//===- GPUAffineLayout.h - int4 weights for the GPU -------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layout `gpu_affine`: 4-bit affine groups in the order in which a warp
// reads them. A tile is 8 outputs by 128 k's:
//
//   codes   32 lanes x 16 bytes; lane l holds k = 4 l .. 4 l + 3 of the tile,
//           output r in bits 16 r .. 16 r + 15, low bits first
//   scales  f32 [groups of the tile][8 outputs]
//   zeros   f32 [groups of the tile][8 outputs], where `zeros` is true
//
// Tiles of a panel of 8 outputs are consecutive along k, panels follow each
// other. A tile has 128 / group_size groups; with groups of 128 or more it has
// one. Missing outputs and k's have code 0; missing outputs have scale 0.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CUDA_GPUAFFINELAYOUT_H
#define LLM_PASSES_KERNELS_CUDA_GPUAFFINELAYOUT_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace mlir::llm {

/// Sizes of a `gpu_affine` weight [n, k].
struct GPUAffineLayout {
  static constexpr int64_t kBits = 4;
  static constexpr int64_t kBlock = 8;   ///< outputs of a tile
  static constexpr int64_t kTileK = 128; ///< k's of a tile
  /// Of n, k and a group: leaves room for every product below.
  static constexpr int64_t kMaxSize = int64_t(1) << 28;

  int64_t n, k;
  int64_t groupSize; ///< a power of two, at least 16
  bool zeros;        ///< zero points are stored; otherwise all are 8

  /// Nothing where the format has no such layout or its size overflows.
  static std::optional<GPUAffineLayout> get(int64_t n, int64_t k, int64_t bits,
                                            int64_t groupSize, bool zeros);

  int64_t panels() const { return (n + kBlock - 1) / kBlock; }
  int64_t tiles() const { return (k + kTileK - 1) / kTileK; }
  int64_t groupsPerTile() const {
    return groupSize < kTileK ? kTileK / groupSize : 1;
  }
  int64_t groups() const { return (k + groupSize - 1) / groupSize; }
  // In words of 32 bits:
  int64_t scalesOffset() const { return kBlock * kTileK * kBits / 32; }
  int64_t zerosOffset() const {
    return scalesOffset() + groupsPerTile() * kBlock;
  }
  int64_t tileWords() const {
    return scalesOffset() + groupsPerTile() * kBlock * (zeros ? 2 : 1);
  }
  int64_t words() const { return panels() * tiles() * tileWords(); }
};

/// Packs a weight. `code(row, k)` is the stored code, `scale(row, group)` and
/// `zero(row, group)` the group's parameters; `zero` is called only where the
/// layout stores zero points. Returns `layout.words()` words.
std::vector<uint32_t>
packGPUAffine(const GPUAffineLayout &layout,
              llvm::function_ref<uint8_t(int64_t row, int64_t k)> code,
              llvm::function_ref<float(int64_t row, int64_t group)> scale,
              llvm::function_ref<float(int64_t row, int64_t group)> zero);

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CUDA_GPUAFFINELAYOUT_H
