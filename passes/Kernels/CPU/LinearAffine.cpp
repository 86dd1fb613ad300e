//===- LinearAffine.cpp - linear over affine groups for a CPU -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes are outputs, as in the dense kernels. A weight is dequantized in
// registers, (q - z) * s rounded once, and multiplied into the same chain over
// ascending k that a dense weight of these values would have.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Linear.h"
#include "passes/Kernels/CPU/UnpackedPanel.h"

namespace mlir::llm {

namespace {
/// One function of an affine `linear` in f32.
class AffineEmitter {
public:
  AffineEmitter(KernelBuilder &kernel, const LinearForm &form,
                const LinearVariant &variant);
  void emit(const LinearVariant &variant);

private:
  using Vectors = SmallVector<Value>;
  /// Scales and zeros of a group whose codes end at byte `at`; the scales times
  /// factor `part`, where there are any.
  void loadScales(Value at, Value part);
  /// Adds the inputs of a group to `acc` [token * vectors + vector].
  Vectors doGroup(Value group, Value firstInput, int64_t length, Value token,
                  int64_t tile, Vectors acc);
  /// The same for `length` of its inputs, codes from byte `lines` on.
  Vectors doInputs(Value lines, Value firstInput, int64_t length, Value token,
                   int64_t tile, Vectors acc);
  void doTile(Value panel, Value token, int64_t tile);

  const Layout &layout;
  Emitter e;
  LinearOutput output;
  int64_t width, vectors;
  Vectors scales, zeros;
};
} // namespace

static SmallVector<Emitter::Buffer>
affineBuffers(MLIRContext *context, const LinearForm &form, bool single) {
  SmallVector<Emitter::Buffer> buffers{
      {Float32Type::get(context), single ? form.layout.k : kUnbounded}};
  addLinearBuffers(buffers, context, form, single);
  return buffers;
}

AffineEmitter::AffineEmitter(KernelBuilder &kernel, const LinearForm &form,
                             const LinearVariant &variant)
    : layout(form.layout),
      e(kernel, variant.name,
        affineBuffers(kernel.kernel().getContext(), form, variant.single()), 1),
      output(e, form, variant, 1), width(e.width()),
      vectors(kPanelBlock / width) {}

void AffineEmitter::loadScales(Value at, Value part) {
  scales.clear();
  zeros.clear();
  if (layout.factorGroup) {
    for (int64_t j = 0; j < vectors; ++j) {
      Value words = e.loadVecAs(e.getI32Type(), output.weight(),
                                e.addi(at, j * width * 4), width);
      Value factors = arith::SIToFPOp::create(e, e.f32Vec(width),
                                              factorsOf(e, words, part));
      scales.push_back(e.mul(scalesOf(e, words), factors));
    }
    zeros.assign(vectors,
                 e.splat(static_cast<float>(layout.commonZero()), width));
    return;
  }
  int64_t size = layout.scaleType.getIntOrFloatBitWidth() / 8;
  for (int64_t j = 0; j < vectors; ++j)
    scales.push_back(e.loadVecAs(layout.scaleType, output.weight(),
                                 e.addi(at, j * width * size), width));
  at = e.addi(at, kPanelBlock * size);
  for (int64_t j = 0; j < vectors; ++j) {
    if (!layout.zeroType) {
      zeros.push_back(e.splat(static_cast<float>(layout.commonZero()), width));
      continue;
    }
    int64_t zeroSize = layout.zeroType.getIntOrFloatBitWidth() / 8;
    zeros.push_back(e.loadVecAs(layout.zeroType, output.weight(),
                                e.addi(at, j * width * zeroSize), width));
  }
}

AffineEmitter::Vectors AffineEmitter::doGroup(Value group, Value firstInput,
                                              int64_t length, Value token,
                                              int64_t tile, Vectors acc) {
  Value scalesAt = e.addi(group, layout.codeBytes(length));
  auto doPart = [&](Value part, int64_t inputs, Vectors acc) {
    loadScales(scalesAt, part);
    Value first = e.muli(part, layout.sumGroup());
    Value line = e.muli(first, kPanelBlock * 4 / layout.wordInputs());
    return doInputs(e.addi(group, line), e.addi(firstInput, first), inputs,
                    token, tile, std::move(acc));
  };
  if (!layout.factorGroup)
    return doPart(e.idx(0), length, std::move(acc));
  int64_t whole = length / layout.factorGroup;
  if (whole)
    acc = e.loop(e.idx(0), e.idx(whole), 1, acc,
                 [&](Value part, ValueRange values) {
                   return doPart(part, layout.factorGroup, Vectors(values));
                 });
  if (int64_t rest = length % layout.factorGroup)
    acc = doPart(e.idx(whole), rest, std::move(acc));
  return acc;
}

AffineEmitter::Vectors AffineEmitter::doInputs(Value lines, Value firstInput,
                                               int64_t length, Value token,
                                               int64_t tile, Vectors acc) {
  int64_t perWord = layout.wordInputs(), bits = layout.bits;
  Value x = e.addi(e.muli(token, layout.k), firstInput);
  auto doWord = [&](Value word, int64_t count, Vectors sums) {
    Value line = e.addi(lines, e.muli(word, kPanelBlock * 4));
    prefetchWeights(e, output.weight(), line, kPanelBlock * 4);
    Vectors words;
    for (int64_t j = 0; j < vectors; ++j)
      words.push_back(e.loadVecAs(e.getI32Type(), output.weight(),
                                  e.addi(line, j * width * 4), width));
    Value at = e.addi(x, e.muli(word, perWord));
    Value mask = e.splatInt((1 << bits) - 1, width, 32);
    for (int64_t i = 0; i < count; ++i) {
      Value shift = e.splatInt(8 * (i % 4) + bits * (i / 4), width, 32);
      Vectors weights;
      for (int64_t j = 0; j < vectors; ++j) {
        Value code = arith::AndIOp::create(
            e, arith::ShRUIOp::create(e, words[j], shift), mask);
        Value number = arith::SIToFPOp::create(e, e.f32Vec(width), code);
        weights.push_back(e.mul(e.sub(number, zeros[j]), scales[j]));
      }
      for (int64_t m = 0; m < tile; ++m) {
        Value input = e.broadcast(
            e.load(e.buffer(0), e.addi(at, m * layout.k + i)), width);
        for (int64_t j = 0; j < vectors; ++j)
          sums[m * vectors + j] =
              e.fma(input, weights[j], sums[m * vectors + j]);
      }
    }
    return sums;
  };
  int64_t whole = length / perWord;
  if (whole)
    acc = e.loop(e.idx(0), e.idx(whole), 1, acc,
                 [&](Value word, ValueRange sums) {
                   return doWord(word, perWord, Vectors(sums));
                 });
  if (length % perWord)
    acc = doWord(e.idx(whole), length % perWord, acc);
  return acc;
}

void AffineEmitter::doTile(Value panel, Value token, int64_t tile) {
  Value base = e.muli(panel, layout.panelBytes());
  int64_t whole = layout.k / layout.groupSize;
  int64_t bytes = layout.groupBytes(layout.groupSize);
  auto groupAt = [&](Value g, int64_t length, Vectors acc) {
    return doGroup(e.addi(base, e.muli(g, bytes)), e.muli(g, layout.groupSize),
                   length, token, tile, std::move(acc));
  };
  Vectors acc(tile * vectors, e.splat(0, width));
  if (whole)
    acc =
        e.loop(e.idx(0), e.idx(whole), 1, acc, [&](Value g, ValueRange values) {
          return groupAt(g, layout.groupSize, Vectors(values));
        });
  if (whole < layout.groups())
    acc = groupAt(e.idx(whole), layout.groupLength(whole), acc);
  Value column = e.muli(panel, kPanelBlock);
  for (int64_t m = 0; m < tile; ++m)
    for (int64_t j = 0; j < vectors; ++j)
      output.store(acc[m * vectors + j], e.addi(token, m),
                   e.addi(column, j * width));
}

void AffineEmitter::emit(const LinearVariant &variant) {
  SmallVector<int64_t> tiles{4, 2, 1};
  if (width == 8)
    tiles = {2, 1};
  if (width >= 16)
    tiles = {8, 4, 1};
  forLinearTiles(e, output, variant, blockRows(layout.k * 4, 8), tiles,
                 [&](Value panel, Value token, int64_t tile) {
                   doTile(panel, token, tile);
                 });
  e.finish();
}

void emitAffineLinear(KernelBuilder &kernel, const LinearForm &form,
                      const LinearVariant &variant) {
  AffineEmitter(kernel, form, variant).emit(variant);
}

} // namespace mlir::llm
