//===- Attention.h - Attention over a paged cache for a CPU -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A unit of work is a tile of consecutive tokens and a kv head. It is cut into
// runs of tokens of one sequence; the rows of a run are its tokens times the
// query heads that share the kv head. Where a step has few tokens, or one of
// each sequence, reading the cache is what costs: there a unit is a sequence
// and some neighbouring kv heads, whose keys lie side by side, and with few
// tokens a part of its slots too, so that all threads have something to read;
// `attention_merge` puts such parts together. Slots are taken in aligned chunks
// of 64: the chunk's keys are transposed and its values copied into scratch
// once for all rows, then blocks of up to 6 rows, or 16 with AMX, are
// multiplied with them. Where planes lie in blocks nothing is transposed, and
// what the product takes as it is, or few rows take, is read from the plane.
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

#include "passes/Kernels/CPU/AMXTiles.h"
#include "passes/Kernels/CPU/CachePlane.h"

#include <optional>

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
    Value isToken;    ///< i1: there is one token
    Value table;      ///< where the sequence's block table begins
    Value firstCount; ///< slots that the first token sees
    Value low, count; ///< slots that some token sees: [low, count)
    Value lastLow;    ///< where the last token's window begins
  };
  /// Where the next unit begins to read, if it is another sequence's, or other
  /// heads.
  struct NextUnit {
    Value exists; ///< i1
    Value table, low, count, shift;
  };
  /// A chunk that a run is at: slots [first, last) of it are seen by some row.
  struct Chunk {
    Value start, first, last;
    Value partial; ///< i1: not every row sees all of the chunk
    Value hides;   ///< i1: not every row sees all of [first, last)
    Value slots;   ///< where `slots` holds its physical slots, or blocks
    Value ahead;   ///< and those of the next chunk, to be fetched
    Value shift;   ///< of its heads against the unit's
  };

  // Attention.cpp
  void declare();
  void emitItem(Value item);
  void findNextUnit(Value whole, Value units);
  void emitTokens(Value start, Value end, Value part, Value parts);
  void emitRun(Value seq, Value first, Value end, Value part, Value parts);
  void emitQueries(const Run &run);
  void emitSpan(const Run &run, Value span);
  void emitRecord(const Run &run, Value span, Value row, Value sum);
  void emitPadding(Value token);
  /// Calls `body` with `head` and `rowBase` set, for each kv head of the unit.
  void forHeads(Value rowsOfHead, function_ref<void()> body);
  /// The row of q and of out for a row of the run.
  Value globalRow(const Run &run, Value row);

  // AttentionPack.cpp
  Chunk chunkAt(const Run &run, Value index);
  void emitSlots(const Run &run, const Chunk &chunk);
  void fetchAhead(const Chunk &chunk, Value plane, int64_t size, Value step,
                  int64_t steps);
  Value widenCodes(Value wide);
  Value widenRaw(Value raw);
  Value codesToPairs(Value raw);
  Value loadPlane(Value plane, Value at, int64_t count);
  Value loadPairs(Value plane, Value at, int64_t count);
  void loadScales(const Chunk &chunk);
  void packKeys(const Chunk &chunk);
  void packValues(const Chunk &chunk);
  /// i1: whether a packed value is infinite or NaN.
  Value emitNonFinite(const Chunk &chunk);
  /// [low, high) of the inner loop over the chunk's slots (or pairs of them).
  std::pair<Value, Value> valueRange(const Chunk &chunk);

  // AttentionBlocks.cpp
  void emitBlocks(const Run &run, const Chunk &chunk);
  void loadBlockScales(const Chunk &chunk);
  /// What keeps the first slot of a pair, or the second: the pair's bits.
  TypedAttr keptSlot(bool second);
  SmallVector<Value> toOperands(Value raw);
  SmallVector<Value> keyLine(const Chunk &chunk, Value slot, Value k);
  Value valuesAt(Value list, Value head, Value block, Value line, Value d);
  SmallVector<Value> valueLine(const Chunk &chunk, Value block, Value line,
                               Value d, int64_t count, Value mask);
  void fetch(Value plane, Value at);
  void fetchHead(const Chunk &chunk, bool withValues);
  void widenKeys(const Chunk &chunk);
  void widenValues(const Chunk &chunk);
  Value emitNonFiniteLine(const Chunk &chunk);
  SmallVector<Value> blockProduct(const Chunk &chunk, int64_t rows,
                                  Value column, int64_t columns,
                                  int64_t lastLanes, SmallVector<Value> acc);
  SmallVector<Value> slotsProduct(const Chunk &chunk, int64_t rows,
                                  Value column, int64_t columns,
                                  int64_t lastLanes, Value first, Value last,
                                  SmallVector<Value> acc);

  // AttentionTile.cpp
  void emitChunk(const Run &run, Value index);
  void emitHead(const Run &run, const Chunk &chunk);
  void emitToken(const Run &run, const Chunk &chunk);
  void emitTile(const Run &run, const Chunk &chunk);
  // `row` is one of the run; `at` is rowBase + row.
  void emitRows(const Run &run, const Chunk &chunk, int64_t rows, Value row);
  void emitScores(const Chunk &chunk, int64_t rows, Value at);
  /// What a score becomes before it is masked: columns from `column` on.
  Value finishScore(Value score, Value column);
  void emitMask(const Run &run, const Chunk &chunk, Value rows, Value row);
  /// `block`: the first of the rows in what the register tile has.
  void emitSoftmax(int64_t rows, Value at, Value block);
  void emitValues(const Chunk &chunk, int64_t rows, Value at);
  std::pair<Value, Value> rowRange(const Run &run, Value row);
  /// The registers of column `column` at step `k`: `steps` of them, one after
  /// the other.
  using Lines = function_ref<SmallVector<Value>(Value k, int64_t column)>;
  SmallVector<Value> product(int64_t rows, Value a, Value aBase,
                             int64_t aStride, Lines lines, int64_t steps,
                             int64_t columns, Value low, Value high,
                             SmallVector<Value> acc);
  SmallVector<Value> addChains(ValueRange sums, ArrayRef<Value> chains);
  int64_t columnsFor(int64_t rows) const;
  SmallVector<Value> scratchProduct(int64_t rows, Value a, Value aBase,
                                    int64_t aStride, Value b, Value bBase,
                                    int64_t bStride, int64_t columns, Value low,
                                    Value high, SmallVector<Value> acc);

  // AttentionAMX.cpp
  void declareTiles();
  void configureTiles(const Run &run);
  /// Whole registers of zeros at [low, high).
  void clearScratch(Value memref, Value low, Value high);
  void clearValues(const Chunk &chunk);
  /// `count` rows, at most 16.
  void emitTileRows(const Run &run, const Chunk &chunk, Value row, Value count);
  void emitTileScores(const Chunk &chunk, Value at, Value count);
  void emitTileValues(Value at, Value count);

  KernelBuilder &kernel;
  Emitter *e = nullptr;
  int64_t heads = 0, kvHeads = 0, size = 0, valueSize = 0, window = 0,
          pageSize = 0, group = 0, width = 0, tile = 0, headGroups = 1,
          split = 0;
  float scale = 0, softcap = 0;
  Type cacheType;
  /// Products by matrix tiles: what the cache holds is a bf16, and the
  /// processor has AMX.
  std::optional<AMXTiles> tiles;
  /// The cache holds codes of 8 bits and a scale per slot and kv head.
  bool codes = false;
  /// The planes lie in blocks.
  bool blocked = false;
  /// They hold what a product takes.
  bool native = false;
  /// Keys are multiplied from the plane by any number of rows.
  bool keysInPlace = false;
  /// A single token's rows take all from the planes.
  bool tokensFromPlanes = false;
  BlockPlane keyBlocks{}, valueBlocks{}; ///< of elements
  int64_t unit = 1;                      ///< elements of a block side by side
  /// While rows are emitted: operands come from the planes; the next chunk's
  /// are fetched.
  bool fromPlanes = false, fetching = false;
  /// What is multiplied: f32, or pairs of bf16 where the cache holds a bf16 and
  /// the processor has an instruction that is faster.
  struct Operands {
    bool pairs = false;
    /// f32, added in the order in which tiles add pairs.
    bool tileOrder = false;
    int64_t steps = 1; ///< of a product that a block's unit makes
    Value queries;     ///< [row][queryStride], scaled
    int64_t queryStride = 0;
    Value weights; ///< [blockRows][weightStride], of a token [kRows]
    int64_t weightStride = 0;
  };
  Operands operands;
  /// Of a single token's rows, where the others take tiles, which are too large
  /// for these.
  std::optional<Operands> tokenOperands;
  int64_t keySteps = 0;   ///< inner length of scores: elements, or pairs
  int64_t valueWidth = 0; ///< valueSize padded to whole registers
  int64_t columns = 0;    ///< registers of a register tile's row

  Value queries, keys, values, tables, keyPlaneScales, valuePlaneScales, out,
      partials;
  Value firstHead, numHeads; ///< kv heads of the unit
  Value maxTokens;           ///< of a run
  NextUnit nextUnit;
  Value isSplit;   ///< i1: spans go to `partials`
  Value headIndex; ///< of the head at hand, among the unit's
  Value head;      ///< the kv head at hand
  Value rowBase;   ///< where its rows begin in scratch
  // Scratch. Rows of a unit are at (rowBase + row) * stride.
  Value slots; ///< [2][64] physical slots of two chunks, or [2][4] blocks
  Value keyScales, valueScales; ///< [64] of the chunk's slots
  Value tileKeys;               ///< [keySteps][64]
  Value tileValues;             ///< [64 or 32 pairs][valueWidth]
  int64_t blockRows = kRows;    ///< rows of a register tile, or of AMX
  Value scores;                 ///< [blockRows][64]
  Value factors;                ///< [blockRows] of what was before the chunk
  Value products;               ///< [blockRows][64] of weights and values
  Value maxima, spanMaxima;     ///< [row] so far, of the span
  Value sums;                   ///< [row] so far
  Value spanSums;               ///< [row][width] of the span, by lane
  Value outputs, spanOutputs;   ///< [row][valueWidth] so far, of the span
};

/// Merges a span's maximum, sum and output (at `from` of `source`) into those
/// of `row`.
void emitAttentionMerge(Emitter &e, Value maxima, Value sums, Value outputs,
                        Value row, Value outputAt, int64_t valueSize,
                        Value spanMax, Value spanSum, Value source, Value from);

/// Writes the output of `row` to `out`.
void emitAttentionResult(Emitter &e, Value sums, Value outputs, Value row,
                         Value outputAt, int64_t valueSize, Value out,
                         Value to);

/// Whether products with this cache are those of matrix tiles.
bool takesTiles(const KernelTarget &target, Type cacheType);

/// attention_merge
LogicalResult generateAttentionMerge(KernelBuilder &kernel);

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_ATTENTION_H
