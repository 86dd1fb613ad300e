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

/// What the rows of a block take of the second-level cache; the rest is for the
/// weights that pass.
static constexpr int64_t kBlockBytes = 384 * 1024;

/// With AVX-512 12 x 2 accumulators and with AVX2 3 x 4 leave registers for the
/// weights; below 4 x 2 the latency of the chains is what counts.
SmallVector<int64_t> denseTiles(const Emitter &e,
                                const LinearVariant &variant) {
  if (e.width() >= 16)
    return {variant.many() ? 12 : 8, 4, 2, 1};
  return {3, 2, 1};
}

void addLinearBuffers(SmallVectorImpl<Emitter::Buffer> &buffers,
                      MLIRContext *context, const LinearForm &form,
                      bool single) {
  Type f32 = Float32Type::get(context);
  const Layout &layout = form.layout;
  buffers.push_back({layout.elementType(context), layout.elements()});
  if (form.bias)
    buffers.push_back({f32, layout.n});
  if (form.residual)
    buffers.push_back({f32, single ? layout.n : kUnbounded});
  buffers.push_back({f32, single ? layout.n : kUnbounded});
}

LinearOutput::LinearOutput(Emitter &e, const LinearForm &form, unsigned weight)
    : e(e), n(form.layout.n) {
  unsigned next = weight + 1;
  if (form.bias)
    bias = e.buffer(next++);
  if (form.residual)
    residual = e.buffer(next++);
  out = e.buffer(next);
}

void LinearOutput::storeLanes(Value sums, Value row, Value column) {
  int64_t lanes = cast<VectorType>(sums.getType()).getDimSize(0);
  Value at = e.addi(row, column);
  if (bias)
    sums = e.add(sums, e.loadVec(bias, column, lanes));
  if (residual)
    sums = e.add(sums, e.loadVec(residual, at, lanes));
  e.storeVec(sums, out, at);
}

void LinearOutput::store(Value sums, Value token, Value column) {
  int64_t width = e.width(), rest = n % width;
  Value row = e.muli(token, n);
  if (n % kPanelBlock == 0)
    return storeLanes(sums, row, column);
  // The last panel is short: a register may be full, cut, or beyond n.
  auto cut = [&] {
    if (rest)
      e.ifThen(e.less(column, e.idx(n)),
               [&] { storeLanes(e.lanesOf(sums, 0, rest), row, column); });
  };
  if (n < width)
    return cut();
  e.ifElse(
      e.less(column, e.idx(n - width + 1)),
      [&] { storeLanes(sums, row, column); }, cut);
}

int64_t blockRows(int64_t rowBytes, int64_t tile) {
  return std::max(tile, kBlockBytes / rowBytes / tile * tile);
}

void forPanels(Emitter &e, const LinearVariant &variant, int64_t block,
               function_ref<void(Value, Value, Value)> body) {
  Value rows = e.size(0);
  auto panels = [&](Value begin, Value end) {
    e.loop(e.begin(), e.end(), 1,
           [&](Value panel) { body(panel, begin, end); });
  };
  if (!variant.many())
    return panels(e.idx(0), rows);
  e.loop(e.idx(0), rows, block, [&](Value first) {
    panels(first, e.mini(e.addi(first, block), rows));
  });
}

void forTokenTiles(Emitter &e, const LinearVariant &variant, Value begin,
                   Value end, ArrayRef<int64_t> tiles,
                   function_ref<void(Value, int64_t)> body) {
  if (variant.single())
    return body(begin, 1);
  Value first = begin;
  for (int64_t tile : tiles) {
    Value rest = e.subi(end, first);
    Value last = e.addi(first, e.muli(e.divi(rest, tile), tile));
    e.loop(first, last, tile, [&](Value t) { body(t, tile); });
    first = last;
  }
}

void forLinearTiles(Emitter &e, const LinearVariant &variant, int64_t block,
                    ArrayRef<int64_t> tiles,
                    function_ref<void(Value, Value, int64_t)> body) {
  forPanels(e, variant, block, [&](Value panel, Value begin, Value end) {
    forTokenTiles(e, variant, begin, end, tiles,
                  [&](Value t, int64_t tile) { body(panel, t, tile); });
  });
}

int64_t prefetchDistance(int64_t period) {
  return period > kPrefetchBytes ? kPrefetchBytes
                                 : llvm::alignTo(kPrefetchBytes, period);
}

void prefetchWeights(Emitter &e, Value weight, Value at, int64_t count,
                     int64_t distance) {
  auto type = cast<MemRefType>(weight.getType());
  int64_t perByte = type.getElementTypeBitWidth() / 8;
  // Clamped to the buffer: an address past it must not be formed.
  int64_t last = type.getDimSize(0) - count;
  if (last < 0)
    return;
  Value ahead = e.mini(e.addi(at, distance / perByte), e.idx(last));
  for (int64_t byte = 0; byte < count * perByte; byte += 64)
    memref::PrefetchOp::create(
        e, weight, ValueRange{e.addi(ahead, byte / perByte)},
        /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
}

static void emitDense(KernelBuilder &kernel, const LinearForm &form,
                      const LinearVariant &variant) {
  const Layout &layout = form.layout;
  int64_t k = layout.k;
  MLIRContext *context = kernel.kernel().getContext();
  SmallVector<Emitter::Buffer> buffers{
      {Float32Type::get(context), variant.single() ? k : kUnbounded}};
  addLinearBuffers(buffers, context, form, variant.single());
  Emitter e(kernel, variant.name, buffers, 1);
  LinearOutput output(e, form, 1);
  Value x = e.buffer(0), weight = e.buffer(1);
  int64_t width = e.width(), vectors = kPanelBlock / width;

  auto doTile = [&](Value panel, Value t, int64_t tile) {
    Value base = e.muli(panel, k * kPanelBlock);
    Value xBase = e.muli(t, k);
    // acc[token * vectors + vector]
    auto step = [&](Value i, ValueRange acc) {
      SmallVector<Value> next(acc.size());
      Value at = e.addi(base, e.muli(i, kPanelBlock));
      SmallVector<Value> weights;
      for (int64_t j = 0; j < vectors; ++j)
        weights.push_back(e.loadVec(weight, e.addi(at, j * width), width));
      for (int64_t m = 0; m < tile; ++m) {
        Value scalar = e.load(x, e.addi(e.addi(xBase, i), m * k));
        Value wide = e.broadcast(scalar, width);
        for (int64_t j = 0; j < vectors; ++j)
          next[m * vectors + j] = e.fma(wide, weights[j], acc[m * vectors + j]);
      }
      return next;
    };
    int64_t unroll = tile <= 2 ? 8 : tile <= 8 ? 4 : 2;
    int64_t full = k / unroll * unroll;
    SmallVector<Value> acc(tile * vectors, e.splat(0, width));
    if (full)
      acc = e.loop(
          e.idx(0), e.idx(full), unroll, acc, [&](Value i, ValueRange values) {
            SmallVector<Value> next(values);
            if (tile > 1)
              prefetchWeights(e, weight, e.addi(base, e.muli(i, kPanelBlock)),
                              unroll * kPanelBlock);
            for (int64_t u = 0; u < unroll; ++u)
              next = step(e.addi(i, u), next);
            return next;
          });
    for (int64_t i = full; i < k; ++i)
      acc = step(e.idx(i), acc);
    Value column = e.muli(panel, kPanelBlock);
    for (int64_t m = 0; m < tile; ++m)
      for (int64_t j = 0; j < vectors; ++j)
        output.store(acc[m * vectors + j], e.addi(t, m),
                     e.addi(column, j * width));
  };
  // Panels of f32 are what fills the cache, not the rows: no blocks.
  forLinearTiles(e, variant, kUnbounded, denseTiles(e, variant), doTile);
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
  LinearForm form{*layout, kernel.getBool("bias"), kernel.getBool("residual")};
  if (auto level = op.getParams().getAs<IntegerAttr>("accuracy_level")) {
    bool int8 = layout->isAffine() && level.getInt() == 4;
    bool bf16 = layout->kind == Layout::Kind::PanelPairs && level.getInt() == 3;
    form.level = int8 ? 4 : bf16 ? 3 : 0;
  }
  if (form.level == 4 && !layout->takesInt8())
    return op.emitOpError("int8 inputs need groups of a multiple of ")
           << layout->wordInputs() << " inputs, of at most "
           << Layout::kMaxInt8Group << ", not " << layout->groupSize;
  auto emit = [&](StringRef suffix, int64_t low, int64_t high) {
    LinearVariant variant{kernel.functionName(suffix), low, high};
    if (form.level == 4)
      emitInt8Linear(kernel, form, variant);
    else if (layout->isAffine())
      emitAffineLinear(kernel, form, variant);
    else if (layout->kind == Layout::Kind::PanelPairs)
      emitPairsLinear(kernel, form, variant);
    else
      emitDense(kernel, form, variant);
    kernel.addVariant(
        variant.name,
        rt::RangeAttr::get(op.getContext(), kernel.rowSymbol(), low, high));
  };
  emit("m1", 1, 1);
  emit("m8", 2, 8);
  emit("mn", 9, -1);
  return success();
}

void populateLinearKernels(KernelRegistry &registry) {
  registry.add("cpu", "linear", generateLinear);
}

} // namespace mlir::llm
