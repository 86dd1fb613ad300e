//===- AttentionAMX.cpp - Rows of attention by matrix tiles ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On processors with AMX products over what a bf16 holds are those of tiles.
// Rows are taken 16 at a time; where there are fewer, the tile's others hold
// anything, and nothing is kept of them. Of a single token, where its rows are
// few and read the planes, they are multiply-adds in the same order
// (`Operands::tileOrder`): they would wait for tiles that are mostly empty.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Attention.h"

namespace mlir::llm {

static constexpr int64_t kTile = AMXTiles::kRows;
static constexpr int64_t kPairs = AMXTiles::kPairs;
static constexpr int64_t kLine = AttentionEmitter::kChunk * 4; ///< bytes

void AttentionEmitter::declareTiles() {
  tiles.emplace(*e, 4 * kPairs);
  blockRows = kTile;
  products = e->scratch(e->getF32Type(), kTile * kChunk);
}

/// Where the run takes tiles.
void AttentionEmitter::configureTiles(const Run &run) {
  auto configure = [&] { tiles->configure(e->idx(kTile)); };
  if (!tokenOperands)
    return configure();
  e->ifElse(run.isToken, [] {}, configure);
}

void AttentionEmitter::clearScratch(Value memref, Value low, Value high) {
  auto type = VectorType::get(
      {width}, cast<MemRefType>(memref.getType()).getElementType());
  Value zero = arith::ConstantOp::create(*e, e->getZeroAttr(type));
  e->loop(low, high, width, [&](Value at) {
    vector::StoreOp::create(*e, zero, memref, ValueRange{at});
  });
}

/// Clears the values of the pairs of slots that are not seen: tiles take all.
void AttentionEmitter::clearValues(const Chunk &chunk) {
  auto [low, high] = valueRange(chunk);
  clearScratch(tileValues, e->idx(0), e->muli(low, valueWidth));
  clearScratch(tileValues, e->muli(high, valueWidth),
               e->idx(kChunk / 2 * valueWidth));
}

void AttentionEmitter::emitTileRows(const Run &run, const Chunk &chunk,
                                    Value row, Value count) {
  Value at = e->addi(rowBase, row);
  emitTileScores(chunk, at, count);
  e->ifThen(chunk.partial, [&] { emitMask(run, chunk, count, row); });
  // Whole tiles; of what is left four at a time, then one by one.
  Value done = e->idx(0);
  for (int64_t rows : {kTile, kTile / 4, int64_t(1)}) {
    Value left = e->subi(count, done);
    Value end = e->addi(done, e->muli(e->divi(left, rows), rows));
    e->loop(done, end, rows,
            [&](Value block) { emitSoftmax(rows, e->addi(at, block), block); });
    done = end;
  }
  emitTileValues(at, count);
}

/// Scores of 16 rows and the chunk's keys.
void AttentionEmitter::emitTileScores(const Chunk &chunk, Value at,
                                      Value count) {
  constexpr int64_t kTiles = kChunk / kTile;
  for (int64_t i = 0; i < kTiles; ++i)
    tiles->zero(i);
  SmallVector<Value> blocks;
  if (keysInPlace)
    for (int64_t i = 0; i < kTiles; ++i)
      blocks.push_back(blockElement(
          *e, keyBlocks, e->load(slots, e->addi(chunk.slots, i)), head));
  Value rows = e->muli(at, keySteps);
  e->loop(e->idx(0), e->idx(keySteps), kPairs, [&](Value pair) {
    tiles->load(AMXTiles::kInputs,
                e->address(operands.queries, e->muli(e->addi(rows, pair), 4)),
                keySteps * 4);
    for (int64_t i = 0; i < kTiles; ++i) {
      int64_t tile = AMXTiles::kWeights + i % 2;
      if (keysInPlace) {
        Value pairs = e->addi(blocks[i], e->muli(pair, 2 * kSlotBlock));
        tiles->load(tile, e->address(keys, e->muli(pairs, 2)), kSlotBlock * 4);
      } else {
        Value line = e->addi(e->muli(pair, kChunk), i * kTile);
        tiles->load(tile, e->address(tileKeys, e->muli(line, 4)), kLine);
      }
      tiles->multiply("tdpbf16ps", i, AMXTiles::kInputs, tile);
    }
  });
  for (int64_t i = 0; i < kTiles; ++i)
    tiles->store(i, e->address(scores, e->idx(i * kTile * 4)), kLine);
  if (!codes && softcap <= 0)
    return;
  e->loop(e->idx(0), count, 1, [&](Value r) {
    e->loop(e->idx(0), e->idx(kChunk), width, [&](Value column) {
      Value to = e->addi(e->muli(r, kChunk), column);
      e->storeVec(finishScore(e->loadVec(scores, to, width), column), scores,
                  to);
    });
  });
}

/// Scales the outputs of `count` rows, and adds the chunk's values.
void AttentionEmitter::emitTileValues(Value at, Value count) {
  auto pass = [&](Value column, int64_t columns) {
    for (int64_t j = 0; j < columns; ++j)
      tiles->zero(j);
    for (int64_t pair = 0; pair < kChunk / 2; pair += kPairs) {
      tiles->load(AMXTiles::kInputs,
                  e->address(operands.weights, e->idx(pair * 4)),
                  kChunk / 2 * 4);
      for (int64_t j = 0; j < columns; ++j) {
        int64_t tile = AMXTiles::kWeights + j % 2;
        Value line = e->addi(column, pair * valueWidth + j * kTile);
        tiles->load(tile, e->address(tileValues, e->muli(line, 4)),
                    valueWidth * 4);
        tiles->multiply("tdpbf16ps", j, AMXTiles::kInputs, tile);
      }
    }
    for (int64_t j = 0; j < columns; ++j)
      tiles->store(j, e->address(products, e->idx(j * kTile * 4)), kLine);
    e->loop(e->idx(0), count, 1, [&](Value r) {
      Value factor = e->broadcast(e->load(factors, r), width);
      Value from = e->muli(r, kChunk);
      Value to = e->addi(e->muli(e->addi(at, r), valueWidth), column);
      for (int64_t j = 0; j < columns; ++j)
        e->storeVec(
            e->fma(e->loadVec(spanOutputs, e->addi(to, j * kTile), width),
                   factor,
                   e->loadVec(products, e->addi(from, j * kTile), width)),
            spanOutputs, e->addi(to, j * kTile));
    });
  };
  constexpr int64_t kColumns = kChunk / kTile;
  int64_t full = valueWidth / kChunk * kChunk;
  if (full)
    e->loop(e->idx(0), e->idx(full), kChunk,
            [&](Value column) { pass(column, kColumns); });
  if (valueWidth != full)
    pass(e->idx(full), (valueWidth - full) / kTile);
}

} // namespace mlir::llm
