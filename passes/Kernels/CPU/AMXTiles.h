//===- AMXTiles.h - Matrix tiles of a kernel --------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_AMXTILES_H
#define LLM_PASSES_KERNELS_CPU_AMXTILES_H

#include "passes/Kernels/CPU/Emitter.h"

namespace mlir::llm {

/// The eight tiles of AMX: sums of 16 tokens by 16 outputs of 32 bits, inputs
/// [token][input] and weights [input / n][output][n], where n elements take 32
/// bits. Source: Intel 64 and IA-32 Architectures Software Developer's Manual,
/// volume 1, chapter 18.
class AMXTiles {
public:
  /// Rows of a tile, and the outputs of one.
  static constexpr int64_t kRows = 16;
  /// Pairs of bf16 that a multiplication takes.
  static constexpr int64_t kPairs = 16;
  // Tiles: sums, then inputs, then weights.
  static constexpr int64_t kInputs = 4, kWeights = 6;

  /// `depth`: the bytes of an input's row that a multiplication takes, at most
  /// 64.
  AMXTiles(Emitter &e, int64_t depth);
  /// Configures all tiles, those of tokens for `rows`; all are then zero.
  void configure(Value rows);
  /// Ends the use of tiles.
  void release() { call("tilerelease", {}); }
  void zero(int64_t tile) { call("tilezero", tile); }
  /// Between a tile and memory, `stride` bytes from row to row.
  void load(int64_t tile, Value address, int64_t stride);
  void store(int64_t tile, Value address, int64_t stride);
  /// Adds products by `instruction` (tdpbssd, tdpbsud, tdpbf16ps).
  void multiply(StringRef instruction, int64_t sums, int64_t inputs,
                int64_t weights) {
    call(instruction, {sums, inputs, weights});
  }

private:
  void call(StringRef name, ArrayRef<int64_t> tiles, ValueRange operands = {});
  Emitter &e;
  int64_t depth;
  Value config;
};

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_AMXTILES_H
