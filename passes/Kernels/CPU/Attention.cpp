//===- Attention.cpp - Items, runs and spans of attention -----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Attention.h"

#include <cmath>
#include <limits>

namespace mlir::llm {

LogicalResult AttentionEmitter::readParams() {
  FailureOr<int64_t> h = kernel.getInt("heads"), kv = kernel.getInt("kv_heads"),
                     sz = kernel.getInt("size", 1, 4096),
                     vs = kernel.getInt("value_size", 1, 4096),
                     win = kernel.getInt("window", 0),
                     page = kernel.getInt("page_size", 0),
                     tokens = kernel.getInt("tile", 1, 4096),
                     least = kernel.getInt("min_tiles", 1, 4096);
  FailureOr<double> sc = kernel.getFloat("scale"),
                    cap = kernel.getFloat("softcap");
  FailureOr<Type> type = kernel.getFloatType("cache_type");
  if (failed(h) || failed(kv) || failed(sz) || failed(vs) || failed(win) ||
      failed(page) || failed(tokens) || failed(least) || failed(sc) ||
      failed(cap) || failed(type))
    return failure();
  if (*h % *kv)
    return kernel.kernel().emitOpError()
           << *h << " heads do not share " << *kv << " kv heads evenly";
  heads = *h;
  kvHeads = *kv;
  size = *sz;
  valueSize = *vs;
  window = *win;
  pageSize = *page;
  tile = *tokens;
  minTiles = *least;
  scale = static_cast<float>(*sc);
  softcap = static_cast<float>(*cap);
  cacheType = *type;
  group = heads / kvHeads;
  // A tile's queries and outputs live on the stack.
  if (group > kMaxTile || tile * group > kMaxTile / (size + 2 * valueSize))
    return kernel.kernel().emitOpError()
           << tile << " tokens of " << group << " query heads of " << size
           << " elements and " << valueSize
           << " values per kv head are more than a work item can hold";
  return success();
}

void AttentionEmitter::declare() {
  Type f32 = e->getF32Type();
  width = e->width();
  pairs = cacheType.isBF16() && kernel.target().has("avx512bf16");
  keySteps = pairs ? (size + 1) / 2 : size;
  valueWidth = (valueSize + width - 1) / width * width;
  columns = width >= 16 ? 4 : 2;
  queries = e->buffer(0);
  keys = e->buffer(1);
  values = e->buffer(2);
  tables = e->buffer(6);
  out = e->buffer(7);
  Type packed = pairs ? Type(e->getI32Type()) : f32;
  int64_t valueSteps = pairs ? kChunk / 2 : kChunk, rows = tile * group;
  tileQueries = e->scratch(packed, rows * keySteps);
  slots = e->scratch(e->getIndexType(), 2 * kChunk);
  tileKeys = e->scratch(packed, keySteps * kChunk);
  tileValues = e->scratch(packed, valueSteps * valueWidth);
  scores = e->scratch(f32, kRows * kChunk);
  weights = e->scratch(packed, kRows * valueSteps);
  factors = e->scratch(f32, kRows);
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
  Type stored = cacheType.isF32() ? f32 : IntegerType::get(context, 16);
  Emitter emitter(
      kernel, name,
      {{f32}, {stored}, {stored}, {i32}, {i32}, {i32}, {i32}, {f32}}, 2);
  e = &emitter;
  declare();
  Value tokens = e->size(0);
  Value tiles = e->maxi(e->divi(e->addi(tokens, tile - 1), tile),
                        e->mini(tokens, e->idx(minTiles)));
  // A head's items follow each other, so that its part of the cache stays
  // near. Tiles late in a long prompt cost most: they take turns with early
  // ones, so that any part of the items costs about the same.
  e->loop(e->begin(), e->end(), 1, [&](Value item) {
    head = arith::DivUIOp::create(*e, item, tiles);
    Value turn = arith::RemUIOp::create(*e, item, tiles);
    Value half = e->divi(turn, 2);
    Value odd = arith::CmpIOp::create(*e, arith::CmpIPredicate::eq,
                                      e->remi(turn, 2), e->idx(1));
    Value last = e->subi(tiles, e->addi(half, 1));
    emitTile(e->select(odd, half, last), tiles);
  });
  e->finish();
  kernel.addVariant(name);
}

Value AttentionEmitter::queryRow(Value token) {
  return e->muli(e->addi(e->muli(token, kvHeads), head), group);
}

void AttentionEmitter::emitTile(Value index, Value tiles) {
  Value tokens = e->size(0);
  auto bound = [&](Value i) -> Value {
    return arith::DivUIOp::create(*e, e->muli(i, tokens), tiles);
  };
  Value end = bound(e->addi(index, 1));
  Value start = bound(index);
  // `next` is the token that the runs so far have come to.
  e->loop(start, end, 1, {start},
          [&](Value t, ValueRange next) -> SmallVector<Value> {
            Value isNew =
                arith::CmpIOp::create(*e, arith::CmpIPredicate::eq, t, next[0]);
            Value seq = e->load(e->buffer(3), t);
            Value real = arith::CmpIOp::create(*e, arith::CmpIPredicate::sge,
                                               seq, e->i32(0));
            Value s = e->maxi(e->toIndex(seq), e->idx(0));
            Value runEnd =
                e->mini(end, e->toIndex(e->load(e->buffer(4), e->addi(s, 1))));
            Value to = e->select(real, runEnd, e->addi(t, 1));
            e->ifThen(isNew, [&] {
              e->ifElse(
                  real, [&] { emitRun(s, t, runEnd); },
                  [&] { emitPadding(t); });
            });
            return {e->select(isNew, to, next[0])};
          });
}

void AttentionEmitter::emitPadding(Value token) {
  Value to = e->muli(queryRow(token), valueSize);
  e->forRow(group * valueSize, [&](Value d, int64_t lanes) {
    e->storeVec(e->splat(0, lanes), out, e->addi(to, d));
  });
}

void AttentionEmitter::emitRun(Value seq, Value first, Value end) {
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
  run.table = e->muli(seq, e->size(1));
  run.firstCount = countOf(first);
  run.count = countOf(e->subi(end, e->idx(1)));
  run.low = lowOf(run.firstCount);
  run.lastLow = lowOf(run.count);
  emitQueries(run);
  e->loop(e->idx(0), run.rows, 1, [&](Value row) {
    e->store(e->f32(-INFINITY), maxima, row);
    e->store(e->f32(0), sums, row);
    e->loop(e->idx(0), e->idx(valueWidth), width, [&](Value d) {
      e->storeVec(e->splat(0, width), outputs,
                  e->addi(e->muli(row, valueWidth), d));
    });
  });
  emitSlots(run, chunkAt(run, e->divi(run.low, kChunk)));
  int64_t slotsOfSpan = kSpan * kChunk;
  e->loop(e->divi(run.low, slotsOfSpan),
          e->divi(e->addi(run.count, slotsOfSpan - 1), slotsOfSpan), 1,
          [&](Value span) {
            emitSpan(run, span);
            e->loop(e->idx(0), run.rows, 1, [&](Value row) { emitMerge(row); });
          });
  e->loop(e->idx(0), run.rows, 1, [&](Value row) { emitResult(run, row); });
}

/// Scales the run's queries, for the exponential is taken to base 2.
void AttentionEmitter::emitQueries(const Run &run) {
  double factor = softcap > 0 ? double(scale) / softcap
                              : double(scale) * 1.4426950408889634;
  Value from = e->muli(queryRow(run.first), size);
  e->loop(e->idx(0), run.rows, 1, [&](Value row) {
    // Row r of the run is query head r % group of token r / group.
    Value token = e->divi(row, group);
    Value at = e->addi(
        from,
        e->muli(e->addi(e->muli(token, heads), e->remi(row, group)), size));
    Value to = e->muli(row, keySteps);
    auto part = [&](Value d, int64_t lanes) {
      return e->mul(e->loadVec(queries, e->addi(at, d), lanes),
                    e->splat(static_cast<float>(factor), lanes));
    };
    if (!pairs) {
      e->forRow(size, [&](Value d, int64_t lanes) {
        e->storeVec(part(d, lanes), tileQueries, e->addi(to, d));
      });
      return;
    }
    auto store = [&](Value d, int64_t lanes) {
      Value x = part(d, lanes);
      if (lanes % 2) {
        SmallVector<int64_t> mask;
        for (int64_t i = 0; i <= lanes; ++i)
          mask.push_back(i);
        x = vector::ShuffleOp::create(*e, x, e->splat(0, lanes), mask);
      }
      Value packed = vector::BitCastOp::create(
          *e, VectorType::get({(lanes + 1) / 2}, e->getI32Type()),
          e->narrow(x, e->getBF16Type()));
      vector::StoreOp::create(*e, packed, tileQueries,
                              ValueRange{e->addi(to, e->divi(d, 2))});
    };
    e->forRow(size, store);
  });
}

void AttentionEmitter::emitSpan(const Run &run, Value span) {
  e->loop(e->idx(0), run.rows, 1, [&](Value row) {
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

/// Merges the span's part of a row into what there is.
void AttentionEmitter::emitMerge(Value row) {
  Value oldMax = e->load(maxima, row), spanMax = e->load(spanMaxima, row);
  // A row that sees nothing yet has no maximum.
  Value newMax = e->larger(e->larger(oldMax, spanMax),
                           e->f32(std::numeric_limits<float>::lowest()));
  Value oldFactor = e->exp2(e->sub(oldMax, newMax), 5);
  Value spanFactor = e->exp2(e->sub(spanMax, newMax), 5);
  Value spanSum =
      e->reduceAdd(e->loadVec(spanSums, e->muli(row, width), width));
  e->store(newMax, maxima, row);
  e->store(e->fma(spanSum, spanFactor, e->mul(e->load(sums, row), oldFactor)),
           sums, row);
  e->loop(e->idx(0), e->idx(valueWidth), width, [&](Value d) {
    Value at = e->addi(e->muli(row, valueWidth), d);
    Value kept =
        e->mul(e->loadVec(outputs, at, width), e->broadcast(oldFactor, width));
    e->storeVec(e->fma(e->loadVec(spanOutputs, at, width),
                       e->broadcast(spanFactor, width), kept),
                outputs, at);
  });
}

void AttentionEmitter::emitResult(const Run &run, Value row) {
  Value inverse = e->div(e->f32(1), e->load(sums, row));
  Value to =
      e->addi(queryRow(run.first), e->addi(e->muli(e->divi(row, group), heads),
                                           e->remi(row, group)));
  e->forRow(valueSize, [&](Value d, int64_t lanes) {
    Value x = e->loadVec(outputs, e->addi(e->muli(row, valueWidth), d), lanes);
    // Slots of weight zero can turn -0 into 0, nothing else: there is one zero.
    e->storeVec(
        e->add(e->mul(x, e->broadcast(inverse, lanes)), e->splat(0, lanes)),
        out, e->addi(e->muli(to, valueSize), d));
  });
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
}

} // namespace mlir::llm
