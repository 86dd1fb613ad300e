//===- Linear.cpp - linear over panels for a CPU --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes are outputs. An output is one chain of fused multiply-adds over
// ascending k, whatever the number of tokens that a tile takes along, so every
// variant gives the same bits.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Linear.h"

namespace mlir::llm {

/// How far ahead of their use weights are fetched into the second-level cache
/// (measured: 1 to 4 KiB gain less, 8 KiB suffices).
static constexpr int64_t kPrefetchBytes = 8192;

/// Tokens of the tiles, largest first. With AVX-512 12 x 2 accumulators and
/// with AVX2 3 x 4 leave registers for the weights; below 4 x 2 the latency of
/// the chains is what counts.
static SmallVector<int64_t> tokenTiles(const Emitter &e) {
  if (e.width() >= 16)
    return {12, 8, 4, 2, 1};
  return {3, 2, 1};
}

void forTokenTiles(Emitter &e, Value tokens, bool single,
                   ArrayRef<int64_t> tiles,
                   function_ref<void(Value, int64_t)> body) {
  if (single)
    return body(e.idx(0), 1);
  Value first = e.idx(0);
  for (int64_t tile : tiles) {
    Value rest = e.subi(tokens, first);
    Value end = e.addi(first, e.muli(e.divi(rest, tile), tile));
    e.loop(first, end, tile, [&](Value t) { body(t, tile); });
    first = end;
  }
}

void storePanelRow(Emitter &e, ArrayRef<Value> outputs, Value bias, Value out,
                   Value row, Value panel, int64_t n) {
  int64_t vectors = outputs.size(), width = e.width();
  Value first = e.muli(panel, kPanelBlock);
  auto storeSome = [&](int64_t count) {
    for (int64_t j = 0; j < vectors && j * width < count; ++j) {
      int64_t lanes = std::min(width, count - j * width);
      Value value = e.lanesOf(outputs[j], 0, lanes);
      Value column = e.addi(first, j * width);
      if (bias)
        value = e.add(value, e.loadVec(bias, column, lanes));
      e.storeVec(value, out, e.addi(row, column));
    }
  };
  int64_t rest = n % kPanelBlock;
  if (rest == 0)
    return storeSome(kPanelBlock);
  if (n < kPanelBlock)
    return storeSome(rest);
  e.ifElse(
      e.less(panel, e.idx(n / kPanelBlock)), [&] { storeSome(kPanelBlock); },
      [&] { storeSome(rest); });
}

void prefetchWeights(Emitter &e, Value weight, Value at, int64_t count) {
  auto type = cast<MemRefType>(weight.getType());
  int64_t perByte = type.getElementTypeBitWidth() / 8;
  // Clamped to the buffer: an address past it must not be formed.
  int64_t last = type.getDimSize(0) - count;
  if (last < 0)
    return;
  Value ahead = e.mini(e.addi(at, kPrefetchBytes / perByte), e.idx(last));
  for (int64_t byte = 0; byte < count * perByte; byte += 64)
    memref::PrefetchOp::create(
        e, weight, ValueRange{e.addi(ahead, byte / perByte)},
        /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
}

/// The function for one token (`single`), or for any number.
static void emitDense(KernelBuilder &kernel, const Layout &layout, bool hasBias,
                      StringRef name, bool single) {
  int64_t k = layout.k, n = layout.n;
  Type f32 = Float32Type::get(kernel.kernel().getContext());
  SmallVector<Emitter::Buffer> buffers{{f32, single ? k : kUnbounded},
                                       {layout.type, layout.elements()}};
  if (hasBias)
    buffers.push_back({f32, n});
  buffers.push_back({f32, single ? n : kUnbounded});
  Emitter e(kernel, name, buffers, 1);
  Value x = e.buffer(0), weight = e.buffer(1);
  Value bias = hasBias ? e.buffer(2) : Value();
  Value out = e.buffer(hasBias ? 3 : 2);
  int64_t width = e.width(), vectors = kPanelBlock / width;

  e.loop(e.begin(), e.end(), 1, [&](Value panel) {
    Value base = e.muli(panel, k * kPanelBlock);
    forTokenTiles(
        e, e.size(0), single, tokenTiles(e), [&](Value t, int64_t tile) {
          Value xBase = e.muli(t, k);
          // acc[token * vectors + vector]
          auto step = [&](Value i, ValueRange acc) {
            SmallVector<Value> next(acc.size());
            Value at = e.addi(base, e.muli(i, kPanelBlock));
            SmallVector<Value> weights;
            for (int64_t j = 0; j < vectors; ++j)
              weights.push_back(
                  e.loadVec(weight, e.addi(at, j * width), width));
            for (int64_t m = 0; m < tile; ++m) {
              Value scalar = e.load(x, e.addi(e.addi(xBase, i), m * k));
              Value wide = e.broadcast(scalar, width);
              for (int64_t j = 0; j < vectors; ++j)
                next[m * vectors + j] =
                    e.fma(wide, weights[j], acc[m * vectors + j]);
            }
            return next;
          };
          int64_t unroll = tile <= 2 ? 8 : tile <= 8 ? 4 : 2;
          int64_t full = k / unroll * unroll;
          SmallVector<Value> acc(tile * vectors, e.splat(0, width));
          if (full)
            acc =
                e.loop(e.idx(0), e.idx(full), unroll, acc,
                       [&](Value i, ValueRange values) {
                         SmallVector<Value> next(values);
                         if (tile > 1)
                           prefetchWeights(e, weight,
                                           e.addi(base, e.muli(i, kPanelBlock)),
                                           unroll * kPanelBlock);
                         for (int64_t u = 0; u < unroll; ++u)
                           next = step(e.addi(i, u), next);
                         return next;
                       });
          for (int64_t i = full; i < k; ++i)
            acc = step(e.idx(i), acc);
          for (int64_t m = 0; m < tile; ++m)
            storePanelRow(e, ArrayRef(acc).slice(m * vectors, vectors), bias,
                          out, e.muli(e.addi(t, m), n), panel, n);
        });
  });
  e.finish();
}

static LogicalResult generateLinear(KernelBuilder &kernel) {
  rt::KernelOp op = kernel.kernel();
  FailureOr<int64_t> n = kernel.getInt("n"), k = kernel.getInt("k");
  if (failed(n) || failed(k))
    return failure();
  auto dict = op.getParams().getAs<DictionaryAttr>("layout");
  if (!dict)
    return op.emitOpError("has no layout: run --llm-pack-weights first");
  FailureOr<Layout> layout =
      Layout::parse(dict, [&] { return op.emitOpError(); });
  if (failed(layout))
    return failure();
  if (!layout->isPanel() || layout->n != *n || layout->k != *k)
    return op.emitOpError("layout is not a panel form of ")
           << *n << " x " << *k;
  bool hasBias = kernel.getBool("bias");
  auto level = op.getParams().getAs<IntegerAttr>("accuracy_level");
  bool int8 = layout->isAffine() && level && level.getInt() == 4;
  if (int8 && layout->groupSize % layout->wordInputs())
    return op.emitOpError("int8 inputs need groups of a multiple of ")
           << layout->wordInputs() << " inputs, not " << layout->groupSize;
  auto emit = [&](StringRef suffix, int64_t low, int64_t high) {
    std::string name = kernel.functionName(suffix);
    bool single = high == 1;
    if (layout->isAffine())
      emitAffineLinear(kernel, *layout, hasBias, int8, name, single);
    else
      emitDense(kernel, *layout, hasBias, name, single);
    kernel.addVariant(name, rt::RangeAttr::get(op.getContext(),
                                               kernel.rowSymbol(), low, high));
  };
  emit("m1", 1, 1);
  emit("mn", 2, -1);
  return success();
}

void populateLinearKernels(KernelRegistry &registry) {
  registry.add("cpu", "linear", generateLinear);
}

} // namespace mlir::llm
