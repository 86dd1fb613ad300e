//===- Attention.h - Attention over a paged cache for a CPU -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A work item is a tile of consecutive tokens and a kv head. It is cut into
// runs of tokens of one sequence; the rows of a run are its tokens times the
// query heads that share the kv head. Slots are taken in aligned chunks of 64:
// the chunk's keys are transposed and its values copied into scratch once for
// all rows, then blocks of up to 6 rows are multiplied with them.
//
// A row's result depends on its own slots alone (Milakov and Gimelshein, 2018;
// Dao et al., 2022): within an aligned span of 256 slots it keeps a running
// maximum, sum and output, moved chunk by chunk in ascending order; the spans
// are merged in ascending order. A slot that another row of the tile sees, but
// this one does not, has weight zero, which changes no bit.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_ATTENTION_H
#define LLM_PASSES_KERNELS_CPU_ATTENTION_H

#include "passes/Kernels/CPU/Emitter.h"

namespace mlir::llm {

/// Emits the functions of one attention kernel.
class AttentionEmitter {
public:
  static constexpr int64_t kChunk = 64;        ///< slots
  static constexpr int64_t kSpan = 4;          ///< chunks
  static constexpr int64_t kRows = 6;          ///< rows of a register tile
  static constexpr int64_t kMaxTile = 1 << 18; ///< scratch of a tile, elements

  explicit AttentionEmitter(KernelBuilder &kernel) : kernel(kernel) {}
  LogicalResult readParams();
  void emit();

private:
  /// Tokens [first, end) of one sequence, and what they see.
  struct Run {
    Value first, end; ///< tokens
    Value rows;       ///< (end - first) * group
    Value table;      ///< where the sequence's block table begins
    Value firstCount; ///< slots that the first token sees
    Value low, count; ///< slots that some token sees: [low, count)
    Value lastLow;    ///< where the last token's window begins
  };
  /// A chunk that a run is at: slots [first, last) of it are seen by some row.
  struct Chunk {
    Value start, first, last;
    Value partial; ///< i1: not every row sees all of them
    Value slots;   ///< where `slots` holds its physical slots
    Value ahead;   ///< and those of the next chunk, to be fetched
  };

  // Attention.cpp
  void declare();
  void emitTile(Value tile, Value tiles);
  void emitRun(Value seq, Value first, Value end);
  void emitQueries(const Run &run);
  void emitSpan(const Run &run, Value span);
  void emitMerge(Value row);
  void emitResult(const Run &run, Value row);
  void emitPadding(Value token);
  /// Query head 0 of the group at `token`, as a row of q and of out.
  Value queryRow(Value token);

  // AttentionPack.cpp
  Chunk chunkAt(const Run &run, Value index);
  void emitSlots(const Run &run, const Chunk &chunk);
  void fetch(Value plane, Value at);
  Value loadPlane(Value plane, Value at, int64_t count);
  void packKeys(const Chunk &chunk);
  void packValues(const Chunk &chunk);
  /// i1: whether a packed value is infinite or NaN.
  Value emitNonFinite(const Chunk &chunk);
  /// [low, high) of the inner loop over the chunk's slots (or pairs of them).
  std::pair<Value, Value> valueRange(const Chunk &chunk);

  // AttentionTile.cpp
  void emitChunk(const Run &run, Value index);
  void emitRows(const Run &run, const Chunk &chunk, int64_t rows, Value row);
  void emitScores(int64_t rows, Value row);
  void emitMask(const Run &run, const Chunk &chunk, int64_t rows, Value row);
  void emitSoftmax(int64_t rows, Value row);
  void emitValues(const Chunk &chunk, int64_t rows, Value row);
  std::pair<Value, Value> rowRange(const Run &run, Value row);
  SmallVector<Value> product(int64_t rows, Value a, Value aBase,
                             int64_t aStride, Value b, Value bBase,
                             int64_t bStride, int64_t columns, Value low,
                             Value high, SmallVector<Value> acc);

  KernelBuilder &kernel;
  Emitter *e = nullptr;
  int64_t heads = 0, kvHeads = 0, size = 0, valueSize = 0, window = 0,
          pageSize = 0, group = 0, width = 0, tile = 0, minTiles = 0;
  float scale = 0, softcap = 0;
  Type cacheType;
  /// Products of bf16 pairs in place of f32: the cache is bf16 and the
  /// processor has the instruction.
  bool pairs = false;
  int64_t keySteps = 0;   ///< inner length of scores: elements, or pairs
  int64_t valueWidth = 0; ///< valueSize padded to whole registers
  int64_t columns = 0;    ///< registers of a register tile's row

  Value queries, keys, values, tables, out;
  Value head; ///< kv head of the item
  // Scratch. Rows of a tile are at row * stride.
  Value tileQueries;          ///< [row][keySteps], scaled
  Value slots;                ///< [64] physical slot
  Value tileKeys;             ///< [keySteps][64]
  Value tileValues;           ///< [64 or 32 pairs][valueWidth]
  Value scores;               ///< [kRows][64]
  Value weights;              ///< [kRows][64, or 32 pairs]
  Value factors;              ///< [kRows] of what was there before the chunk
  Value maxima, spanMaxima;   ///< [row] so far, of the span
  Value sums;                 ///< [row] so far
  Value spanSums;             ///< [row][width] of the span, by lane
  Value outputs, spanOutputs; ///< [row][valueWidth] so far, of the span
};

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_ATTENTION_H
