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

#include "passes/Kernels/CPU/Quantize.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

namespace mlir::llm {

/// How far ahead of their use weights are fetched into the second-level cache
/// (measured: 1 to 4 KiB gain less, 8 KiB suffices).
static constexpr int64_t kPrefetchBytes = 8192;

/// What the rows of a block take of the second-level cache; the rest is for the
/// weights that pass.
static constexpr int64_t kBlockBytes = 384 * 1024;

/// With AVX-512 12 x 2 accumulators and with AVX2 3 x 4 leave registers for the
/// weights; below 4 x 2 the latency of the chains is what counts. With SSE 8
/// of a token are too many anyway: they wait on the stack, which products and
/// sums hide, and tokens share what it takes to widen a weight. More than 4
/// gain a little, but LLVM takes three times as long.
SmallVector<int64_t> denseTiles(const Emitter &e,
                                const LinearVariant &variant) {
  if (e.width() >= 16)
    return {variant.many() ? 12 : 8, 4, 2, 1};
  if (e.width() >= 8)
    return {3, 2, 1};
  return {4, 2, 1};
}

bool LinearForm::unpacks() const {
  // What is unpacked lies on the stack.
  constexpr int64_t kMaxInputs = 32768;
  return level == 4 && layout.bits < 8 && layout.k <= kMaxInputs;
}

int64_t LinearForm::itemOutputs() const {
  return program && output.kind == RowForm::Kind::Int8 ? output.scaleGroup
                                                       : kPanelBlock;
}

void addLinearBuffers(SmallVectorImpl<Emitter::Buffer> &buffers,
                      MLIRContext *context, const LinearForm &form,
                      bool single) {
  Type f32 = Float32Type::get(context);
  const Layout &layout = form.layout;
  buffers.append(form.weights(),
                 {layout.elementType(context), layout.elements()});
  if (form.bias)
    buffers.append(form.weights(), {f32, layout.n});
  if (form.residual)
    buffers.push_back({f32, single ? layout.n : kUnbounded});
  if (form.program)
    return form.output.addBuffers(buffers, context);
  buffers.push_back({f32, single ? layout.n : kUnbounded});
  if (form.maxima)
    buffers.push_back({f32, single ? layout.panels() : kUnbounded});
}

/// Many tokens whose sums wait for those of another weight: so many that to
/// unpack it takes a few hundredths of the time.
static int64_t waitingTokens(const LinearVariant &variant) {
  return variant.amx ? 256 : 96;
}

LinearOutput::LinearOutput(Emitter &e, const LinearForm &form,
                           const LinearVariant &variant, unsigned weight)
    : e(e), form(form), n(form.layout.n),
      rows(e, form.output,
           weight + form.weights() * (form.bias ? 2 : 1) + form.residual),
      output(weight + form.weights() * (form.bias ? 2 : 1) + form.residual),
      waiting(variant.many() ? waitingTokens(variant) : variant.high),
      // Few tokens read weights from memory, as long stretches as there are.
      byPanel(variant.many()) {
  waitingOutputs = byPanel ? kPanelBlock : form.itemOutputs();
  for (int64_t i = 0; i < form.weights(); ++i) {
    weights.push_back(e.buffer(weight + i));
    if (form.bias)
      biases.push_back(e.buffer(weight + form.weights() + i));
    if (i)
      sums.push_back(e.scratch(e.getF32Type(), waiting * waitingOutputs));
  }
  if (form.program && isInt8())
    outputs = e.scratch(e.getF32Type(), waiting * form.itemOutputs());
  current = weights.front();
  if (form.residual)
    residual = e.buffer(output - 1);
}

void LinearOutput::forItems(
    Value begin, Value end, int64_t panels,
    function_ref<void(Value, Value, Value, Value)> body) {
  auto forRange = [&](Value first, Value last, Value token, Value until) {
    e.loop(first, last, panels, [&](Value panel) {
      Value next =
          panels == 1 ? e.addi(panel, 1) : e.mini(e.addi(panel, panels), last);
      body(panel, next, token, until);
      if (form.maxima)
        e.loop(panel, next, 1,
               [&](Value each) { storeMaxima(each, token, until); });
    });
  };
  if (!form.program)
    return forRange(e.begin(), e.end(), begin, end);
  auto forWeights = [&](Value first, Value last, Value token, Value until) {
    firstColumn = e.muli(first, kPanelBlock);
    for (number = 0; number < weights.size(); ++number) {
      current = weights[number];
      forRange(first, last, token, until);
    }
  };
  int64_t each = form.itemOutputs() / kPanelBlock;
  e.loop(e.begin(), e.end(), 1, [&](Value item) {
    Value first = e.muli(item, each);
    Value last = e.mini(e.addi(first, each), e.idx(form.layout.panels()));
    e.loop(begin, end, waiting, [&](Value token) {
      Value until = e.mini(e.addi(token, waiting), end);
      firstToken = token;
      itemColumn = e.muli(first, kPanelBlock);
      if (byPanel)
        e.loop(first, last, 1, [&](Value panel) {
          forWeights(panel, e.addi(panel, 1), token, until);
        });
      else
        forWeights(first, last, token, until);
      finishItem(item, token, until);
    });
  });
}

/// The largest finite output of `panel`, for the rows [begin, end).
void LinearOutput::storeMaxima(Value panel, Value begin, Value end) {
  int64_t whole = n / kPanelBlock, rest = n % kPanelBlock;
  float infinity = std::numeric_limits<float>::infinity();
  auto store = [&](int64_t lanes) {
    e.loop(begin, end, 1, [&](Value t) {
      Value from = e.addi(e.muli(t, n), e.muli(panel, kPanelBlock));
      Value x = e.loadVec(e.buffer(output), from, lanes);
      // Neither for a NaN nor for an infinity.
      Value finite = arith::CmpFOp::create(e, arith::CmpFPredicate::OLT,
                                           math::AbsFOp::create(e, x),
                                           e.splat(infinity, lanes));
      Value largest =
          e.reduceMax(e.select(finite, x, e.splat(-infinity, lanes)));
      e.store(largest, e.buffer(output + 1),
              e.addi(e.muli(t, form.layout.panels()), panel));
    });
  };
  if (!rest)
    store(kPanelBlock);
  else if (!whole)
    store(rest);
  else
    e.ifElse(
        e.less(panel, e.idx(whole)), [&] { store(kPanelBlock); },
        [&] { store(rest); });
}

/// What remains to do for the rows [begin, end) of an item.
void LinearOutput::finishItem(Value item, Value begin, Value end) {
  int64_t each = form.itemOutputs(), whole = n / each;
  auto quantize = [&](int64_t length) {
    e.loop(begin, end, 1, [&](Value t) {
      rows.quantizeGroup(t, item, outputs,
                         keptAt(t, itemColumn, itemColumn, each), length);
    });
  };
  if (isInt8()) {
    if (n % each == 0)
      quantize(each);
    else if (!whole)
      quantize(n);
    else
      e.ifElse(
          e.less(item, e.idx(whole)), [&] { quantize(each); },
          [&] { quantize(n % each); });
  }
  Value isLast = arith::CmpIOp::create(e, arith::CmpIPredicate::eq, item,
                                       e.idx((n - 1) / each));
  e.ifThen(isLast,
           [&] { e.loop(begin, end, 1, [&](Value t) { rows.endRow(t); }); });
}

Value LinearOutput::keptAt(Value token, Value column, Value firstColumn,
                           int64_t columns) {
  return e.addi(e.muli(e.subi(token, firstToken), columns),
                e.subi(column, firstColumn));
}

void LinearOutput::storeLanes(Value sums, Value token, Value column) {
  int64_t lanes = cast<VectorType>(sums.getType()).getDimSize(0);
  auto withBias = [&](Value value, size_t weight) {
    return form.bias ? e.add(value, e.loadVec(biases[weight], column, lanes))
                     : value;
  };
  if (!form.program) {
    sums = withBias(sums, 0);
    Value at = e.addi(e.muli(token, n), column);
    if (residual)
      sums = e.add(sums, e.loadVec(residual, at, lanes));
    return e.storeVec(sums, e.buffer(output), at);
  }
  auto sum = [&](size_t weight) {
    if (weight == number)
      return withBias(sums, weight);
    Value at = keptAt(token, column, firstColumn, waitingOutputs);
    return withBias(e.loadVec(this->sums[weight], at, lanes), weight);
  };
  Value result = form.program->run(e, lanes, sum).front();
  if (isInt8())
    e.storeVec(result, outputs,
               keptAt(token, column, itemColumn, form.itemOutputs()));
  else
    rows.store(result, token, column);
}

void LinearOutput::store(Value sums, Value token, Value column) {
  if (form.program && number + 1 < weights.size())
    return e.storeVec(sums, this->sums[number],
                      keptAt(token, column, firstColumn, waitingOutputs));
  int64_t width = e.width(), rest = n % width;
  if (n % kPanelBlock == 0)
    return storeLanes(sums, token, column);
  // The last panel is short: a register may be full, cut, or beyond n.
  auto cut = [&] {
    if (rest)
      e.ifThen(e.less(column, e.idx(n)),
               [&] { storeLanes(e.lanesOf(sums, 0, rest), token, column); });
  };
  if (n < width)
    return cut();
  e.ifElse(
      e.less(column, e.idx(n - width + 1)),
      [&] { storeLanes(sums, token, column); }, cut);
}

void LinearOutput::prefetch(Value token, int64_t tile, Value column,
                            int64_t count) {
  if (form.program || n % kPanelBlock)
    return;
  for (int64_t m = 0; m < tile; ++m)
    for (int64_t byte = 0; byte < count * e.width() * 4; byte += 64) {
      Value at = e.addi(e.muli(e.addi(token, m), n), e.addi(column, byte / 4));
      for (Value buffer : {residual, Value(e.buffer(output))})
        if (buffer)
          memref::PrefetchOp::create(e, buffer, ValueRange{at},
                                     /*isWrite=*/false, /*localityHint=*/3,
                                     /*isDataCache=*/true);
    }
}

int64_t blockRows(int64_t rowBytes, int64_t tile) {
  return std::max(tile, kBlockBytes / rowBytes / tile * tile);
}

void forPanelRanges(Emitter &e, LinearOutput &output,
                    const LinearVariant &variant, int64_t block, int64_t panels,
                    function_ref<void(Value, Value, Value, Value)> body) {
  Value rows = e.size(0);
  if (!variant.many())
    return output.forItems(e.idx(0), rows, panels, body);
  e.loop(e.idx(0), rows, block, [&](Value first) {
    Value last = e.mini(e.addi(first, block), rows);
    output.forItems(first, last, panels, body);
  });
}

void forPanels(Emitter &e, LinearOutput &output, const LinearVariant &variant,
               int64_t block, function_ref<void(Value, Value, Value)> body) {
  forPanelRanges(e, output, variant, block, 1,
                 [&](Value panel, Value, Value begin, Value end) {
                   body(panel, begin, end);
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

void forLinearTiles(Emitter &e, LinearOutput &output,
                    const LinearVariant &variant, int64_t block,
                    ArrayRef<int64_t> tiles,
                    function_ref<void(Value, Value, int64_t)> body) {
  forPanels(
      e, output, variant, block, [&](Value panel, Value begin, Value end) {
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
  LinearOutput output(e, form, variant, 1);
  Value x = e.buffer(0);
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
        weights.push_back(
            e.loadVec(output.weight(), e.addi(at, j * width), width));
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
      acc = e.loop(e.idx(0), e.idx(full), unroll, acc,
                   [&](Value i, ValueRange values) {
                     SmallVector<Value> next(values);
                     if (tile > 1 || !form.layout.type.isF32())
                       prefetchWeights(e, output.weight(),
                                       e.addi(base, e.muli(i, kPanelBlock)),
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
  forLinearTiles(e, output, variant, kUnbounded, denseTiles(e, variant),
                 doTile);
  e.finish();
}

/// Reads what makes outputs of the sums.
static LogicalResult setProgram(KernelBuilder &kernel, LinearForm &form) {
  rt::KernelOp op = kernel.kernel();
  FailureOr<ElementProgram> program = ElementProgram::parse(kernel);
  FailureOr<RowForm> output = RowForm::of(kernel, form.layout.n);
  if (failed(program) || failed(output))
    return failure();
  if (program->inputs() < 1 || program->outputs() != 1 || form.residual ||
      form.maxima)
    return op.emitOpError("'ops' takes the sums of one weight or more, gives "
                          "one output, and goes without residual and maxima");
  if (output->kind == RowForm::Kind::Int8 &&
      (output->scaleGroup % kPanelBlock ||
       output->scaleGroup > kMaxItemOutputs))
    return op.emitOpError("scales of ")
           << output->scaleGroup << " outputs are not of whole panels of "
           << kPanelBlock << ", or of more than " << kMaxItemOutputs
           << " outputs";
  form.program = std::move(*program);
  form.output = *output;
  return success();
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
  form.maxima = kernel.getBool("maxima");
  if (auto level = op.getParams().getAs<IntegerAttr>("accuracy_level")) {
    bool int8 = layout->isAffine() && level.getInt() == 4;
    bool bf16 = layout->kind == Layout::Kind::PanelPairs && level.getInt() == 3;
    form.level = int8 ? 4 : bf16 ? 3 : 0;
  }
  if (form.level == 4 && !layout->takesInt8())
    return op.emitOpError("int8 inputs need groups of a multiple of ")
           << layout->wordInputs() << " inputs, of at most "
           << Layout::kMaxInt8Group << ", not " << layout->groupSize;
  if (form.level == 4) {
    FailureOr<int64_t> scaleGroup =
        scaleGroupOf(kernel, "activation_group", layout->groupSize);
    if (failed(scaleGroup))
      return failure();
    form.scaleGroup = *scaleGroup;
  }
  if (op.getParams().contains("ops") && failed(setProgram(kernel, form)))
    return failure();
  bool pairs = takesTileOrder(kernel.target(), form);
  bool amx = pairs || takesAMX(kernel.target(), form);
  auto emit = [&](StringRef suffix, int64_t low, int64_t high) {
    LinearVariant variant{kernel.functionName(suffix), low, high,
                          high == -1 && form.unpacks(), high == -1 && amx};
    if (variant.amx && pairs)
      emitAMXPairsLinear(kernel, form, variant);
    else if (variant.amx)
      emitAMXLinear(kernel, form, variant);
    else if (form.level == 4)
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
  // Unpacking first pays from about 64 tokens on, and with AVX2, whose tiles
  // are small, from 9. Tiles of bf16 are read as they lie: they pay as soon as
  // reading does not bind.
  int64_t few = 8;
  if (pairs)
    few = 4;
  else if (amx)
    few = rowsWithoutAMX(form);
  else if (form.unpacks())
    few = kernel.target().vectorWidth < 16 ? 8 : 64;
  emit("m1", 1, 1);
  emit("m" + std::to_string(few), 2, few);
  emit("mn", few + 1, -1);
  return success();
}

void populateLinearKernels(KernelRegistry &registry) {
  registry.add("cpu", "linear", generateLinear);
}

} // namespace mlir::llm
