//===- UnpackedPanel.cpp - Codes as bytes, for many tokens ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/UnpackedPanel.h"

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

UnpackedPanel::UnpackedPanel(Emitter &e, const Layout &layout, int64_t vectors,
                             int64_t groups, bool centred)
    : e(e), layout(layout), vectors(vectors),
      words(llvm::divideCeil(std::min(layout.groupSize, layout.k),
                             layout.wordInputs())),
      centred(centred),
      unpacked(e.scratch(e.getIntegerType(8), groups * words * lineBytes())),
      scales(e.scratch(e.getF32Type(), groups * vectors * e.width())) {}

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

void UnpackedPanel::unpackGroup(Value weight, Value base, Value column, Value g,
                                Value to, int64_t length) {
  int64_t width = e.width(), parts = 8 / layout.bits;
  int64_t scaleSize = layout.scaleType.getIntOrFloatBitWidth() / 8;
  auto bytes = VectorType::get({4 * width}, e.getIntegerType(8));
  Value group = e.addi(base, e.muli(g, layout.groupBytes(layout.groupSize)));
  Value from = e.addi(group, e.muli(column, 4)), lines = lineOf(to);
  Value scalesAt = e.addi(group, layout.codeBytes(length));

  SmallVector<Value> zeros;
  for (int64_t j = 0; centred && j < vectors; ++j) {
    Value zero = e.splatInt(layout.commonZero() * 0x01010101, width, 32);
    if (layout.zeroType)
      zero = e.muli(zeroCodes(e, weight,
                              e.addi(e.addi(scalesAt, kPanelBlock * scaleSize +
                                                          j * width),
                                     column)),
                    e.splatInt(0x01010101, width, 32));
    zeros.push_back(e.bitcast(zero, bytes));
  }
  e.loop(e.idx(0), e.idx(llvm::divideCeil(length, layout.wordInputs())), 1,
         [&](Value w) {
           Value source = e.addi(from, e.muli(w, kPanelBlock * 4));
           Value target = e.addi(lines, e.muli(w, lineBytes()));
           prefetchWeights(e, weight, source, vectors * width * 4);
           for (int64_t j = 0; j < vectors; ++j) {
             Value packed = e.loadVecAs(e.getI32Type(), weight,
                                        e.addi(source, j * width * 4), width);
             for (int64_t i = 0; i < parts; ++i) {
               Value codes = e.bitcast(codesOf(e, layout, packed, i), bytes);
               if (centred)
                 codes = arith::SubIOp::create(e, codes, zeros[j]);
               e.storeVec(codes, unpacked,
                          e.addi(target, (i * vectors + j) * width * 4));
             }
           }
         });
  Value at = e.addi(scalesAt, e.muli(column, scaleSize));
  for (int64_t j = 0; j < vectors; ++j)
    e.storeVec(e.loadVecAs(layout.scaleType, weight,
                           e.addi(at, j * width * scaleSize), width),
               scales, e.addi(e.muli(to, vectors * width), j * width));
}

} // namespace mlir::llm
