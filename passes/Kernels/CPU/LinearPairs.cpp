//===- LinearPairs.cpp - linear over pairs of bf16 for a CPU --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes are outputs, and a register of the weight holds two inputs of each. In
// f32 an output is the chain over ascending k that every dense weight has. From
// rows of bf16 (accuracy level 3) it is one chain over ascending pairs, as
// vdpbf16ps computes it: within a pair the second product is added first.
// With AMX, where inputs are whole tiles of 32, it is the order of tdpbf16ps:
// for each tile the chain of the first inputs of its pairs and that of the
// second ones, both from zero, are added, and their sum to the output;
// denormals are zeros.
//
// Without these instructions the rows of a tile are widened once for a few
// panels: in registers that would be an operation for each use of an input.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/AMXTiles.h"
#include "passes/Kernels/CPU/Linear.h"

namespace mlir::llm {

/// Panels that share the widened rows of a tile stay in the second-level cache.
static constexpr int64_t kRangeBytes = 768 * 1024;

namespace {
class PairsEmitter {
public:
  PairsEmitter(KernelBuilder &kernel, const LinearForm &form,
               const LinearVariant &variant);
  void emit(const LinearVariant &variant);

private:
  using Vectors = SmallVector<Value>;
  void doTile(Value panel, Value token, int64_t tile);
  void widenRows(Value token, int64_t tile);
  /// Adds pair `i` of the rows from `x` on to `acc` [token * vectors + vector].
  /// `both`: the pair has a second input.
  Vectors addPair(Value line, Value x, int64_t tile, Vectors acc, bool both);
  Vectors addDotProducts(ArrayRef<Value> pairs, Value x, int64_t tile,
                         Vectors acc);
  Vectors addHalves(ArrayRef<Value> pairs, Value x, int64_t tile, Vectors acc,
                    bool both);
  /// Adds the tile of pairs from pair `i` on in the order of AMX.
  Vectors addTile(Value base, Value row, Value i, int64_t tile, Vectors acc);
  /// The weights of a line.
  Vectors pairsAt(Value line);
  /// The first or second elements of pairs (i32 lanes), as f32.
  Value half(Value pairs, bool second);

  const Layout &layout;
  bool narrow, dotProduct; ///< rows of bf16; an instruction for them
  bool tileOrder;          ///< sums in the order of AMX
  Emitter e;
  LinearOutput output;
  int64_t width, vectors, stride; ///< elements from row to row of x
  Value x;
  Value wide; ///< f32 of the rows of a tile, where they are widened
};
} // namespace

SmallVector<Emitter::Buffer> pairsBuffers(MLIRContext *context,
                                          const LinearForm &form, bool single) {
  SmallVector<Emitter::Buffer> buffers;
  if (form.level == 3)
    buffers.push_back({BFloat16Type::get(context),
                       single ? pairRowStride(form.layout.k) : kUnbounded});
  else
    buffers.push_back(
        {Float32Type::get(context), single ? form.layout.k : kUnbounded});
  addLinearBuffers(buffers, context, form, single);
  return buffers;
}

PairsEmitter::PairsEmitter(KernelBuilder &kernel, const LinearForm &form,
                           const LinearVariant &variant)
    : layout(form.layout), narrow(form.level == 3),
      dotProduct(narrow && kernel.target().multipliesPairs()),
      tileOrder(takesTileOrder(kernel.target(), form)),
      e(kernel, variant.name,
        pairsBuffers(kernel.kernel().getContext(), form, variant.single()), 1),
      output(e, form, variant, 1), width(e.width()),
      vectors(kPanelBlock / width),
      stride(narrow ? pairRowStride(layout.k) : layout.k), x(e.buffer(0)) {}

Value PairsEmitter::half(Value pairs, bool second) {
  Value bits =
      second
          ? Value(arith::AndIOp::create(
                e, pairs, e.splatInt(int64_t(0xffff0000), width, 32)))
          : Value(arith::ShLIOp::create(e, pairs, e.splatInt(16, width, 32)));
  return e.bitcast(bits, e.f32Vec(width));
}

PairsEmitter::Vectors PairsEmitter::addDotProducts(ArrayRef<Value> pairs,
                                                   Value at, int64_t tile,
                                                   Vectors acc) {
  auto halves = VectorType::get({2 * width}, e.getBF16Type());
  for (int64_t m = 0; m < tile; ++m) {
    Value input = e.broadcast(e.loadPair(x, e.addi(at, m * stride)), width);
    for (int64_t j = 0; j < vectors; ++j) {
      Value &sum = acc[m * vectors + j];
      sum = e.intrinsic(
          "llvm.x86.avx512bf16.dpbf16ps.512", sum.getType(),
          {sum, e.bitcast(pairs[j], halves), e.bitcast(input, halves)});
    }
  }
  return acc;
}

PairsEmitter::Vectors PairsEmitter::addHalves(ArrayRef<Value> pairs, Value at,
                                              int64_t tile, Vectors acc,
                                              bool both) {
  SmallVector<bool> order{false};
  if (both)
    order = narrow ? SmallVector<bool>{true, false}
                   : SmallVector<bool>{false, true};
  for (bool second : order) {
    Vectors weights;
    for (Value pair : pairs)
      weights.push_back(half(pair, second));
    for (int64_t m = 0; m < tile; ++m) {
      Value from = e.addi(at, m * stride);
      Value input =
          narrow && !wide
              ? half(e.broadcast(e.loadPair(x, from), width), second)
              : e.broadcast(e.load(wide ? wide : x, e.addi(from, second)),
                            width);
      for (int64_t j = 0; j < vectors; ++j)
        acc[m * vectors + j] = e.fma(input, weights[j], acc[m * vectors + j]);
    }
  }
  return acc;
}

PairsEmitter::Vectors PairsEmitter::pairsAt(Value line) {
  Vectors pairs;
  for (int64_t j = 0; j < vectors; ++j)
    pairs.push_back(e.bitcast(
        e.loadRaw(output.weight(), e.addi(line, j * 2 * width), 2 * width),
        VectorType::get({width}, e.getI32Type())));
  return pairs;
}

PairsEmitter::Vectors PairsEmitter::addTile(Value base, Value row, Value i,
                                            int64_t tile, Vectors acc) {
  constexpr int64_t kLine = 2 * kPanelBlock, kUnroll = 4;
  int64_t count = tile * vectors;
  // The chains of the first inputs, then those of the second ones.
  Vectors chains(2 * count, e.splat(0, width));
  chains = e.loop(
      i, e.addi(i, AMXTiles::kPairs), kUnroll, chains,
      [&](Value first, ValueRange values) {
        Vectors next(values);
        prefetchWeights(e, output.weight(), e.addi(base, e.muli(first, kLine)),
                        kUnroll * kLine);
        for (int64_t u = 0; u < kUnroll; ++u) {
          Value pair = e.addi(first, u);
          Vectors pairs = pairsAt(e.addi(base, e.muli(pair, kLine)));
          for (bool second : {false, true}) {
            Vectors weights;
            for (Value both : pairs)
              weights.push_back(half(both, second));
            for (int64_t m = 0; m < tile; ++m) {
              Value at = e.addi(e.addi(row, m * stride), e.muli(pair, 2));
              Value input = half(e.broadcast(e.loadPair(x, at), width), second);
              for (int64_t j = 0; j < vectors; ++j) {
                Value &sum = next[second * count + m * vectors + j];
                sum = e.fma(input, weights[j], sum);
              }
            }
          }
        }
        return next;
      });
  for (int64_t c = 0; c < count; ++c)
    acc[c] = e.add(acc[c], e.add(chains[c], chains[count + c]));
  return acc;
}

PairsEmitter::Vectors PairsEmitter::addPair(Value line, Value at, int64_t tile,
                                            Vectors acc, bool both) {
  Vectors pairs = pairsAt(line);
  if (dotProduct)
    return addDotProducts(pairs, at, tile, std::move(acc));
  return addHalves(pairs, at, tile, std::move(acc), both || narrow);
}

void PairsEmitter::widenRows(Value token, int64_t tile) {
  e.loop(e.idx(0), e.idx(tile), 1, [&](Value m) {
    Value from = e.muli(e.addi(token, m), stride), to = e.muli(m, stride);
    e.forRow(2 * layout.pairs(), [&](Value d, int64_t lanes) {
      e.storeVec(e.loadVec(x, e.addi(from, d), lanes), wide, e.addi(to, d));
    });
  });
}

void PairsEmitter::doTile(Value panel, Value token, int64_t tile) {
  constexpr int64_t kLine = 2 * kPanelBlock;
  Value base = e.muli(panel, layout.pairs() * kLine);
  Value row = wide ? e.idx(0) : e.muli(token, stride);
  auto pairAt = [&](Value i, Vectors acc, bool both) {
    return addPair(e.addi(base, e.muli(i, kLine)), e.addi(row, e.muli(i, 2)),
                   tile, std::move(acc), both);
  };
  int64_t whole = layout.k / 2;
  int64_t unroll = tile <= 2 ? 8 : tile <= 8 ? 4 : 2;
  int64_t full = whole / unroll * unroll;
  Vectors acc(tile * vectors, e.splat(0, width));
  if (tileOrder) {
    full = whole;
    acc = e.loop(e.idx(0), e.idx(whole), AMXTiles::kPairs, acc,
                 [&](Value i, ValueRange values) {
                   return addTile(base, row, i, tile, Vectors(values));
                 });
  } else if (full) {
    acc = e.loop(
        e.idx(0), e.idx(full), unroll, acc, [&](Value i, ValueRange values) {
          Vectors next(values);
          prefetchWeights(e, output.weight(), e.addi(base, e.muli(i, kLine)),
                          unroll * kLine);
          for (int64_t u = 0; u < unroll; ++u)
            next = pairAt(e.addi(i, u), next, true);
          return next;
        });
  }
  for (int64_t i = full; i < layout.pairs(); ++i)
    acc = pairAt(e.idx(i), acc, i < whole);
  Value column = e.muli(panel, kPanelBlock);
  for (int64_t m = 0; m < tile; ++m)
    for (int64_t j = 0; j < vectors; ++j)
      output.store(acc[m * vectors + j], e.addi(token, m),
                   e.addi(column, j * width));
}

void PairsEmitter::emit(const LinearVariant &variant) {
  SmallVector<int64_t> tiles = denseTiles(e, variant);
  Value control;
  if (tileOrder) {
    control = e.flushDenormals();
    tiles = {4, 2, 1}; // two chains for each sum
  }
  int64_t block = blockRows(stride * (narrow ? 2 : 4), 12);
  if (narrow && !dotProduct && variant.many()) {
    wide = e.scratch(e.getF32Type(), tiles.front() * stride);
    int64_t panelBytes = layout.pairs() * kPanelBlock * 4;
    int64_t panels = std::clamp<int64_t>(kRangeBytes / panelBytes, 1, 4);
    forPanelRanges(e, output, variant, block, panels,
                   [&](Value panel, Value lastPanel, Value begin, Value end) {
                     forTokenTiles(e, variant, begin, end, tiles,
                                   [&](Value token, int64_t tile) {
                                     widenRows(token, tile);
                                     e.loop(panel, lastPanel, 1,
                                            [&](Value each) {
                                              doTile(each, token, tile);
                                            });
                                   });
                   });
  } else {
    forLinearTiles(e, output, variant, block, tiles,
                   [&](Value panel, Value token, int64_t tile) {
                     doTile(panel, token, tile);
                   });
  }
  if (tileOrder)
    e.restoreDenormals(control);
  e.finish();
}

void emitPairsLinear(KernelBuilder &kernel, const LinearForm &form,
                     const LinearVariant &variant) {
  PairsEmitter(kernel, form, variant).emit(variant);
}

} // namespace mlir::llm
