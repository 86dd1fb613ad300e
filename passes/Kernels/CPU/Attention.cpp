//===- Attention.cpp - Items, runs and spans of attention -----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Attention.h"

#include <cmath>

namespace mlir::llm {

LogicalResult AttentionEmitter::readParams() {
  FailureOr<int64_t> h = kernel.getInt("heads"), kv = kernel.getInt("kv_heads"),
                     sz = kernel.getInt("size", 1, 4096),
                     vs = kernel.getInt("value_size", 1, 4096),
                     win = kernel.getInt("window", 0),
                     page = kernel.getInt("page_size", 0),
                     tokens = kernel.getInt("tile", 1, 4096),
                     groups = kernel.getInt("head_groups"),
                     few = kernel.getInt("split", 0, 4096);
  FailureOr<double> sc = kernel.getFloat("scale"),
                    cap = kernel.getFloat("softcap");
  FailureOr<Type> type = kernel.getCacheType("cache_type");
  if (failed(h) || failed(kv) || failed(sz) || failed(vs) || failed(win) ||
      failed(page) || failed(tokens) || failed(groups) || failed(few) ||
      failed(sc) || failed(cap) || failed(type))
    return failure();
  if (*h % *kv)
    return kernel.kernel().emitOpError()
           << *h << " heads do not share " << *kv << " kv heads evenly";
  if (*kv % *groups)
    return kernel.kernel().emitOpError()
           << *kv << " kv heads do not make " << *groups << " equal groups";
  heads = *h;
  kvHeads = *kv;
  size = *sz;
  valueSize = *vs;
  window = *win;
  pageSize = *page;
  tile = *tokens;
  headGroups = *groups;
  split = *few;
  scale = static_cast<float>(*sc);
  softcap = static_cast<float>(*cap);
  cacheType = *type;
  group = heads / kvHeads;
  if (auto planes = kernel.kernel().getParams().getAs<StringAttr>("planes")) {
    blocked = planes == "blocks";
    if (!blocked && planes != "rows")
      return kernel.kernel().emitOpError("planes are 'rows' or 'blocks', not ")
             << planes;
  }
  unit = BlockPlane::unitOf(cacheType);
  if (blocked && (pageSize == 0 || pageSize % kSlotBlock))
    return kernel.kernel().emitOpError("pages of ")
           << pageSize << " slots are not whole blocks of " << kSlotBlock;
  if (blocked && size % unit)
    return kernel.kernel().emitOpError()
           << "keys of " << size << " elements do not make pairs in blocks";
  // A unit's queries and outputs live on the stack.
  int64_t most = kMaxTile / (size + 2 * valueSize),
          groupHeads = heads / headGroups;
  if (group > most || tile > most / group)
    return kernel.kernel().emitOpError()
           << tile << " tokens of " << group << " query heads of " << size
           << " elements and " << valueSize
           << " values per kv head are more than a work item can hold";
  if (groupHeads > most || split > most / groupHeads)
    return kernel.kernel().emitOpError()
           << std::max<int64_t>(split, 1) << " tokens of " << groupHeads
           << " query heads of " << size << " elements and " << valueSize
           << " values are more than a work item can hold";
  return success();
}

bool takesTiles(const KernelTarget &target, Type cacheType) {
  return target.has("amx-bf16") && target.has("avx512bf16") &&
         (cacheType.isBF16() || cacheType.getIntOrFloatBitWidth() == 8);
}

void AttentionEmitter::declare() {
  Type f32 = e->getF32Type();
  width = e->width();
  codes = cacheType.getIntOrFloatBitWidth() == 8;
  if (takesTiles(kernel.target(), cacheType))
    declareTiles();
  operands.pairs = tiles || ((cacheType.isBF16() || codes) &&
                             kernel.target().multipliesPairs());
  native = operands.pairs ? cacheType.isBF16() : cacheType.isF32();
  keyBlocks = {kvHeads, size, unit};
  valueBlocks = {kvHeads, valueSize, unit};
  keySteps = operands.pairs ? (size + 1) / 2 : size;
  if (tiles)
    keySteps =
        (keySteps + AMXTiles::kPairs - 1) / AMXTiles::kPairs * AMXTiles::kPairs;
  keysInPlace =
      blocked && native && (!tiles || size % (2 * AMXTiles::kPairs) == 0);
  valueWidth = (valueSize + width - 1) / width * width;
  columns = width >= 16 ? 4 : 2;
  queries = e->buffer(0);
  keys = e->buffer(1);
  values = e->buffer(2);
  tables = e->buffer(6);
  if (codes) {
    keyPlaneScales = e->buffer(7);
    valuePlaneScales = e->buffer(8);
    keyScales = e->scratch(f32, kChunk);
    valueScales = e->scratch(f32, kChunk);
  }
  out = e->buffer(codes ? 9 : 7);
  partials = e->buffer(codes ? 10 : 8);
  Type packed = operands.pairs ? Type(e->getI32Type()) : f32;
  int64_t valueSteps = operands.pairs ? kChunk / 2 : kChunk;
  int64_t rows =
      std::max(tile * group, std::max<int64_t>(split, 1) * heads / headGroups);
  operands.steps = operands.pairs ? 1 : unit;
  // The last tile is read as a whole.
  operands.queries =
      e->scratch(packed, (rows + (tiles ? blockRows - 1 : 0)) * keySteps);
  operands.queryStride = keySteps;
  operands.weights = e->scratch(packed, blockRows * valueSteps);
  operands.weightStride = valueSteps;
  tokensFromPlanes = blocked && group <= 2 * kRows;
  if (tiles && tokensFromPlanes)
    tokenOperands = {.tileOrder = true,
                     .steps = unit,
                     .queries = e->scratch(f32, heads / headGroups * size),
                     .queryStride = size,
                     .weights = e->scratch(f32, kRows * kChunk),
                     .weightStride = kChunk};
  slots = e->scratch(e->getIndexType(), 2 * kChunk);
  tileKeys = e->scratch(packed, keySteps * kChunk);
  tileValues = e->scratch(packed, valueSteps * valueWidth);
  scores = e->scratch(f32, blockRows * kChunk);
  factors = e->scratch(f32, blockRows);
  maxima = e->scratch(f32, rows);
  spanMaxima = e->scratch(f32, rows);
  sums = e->scratch(f32, rows);
  spanSums = e->scratch(f32, rows * width);
  outputs = e->scratch(f32, rows * valueWidth);
  spanOutputs = e->scratch(f32, rows * valueWidth);
}

void AttentionEmitter::emit() {
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context), i32 = IntegerType::get(context, 32);
  std::string name = kernel.functionName("");
  // The backend handles a lone f16 or bf16 badly: planes of them hold bits.
  unsigned bits = cacheType.getIntOrFloatBitWidth();
  Type stored = bits == 32 ? f32 : IntegerType::get(context, bits);
  SmallVector<Emitter::Buffer> buffers{{f32}, {stored}, {stored}, {i32},
                                       {i32}, {i32},    {i32}};
  if (bits == 8)
    buffers.append(2, {f32});
  buffers.append(2, {f32});
  Emitter emitter(kernel, name, buffers, 5);
  e = &emitter;
  declare();
  Value control;
  if (tiles) {
    control = e->flushDenormals();
    // Beyond the keys' elements.
    clearScratch(tileKeys, e->idx((size + 1) / 2 * kChunk),
                 e->idx(keySteps * kChunk));
  }
  e->loop(e->begin(), e->end(), 1, [&](Value item) { emitItem(item); });
  if (tiles) {
    tiles->release();
    e->restoreDenormals(control);
  }
  e->finish();
  kernel.addVariant(name);
}

static Value quotient(Emitter &e, Value a, Value b) {
  return arith::DivUIOp::create(e, a, b);
}

static Value equal(Emitter &e, Value a, Value b) {
  return arith::CmpIOp::create(e, arith::CmpIPredicate::eq, a, b);
}

/// What the unit behind `whole` of `units` reads first, where a unit is all of
/// a sequence, which may be one chunk: all the same it is fetched ahead.
void AttentionEmitter::findNextUnit(Value whole, Value units) {
  Value next = e->addi(whole, 1);
  int64_t headsOfUnit = kvHeads / headGroups;
  Value sequence =
      e->mini(e->divi(next, headGroups), e->subi(e->size(2), e->idx(1)));
  nextUnit.count = e->toIndex(e->load(e->buffer(5), sequence));
  nextUnit.exists = arith::AndIOp::create(*e, e->less(next, units),
                                          e->less(e->idx(0), nextUnit.count));
  nextUnit.low =
      window ? e->maxi(e->idx(0), e->subi(nextUnit.count, e->idx(window)))
             : e->idx(0);
  nextUnit.table = e->muli(sequence, e->size(1));
  auto firstHeadOf = [&](Value unit) {
    return e->muli(e->remi(unit, headGroups), headsOfUnit);
  };
  nextUnit.shift = e->subi(firstHeadOf(next), firstHeadOf(whole));
}

/// An item takes its share of the units.
void AttentionEmitter::emitItem(Value item) {
  Value tokens = e->size(0), sequences = e->size(2), items = e->size(3);
  isSplit = e->less(tokens, e->idx(split + 1));
  Value bySequence =
      arith::OrIOp::create(*e, isSplit, equal(*e, tokens, sequences));
  Value pairsOfHeads = e->maxi(e->muli(sequences, headGroups), e->idx(1));
  Value parts =
      e->select(isSplit, e->maxi(quotient(*e, items, pairsOfHeads), e->idx(1)),
                e->idx(1));
  Value units = e->select(bySequence, e->muli(pairsOfHeads, parts), items);
  Value firstUnit = quotient(*e, e->muli(item, units), items);
  Value endUnit = quotient(*e, e->muli(e->addi(item, 1), units), items);
  e->loop(firstUnit, endUnit, 1, [&](Value unit) {
    // A tile and a kv head. A head's tiles follow each other, so that its part
    // of the cache stays near. Tiles late in a long prompt cost most: they take
    // turns with early ones, so that any part of the items costs about the
    // same.
    Value tiles = e->maxi(e->divi(items, kvHeads), e->idx(1));
    Value turn = arith::RemUIOp::create(*e, unit, tiles);
    Value half = e->divi(turn, 2);
    Value index = e->select(equal(*e, e->remi(turn, 2), e->idx(1)), half,
                            e->subi(tiles, e->addi(half, 1)));
    auto tileBound = [&](Value i) {
      return quotient(*e, e->muli(i, tokens), tiles);
    };
    // Or a sequence, some kv heads and a part.
    Value whole = quotient(*e, unit, parts);
    Value part = arith::RemUIOp::create(*e, unit, parts);
    Value sequence = e->divi(whole, headGroups);
    auto sequenceBegin = [&](Value s) {
      return e->toIndex(e->load(e->buffer(4), e->mini(s, sequences)));
    };
    // Padding behind the last sequence is its unit's too; where a sequence is
    // split, attention_merge writes it.
    Value next = e->addi(sequence, 1);
    Value isLast = arith::AndIOp::create(
        *e,
        arith::CmpIOp::create(*e, arith::CmpIPredicate::sge, next, sequences),
        arith::CmpIOp::create(*e, arith::CmpIPredicate::sgt, tokens,
                              e->idx(split)));
    firstHead = e->select(
        bySequence, e->muli(e->remi(whole, headGroups), kvHeads / headGroups),
        quotient(*e, unit, tiles));
    numHeads = e->select(bySequence, e->idx(kvHeads / headGroups), e->idx(1));
    Value start =
        e->select(bySequence, sequenceBegin(sequence), tileBound(index));
    Value end =
        e->select(bySequence, e->select(isLast, tokens, sequenceBegin(next)),
                  tileBound(e->addi(index, 1)));
    Value wholeSequences = arith::AndIOp::create(
        *e, bySequence,
        arith::CmpIOp::create(*e, arith::CmpIPredicate::eq, parts, e->idx(1)));
    findNextUnit(whole, e->select(wholeSequences, units, e->idx(0)));
    // What scratch has room for.
    maxTokens = e->select(bySequence, e->idx(std::max<int64_t>(split, 1)),
                          e->idx(tile));
    emitTokens(start, end, part, parts);
  });
}

void AttentionEmitter::forHeads(Value rowsOfHead, function_ref<void()> body) {
  e->loop(e->idx(0), numHeads, 1, [&](Value i) {
    headIndex = i;
    head = e->addi(firstHead, i);
    rowBase = e->muli(i, rowsOfHead);
    body();
  });
}

Value AttentionEmitter::globalRow(const Run &run, Value row) {
  // Row r of the run is query head r % group of token r / group.
  Value token = e->addi(run.first, e->divi(row, group));
  return e->addi(e->muli(e->addi(e->muli(token, kvHeads), head), group),
                 e->remi(row, group));
}

void AttentionEmitter::emitTokens(Value start, Value end, Value part,
                                  Value parts) {
  // `next` is the token that the runs so far have come to.
  e->loop(start, end, 1, {start},
          [&](Value t, ValueRange next) -> SmallVector<Value> {
            Value isNew = equal(*e, t, next[0]);
            Value seq = e->load(e->buffer(3), t);
            Value real = arith::CmpIOp::create(*e, arith::CmpIPredicate::sge,
                                               seq, e->i32(0));
            Value s = e->maxi(e->toIndex(seq), e->idx(0));
            Value runEnd =
                e->mini(end, e->toIndex(e->load(e->buffer(4), e->addi(s, 1))));
            runEnd = e->mini(runEnd, e->addi(t, maxTokens));
            Value to = e->select(real, runEnd, e->addi(t, 1));
            e->ifThen(isNew, [&] {
              e->ifElse(
                  real, [&] { emitRun(s, t, runEnd, part, parts); },
                  [&] { emitPadding(t); });
            });
            return {e->select(isNew, to, next[0])};
          });
}

void AttentionEmitter::emitPadding(Value token) {
  forHeads(e->idx(0), [&] {
    Value row = e->muli(e->addi(e->muli(token, kvHeads), head), group);
    e->forRow(group * valueSize, [&](Value d, int64_t lanes) {
      e->storeVec(e->splat(0, lanes), out, e->addi(e->muli(row, valueSize), d));
    });
  });
}

void AttentionEmitter::emitRun(Value seq, Value first, Value end, Value part,
                               Value parts) {
  Value behind =
      e->subi(e->toIndex(e->load(e->buffer(4), e->addi(seq, 1))), e->idx(1));
  Value length = e->toIndex(e->load(e->buffer(5), seq));
  // Slots that a token sees: those of the tokens behind it are not.
  auto countOf = [&](Value t) { return e->subi(length, e->subi(behind, t)); };
  auto lowOf = [&](Value count) {
    return window ? e->maxi(e->idx(0), e->subi(count, e->idx(window)))
                  : e->idx(0);
  };
  Run run;
  run.first = first;
  run.end = end;
  run.rows = e->muli(e->subi(end, first), group);
  run.isToken = equal(*e, e->subi(end, first), e->idx(1));
  run.table = e->muli(seq, e->size(1));
  run.firstCount = countOf(first);
  run.count = countOf(e->subi(end, e->idx(1)));
  run.low = lowOf(run.firstCount);
  run.lastLow = lowOf(run.count);
  // Spread over the parts, wherever there are fewer spans than parts.
  constexpr int64_t kSlots = kSpan * kChunk;
  Value firstSpan = e->divi(run.low, kSlots);
  Value spans =
      e->subi(e->divi(e->addi(run.count, kSlots - 1), kSlots), firstSpan);
  auto bound = [&](Value i) {
    Value twice = e->addi(e->muli(e->muli(i, spans), 2), parts);
    return e->addi(firstSpan, quotient(*e, twice, e->muli(parts, 2)));
  };
  Value low = bound(part), high = bound(e->addi(part, 1));
  Value firstChunk = e->maxi(e->muli(low, kSpan), e->divi(run.low, kChunk));
  Value rows = e->muli(run.rows, numHeads);
  e->ifThen(e->less(low, high), [&] {
    if (tiles)
      configureTiles(run);
    forHeads(run.rows, [&] { emitQueries(run); });
    e->loop(e->idx(0), rows, 1, [&](Value row) {
      e->store(e->f32(-INFINITY), maxima, row);
      e->store(e->f32(0), sums, row);
      e->loop(e->idx(0), e->idx(valueWidth), width, [&](Value d) {
        e->storeVec(e->splat(0, width), outputs,
                    e->addi(e->muli(row, valueWidth), d));
      });
    });
    emitSlots(run, chunkAt(run, firstChunk));
    e->loop(low, high, 1, [&](Value span) {
      emitSpan(run, span);
      forHeads(run.rows, [&] {
        e->loop(e->idx(0), run.rows, 1, [&](Value row) {
          Value at = e->addi(rowBase, row);
          Value outputAt = e->muli(at, valueWidth);
          Value sum =
              e->reduceAdd(e->loadVec(spanSums, e->muli(at, width), width));
          e->ifElse(
              isSplit, [&] { emitRecord(run, span, row, sum); },
              [&] {
                emitAttentionMerge(*e, maxima, sums, outputs, at, outputAt,
                                   valueSize, e->load(spanMaxima, at), sum,
                                   spanOutputs, outputAt);
              });
        });
      });
    });
    Value whole = arith::XOrIOp::create(
        *e, isSplit, arith::ConstantOp::create(*e, e->getBoolAttr(true)));
    e->ifThen(whole, [&] {
      forHeads(run.rows, [&] {
        e->loop(e->idx(0), run.rows, 1, [&](Value row) {
          Value at = e->addi(rowBase, row);
          emitAttentionResult(*e, sums, outputs, at, e->muli(at, valueWidth),
                              valueSize, out,
                              e->muli(globalRow(run, row), valueSize));
        });
      });
    });
  });
}

/// Keeps what a row has of a span: its output, maximum and sum.
void AttentionEmitter::emitRecord(const Run &run, Value span, Value row,
                                  Value sum) {
  Value at = e->addi(rowBase, row);
  Value record = e->addi(e->muli(globalRow(run, row), e->size(4)), span);
  Value to = e->muli(record, valueSize + 2);
  e->forRow(valueSize, [&](Value d, int64_t lanes) {
    e->storeVec(
        e->loadVec(spanOutputs, e->addi(e->muli(at, valueWidth), d), lanes),
        partials, e->addi(to, d));
  });
  e->store(e->load(spanMaxima, at), partials, e->addi(to, valueSize));
  e->store(sum, partials, e->addi(to, valueSize + 1));
}

/// Scales the run's queries, for the exponential is taken to base 2.
void AttentionEmitter::emitQueries(const Run &run) {
  double factor = softcap > 0 ? double(scale) / softcap
                              : double(scale) * 1.4426950408889634;
  auto part = [&](Value row, Value d, int64_t lanes) {
    Value at = e->muli(globalRow(run, row), size);
    return e->mul(e->loadVec(queries, e->addi(at, d), lanes),
                  e->splat(static_cast<float>(factor), lanes));
  };
  auto storeFloats = [&](const Operands &to, Value row) {
    Value begin = e->muli(e->addi(rowBase, row), to.queryStride);
    e->forRow(size, [&](Value d, int64_t lanes) {
      Value x = part(row, d, lanes);
      if (to.tileOrder)
        x = e->widen(e->narrow(x, e->getBF16Type()));
      e->storeVec(x, to.queries, e->addi(begin, d));
    });
  };
  auto storePairs = [&](Value row) {
    Value to = e->muli(e->addi(rowBase, row), operands.queryStride);
    int64_t filled = (size + 1) / 2;
    if (keySteps != filled) {
      auto rest = VectorType::get({keySteps - filled}, e->getI32Type());
      vector::StoreOp::create(
          *e, arith::ConstantOp::create(*e, e->getZeroAttr(rest)),
          operands.queries, ValueRange{e->addi(to, filled)});
    }
    auto store = [&](Value d, int64_t lanes) {
      Value x = part(row, d, lanes);
      if (lanes % 2) {
        SmallVector<int64_t> mask;
        for (int64_t i = 0; i <= lanes; ++i)
          mask.push_back(i);
        x = vector::ShuffleOp::create(*e, x, e->splat(0, lanes), mask);
      }
      Value packed = vector::BitCastOp::create(
          *e, VectorType::get({(lanes + 1) / 2}, e->getI32Type()),
          e->narrow(x, e->getBF16Type()));
      vector::StoreOp::create(*e, packed, operands.queries,
                              ValueRange{e->addi(to, e->divi(d, 2))});
    };
    e->forRow(size, store);
  };
  e->loop(e->idx(0), run.rows, 1, [&](Value row) {
    if (tokenOperands)
      e->ifElse(
          run.isToken, [&] { storeFloats(*tokenOperands, row); },
          [&] { storePairs(row); });
    else if (operands.pairs)
      storePairs(row);
    else
      storeFloats(operands, row);
  });
}

void AttentionEmitter::emitSpan(const Run &run, Value span) {
  e->loop(e->idx(0), e->muli(run.rows, numHeads), 1, [&](Value row) {
    e->store(e->f32(-INFINITY), spanMaxima, row);
    e->storeVec(e->splat(0, width), spanSums, e->muli(row, width));
    e->loop(e->idx(0), e->idx(valueWidth), width, [&](Value d) {
      e->storeVec(e->splat(0, width), spanOutputs,
                  e->addi(e->muli(row, valueWidth), d));
    });
  });
  Value first = e->maxi(e->muli(span, kSpan), e->divi(run.low, kChunk));
  Value last = e->mini(e->muli(e->addi(span, 1), kSpan),
                       e->divi(e->addi(run.count, kChunk - 1), kChunk));
  e->loop(first, last, 1, [&](Value chunk) { emitChunk(run, chunk); });
}

static LogicalResult generateAttention(KernelBuilder &kernel) {
  AttentionEmitter emitter(kernel);
  if (failed(emitter.readParams()))
    return failure();
  emitter.emit();
  return success();
}

void populateAttentionKernels(KernelRegistry &registry) {
  registry.add("cpu", "attention", generateAttention);
  registry.add("cpu", "attention_merge", generateAttentionMerge);
}

} // namespace mlir::llm
