//===- AttentionPack.cpp - A chunk's keys and values in scratch -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Attention.h"

#include <numeric>

namespace mlir::llm {

/// Codes, sign extended to 16 bits, as f32 without their scale.
Value AttentionEmitter::widenCodes(Value wide) {
  int64_t lanes = cast<VectorType>(wide.getType()).getDimSize(0);
  auto words = VectorType::get({lanes}, e->getI32Type());
  auto asHalf = [&](Value bits) {
    return e->widen(arith::BitcastOp::create(
        *e, VectorType::get({lanes}, e->getF16Type()), bits));
  };
  auto constant = [&](int64_t value) { return e->splatInt(value, lanes, 16); };
  if (cacheType.isInteger(8))
    return arith::SIToFPOp::create(*e, e->f32Vec(lanes),
                                   arith::ExtSIOp::create(*e, words, wide));
  if (isa<Float8E5M2Type>(cacheType))
    // The upper half of an f16.
    return asHalf(arith::ShLIOp::create(*e, wide, constant(8)));
  // An f16 with another bias: 2^-8 of the value, which the scale makes up
  // for. NaN is not one here; beside it is a scale that is not finite.
  Value sign = arith::AndIOp::create(*e, wide, constant(0x8000));
  Value rest = arith::ShLIOp::create(
      *e, arith::AndIOp::create(*e, wide, constant(0x7f)), constant(7));
  return asHalf(arith::OrIOp::create(*e, sign, rest));
}

/// Elements as they are stored, as f32; codes without their scale.
Value AttentionEmitter::widenRaw(Value raw) {
  int64_t lanes = cast<VectorType>(raw.getType()).getDimSize(0);
  if (cacheType.isF32())
    return raw;
  if (codes)
    return widenCodes(arith::ExtSIOp::create(
        *e, VectorType::get({lanes}, e->getIntegerType(16)), raw));
  return e->widen(
      arith::BitcastOp::create(*e, VectorType::get({lanes}, cacheType), raw));
}

/// 2 * width codes as bf16, which every one of them is.
Value AttentionEmitter::codesToPairs(Value raw) {
  Value low = widenRaw(e->lanesOf(raw, 0, width)),
        high = widenRaw(e->lanesOf(raw, width, width));
  return e->intrinsic("llvm.x86.avx512bf16.cvtne2ps2bf16.512",
                      VectorType::get({2 * width}, e->getBF16Type()),
                      {high, low});
}

/// `count` elements of a plane as `width` f32 lanes, zeros behind them.
Value AttentionEmitter::loadPlane(Value plane, Value at, int64_t count) {
  return widenRaw(padTo(*e, e->loadRaw(plane, at, count), width));
}

/// `count` elements of a plane as 2 * width bf16 (i16), zeros behind them.
Value AttentionEmitter::loadPairs(Value plane, Value at, int64_t count) {
  Value raw = padTo(*e, e->loadRaw(plane, at, count), 2 * width);
  if (!codes)
    return raw;
  return e->bitcast(codesToPairs(raw),
                    VectorType::get({2 * width}, e->getIntegerType(16)));
}

/// Copies the scales of the chunk's slots for the kv head at hand.
void AttentionEmitter::loadScales(const Chunk &chunk) {
  if (blocked)
    return loadBlockScales(chunk);
  float factor = isa<Float8E4M3FNType>(cacheType) ? 256 : 1;
  e->loop(e->idx(0), e->idx(kChunk), 1, [&](Value j) {
    Value slot = e->load(slots, e->addi(chunk.slots, j));
    Value at = e->addi(e->muli(slot, kvHeads), head);
    e->store(e->mul(e->load(keyPlaneScales, at), e->f32(factor)), keyScales, j);
    e->store(e->mul(e->load(valuePlaneScales, at), e->f32(factor)), valueScales,
             j);
  });
}

AttentionEmitter::Chunk AttentionEmitter::chunkAt(const Run &run, Value index) {
  Chunk chunk;
  chunk.start = e->muli(index, kChunk);
  Value end = e->addi(chunk.start, kChunk);
  chunk.first = e->maxi(chunk.start, run.low);
  chunk.last = e->mini(end, run.count);
  chunk.partial = arith::OrIOp::create(*e, e->less(run.firstCount, end),
                                       e->less(chunk.start, run.lastLow));
  chunk.hides = arith::OrIOp::create(*e, e->less(run.firstCount, chunk.last),
                                     e->less(chunk.first, run.lastLow));
  int64_t entries = blocked ? kChunk / kSlotBlock : kChunk;
  chunk.slots = e->muli(e->remi(index, 2), entries);
  chunk.ahead = e->subi(e->idx(entries), chunk.slots);
  return chunk;
}

/// Fetches part `step` of `steps` of what a head fetches of the next chunk:
/// some slots with all heads of the unit, for memory likes long runs best. In
/// strides as it is read, the hardware does not guess what comes.
void AttentionEmitter::fetchAhead(const Chunk &chunk, Value plane, int64_t size,
                                  Value step, int64_t steps) {
  Value all = e->muli(numHeads, steps);
  auto bound = [&](Value i) -> Value {
    return arith::DivUIOp::create(*e, e->muli(i, kChunk), all);
  };
  Value index = e->addi(e->muli(headIndex, steps), step);
  int64_t line = 64 * 8 / cacheType.getIntOrFloatBitWidth();
  e->loop(bound(index), bound(e->addi(index, 1)), 1, [&](Value j) {
    Value slot = e->load(slots, e->addi(chunk.ahead, j));
    Value heads = e->addi(firstHead, chunk.shift);
    Value from = e->muli(e->addi(e->muli(slot, kvHeads), heads), size);
    e->loop(e->idx(0), e->muli(numHeads, size), line, [&](Value d) {
      memref::PrefetchOp::create(*e, plane, ValueRange{e->addi(from, d)},
                                 /*isWrite=*/false, /*localityHint=*/2,
                                 /*isDataCache=*/true);
    });
  });
}

/// Fills the chunk's part of `slots`. A slot that no row sees may not exist: it
/// becomes the nearest one that is seen.
void AttentionEmitter::emitSlots(const Run &run, const Chunk &chunk) {
  if (blocked)
    return emitBlocks(run, chunk);
  // Units of slots that lie in one page.
  int64_t unit = pageSize ? std::gcd(pageSize, kChunk) : kChunk;
  Value lastSlot = e->subi(chunk.last, e->idx(1));
  auto unitOf = [&](Value slot) { return e->muli(e->divi(slot, unit), unit); };
  Value lowest = unitOf(chunk.first), highest = unitOf(lastSlot);
  e->loop(e->idx(0), e->idx(kChunk), unit, [&](Value j) {
    Value anchor = e->mini(e->maxi(e->addi(chunk.start, j), lowest), highest);
    Value page = pageSize ? e->divi(anchor, pageSize) : e->idx(0);
    Value base = e->toIndex(e->load(tables, e->addi(run.table, page)));
    if (pageSize)
      base = e->addi(e->muli(base, pageSize), e->remi(anchor, pageSize));
    else
      base = e->addi(base, anchor);
    e->loop(e->idx(0), e->idx(unit), 1, [&](Value i) {
      Value seen = e->mini(e->maxi(e->addi(anchor, i), chunk.first), lastSlot);
      e->store(e->addi(base, e->subi(seen, anchor)), slots,
               e->addi(chunk.slots, e->addi(j, i)));
    });
  });
}

/// Transposes the keys of the blocks of `width` slots that hold a seen one. The
/// others become zero: what scratch held before could be denormal, and slow.
void AttentionEmitter::packKeys(const Chunk &chunk) {
  Value firstBlock = e->divi(e->subi(chunk.first, chunk.start), width);
  Value lastBlock =
      e->divi(e->addi(e->subi(chunk.last, chunk.start), width - 1), width);
  Value zero = arith::ConstantOp::create(
      *e, e->getZeroAttr(VectorType::get(
              {width}, cast<MemRefType>(tileKeys.getType()).getElementType())));
  auto clear = [&](Value low, Value high) {
    e->loop(low, high, 1, [&](Value block) {
      e->loop(e->idx(0), e->idx(keySteps), 1, [&](Value k) {
        Value to = e->addi(e->muli(k, kChunk), e->muli(block, width));
        vector::StoreOp::create(*e, zero, tileKeys, ValueRange{to});
      });
    });
  };
  clear(e->idx(0), firstBlock);
  clear(lastBlock, e->idx(kChunk / width));
  // Elements of a step of the inner loop over `keySteps`.
  int64_t unit = operands.pairs ? 2 : 1;
  int64_t parts = (size + width * unit - 1) / (width * unit);
  e->loop(firstBlock, lastBlock, 1, [&](Value block) {
    Value firstSlot = e->muli(block, width);
    SmallVector<Value> bases;
    for (int64_t i = 0; i < width; ++i) {
      Value slot = e->load(slots, e->addi(chunk.slots, e->addi(firstSlot, i)));
      bases.push_back(e->muli(e->addi(e->muli(slot, kvHeads), head), size));
    }
    forParts(*e, size, width * unit, [&](Value d, int64_t count) {
      Value step = e->addi(e->muli(block, parts), e->divi(d, width * unit));
      fetchAhead(chunk, keys, size, step, kChunk / width * parts);
      SmallVector<Value> rows;
      for (Value base : bases) {
        Value at = e->addi(base, d);
        if (!operands.pairs) {
          rows.push_back(loadPlane(keys, at, count));
          continue;
        }
        rows.push_back(vector::BitCastOp::create(
            *e, VectorType::get({width}, e->getI32Type()),
            loadPairs(keys, at, count)));
      }
      SmallVector<Value> columns = transpose(*e, rows);
      Value line = e->divi(d, unit);
      for (int64_t i = 0; i < (count + unit - 1) / unit; ++i)
        vector::StoreOp::create(
            *e, columns[i], tileKeys,
            ValueRange{e->addi(e->muli(e->addi(line, i), kChunk), firstSlot)});
    });
  });
}

std::pair<Value, Value> AttentionEmitter::valueRange(const Chunk &chunk) {
  Value low = e->subi(chunk.first, chunk.start),
        high = e->subi(chunk.last, chunk.start);
  if (operands.pairs)
    return {e->divi(low, 2), e->divi(e->addi(high, 1), 2)};
  return {low, high};
}

/// Copies the values of the slots that are seen; the other one of a pair counts
/// as zero.
void AttentionEmitter::packValues(const Chunk &chunk) {
  auto [low, high] = valueRange(chunk);
  auto rowOf = [&](Value j) {
    Value slot = e->load(slots, e->addi(chunk.slots, j));
    return e->muli(e->addi(e->muli(slot, kvHeads), head), valueSize);
  };
  if (!operands.pairs) {
    e->loop(low, high, 1, [&](Value j) {
      fetchAhead(chunk, values, valueSize, j, kChunk);
      Value from = rowOf(j);
      Value to = e->muli(j, valueWidth);
      e->forRow(valueSize, [&](Value d, int64_t lanes) {
        e->storeVec(loadPlane(values, e->addi(from, d), lanes), tileValues,
                    e->addi(to, d));
      });
    });
    return;
  }
  SmallVector<int64_t> lower, upper;
  for (int64_t i = 0; i < width; ++i) {
    lower.append({i, 2 * width + i});
    upper.append({width + i, 3 * width + i});
  }
  auto words = VectorType::get({width}, e->getI32Type());
  e->loop(low, high, 1, [&](Value pair) {
    Value j = e->muli(pair, 2), to = e->muli(pair, valueWidth);
    fetchAhead(chunk, values, valueSize, pair, kChunk / 2);
    Value slot = e->addi(chunk.start, j);
    Value seen[] = {
        arith::CmpIOp::create(*e, arith::CmpIPredicate::sge, slot, chunk.first),
        e->less(e->addi(slot, 1), chunk.last)};
    Value after = e->addi(j, 1);
    Value from[] = {rowOf(j), rowOf(after)};
    forParts(*e, valueSize, 2 * width, [&](Value d, int64_t count) {
      Value rows[2];
      for (int i = 0; i < 2; ++i) {
        Value raw = loadPairs(values, e->addi(from[i], d), count);
        rows[i] = e->select(seen[i], raw, e->splatInt(0, 2 * width, 16));
      }
      auto store = [&](ArrayRef<int64_t> mask, int64_t offset) {
        Value mixed = vector::ShuffleOp::create(*e, rows[0], rows[1], mask);
        vector::StoreOp::create(*e, vector::BitCastOp::create(*e, words, mixed),
                                tileValues,
                                ValueRange{e->addi(e->addi(to, d), offset)});
      };
      store(lower, 0);
      if (count > width)
        store(upper, width);
    });
  });
}

Value AttentionEmitter::emitNonFinite(const Chunk &chunk) {
  auto [low, high] = valueRange(chunk);
  // The largest exponent, of bf16 or f32.
  unsigned bits = operands.pairs ? 16 : 32;
  int64_t lanes = operands.pairs ? 2 * width : width;
  int64_t exponent = operands.pairs ? 0x7f80 : 0x7f800000;
  auto type = VectorType::get({lanes}, e->getIntegerType(bits));
  SmallVector<Value> top = e->loop(
      e->muli(low, valueWidth), e->muli(high, valueWidth), width,
      {e->splatInt(0, lanes, bits)},
      [&](Value at, ValueRange sofar) -> SmallVector<Value> {
        Value x = vector::BitCastOp::create(*e, type,
                                            e->loadRaw(tileValues, at, width));
        Value masked =
            arith::AndIOp::create(*e, x, e->splatInt(exponent, lanes, bits));
        return {arith::MaxSIOp::create(*e, sofar[0], masked)};
      });
  Value largest =
      vector::ReductionOp::create(*e, vector::CombiningKind::MAXSI, top[0]);
  Value bound = arith::ConstantOp::create(
      *e, e->getIntegerAttr(e->getIntegerType(bits), exponent));
  return arith::CmpIOp::create(*e, arith::CmpIPredicate::eq, largest, bound);
}

} // namespace mlir::llm
