//===- UnpackedPanel.cpp - Codes as bytes, for many tokens ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/UnpackedPanel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/Kernels/CPU/Linear.h"

namespace mlir::llm {

Value codesOf(Emitter &e, const Layout &layout, Value words, int64_t part) {
  int64_t bits = layout.bits, width = e.width();
  if (part)
    words =
        arith::ShRUIOp::create(e, words, e.splatInt(bits * part, width, 32));
  if (bits < 8)
    words = arith::AndIOp::create(
        e, words, e.splatInt(((1 << bits) - 1) * 0x01010101, width, 32));
  return words;
}

Value zeroCodes(Emitter &e, Value weight, Value offset) {
  return arith::ExtUIOp::create(e, VectorType::get({e.width()}, e.getI32Type()),
                                e.loadRaw(weight, offset, e.width()));
}

Value factorsOf(Emitter &e, Value words, Value part) {
  int64_t lanes = cast<VectorType>(words.getType()).getDimSize(0);
  constexpr int64_t kBits = Layout::kFactorBits;
  Value left = e.subi(e.idx(32 - kBits), e.muli(part, kBits));
  Value shift = arith::IndexCastOp::create(e, e.getI32Type(), left);
  Value top = arith::ShLIOp::create(e, words, e.broadcast(shift, lanes));
  return arith::ShRSIOp::create(e, top, e.splatInt(32 - kBits, lanes, 32));
}

Value scalesOf(Emitter &e, Value words) {
  int64_t lanes = cast<VectorType>(words.getType()).getDimSize(0);
  constexpr int64_t kShift = Layout::kScaleBit - Layout::kScaleF32Bit;
  constexpr int64_t kMask = ((int64_t(1) << (32 - Layout::kScaleBit)) - 1)
                            << Layout::kScaleF32Bit;
  Value bits = arith::AndIOp::create(
      e, arith::ShRUIOp::create(e, words, e.splatInt(kShift, lanes, 32)),
      e.splatInt(kMask, lanes, 32));
  return e.mul(arith::BitcastOp::create(e, e.f32Vec(lanes), bits),
               e.splat(1 / Layout::kScaleUnit, lanes));
}

Value factorPairsOf(Emitter &e, Value words, Value part, bool both) {
  int64_t lanes = cast<VectorType>(words.getType()).getDimSize(0);
  Value low = arith::AndIOp::create(e, factorsOf(e, words, part),
                                    e.splatInt(0xffff, lanes, 32));
  if (!both)
    return low;
  return arith::OrIOp::create(
      e, low, arith::ShLIOp::create(e, low, e.splatInt(16, lanes, 32)));
}

UnpackedPanel::UnpackedPanel(Emitter &e, const Layout &layout, int64_t vectors,
                             int64_t groups, Codes form, bool pairs)
    : e(e), layout(layout), vectors(vectors),
      words(llvm::divideCeil(std::min(layout.groupSize, layout.k),
                             layout.wordInputs())),
      scaleBytes(layout.factorGroup
                     ? 4
                     : layout.scaleType.getIntOrFloatBitWidth() / 8),
      form(form), pairs(pairs),
      unpacked(e.scratch(e.getIntegerType(8), groups * words * lineBytes())),
      scales(e.scratch(e.getF32Type(), groups * vectors * e.width())) {
  if (layout.factorGroup && form == Codes::Plain)
    factors = e.scratch(e.getI32Type(),
                        groups * layout.partsOfGroup() * vectors * e.width());
}

int64_t UnpackedPanel::lineBytes() const {
  return 8 / layout.bits * vectors * e.width() * 4;
}

Value UnpackedPanel::codes(Value line, int64_t part, int64_t vector) {
  return e.loadVecAs(e.getI32Type(), unpacked,
                     e.addi(line, (part * vectors + vector) * e.width() * 4),
                     e.width());
}

Value UnpackedPanel::scale(Value g, Value column) {
  return e.loadVec(scales, e.addi(e.muli(g, vectors * e.width()), column),
                   e.width());
}

Value UnpackedPanel::factorPairs(Value part, int64_t vector) {
  int64_t width = e.width();
  return e.loadRaw(
      factors, e.addi(e.muli(part, vectors * width), vector * width), width);
}

void UnpackedPanel::unpack(Value weight, Value base, Value column, Value first,
                           int64_t inputs) {
  int64_t whole = inputs / layout.groupSize, rest = inputs % layout.groupSize;
  if (whole)
    e.loop(e.idx(0), e.idx(whole), 1, [&](Value to) {
      unpackGroup(weight, base, column, e.addi(first, to), to,
                  layout.groupSize);
    });
  if (rest)
    unpackGroup(weight, base, column, e.addi(first, whole), e.idx(whole), rest);
}

Value UnpackedPanel::loadScales(Value weight, Value at) {
  if (!layout.factorGroup)
    return e.loadVecAs(layout.scaleType, weight, at, e.width());
  return scalesOf(e, e.loadVecAs(e.getI32Type(), weight, at, e.width()));
}

void UnpackedPanel::forWords(
    Value weight, Value source, Value target, Value count,
    function_ref<Value(Value words, int64_t part, int64_t vector)> codes) {
  int64_t width = e.width();
  e.loop(e.idx(0), count, 1, [&](Value w) {
    Value from = e.addi(source, e.muli(w, kPanelBlock * 4));
    Value to = e.addi(target, e.muli(w, lineBytes()));
    prefetchWeights(e, weight, from, vectors * width * 4);
    for (int64_t j = 0; j < vectors; ++j) {
      Value packed = e.loadVecAs(e.getI32Type(), weight,
                                 e.addi(from, j * width * 4), width);
      for (int64_t i = 0; i < 8 / layout.bits; ++i)
        e.storeVec(codes(packed, i, j), unpacked,
                   e.addi(to, (i * vectors + j) * width * 4));
    }
  });
}

void UnpackedPanel::unpackWords(Value weight, Value source, Value target,
                                Value count, ArrayRef<Value> zeros) {
  auto bytes = VectorType::get({4 * e.width()}, e.getIntegerType(8));
  forWords(weight, source, target, count,
           [&](Value words, int64_t part, int64_t vector) -> Value {
             Value codes = e.bitcast(codesOf(e, layout, words, part), bytes);
             if (zeros.empty())
               return codes;
             return arith::SubIOp::create(e, codes, zeros[vector]);
           });
}

/// One multiplication of 16 bits takes two codes c of up to 15 by the magnitude
/// m of a factor: 15 * 15 fits into a byte. Signs are ahead of it: where a
/// factor is negative, -(c - 8) m is (15 - c) m - 7 m.
void UnpackedPanel::multiplyWords(Value weight, Value source, Value target,
                                  Value count, Value factorsAt, Value part) {
  int64_t width = e.width();
  auto bytes = VectorType::get({4 * width}, e.getIntegerType(8));
  auto shorts = VectorType::get({2 * width}, e.getIntegerType(16));
  auto inLanes = [&](int64_t value) { return e.splatInt(value, width, 32); };
  auto twice = [&](Value lanes, int64_t shift) -> Value {
    return arith::OrIOp::create(
        e, lanes, arith::ShLIOp::create(e, lanes, inLanes(shift)));
  };
  SmallVector<Value> magnitudes, flips, zeros;
  for (int64_t j = 0; j < vectors; ++j) {
    Value words = e.loadVecAs(e.getI32Type(), weight,
                              e.addi(factorsAt, j * width * 4), width);
    Value factor = factorsOf(e, words, part);
    Value negative = arith::ShRSIOp::create(e, factor, inLanes(31));
    Value magnitude = math::AbsIOp::create(e, factor);
    Value zero = arith::SubIOp::create(
        e, arith::ShLIOp::create(e, magnitude, inLanes(3)),
        arith::AndIOp::create(e, magnitude, negative));
    magnitudes.push_back(e.bitcast(twice(magnitude, 16), shorts));
    flips.push_back(arith::AndIOp::create(e, negative, inLanes(0x0f0f0f0f)));
    zero = e.bitcast(twice(twice(zero, 8), 16), bytes);
    if (form == Codes::Raised)
      zero = arith::SubIOp::create(e, zero, e.splatInt(-128, 4 * width, 8));
    zeros.push_back(zero);
  }
  forWords(
      weight, source, target, count,
      [&](Value words, int64_t i, int64_t j) -> Value {
        Value codes =
            arith::XOrIOp::create(e, codesOf(e, layout, words, i), flips[j]);
        Value products =
            arith::MulIOp::create(e, e.bitcast(codes, shorts), magnitudes[j]);
        return arith::SubIOp::create(e, e.bitcast(products, bytes), zeros[j]);
      });
}

void UnpackedPanel::unpackFactors(Value weight, Value at, Value to,
                                  int64_t length) {
  int64_t width = e.width();
  Value first = e.muli(to, layout.partsOfGroup());
  int64_t used = (length - 1) / layout.factorGroup + 1;
  for (int64_t j = 0; j < vectors; ++j) {
    Value words =
        e.loadVecAs(e.getI32Type(), weight, e.addi(at, j * width * 4), width);
    for (int64_t i = 0; i < used; ++i)
      vector::StoreOp::create(
          e, factorPairsOf(e, words, e.idx(i), pairs), factors,
          e.addi(e.muli(e.addi(first, i), vectors * width), j * width));
  }
}

void UnpackedPanel::unpackGroup(Value weight, Value base, Value column, Value g,
                                Value to, int64_t length) {
  int64_t width = e.width(), perWord = layout.wordInputs();
  Value group = e.addi(base, e.muli(g, layout.groupBytes(layout.groupSize)));
  Value from = e.addi(group, e.muli(column, 4)), lines = lineOf(to);
  Value scalesAt = e.addi(e.addi(group, layout.codeBytes(length)),
                          e.muli(column, scaleBytes));

  if (layout.factorGroup && form != Codes::Plain) {
    int64_t each = layout.factorGroup, words = each / perWord;
    int64_t whole = length / each, rest = length % each;
    auto multiply = [&](Value part, int64_t count) {
      Value word = e.muli(part, words);
      multiplyWords(weight, e.addi(from, e.muli(word, kPanelBlock * 4)),
                    e.addi(lines, e.muli(word, lineBytes())), e.idx(count),
                    scalesAt, part);
    };
    if (whole)
      e.loop(e.idx(0), e.idx(whole), 1,
             [&](Value part) { multiply(part, words); });
    if (rest)
      multiply(e.idx(whole), llvm::divideCeil(rest, perWord));
  } else {
    SmallVector<Value> zeros;
    for (int64_t j = 0; form == Codes::Centred && j < vectors; ++j) {
      Value zero = e.splatInt(layout.commonZero() * 0x01010101, width, 32);
      Value at = e.addi(group, layout.codeBytes(length) +
                                   kPanelBlock * scaleBytes + j * width);
      if (layout.zeroType)
        zero = e.muli(zeroCodes(e, weight, e.addi(at, column)),
                      e.splatInt(0x01010101, width, 32));
      zeros.push_back(
          e.bitcast(zero, VectorType::get({4 * width}, e.getIntegerType(8))));
    }
    unpackWords(weight, from, lines, e.idx(llvm::divideCeil(length, perWord)),
                zeros);
  }
  if (factors)
    unpackFactors(weight, scalesAt, to, length);
  for (int64_t j = 0; j < vectors; ++j)
    e.storeVec(loadScales(weight, e.addi(scalesAt, j * width * scaleBytes)),
               scales, e.addi(e.muli(to, vectors * width), j * width));
}

} // namespace mlir::llm
