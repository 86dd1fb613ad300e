//===- Linear.h - What the linear kernels of a CPU share --------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_LINEAR_H
#define LLM_PASSES_KERNELS_CPU_LINEAR_H

#include "passes/Kernels/CPU/ElementProgram.h"
#include "passes/Kernels/CPU/RowOutput.h"
#include "passes/Kernels/Layouts.h"

namespace mlir::llm {

/// What a `linear` reads beside its input and weight.
struct LinearForm {
  Layout layout;
  bool bias = false;
  bool residual = false;
  int64_t level = 0; ///< accuracy level: 0 (f32), 3 (bf16) or 4 (int8)
  /// Level 4: inputs that share a scale, whole groups of weights.
  int64_t scaleGroup = 0;
  /// The largest finite output of each panel is written, too.
  bool maxima = false;
  /// What makes outputs of the sums: of as many weights of one layout as it has
  /// inputs. Without one, the sums of one weight are the outputs.
  std::optional<ElementProgram> program = {};
  RowForm output = {};

  int64_t weights() const { return program ? program->inputs() : 1; }
  /// Whether many tokens find the codes of a panel unpacked.
  bool unpacks() const;
  /// Outputs that a work item computes, whole panels.
  int64_t itemOutputs() const;
};

/// One function of a `linear`: its name and the numbers of rows it runs.
struct LinearVariant {
  std::string name;
  int64_t low, high;    ///< high -1: no bound
  bool unpacks = false; ///< the weights of a panel, for all tokens at once
  bool amx = false;     ///< multiplies by matrix tiles

  bool single() const { return high == 1; }
  bool many() const { return high == -1; }
};

/// The buffers that follow the inputs: weights, their biases, residual, output,
/// maxima.
void addLinearBuffers(SmallVectorImpl<Emitter::Buffer> &buffers,
                      MLIRContext *context, const LinearForm &form,
                      bool single);

/// All of them: from rows that quantize_rows writes, and over panel_pairs.
SmallVector<Emitter::Buffer> int8Buffers(MLIRContext *context,
                                         const LinearForm &form, bool single);
SmallVector<Emitter::Buffer> pairsBuffers(MLIRContext *context,
                                          const LinearForm &form, bool single);

/// Stores outputs: out = sum + bias + residual, each addition rounded. Where a
/// program makes them of the sums of several weights, all but the last one's
/// wait on the stack for some tokens; where they become int8, so do the outputs
/// that share a scale.
class LinearOutput {
public:
  /// `weight` is the number of the first weight's buffer.
  LinearOutput(Emitter &e, const LinearForm &form, const LinearVariant &variant,
               unsigned weight);
  /// The weight whose sums are computed.
  Value weight() const { return current; }
  /// Prefetches what `store` will touch for `count` registers from `column` on
  /// of each of `tile` rows.
  void prefetch(Value token, int64_t tile, Value column, int64_t count);
  /// Stores a full register of sums as the outputs [column, ...) of row
  /// `token`; those from n on are left out.
  void store(Value sums, Value token, Value column);
  /// Calls `body(panel, its end, first token, end)` for the panels of the
  /// call's items, `panels` at a time, and the rows [begin, end).
  void forItems(Value begin, Value end, int64_t panels,
                function_ref<void(Value, Value, Value, Value)> body);

private:
  bool isInt8() const { return form.output.kind == RowForm::Kind::Int8; }
  /// Where, of `columns` that are kept for each token, one lies.
  Value keptAt(Value token, Value column, Value firstColumn, int64_t columns);
  void storeLanes(Value sums, Value token, Value column);
  void storeMaxima(Value panel, Value begin, Value end);
  void finishItem(Value item, Value begin, Value end);
  Emitter &e;
  const LinearForm &form;
  int64_t n;
  SmallVector<Value, 2> weights, biases;
  Value residual, current;
  RowOutput rows;
  unsigned output;
  /// Where a program runs: the tokens for which sums wait, and the outputs:
  /// those of a panel, where the sums of all weights follow panel by panel, or
  /// of an item.
  int64_t waiting, waitingOutputs;
  bool byPanel;
  SmallVector<Value, 2> sums; ///< of all weights but the last
  Value outputs;              ///< of an item, before they become int8
  size_t number = 0;          ///< that of the weight
  Value firstToken, firstColumn, itemColumn;
};

/// Rows that take about `kBlockBytes` at `rowBytes` each, a multiple of `tile`.
int64_t blockRows(int64_t rowBytes, int64_t tile);

/// Calls `body(panel, first token, end)` for all panels and rows of the call.
/// Where rows are many, all panels pass before the next `block` of rows, so
/// that these stay in the second-level cache.
void forPanels(Emitter &e, LinearOutput &output, const LinearVariant &variant,
               int64_t block, function_ref<void(Value, Value, Value)> body);
/// The same for `panels` at a time: `body(panel, its end, first token, end)`.
void forPanelRanges(Emitter &e, LinearOutput &output,
                    const LinearVariant &variant, int64_t block, int64_t panels,
                    function_ref<void(Value, Value, Value, Value)> body);
/// Calls `body(first token, tokens)` for the rows [begin, end), in tiles of
/// `tiles` tokens (largest first, the last one 1).
void forTokenTiles(Emitter &e, const LinearVariant &variant, Value begin,
                   Value end, ArrayRef<int64_t> tiles,
                   function_ref<void(Value, int64_t)> body);
/// Both: `body(panel, first token, tokens)`.
void forLinearTiles(Emitter &e, LinearOutput &output,
                    const LinearVariant &variant, int64_t block,
                    ArrayRef<int64_t> tiles,
                    function_ref<void(Value, Value, int64_t)> body);

/// Tokens of the tiles of dense weights, largest first.
SmallVector<int64_t> denseTiles(const Emitter &e, const LinearVariant &variant);

/// How far ahead of their use weights are fetched, in bytes: whole periods of
/// what a loop reads, so that what reads some of its lines fetches the same of
/// a later one.
int64_t prefetchDistance(int64_t period = 1);
/// Prefetches weights `distance` bytes ahead of the `count` elements at `at`:
/// where a tile of tokens, or unpacking and widening, fills the window in which
/// the processor would find the next loads by itself. One token of f32 streams
/// faster without.
void prefetchWeights(Emitter &e, Value weight, Value at, int64_t count,
                     int64_t distance = prefetchDistance());

/// The functions of a linear over panel_affine, from f32 and from what
/// quantize_rows writes; and over panel_pairs, from f32 and from rows of bf16.
void emitAffineLinear(KernelBuilder &kernel, const LinearForm &form,
                      const LinearVariant &variant);
void emitInt8Linear(KernelBuilder &kernel, const LinearForm &form,
                    const LinearVariant &variant);
/// The same for many tokens, by the tiles of AMX; and whether it can.
void emitAMXLinear(KernelBuilder &kernel, const LinearForm &form,
                   const LinearVariant &variant);
bool takesAMX(const KernelTarget &target, const LinearForm &form);
/// The most rows that VNNI computes in less time.
int64_t rowsWithoutAMX(const LinearForm &form);
/// From rows of bf16 by tiles, and whether few rows follow the order of these.
void emitAMXPairsLinear(KernelBuilder &kernel, const LinearForm &form,
                        const LinearVariant &variant);
bool takesTileOrder(const KernelTarget &target, const LinearForm &form);
void emitPairsLinear(KernelBuilder &kernel, const LinearForm &form,
                     const LinearVariant &variant);

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_LINEAR_H
