//===- LinearAMXPairs.cpp - linear over pairs of bf16 by matrix tiles -----===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accuracy level 3 for many tokens, on processors with AMX: two tiles of tokens
// by two of outputs, whose sums stay in tiles for all inputs. The order of the
// sums is in LinearPairs.cpp, which has what few tokens take.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/AMXTiles.h"
#include "passes/Kernels/CPU/Linear.h"

namespace mlir::llm {

static constexpr int64_t kTile = AMXTiles::kRows;
static constexpr int64_t kVectors = kPanelBlock / kTile;

namespace {
class AMXPairsEmitter {
public:
  AMXPairsEmitter(KernelBuilder &kernel, const LinearForm &form,
                  const LinearVariant &variant);
  void emit();

private:
  /// `count` tiles of tokens from `token` on; stores rows [first, rows).
  /// `fetches`: whether weights come from memory.
  void doTiles(Value panel, Value token, int64_t count, Value first, Value rows,
               Value fetches);
  const Layout &layout;
  const LinearVariant &variant;
  Emitter e;
  LinearOutput output;
  int64_t stride; ///< bytes from row to row
  AMXTiles tiles;
  Value sums; ///< bytes, [token][output] of f32
};
} // namespace

AMXPairsEmitter::AMXPairsEmitter(KernelBuilder &kernel, const LinearForm &form,
                                 const LinearVariant &variant)
    : layout(form.layout), variant(variant),
      e(kernel, variant.name,
        pairsBuffers(kernel.kernel().getContext(), form, /*single=*/false), 1),
      output(e, form, variant, 1), stride(2 * pairRowStride(layout.k)),
      tiles(e, 2 * AMXTiles::kPairs * 2),
      sums(e.scratch(e.getIntegerType(8), 2 * kTile * kPanelBlock * 4)) {}

void AMXPairsEmitter::doTiles(Value panel, Value token, int64_t count,
                              Value first, Value rows, Value fetches) {
  constexpr int64_t kRow = kPanelBlock * 4;
  for (int64_t tile = 0; tile < count * kVectors; ++tile)
    tiles.zero(tile);
  Value inputs = e.muli(token, stride);
  Value base = e.muli(panel, layout.pairs() * kRow);
  e.loop(e.idx(0), e.idx(layout.pairs()), AMXTiles::kPairs, [&](Value pair) {
    Value lines = e.addi(base, e.muli(pair, kRow));
    e.ifThen(fetches, [&] {
      Value element =
          e.muli(e.addi(e.muli(panel, layout.pairs()), pair), 2 * kPanelBlock);
      prefetchWeights(e, output.weight(), element,
                      AMXTiles::kPairs * 2 * kPanelBlock);
    });
    for (int64_t i = 0; i < count; ++i)
      tiles.load(
          AMXTiles::kInputs + i,
          e.address(e.buffer(0), e.addi(e.addi(inputs, i * kTile * stride),
                                        e.muli(pair, 4))),
          stride);
    for (int64_t j = 0; j < kVectors; ++j)
      tiles.load(AMXTiles::kWeights + j,
                 e.address(output.weight(), e.addi(lines, j * kTile * 4)),
                 kRow);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < kVectors; ++j)
        tiles.multiply("tdpbf16ps", i * kVectors + j, AMXTiles::kInputs + i,
                       AMXTiles::kWeights + j);
  });
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < kVectors; ++j)
      tiles.store(i * kVectors + j,
                  e.address(sums, e.idx(i * kTile * kRow + j * kTile * 4)),
                  kRow);
  Value column = e.muli(panel, kPanelBlock);
  e.loop(first, rows, 1, [&](Value m) {
    Value place = e.address(sums, e.muli(m, kRow));
    for (int64_t j = 0; j < kVectors; ++j)
      output.store(e.loadAt(e.f32Vec(kTile), place, j * kTile * 4),
                   e.addi(token, m), e.addi(column, j * kTile));
  });
}

void AMXPairsEmitter::emit() {
  Value control = e.flushDenormals();
  constexpr int64_t kTwo = 2 * kTile;
  forPanels(e, output, variant, blockRows(stride, kTwo),
            [&](Value panel, Value begin, Value end) {
              Value zero = e.idx(0), count = e.subi(end, begin);
              Value rows = e.mini(e.idx(kTile), count);
              tiles.configure(rows);
              Value whole = e.addi(begin, e.muli(e.divi(count, kTwo), kTwo));
              auto isFirst = [&](Value token) -> Value {
                return arith::CmpIOp::create(e, arith::CmpIPredicate::eq, token,
                                             begin);
              };
              e.loop(begin, whole, kTwo, [&](Value token) {
                doTiles(panel, token, 2, zero, e.idx(kTwo), isFirst(token));
              });
              // The last tile starts before, where it would be short.
              e.loop(whole, end, kTile, [&](Value t) {
                Value token = e.mini(t, e.subi(end, rows));
                doTiles(panel, token, 1, e.subi(t, token), rows,
                        isFirst(token));
              });
            });
  tiles.release();
  e.restoreDenormals(control);
  e.finish();
}

bool takesTileOrder(const KernelTarget &target, const LinearForm &form) {
  return form.level == 3 && target.has("amx-bf16") &&
         form.layout.k % (2 * AMXTiles::kPairs) == 0;
}

void emitAMXPairsLinear(KernelBuilder &kernel, const LinearForm &form,
                        const LinearVariant &variant) {
  AMXPairsEmitter(kernel, form, variant).emit();
}

} // namespace mlir::llm
