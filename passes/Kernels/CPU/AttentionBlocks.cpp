//===- AttentionBlocks.cpp - Keys and values from planes in blocks --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Attention.h"

namespace mlir::llm {

/// Fills the chunk's part of `slots` with physical blocks. One that no row sees
/// may not exist: it becomes the nearest one that is seen.
void AttentionEmitter::emitBlocks(const Run &run, const Chunk &chunk) {
  int64_t perPage = pageSize / kSlotBlock;
  Value start = e->divi(chunk.start, kSlotBlock);
  Value lowest = e->divi(chunk.first, kSlotBlock);
  Value highest = e->divi(e->subi(chunk.last, e->idx(1)), kSlotBlock);
  for (int64_t i = 0; i < kChunk / kSlotBlock; ++i) {
    Value block = e->mini(e->maxi(e->addi(start, i), lowest), highest);
    Value page = e->load(tables, e->addi(run.table, e->divi(block, perPage)));
    e->store(
        e->addi(e->muli(e->toIndex(page), perPage), e->remi(block, perPage)),
        slots, e->addi(chunk.slots, i));
  }
}

void AttentionEmitter::loadBlockScales(const Chunk &chunk) {
  BlockPlane plane{kvHeads, 1, 1};
  float factor = isa<Float8E4M3FNType>(cacheType) ? 256 : 1;
  for (int64_t i = 0; i < kChunk; i += width) {
    Value block = e->load(slots, e->addi(chunk.slots, i / kSlotBlock));
    Value from = blockElement(*e, plane, block, head, i % kSlotBlock);
    for (auto [source, to] : {std::pair(keyPlaneScales, keyScales),
                              std::pair(valuePlaneScales, valueScales)})
      e->storeVec(
          e->mul(e->loadVec(source, from, width), e->splat(factor, width)), to,
          e->idx(i));
  }
}

TypedAttr AttentionEmitter::keptSlot(bool second) {
  int64_t bits = cacheType.getIntOrFloatBitWidth();
  return e->getIntegerAttr(e->getIntegerType(static_cast<unsigned>(2 * bits)),
                           second ? -(int64_t(1) << bits)
                                  : (int64_t(1) << bits) - 1);
}

/// What products take of `width` units as they are stored: a register per step.
SmallVector<Value> AttentionEmitter::toOperands(Value raw) {
  auto words = VectorType::get({width}, e->getI32Type());
  if (operands.pairs)
    return {e->bitcast(codes ? codesToPairs(raw) : raw, words)};
  if (unit == 1)
    return {widenRaw(raw)};
  // The first one of a pair is in the lower half.
  if (!codes) {
    Value pair = e->bitcast(raw, words);
    Value first = arith::ShLIOp::create(*e, pair, e->splatInt(16, width, 32));
    Value second =
        arith::AndIOp::create(*e, pair, e->splatInt(0xffff0000, width, 32));
    return {e->bitcast(first, e->f32Vec(width)),
            e->bitcast(second, e->f32Vec(width))};
  }
  Value pair = e->bitcast(raw, VectorType::get({width}, e->getIntegerType(16)));
  Value eight = e->splatInt(8, width, 16);
  Value first =
      arith::ShRSIOp::create(*e, arith::ShLIOp::create(*e, pair, eight), eight);
  return {widenCodes(first),
          widenCodes(arith::ShRSIOp::create(*e, pair, eight))};
}

void AttentionEmitter::fetch(Value plane, Value at) {
  memref::PrefetchOp::create(*e, plane, ValueRange{at}, /*isWrite=*/false,
                             /*localityHint=*/2, /*isDataCache=*/true);
}

/// The keys of `width` slots of the chunk from `slot` on, unit `k` of each.
SmallVector<Value> AttentionEmitter::keyLine(const Chunk &chunk, Value slot,
                                             Value k) {
  Value entry = e->divi(slot, kSlotBlock);
  Value within =
      e->muli(e->addi(e->muli(k, kSlotBlock), e->remi(slot, kSlotBlock)), unit);
  auto lineOf = [&](Value list, Value head) {
    Value block = e->load(slots, e->addi(list, entry));
    return e->addi(blockElement(*e, keyBlocks, block, head), within);
  };
  if (fetching)
    fetch(keys, lineOf(chunk.ahead, e->addi(head, chunk.shift)));
  return toOperands(e->loadRaw(keys, lineOf(chunk.slots, head), width * unit));
}

/// Where the values of line `line` (a slot, or a pair) of a chunk's block are.
Value AttentionEmitter::valuesAt(Value list, Value head, Value block,
                                 Value line, Value d) {
  Value id = e->load(slots, e->addi(list, block));
  return e->addi(blockElement(*e, valueBlocks, id, head),
                 e->muli(e->addi(e->muli(line, valueSize), d), unit));
}

/// `count` values of a line from `d` on, at most `width`; those that `mask` (of
/// a pair's bits, or null) keeps.
SmallVector<Value> AttentionEmitter::valueLine(const Chunk &chunk, Value block,
                                               Value line, Value d,
                                               int64_t count, Value mask) {
  if (fetching)
    fetch(values,
          valuesAt(chunk.ahead, e->addi(head, chunk.shift), block, line, d));
  Value at = valuesAt(chunk.slots, head, block, line, d);
  Value raw = padTo(*e, e->loadRaw(values, at, count * unit), width * unit);
  if (mask) {
    auto type = VectorType::get({width}, mask.getType());
    Value kept = arith::AndIOp::create(*e, e->bitcast(raw, type),
                                       e->broadcast(mask, width));
    raw = e->bitcast(kept, cast<VectorType>(raw.getType()));
  }
  return toOperands(raw);
}

/// Fetches the head's keys, and values, of the next chunk.
void AttentionEmitter::fetchHead(const Chunk &chunk, bool withValues) {
  int64_t line = 64 * 8 / cacheType.getIntOrFloatBitWidth();
  e->loop(e->idx(0), e->idx(kChunk / kSlotBlock), 1, [&](Value i) {
    Value block = e->load(slots, e->addi(chunk.ahead, i));
    Value next = e->addi(head, chunk.shift);
    Value key = blockElement(*e, keyBlocks, block, next),
          value = blockElement(*e, valueBlocks, block, next);
    e->loop(e->idx(0), e->idx(kSlotBlock * size), line,
            [&](Value d) { fetch(keys, e->addi(key, d)); });
    if (withValues)
      e->loop(e->idx(0), e->idx(kSlotBlock * valueSize), line,
              [&](Value d) { fetch(values, e->addi(value, d)); });
  });
}

/// Copies the keys into scratch. Blocks without a seen slot too, which are the
/// nearest one that has: what scratch held before could be denormal, and slow.
void AttentionEmitter::widenKeys(const Chunk &chunk) {
  fetching = true;
  e->loop(e->idx(0), e->idx(kChunk), kSlotBlock, [&](Value block) {
    e->loop(e->idx(0), e->idx(size / unit), 1, [&](Value k) {
      for (int64_t i = 0; i < kSlotBlock; i += width) {
        Value slot = e->addi(block, i);
        Value to = e->addi(e->muli(k, operands.steps * kChunk), slot);
        for (Value x : keyLine(chunk, slot, k)) {
          vector::StoreOp::create(*e, x, tileKeys, ValueRange{to});
          to = e->addi(to, kChunk);
        }
      }
    });
  });
  fetching = false;
}

/// Copies the values of the slots that are seen into scratch; the other one of
/// a pair counts as zero.
void AttentionEmitter::widenValues(const Chunk &chunk) {
  int64_t perBlock = kSlotBlock / unit;
  Value first = e->subi(chunk.first, chunk.start),
        last = e->subi(chunk.last, chunk.start);
  fetching = true;
  e->loop(e->divi(first, unit), e->divi(e->addi(last, unit - 1), unit), 1,
          [&](Value line) {
            Value block = e->divi(line, perBlock),
                  within = e->remi(line, perBlock);
            Value mask;
            if (operands.pairs) {
              auto kept = [&](Value seen, bool second) -> Value {
                TypedAttr bits = keptSlot(second);
                return e->select(
                    seen, arith::ConstantOp::create(*e, bits),
                    arith::ConstantOp::create(
                        *e, cast<TypedAttr>(e->getZeroAttr(bits.getType()))));
              };
              Value slot = e->muli(line, 2);
              mask = arith::OrIOp::create(
                  *e,
                  kept(arith::CmpIOp::create(*e, arith::CmpIPredicate::sge,
                                             slot, first),
                       false),
                  kept(e->less(e->addi(slot, 1), last), true));
            }
            e->forRow(valueSize, [&](Value d, int64_t lanes) {
              Value to = e->addi(e->muli(line, operands.steps * valueWidth), d);
              for (Value x : valueLine(chunk, block, within, d, lanes, mask)) {
                vector::StoreOp::create(*e, x, tileValues, ValueRange{to});
                to = e->addi(to, valueWidth);
              }
            });
          });
  fetching = false;
}

/// emitNonFinite for values that are used as they are stored.
Value AttentionEmitter::emitNonFiniteLine(const Chunk &chunk) {
  unsigned bits = cacheType.getIntOrFloatBitWidth();
  int64_t exponent = bits == 16 ? 0x7f80 : 0x7f800000;
  int64_t perBlock = kSlotBlock / unit;
  auto type = VectorType::get({width * unit}, e->getIntegerType(bits));
  Value first = e->subi(chunk.first, chunk.start),
        last = e->subi(chunk.last, chunk.start);
  SmallVector<Value> top = e->loop(
      e->divi(first, unit), e->divi(e->addi(last, unit - 1), unit), 1,
      {e->splatInt(0, width * unit, bits)},
      [&](Value line, ValueRange sofar) -> SmallVector<Value> {
        auto part = [&](Value d, int64_t count, Value largest) -> Value {
          Value at = valuesAt(chunk.slots, head, e->divi(line, perBlock),
                              e->remi(line, perBlock), d);
          Value raw =
              padTo(*e, e->loadRaw(values, at, count * unit), width * unit);
          Value masked =
              arith::AndIOp::create(*e, e->bitcast(raw, type),
                                    e->splatInt(exponent, width * unit, bits));
          return arith::MaxSIOp::create(*e, largest, masked);
        };
        int64_t full = valueSize / width * width;
        SmallVector<Value> largest(sofar);
        if (full)
          largest =
              e->loop(e->idx(0), e->idx(full), width, largest,
                      [&](Value d, ValueRange inner) {
                        return SmallVector<Value>{part(d, width, inner[0])};
                      });
        if (full != valueSize)
          largest = {part(e->idx(full), valueSize - full, largest[0])};
        return largest;
      });
  Value largest =
      vector::ReductionOp::create(*e, vector::CombiningKind::MAXSI, top[0]);
  Value bound = arith::ConstantOp::create(
      *e, e->getIntegerAttr(e->getIntegerType(bits), exponent));
  return arith::CmpIOp::create(*e, arith::CmpIPredicate::eq, largest, bound);
}

/// The product of weights and the chunk's values from the plane.
SmallVector<Value> AttentionEmitter::blockProduct(const Chunk &chunk,
                                                  int64_t rows, Value column,
                                                  int64_t columns,
                                                  int64_t lastLanes,
                                                  SmallVector<Value> acc) {
  Value first = e->subi(chunk.first, chunk.start),
        last = e->subi(chunk.last, chunk.start);
  if (!operands.tileOrder)
    return slotsProduct(chunk, rows, column, columns, lastLanes, first, last,
                        std::move(acc));
  constexpr int64_t kSlots = 2 * AMXTiles::kPairs;
  Value end = e->divi(e->addi(last, kSlots - 1), kSlots);
  return e->loop(
      e->divi(first, kSlots), end, 1, acc, [&](Value part, ValueRange sums) {
        Value begin = e->muli(part, kSlots);
        SmallVector<Value> chains(2 * sums.size(), e->splat(0, width));
        chains = slotsProduct(chunk, rows, column, columns, lastLanes,
                              e->maxi(first, begin),
                              e->mini(last, e->addi(begin, kSlots)), chains);
        return addChains(sums, chains);
      });
}

/// The same for slots [first, last) of the chunk. Of the first and the last
/// pair one slot may not be seen: it counts as zero.
SmallVector<Value>
AttentionEmitter::slotsProduct(const Chunk &chunk, int64_t rows, Value column,
                               int64_t columns, int64_t lastLanes, Value first,
                               Value last, SmallVector<Value> acc) {
  int64_t perBlock = kSlotBlock / unit;
  // Lines [low, high) of a block.
  auto add = [&](Value block, Value low, Value high, Value mask) {
    acc = product(
        rows, operands.weights, e->muli(block, perBlock * operands.steps),
        operands.weightStride,
        [&](Value line, int64_t j) {
          return valueLine(chunk, block, line, e->addi(column, j * width),
                           j + 1 == columns ? lastLanes : width, mask);
        },
        operands.steps, columns, low, high, acc);
  };
  auto addWhole = [&](Value low, Value high) {
    Value end = e->divi(e->addi(high, perBlock - 1), perBlock);
    acc = e->loop(
        e->divi(low, perBlock), end, 1, acc, [&](Value block, ValueRange sums) {
          acc.assign(sums.begin(), sums.end());
          Value begin = e->muli(block, perBlock);
          add(block, e->maxi(e->subi(low, begin), e->idx(0)),
              e->mini(e->subi(high, begin), e->idx(perBlock)), Value());
          return acc;
        });
  };
  // At most one line, with one of its slots.
  auto addHalf = [&](Value low, Value high, bool second) {
    Value block = e->divi(low, perBlock), begin = e->muli(block, perBlock);
    add(block, e->subi(low, begin), e->subi(high, begin),
        arith::ConstantOp::create(*e, keptSlot(second)));
  };
  if (unit == 1) {
    addWhole(first, last);
    return acc;
  }
  Value low = e->divi(e->addi(first, 1), 2), high = e->divi(last, 2);
  if (window)
    addHalf(e->divi(first, 2), low, /*second=*/true);
  addWhole(low, high);
  addHalf(high, e->divi(e->addi(last, 1), 2), /*second=*/false);
  return acc;
}

} // namespace mlir::llm
