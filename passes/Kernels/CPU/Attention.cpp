//===- Attention.cpp - Attention over a paged cache for a CPU -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One work item is a token and a kv head with the query heads that share it.
// Slots are taken in aligned chunks of 64. A chunk's result depends on the
// token's own slots alone: its maximum, its sum, its weighted values; the
// running result is rescaled and added to chunk by chunk in ascending order
// (Milakov and Gimelshein, 2018; Dao et al., 2022). So prefill, decode and any
// page size give the same bits.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Emitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

namespace mlir::llm {

static constexpr int64_t kChunk = 64;

namespace {
/// Emits the function of one attention kernel.
class AttentionEmitter {
public:
  explicit AttentionEmitter(KernelBuilder &kernel) : kernel(kernel) {}
  LogicalResult readParams();
  void emit();

private:
  void emitItem(Value t, Value head);
  void emitChunk(Value chunk, Value table, Value low, Value count, Value q);
  void emitScores(Value chunkStart, Value first, Value last, Value table,
                  Value q);
  void emitSoftmax(Value g);
  void emitValues(Value chunkStart, Value first, Value last);
  Value transposedSum(SmallVector<Value> rows);
  Value loadPadded(Value memref, Value at, int64_t d, int64_t dim);

  KernelBuilder &kernel;
  Emitter *e = nullptr;
  int64_t heads = 0, kvHeads = 0, size = 0, valueSize = 0, window = 0,
          pageSize = 0, group = 0, width = 0;
  float scale = 0, softcap = 0;
  Type cacheType;
  Value queries, keys, values, tables, out;
  Value head;    ///< kv head of the item
  Value slots;   ///< scratch: physical slot of each slot of the chunk
  Value scores;  ///< scratch [group][64]: scores, then their exponentials
  Value maxima;  ///< scratch [group]: running maximum
  Value sums;    ///< scratch [group]: running sum
  Value rescale; ///< scratch [group][2]: factors of the old and the new part
  Value outputs; ///< scratch [group][valueSize]: running output
};
} // namespace

LogicalResult AttentionEmitter::readParams() {
  FailureOr<int64_t> h = kernel.getInt("heads"), kv = kernel.getInt("kv_heads"),
                     sz = kernel.getInt("size", 1, 4096),
                     vs = kernel.getInt("value_size", 1, 4096),
                     win = kernel.getInt("window", 0),
                     page = kernel.getInt("page_size", 0);
  FailureOr<double> sc = kernel.getFloat("scale"),
                    cap = kernel.getFloat("softcap");
  FailureOr<Type> type = kernel.getFloatType("cache_type");
  if (failed(h) || failed(kv) || failed(sz) || failed(vs) || failed(win) ||
      failed(page) || failed(sc) || failed(cap) || failed(type))
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
  scale = static_cast<float>(*sc);
  softcap = static_cast<float>(*cap);
  cacheType = *type;
  group = heads / kvHeads;
  // The running output lives on the stack.
  if (group * valueSize > (1 << 16))
    return kernel.kernel().emitOpError()
           << group << " query heads of " << valueSize
           << " values per kv head are more than a work item can hold";
  return success();
}

void AttentionEmitter::emit() {
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context), i32 = IntegerType::get(context, 32);
  std::string name = kernel.functionName("");
  Emitter emitter(
      kernel, name,
      {{f32}, {cacheType}, {cacheType}, {i32}, {i32}, {i32}, {i32}, {f32}}, 2);
  e = &emitter;
  width = e->width();
  queries = e->buffer(0);
  keys = e->buffer(1);
  values = e->buffer(2);
  tables = e->buffer(6);
  out = e->buffer(7);
  slots = e->scratch(e->getIndexType(), kChunk);
  scores = e->scratch(f32, group * kChunk);
  maxima = e->scratch(f32, group);
  sums = e->scratch(f32, group);
  rescale = e->scratch(f32, group * 2);
  outputs = e->scratch(f32, group * valueSize);
  e->loop(e->begin(), e->end(), 1, [&](Value item) {
    head = e->remi(item, kvHeads);
    emitItem(e->divi(item, kvHeads), head);
  });
  e->finish();
  kernel.addVariant(name);
}

void AttentionEmitter::emitItem(Value t, Value) {
  Value seq = e->load(e->buffer(3), t);
  Value to = e->muli(e->addi(e->muli(t, kvHeads), head), group * valueSize);
  Value padding =
      arith::CmpIOp::create(*e, arith::CmpIPredicate::slt, seq, e->i32(0));
  e->ifElse(
      padding,
      [&] {
        e->forRow(group * valueSize, [&](Value d, int64_t lanes) {
          e->storeVec(e->splat(0, lanes), out, e->addi(to, d));
        });
      },
      [&] {
        Value s = e->toIndex(seq);
        Value end = e->toIndex(e->load(e->buffer(4), e->addi(s, 1)));
        Value length = e->toIndex(e->load(e->buffer(5), s));
        // Slots that the token sees: those of the tokens behind it are not.
        Value behind = e->subi(e->subi(end, e->idx(1)), t);
        Value count = e->subi(length, behind);
        Value low = window ? e->maxi(e->idx(0), e->subi(count, e->idx(window)))
                           : e->idx(0);
        Value table = e->muli(s, e->size(1));
        Value q = e->muli(e->addi(e->muli(t, kvHeads), head), group * size);
        e->loop(e->idx(0), e->idx(group), 1, [&](Value g) {
          e->store(e->f32(-INFINITY), maxima, g);
          e->store(e->f32(0), sums, g);
        });
        e->forRow(group * valueSize, [&](Value d, int64_t lanes) {
          e->storeVec(e->splat(0, lanes), outputs, d);
        });
        Value firstChunk = e->divi(low, kChunk);
        Value lastChunk = e->divi(e->addi(count, kChunk - 1), kChunk);
        e->loop(firstChunk, lastChunk, 1,
                [&](Value chunk) { emitChunk(chunk, table, low, count, q); });
        e->loop(e->idx(0), e->idx(group), 1, [&](Value g) {
          Value inverse = e->div(e->f32(1), e->load(sums, g));
          Value row = e->muli(g, valueSize);
          e->forRow(valueSize, [&](Value d, int64_t lanes) {
            Value at = e->addi(row, d);
            e->storeVec(e->mul(e->loadVec(outputs, at, lanes),
                               e->broadcast(inverse, lanes)),
                        out, e->addi(to, at));
          });
        });
      });
}

void AttentionEmitter::emitChunk(Value chunk, Value table, Value low,
                                 Value count, Value q) {
  Value start = e->muli(chunk, kChunk);
  Value first = e->maxi(start, low);
  Value last = e->mini(e->addi(start, kChunk), count);
  e->loop(e->idx(0), e->idx(group * kChunk), width,
          [&](Value i) { e->storeVec(e->splat(-INFINITY, width), scores, i); });
  emitScores(start, first, last, table, q);
  e->loop(e->idx(0), e->idx(group), 1, [&](Value g) { emitSoftmax(g); });
  emitValues(start, first, last);
}

/// `width` elements of a row of `dim` from `d` on, zeros beyond its end.
Value AttentionEmitter::loadPadded(Value memref, Value at, int64_t d,
                                   int64_t dim) {
  int64_t lanes = std::min(width, dim - d);
  Value part = e->loadVec(memref, e->addi(at, d), lanes);
  if (lanes == width)
    return part;
  SmallVector<int64_t> mask;
  for (int64_t i = 0; i < width; ++i)
    mask.push_back(i < lanes ? i : lanes);
  return vector::ShuffleOp::create(*e, part, e->splat(0, lanes), mask);
}

/// Lane i of the result is the sum of the lanes of rows[i]: halves are folded
/// onto each other while rows are merged, so that `width` sums cost about
/// 3 * width operations.
Value AttentionEmitter::transposedSum(SmallVector<Value> rows) {
  // Which row each lane of a vector belongs to.
  SmallVector<SmallVector<int64_t>> owner;
  for (int64_t i = 0; i < width; ++i)
    owner.push_back(SmallVector<int64_t>(width, i));
  // A merged vector has runs of `run` lanes per row. Folding the halves of the
  // runs of two vectors gives one vector with runs half as long.
  for (int64_t run = width; run > 1; run /= 2) {
    SmallVector<Value> next;
    SmallVector<SmallVector<int64_t>> nextOwner;
    for (size_t i = 0; i < rows.size(); i += 2) {
      SmallVector<int64_t> low, high, from;
      // Per block of 2 halves: first those of rows[i], then of rows[i + 1],
      // kept within 128-bit lanes where runs are that short.
      int64_t unit = std::max<int64_t>(run, 4);
      auto take = [&](int64_t source, int64_t begin, int64_t end) {
        for (int64_t lane = begin; lane < end; lane += run)
          for (int64_t j = 0; j < run / 2; ++j) {
            low.push_back(source * width + lane + j);
            high.push_back(source * width + lane + run / 2 + j);
            from.push_back(owner[i + source][lane]);
          }
      };
      if (run > 4) {
        take(0, 0, width);
        take(1, 0, width);
      } else {
        for (int64_t lane = 0; lane < width; lane += unit) {
          take(0, lane, lane + unit);
          take(1, lane, lane + unit);
        }
      }
      next.push_back(
          e->add(vector::ShuffleOp::create(*e, rows[i], rows[i + 1], low),
                 vector::ShuffleOp::create(*e, rows[i], rows[i + 1], high)));
      nextOwner.push_back(from);
    }
    rows = next;
    owner = nextOwner;
  }
  SmallVector<int64_t> order(width);
  for (int64_t lane = 0; lane < width; ++lane)
    order[owner[0][lane]] = lane;
  return vector::ShuffleOp::create(*e, rows[0], rows[0], order);
}

/// Fills `scores` and `slots` for the slots [first, last) of the chunk.
void AttentionEmitter::emitScores(Value chunkStart, Value first, Value last,
                                  Value table, Value q) {
  Value firstBlock = e->divi(e->subi(first, chunkStart), width);
  Value lastBlock =
      e->divi(e->addi(e->subi(last, chunkStart), width - 1), width);
  Value lastSlot = e->subi(last, e->idx(1));
  // Whether a block of `width` slots lies in one page.
  bool onePage = pageSize == 0 || pageSize % width == 0;
  e->loop(firstBlock, lastBlock, 1, [&](Value block) {
    Value inChunk = e->muli(block, width);
    Value start = e->addi(chunkStart, inChunk);
    auto pageBase = [&](Value slot) -> Value {
      Value page = pageSize ? e->divi(slot, pageSize) : e->idx(0);
      Value number = e->toIndex(e->load(tables, e->addi(table, page)));
      return pageSize ? e->muli(number, pageSize) : number;
    };
    auto inPage = [&](Value slot) {
      return pageSize ? e->remi(slot, pageSize) : slot;
    };
    Value base = onePage ? pageBase(start) : Value();
    for (int64_t i = 0; i < width; ++i) {
      // Slots that the token does not see may not exist: take a neighbour,
      // whose score is dropped below.
      Value slot = e->mini(e->maxi(e->addi(start, i), first), lastSlot);
      Value physical = e->addi(onePage ? base : pageBase(slot), inPage(slot));
      e->store(physical, slots, e->addi(inChunk, i));
    }
    SmallVector<int32_t> lane(width);
    for (int64_t i = 0; i < width; ++i)
      lane[i] = static_cast<int32_t>(i);
    Value lanes = arith::ConstantOp::create(
        *e, cast<TypedAttr>(e->getI32VectorAttr(lane)));
    auto compare = [&](arith::CmpIPredicate predicate, Value bound) -> Value {
      Value relative = arith::IndexCastOp::create(*e, e->getI32Type(),
                                                  e->subi(bound, start));
      return arith::CmpIOp::create(*e, predicate, lanes,
                                   e->broadcast(relative, width));
    };
    Value seen =
        arith::AndIOp::create(*e, compare(arith::CmpIPredicate::sge, first),
                              compare(arith::CmpIPredicate::slt, last));
    e->loop(e->idx(0), e->idx(group), 1, [&](Value g) {
      Value query = e->addi(q, e->muli(g, size));
      SmallVector<Value> sums;
      for (int64_t i = 0; i < width; ++i) {
        Value slot = e->load(slots, e->addi(inChunk, i));
        Value key = e->muli(e->addi(e->muli(slot, kvHeads), head), size);
        Value sum;
        for (int64_t d = 0; d < size; d += width) {
          Value a = loadPadded(queries, query, d, size);
          Value b = loadPadded(keys, key, d, size);
          sum = sum ? e->fma(a, b, sum) : e->mul(a, b);
        }
        sums.push_back(sum);
      }
      Value score = e->mul(transposedSum(sums), e->splat(scale, width));
      if (softcap > 0) {
        Value cap = e->splat(softcap, width);
        score = e->mul(cap, math::TanhOp::create(*e, e->div(score, cap)));
      }
      score = e->select(seen, score, e->splat(-INFINITY, width));
      e->storeVec(score, scores, e->addi(e->muli(g, kChunk), inChunk));
    });
  });
}

/// Turns the chunk's scores of query head `g` into exponentials, and moves the
/// running maximum and sum.
void AttentionEmitter::emitSoftmax(Value g) {
  Value row = e->muli(g, kChunk);
  SmallVector<Value> parts;
  for (int64_t i = 0; i < kChunk; i += width)
    parts.push_back(e->loadVec(scores, e->addi(row, i), width));
  Value top = parts[0];
  for (Value part : ArrayRef(parts).drop_front())
    top = e->larger(top, part);
  Value chunkMax = e->reduceMax(top);
  Value wide = e->broadcast(chunkMax, width), total;
  for (auto [i, part] : llvm::enumerate(parts)) {
    Value power = e->exp(e->sub(part, wide));
    e->storeVec(power, scores, e->addi(row, i * width));
    total = total ? e->add(total, power) : power;
  }
  Value chunkSum = e->reduceAdd(total);
  Value oldMax = e->load(maxima, g);
  Value newMax = e->larger(oldMax, chunkMax);
  Value oldFactor = e->exp(e->sub(oldMax, newMax));
  Value newFactor = e->exp(e->sub(chunkMax, newMax));
  e->store(newMax, maxima, g);
  e->store(
      e->add(e->mul(e->load(sums, g), oldFactor), e->mul(chunkSum, newFactor)),
      sums, g);
  Value at = e->muli(g, 2);
  e->store(oldFactor, rescale, at);
  e->store(newFactor, rescale, e->addi(at, 1));
}

/// Adds the chunk's weighted values to the running outputs.
void AttentionEmitter::emitValues(Value chunkStart, Value first, Value last) {
  // Accumulators in registers: some query heads times some of their values.
  int64_t vectors = (valueSize + width - 1) / width;
  int64_t budget = width >= 16 ? 24 : 12;
  int64_t columns = std::min(vectors, budget);
  int64_t rows = std::min(group, std::max<int64_t>(1, budget / columns));
  while (group % rows)
    --rows;
  Value low = e->subi(first, chunkStart), high = e->subi(last, chunkStart);
  for (int64_t column = 0; column < vectors; column += columns) {
    int64_t d0 = column * width;
    int64_t d1 = std::min(valueSize, (column + columns) * width);
    e->loop(e->idx(0), e->idx(group), rows, [&](Value g) {
      SmallVector<Value> zero;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t d = d0; d < d1; d += width)
          zero.push_back(e->splat(0, std::min(width, d1 - d)));
      SmallVector<Value> acc =
          e->loop(low, high, 1, zero, [&](Value j, ValueRange sum) {
            Value slot = e->load(slots, j);
            Value at =
                e->muli(e->addi(e->muli(slot, kvHeads), head), valueSize);
            SmallVector<Value> row, next;
            for (int64_t d = d0; d < d1; d += width)
              row.push_back(
                  e->loadVec(values, e->addi(at, d), std::min(width, d1 - d)));
            for (int64_t r = 0; r < rows; ++r) {
              Value power =
                  e->load(scores, e->addi(e->muli(e->addi(g, r), kChunk), j));
              for (Value value : row) {
                int64_t lanes = cast<VectorType>(value.getType()).getDimSize(0);
                next.push_back(e->fma(e->broadcast(power, lanes), value,
                                      sum[next.size()]));
              }
            }
            return next;
          });
      size_t i = 0;
      for (int64_t r = 0; r < rows; ++r) {
        Value query = e->addi(g, r);
        Value factors = e->muli(query, 2);
        Value oldFactor = e->load(rescale, factors);
        Value newFactor = e->load(rescale, e->addi(factors, 1));
        for (int64_t d = d0; d < d1; d += width) {
          int64_t lanes = std::min(width, d1 - d);
          Value at = e->addi(e->muli(query, valueSize), d);
          Value kept = e->mul(e->loadVec(outputs, at, lanes),
                              e->broadcast(oldFactor, lanes));
          e->storeVec(e->fma(acc[i++], e->broadcast(newFactor, lanes), kept),
                      outputs, at);
        }
      }
    });
  }
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
