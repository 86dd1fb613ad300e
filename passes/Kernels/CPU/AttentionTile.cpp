//===- AttentionTile.cpp - Rows of attention times a chunk ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Attention.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

namespace mlir::llm {

/// acc [row * columns + column] plus the products of rows of `a` (elements or
/// pairs, aBase + row * aStride + k * steps + step) and `lines` for k in [low,
/// high), in ascending order. In the order of tiles every step has its own
/// chains, one behind the other in `acc`.
SmallVector<Value> AttentionEmitter::product(int64_t rows, Value a, Value aBase,
                                             int64_t aStride, Lines lines,
                                             int64_t steps, int64_t columns,
                                             Value low, Value high,
                                             SmallVector<Value> acc) {
  auto f32s = e->f32Vec(width);
  auto halves = VectorType::get({2 * width}, e->getBF16Type());
  return e->loop(low, high, 1, acc, [&](Value k, ValueRange sums) {
    SmallVector<SmallVector<Value>> right;
    for (int64_t j = 0; j < columns; ++j)
      right.push_back(lines(k, j));
    SmallVector<Value> next(sums);
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t r = 0; r < rows; ++r) {
        Value at =
            e->addi(e->addi(aBase, r * aStride + step), e->muli(k, steps));
        Value x = e->broadcast(e->load(a, at), width);
        if (operands.pairs)
          x = e->bitcast(x, halves);
        for (int64_t j = 0; j < columns; ++j) {
          int64_t chain = operands.tileOrder ? step : 0;
          Value &sum = next[(chain * rows + r) * columns + j];
          Value line = right[j][step];
          sum = operands.pairs
                    ? e->intrinsic("llvm.x86.avx512bf16.dpbf16ps.512", f32s,
                                   {sum, x, e->bitcast(line, halves)})
                    : e->fma(x, line, sum);
        }
      }
    return next;
  });
}

/// Sums of which a tile's products, two chains from zero, become a part.
SmallVector<Value> AttentionEmitter::addChains(ValueRange sums,
                                               ArrayRef<Value> chains) {
  SmallVector<Value> next;
  for (auto [i, sum] : llvm::enumerate(sums))
    next.push_back(e->add(sum, e->add(chains[i], chains[sums.size() + i])));
  return next;
}

/// Registers of a row at a time. Two chains of each must fit into registers.
int64_t AttentionEmitter::columnsFor(int64_t rows) const {
  return operands.tileOrder && 2 * rows > kRows ? columns / 2 : columns;
}

/// `product` with lines of scratch: bBase + k * bStride.
SmallVector<Value>
AttentionEmitter::scratchProduct(int64_t rows, Value a, Value aBase,
                                 int64_t aStride, Value b, Value bBase,
                                 int64_t bStride, int64_t columns, Value low,
                                 Value high, SmallVector<Value> acc) {
  auto lines = [&](Value k, int64_t j) -> SmallVector<Value> {
    Value line = e->addi(bBase, e->muli(k, bStride));
    return {e->loadRaw(b, e->addi(line, j * width), width)};
  };
  return product(rows, a, aBase, aStride, lines, 1, columns, low, high,
                 std::move(acc));
}

/// [low, count) of the slots that a row sees.
std::pair<Value, Value> AttentionEmitter::rowRange(const Run &run, Value row) {
  Value count = e->addi(run.firstCount, e->divi(row, group));
  Value low =
      window ? e->maxi(e->idx(0), e->subi(count, e->idx(window))) : e->idx(0);
  return {low, count};
}

void AttentionEmitter::emitChunk(const Run &run, Value index) {
  Chunk chunk = chunkAt(run, index);
  // Behind the last one of the sequence is the next unit's, or itself again.
  Value last = e->divi(e->subi(run.count, e->idx(1)), kChunk);
  Value leaves = arith::AndIOp::create(
      *e, nextUnit.exists,
      arith::CmpIOp::create(*e, arith::CmpIPredicate::eq, index, last));
  Run other = run;
  other.table = e->select(leaves, nextUnit.table, run.table);
  other.low = e->select(leaves, nextUnit.low, run.low);
  other.count = e->select(leaves, nextUnit.count, run.count);
  Chunk next = chunkAt(other, e->select(leaves, e->divi(nextUnit.low, kChunk),
                                        e->mini(e->addi(index, 1), last)));
  next.slots = chunk.ahead;
  chunk.shift = e->select(leaves, nextUnit.shift, e->idx(0));
  emitSlots(other, next);
  forHeads(run.rows, [&] { emitHead(run, chunk); });
}

void AttentionEmitter::emitHead(const Run &run, const Chunk &chunk) {
  if (codes)
    loadScales(chunk);
  if (!tokensFromPlanes)
    return emitTile(run, chunk);
  e->ifElse(
      run.isToken, [&] { emitToken(run, chunk); },
      [&] { emitTile(run, chunk); });
}

/// The rows of one token, from planes in blocks.
void AttentionEmitter::emitToken(const Run &run, const Chunk &chunk) {
  fromPlanes = true;
  if (tokenOperands)
    std::swap(operands, *tokenOperands);
  int64_t blocks = (group + kRows - 1) / kRows,
          rows = (group + blocks - 1) / blocks;
  for (int64_t row = 0; row < group; row += rows) {
    fetching = row == 0;
    emitRows(run, chunk, std::min(rows, group - row), e->idx(row));
  }
  fromPlanes = fetching = false;
  if (tokenOperands)
    std::swap(operands, *tokenOperands);
}

void AttentionEmitter::emitTile(const Run &run, const Chunk &chunk) {
  fromPlanes = blocked && native && !tiles;
  auto packChunkValues = [&](const Chunk &part) {
    if (!blocked)
      packValues(part);
    else if (!fromPlanes)
      widenValues(part);
    if (tiles)
      clearValues(part);
  };
  if (keysInPlace)
    fetchHead(chunk, /*withValues=*/fromPlanes);
  else if (blocked)
    widenKeys(chunk);
  else
    packKeys(chunk);
  packChunkValues(chunk);
  // The weight zero of a slot that a row does not see hides everything but an
  // infinity or a NaN: then rows are taken one by one.
  auto isBad = scf::IfOp::create(*e, TypeRange{e->getI1Type()}, chunk.hides,
                                 /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(*e);
    e->setInsertionPointToEnd(isBad.thenBlock());
    scf::YieldOp::create(*e, fromPlanes ? emitNonFiniteLine(chunk)
                                        : emitNonFinite(chunk));
    e->setInsertionPointToEnd(isBad.elseBlock());
    Value no = arith::ConstantOp::create(*e, e->getBoolAttr(false));
    scf::YieldOp::create(*e, no);
  }
  e->ifElse(
      isBad.getResult(0),
      [&] {
        e->loop(e->idx(0), run.rows, 1, [&](Value row) {
          auto [low, count] = rowRange(run, row);
          Chunk own = chunk;
          own.first = e->maxi(chunk.first, low);
          own.last = e->mini(chunk.last, count);
          e->ifThen(e->less(own.first, own.last), [&] {
            packChunkValues(own);
            if (tiles)
              emitTileRows(run, own, row, e->idx(1));
            else
              emitRows(run, own, 1, row);
          });
        });
      },
      [&] {
        if (tiles)
          return e->loop(e->idx(0), run.rows, blockRows, [&](Value row) {
            emitTileRows(run, chunk, row,
                         e->mini(e->idx(blockRows), e->subi(run.rows, row)));
          });
        // Whole register tiles; then what a group leaves over; then one by one.
        SmallVector<int64_t> blocks{kRows};
        if (group % kRows > 1)
          blocks.push_back(group % kRows);
        blocks.push_back(1);
        Value done = e->idx(0);
        for (int64_t block : blocks) {
          Value left = e->subi(run.rows, done);
          Value end = e->addi(done, e->muli(e->divi(left, block), block));
          e->loop(done, end, block,
                  [&](Value row) { emitRows(run, chunk, block, row); });
          done = end;
        }
      });
  fromPlanes = false;
}

void AttentionEmitter::emitRows(const Run &run, const Chunk &chunk,
                                int64_t rows, Value row) {
  Value at = e->addi(rowBase, row);
  emitScores(chunk, rows, at);
  e->ifThen(chunk.partial, [&] { emitMask(run, chunk, e->idx(rows), row); });
  emitSoftmax(rows, at, e->idx(0));
  emitValues(chunk, rows, at);
}

void AttentionEmitter::emitScores(const Chunk &chunk, int64_t rows, Value at) {
  int64_t stride = operands.queryStride, columns = columnsFor(rows);
  Value q = e->muli(at, stride), units = e->idx(size / unit);
  e->loop(e->idx(0), e->idx(kChunk), columns * width, [&](Value column) {
    SmallVector<Value> acc(rows * columns, e->splat(0, width));
    auto fromBlocks = [&](Value low, Value high, SmallVector<Value> sums) {
      return product(
          rows, operands.queries, q, stride,
          [&](Value k, int64_t j) {
            return keyLine(chunk, e->addi(column, j * width), k);
          },
          operands.steps, columns, low, high, std::move(sums));
    };
    if (operands.tileOrder)
      acc = e->loop(e->idx(0), units, AMXTiles::kPairs, acc,
                    [&](Value k, ValueRange sums) {
                      SmallVector<Value> chains(2 * rows * columns,
                                                e->splat(0, width));
                      Value end = e->addi(k, AMXTiles::kPairs);
                      if (size / unit % AMXTiles::kPairs)
                        end = e->mini(end, units);
                      return addChains(sums, fromBlocks(k, end, chains));
                    });
    else if (fromPlanes)
      acc = fromBlocks(e->idx(0), units, acc);
    else
      acc = scratchProduct(rows, operands.queries, q, stride, tileKeys, column,
                           kChunk, columns, e->idx(0), e->idx(keySteps), acc);
    for (auto [i, score] : llvm::enumerate(acc)) {
      auto r = static_cast<int64_t>(i) / columns,
           j = static_cast<int64_t>(i) % columns;
      e->storeVec(finishScore(score, e->addi(column, j * width)), scores,
                  e->addi(column, r * kChunk + j * width));
    }
  });
}

Value AttentionEmitter::finishScore(Value score, Value column) {
  if (codes)
    score = e->mul(score, e->loadVec(keyScales, column, width));
  if (softcap > 0)
    score = e->mul(
        math::TanhOp::create(*e, score),
        e->splat(static_cast<float>(softcap * 1.4426950408889634), width));
  return score;
}

/// Scores of slots that a row does not see become -infinity.
void AttentionEmitter::emitMask(const Run &run, const Chunk &chunk, Value rows,
                                Value row) {
  SmallVector<int32_t> lane(width);
  for (int64_t i = 0; i < width; ++i)
    lane[i] = static_cast<int32_t>(i);
  Value lanes =
      arith::ConstantOp::create(*e, cast<TypedAttr>(e->getI32VectorAttr(lane)));
  e->loop(e->idx(0), rows, 1, [&](Value r) {
    auto [low, count] = rowRange(run, e->addi(row, r));
    e->loop(e->idx(0), e->idx(kChunk), width, [&](Value i) {
      Value start = e->addi(chunk.start, i);
      auto compare = [&](arith::CmpIPredicate predicate, Value bound) -> Value {
        Value relative = arith::IndexCastOp::create(*e, e->getI32Type(),
                                                    e->subi(bound, start));
        return arith::CmpIOp::create(*e, predicate, lanes,
                                     e->broadcast(relative, width));
      };
      // Within what was packed, too: the rest holds anything.
      Value seen = arith::AndIOp::create(
          *e, compare(arith::CmpIPredicate::sge, e->maxi(low, chunk.first)),
          compare(arith::CmpIPredicate::slt, e->mini(count, chunk.last)));
      Value at = e->addi(e->muli(r, kChunk), i);
      e->storeVec(e->select(seen, e->loadVec(scores, at, width),
                            e->splat(-INFINITY, width)),
                  scores, at);
    });
  });
}

/// Turns the scores of a block of rows into weights, and moves the rows'
/// maxima and sums.
void AttentionEmitter::emitSoftmax(int64_t rows, Value at, Value block) {
  Value scoresAt = e->muli(block, kChunk);
  SmallVector<Value> tops;
  for (int64_t r = 0; r < rows; ++r) {
    Value top;
    for (int64_t i = 0; i < kChunk; i += width) {
      Value part = e->loadVec(scores, e->addi(scoresAt, r * kChunk + i), width);
      top = top ? e->larger(top, part) : part;
    }
    tops.push_back(top);
  }
  if (rows == width)
    e->storeVec(reduceMaxEach(*e, tops), factors, block);
  else
    for (auto [r, top] : llvm::enumerate(tops))
      e->store(e->reduceMax(top), factors,
               e->addi(block, static_cast<int64_t>(r)));
  Value oldMax = e->loadVec(spanMaxima, at, rows);
  Value newMax =
      e->larger(e->larger(oldMax, e->loadVec(factors, block, rows)),
                e->splat(std::numeric_limits<float>::lowest(), rows));
  e->storeVec(newMax, spanMaxima, at);
  e->storeVec(e->exp2(e->sub(oldMax, newMax), 5), factors, block);
  // A weight of bf16 needs fewer terms.
  bool narrow = operands.pairs || operands.tileOrder;
  int64_t degree = narrow ? 3 : 5;
  int64_t stride = operands.weightStride;
  e->loop(e->idx(0), e->idx(rows), 1, [&](Value r) {
    Value blockRow = e->addi(block, r);
    Value from = e->muli(blockRow, kChunk), to = e->muli(blockRow, stride);
    Value rowAt = e->addi(at, r);
    Value top = e->broadcast(e->load(spanMaxima, rowAt), width);
    SmallVector<Value> powers;
    Value total;
    for (int64_t i = 0; i < kChunk; i += width) {
      Value score = e->loadVec(scores, e->addi(from, i), width);
      Value power = e->exp2(e->sub(score, top), degree);
      total = total ? e->add(total, power) : power;
      if (codes) {
        // Zero whatever the scale: the slot may be one that is not seen.
        Value isZero = arith::CmpFOp::create(*e, arith::CmpFPredicate::OEQ,
                                             power, e->splat(0, width));
        Value scaled = e->mul(power, e->loadVec(valueScales, e->idx(i), width));
        power = e->select(isZero, power, scaled);
      }
      powers.push_back(power);
    }
    if (narrow) {
      auto halves = VectorType::get({2 * width}, e->getBF16Type());
      auto words = VectorType::get({width}, e->getI32Type());
      for (int64_t i = 0; i < kChunk / width; i += 2) {
        Value packed = e->intrinsic("llvm.x86.avx512bf16.cvtne2ps2bf16.512",
                                    halves, {powers[i + 1], powers[i]});
        if (operands.pairs)
          vector::StoreOp::create(
              *e, vector::BitCastOp::create(*e, words, packed),
              operands.weights, ValueRange{e->addi(to, i / 2 * width)});
        else
          for (int64_t half : {0, 1})
            e->storeVec(e->widen(e->lanesOf(packed, half * width, width)),
                        operands.weights, e->addi(to, (i + half) * width));
      }
    } else {
      for (auto [i, power] : llvm::enumerate(powers))
        e->storeVec(power, operands.weights,
                    e->addi(to, static_cast<int64_t>(i) * width));
    }
    Value sumAt = e->muli(rowAt, width);
    Value factor = e->broadcast(e->load(factors, blockRow), width);
    e->storeVec(e->fma(e->loadVec(spanSums, sumAt, width), factor, total),
                spanSums, sumAt);
  });
}

/// Scales the outputs of a block of rows, and adds the chunk's values.
void AttentionEmitter::emitValues(const Chunk &chunk, int64_t rows, Value at) {
  auto [low, high] = valueRange(chunk);
  int64_t stride = operands.weightStride, columns = columnsFor(rows);
  Value base = e->muli(at, valueWidth);
  auto pass = [&](Value column, int64_t count, int64_t lastLanes) {
    SmallVector<Value> acc;
    auto place = [&](int64_t r, int64_t j) {
      return e->addi(e->addi(base, column), r * valueWidth + j * width);
    };
    auto factorOf = [&](int64_t r) {
      return e->broadcast(e->load(factors, e->idx(r)), width);
    };
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < count; ++j)
        acc.push_back(operands.tileOrder
                          ? e->splat(0, width)
                          : e->mul(e->loadVec(spanOutputs, place(r, j), width),
                                   factorOf(r)));
    acc = fromPlanes ? blockProduct(chunk, rows, column, count, lastLanes, acc)
                     : scratchProduct(rows, operands.weights, e->idx(0), stride,
                                      tileValues, column, valueWidth, count,
                                      low, high, acc);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < count; ++j) {
        Value sum = acc[r * count + j];
        if (operands.tileOrder)
          sum = e->fma(e->loadVec(spanOutputs, place(r, j), width), factorOf(r),
                       sum);
        e->storeVec(sum, spanOutputs, place(r, j));
      }
  };
  // Only the last register may be short.
  int64_t step = columns * width, full = valueSize / step * step;
  if (full)
    e->loop(e->idx(0), e->idx(full), step,
            [&](Value column) { pass(column, columns, width); });
  if (valueSize != full)
    pass(e->idx(full), (valueWidth - full) / width,
         width - (valueWidth - valueSize));
}

} // namespace mlir::llm
