//===- GroupQueryAttention.cpp - Lowering of attention with its cache -----===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Attend.h"
#include "passes/Conversion/LLMToLinalg/Lowerings.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::llm;

using Pred = TensorEmitter::Predicate;

/// The cache after the new keys (or values) were written behind what each
/// sequence had. `fresh` gives a stored element of them.
static Value
updateCache(TensorEmitter &e, RankedTensorType type, ValueRange sizes,
            Value past, Value seq, function_ref<Value(Value b)> before,
            function_ref<Value(Value b, Value h, Value i, Value d)> fresh) {
  Value zero = e.constant(type.getElementType(), 0);
  Value cache = e.generate(type, sizes, [&](ValueRange) { return zero; });
  if (past)
    cache = e.loops(e.dims(past), cache,
                    [&](ValueRange at, ValueRange state) -> SmallVector<Value> {
                      return {tensor::InsertOp::create(e, e.extract(past, at),
                                                       state[0], at)};
                    })[0];
  return e.loops({sizes[0], sizes[1], seq, sizes[3]}, cache,
                 [&](ValueRange at, ValueRange state) -> SmallVector<Value> {
                   SmallVector<Value> place(at);
                   place[2] = e.add(at[2], before(at[0]));
                   return {tensor::InsertOp::create(
                       e, fresh(at[0], at[1], at[2], at[3]), state[0], place)};
                 })[0];
}

static SmallVector<Value>
lowerGroupQueryAttention(TensorEmitter &e, GroupQueryAttentionOp op,
                         GroupQueryAttentionOp::Adaptor adaptor) {
  Value query = adaptor.getQuery(), key = adaptor.getKey();
  Value value = adaptor.getValue();
  Type logical = elementOf(op.getQuery()), compute = computeType(logical);
  int64_t heads = op.getNumHeads(), kvHeads = op.getKvHeads();
  auto [batch, seq, size] = headSizes(e, query, heads, "the query");
  std::array<Value, 3> k = headSizes(e, key, kvHeads, "the key");
  std::array<Value, 3> v = headSizes(e, value, kvHeads, "the value");
  Value fits = e.constantInt(e.getI1Type(), 1);
  for (const std::array<Value, 3> &other : {k, v}) {
    fits = e.land(fits, e.cmp(Pred::eq, other[0], batch));
    fits = e.land(fits, e.cmp(Pred::eq, other[1], seq));
    fits = e.land(fits, e.cmp(Pred::eq, other[2], size));
  }
  e.check(fits, "query, key and value do not fit each other");

  // A sequence has seqlens_k + 1 slots after this call. Where the query is all
  // there is (total_sequence_length = seq), the past counts for nothing.
  Value lengths = adaptor.getSeqlensK();
  Type lengthType = elementOf(op.getSeqlensK());
  auto lengthsType = cast<RankedTensorType>(lengths.getType());
  e.check(e.cmp(Pred::eq, e.product(e.dims(lengths)), batch),
          "seqlens_k has one number for each sequence");
  e.check(
      e.cmp(Pred::eq, e.product(e.dims(adaptor.getTotalSequenceLength())), 1),
      "total_sequence_length is one number");
  Value total = e.readIndex(adaptor.getTotalSequenceLength(),
                            elementOf(op.getTotalSequenceLength()));
  Value prompt = e.cmp(Pred::eq, total, seq);
  Value past = adaptor.getPastKey();
  Value capacity = total;
  e.check(e.cmp(Pred::sge, total, seq),
          "total_sequence_length is shorter than the query");
  if (past) {
    SmallVector<Value> own = e.dims(past);
    for (Value each : {adaptor.getPastKey(), adaptor.getPastValue()}) {
      SmallVector<Value> dims = e.dims(each);
      e.check(e.land(e.land(e.cmp(Pred::eq, dims[0], batch),
                            e.cmp(Pred::eq, dims[1], kvHeads)),
                     e.land(e.cmp(Pred::eq, dims[2], own[2]),
                            e.cmp(Pred::eq, dims[3], size))),
              "the past does not fit key and value");
    }
    capacity = e.max(total, own[2]);
  }
  auto totalOf = [&](Value b) {
    SmallVector<Value> at;
    if (lengthsType.getRank() > 0)
      at.assign(lengthsType.getRank(), e.idx(0));
    if (lengthsType.getRank() == 1)
      at[0] = b;
    else if (lengthsType.getRank() == 2)
      at = {e.select(e.cmp(Pred::sgt, e.dim(lengths, 0), 1), b, e.idx(0)),
            e.select(e.cmp(Pred::sgt, e.dim(lengths, 1), 1), b, e.idx(0))};
    return e.add(e.toIndex(e.extract(lengths, at), lengthType), e.idx(1));
  };
  auto beforeOf = [&](Value b) {
    return e.select(prompt, e.idx(0), e.sub(totalOf(b), seq));
  };
  e.check(e.all(batch,
                [&](ValueRange at) {
                  Value n = totalOf(at[0]);
                  Value enough = e.lor(prompt, e.cmp(Pred::sge, n, seq));
                  return e.land(enough, e.land(e.cmp(Pred::sgt, n, 0),
                                               e.cmp(Pred::sle, n, total)));
                }),
          "a length in seqlens_k does not fit the query and "
          "total_sequence_length");

  bool rotates = static_cast<bool>(adaptor.getCosTable());
  Value positions = adaptor.getPositionIds();
  Rotation rotation{e, adaptor.getCosTable(), adaptor.getSinTable(),
                    rotates ? elementOf(op.getCosTable()) : Type(),
                    op.getInterleaved()};
  auto positionOf = [&](Value b, Value i) -> Value {
    if (!positions)
      return e.add(beforeOf(b), i);
    return e.toIndex(e.extract(positions, {b, i}),
                     elementOf(op.getPositionIds()));
  };
  if (rotates) {
    Value half = rotation.half();
    Value rows = e.dim(rotation.cos, 0);
    e.check(e.land(e.cmp(Pred::sgt, half, 0),
                   e.cmp(Pred::sle, e.mul(half, e.idx(2)), size)),
            "the tables do not fit a head");
    for (int64_t axis : {0, 1})
      e.check(
          e.cmp(Pred::eq, e.dim(rotation.cos, axis), e.dim(rotation.sin, axis)),
          "cos and sin have different sizes");
    if (positions) {
      if (cast<RankedTensorType>(positions.getType()).getRank() != 2) {
        op.emitOpError("position_ids are [batch, seq], not ")
            << op.getPositionIds().getType();
        return {};
      }
      e.check(e.land(e.cmp(Pred::eq, e.dim(positions, 0), batch),
                     e.cmp(Pred::eq, e.dim(positions, 1), seq)),
              "position_ids do not fit the query");
    }
    e.check(e.all({batch, seq},
                  [&](ValueRange at) {
                    Value p = positionOf(at[0], at[1]);
                    return e.land(e.cmp(Pred::sge, p, 0),
                                  e.cmp(Pred::slt, p, rows));
                  }),
            "a position is outside the tables");
  }
  auto readHead = [&](Value tensor, Value b, Value h, Value i, Value d) {
    auto read = [&](Value at) {
      return e.widen(headElement(e, tensor, size, b, h, i, at), logical);
    };
    return rotates ? rotation.turn(positionOf(b, i), d, read, compute)
                   : read(d);
  };
  auto cacheType = [&](Value present) {
    return present ? storageTensor(present.getType())
                   : dynamicTensor(4, storageType(logical));
  };
  SmallVector<Value> cacheSizes{batch, e.idx(kvHeads), capacity, size};
  Value keys =
      updateCache(e, cacheType(op.getPresentKey()), cacheSizes, past, seq,
                  beforeOf, [&](Value b, Value h, Value i, Value d) {
                    return e.narrow(readHead(key, b, h, i, d), logical);
                  });
  Value values = updateCache(e, cacheType(op.getPresentValue()), cacheSizes,
                             adaptor.getPastValue(), seq, beforeOf,
                             [&](Value b, Value h, Value i, Value d) {
                               return headElement(e, value, size, b, h, i, d);
                             });
  // The query turned once, not per slot.
  Value turned =
      e.generate(dynamicTensor(4, compute), {batch, e.idx(heads), seq, size},
                 [&](ValueRange at) {
                   return readHead(query, at[0], at[1], at[2], at[3]);
                 });

  Value bias = adaptor.getAttentionBias();
  if (bias) {
    SmallVector<Value> own = e.dims(bias), full{batch, e.idx(heads), seq};
    if (own.size() != 4) {
      op.emitOpError("attention_bias has four axes, not the type ")
          << op.getAttentionBias().getType();
      return {};
    }
    for (auto [i, each] : llvm::enumerate(full))
      e.check(e.lor(e.cmp(Pred::eq, own[i], 1), e.cmp(Pred::eq, own[i], each)),
              "attention_bias does not fit along axis " + Twine(i));
    e.check(e.cmp(Pred::sge, own[3], total),
            "attention_bias is shorter than total_sequence_length");
  }
  auto biasAt = [&](Value b, Value h, Value i, Value j) {
    SmallVector<Value> at{b, h, i};
    for (auto [n, iv] : llvm::enumerate(at))
      iv = e.select(e.cmp(Pred::eq, e.dim(bias, n), 1), e.idx(0), iv);
    at.push_back(j);
    Type type = elementOf(op.getAttentionBias());
    return e.convert(e.read(bias, at, type), computeType(type), compute);
  };
  auto sees = [&](Value b, Value h, Value i, Value j) {
    Value position = e.add(i, beforeOf(b));
    Value seen =
        e.land(e.cmp(Pred::sle, j, position), e.cmp(Pred::slt, j, totalOf(b)));
    if (op.getWindow() > 0)
      seen = e.land(
          seen, e.cmp(Pred::sgt, e.add(j, e.idx(op.getWindow())), position));
    return seen;
  };
  Value sink = adaptor.getHeadSink();
  if (sink)
    e.check(e.cmp(Pred::eq, e.product(e.dims(sink)), heads),
            "head_sink has one number for each head");
  auto sinkAt = [&](Value h) -> Value {
    if (!sink)
      return e.constant(compute, 0);
    Type type = elementOf(op.getHeadSink());
    return e.convert(e.read(sink, h, type), computeType(type), compute);
  };
  auto queryAt = [&](Value b, Value h, Value i, Value d) {
    return e.extract(turned, {b, h, i, d});
  };
  auto keyAt = [&](Value b, Value h, Value j, Value d) {
    return e.read(keys, {b, h, j, d}, logical);
  };
  auto valueAt = [&](Value b, Value h, Value j, Value d) {
    return e.read(values, {b, h, j, d}, logical);
  };
  Attend attend{e,
                logical,
                compute,
                batch,
                seq,
                total,
                size,
                size,
                heads,
                kvHeads,
                op.getScale().convertToDouble(),
                op.getSoftcap().convertToDouble(),
                queryAt,
                keyAt,
                valueAt,
                {},
                sees,
                {}};
  if (bias)
    attend.bias = biasAt;
  if (sink || op.getSmoothSoftmax())
    attend.sink = sinkAt;
  SmallVector<Value> results{
      attend.run(storageTensor(op.getOutput().getType()), e.dims(query), true)};
  if (op.getPresentKey())
    results.append({keys, values});
  return results;
}

void mlir::llm::populateGroupQueryAttentionLowerings(
    RewritePatternSet &patterns, const TypeConverter &types) {
  addLowering<GroupQueryAttentionOp, lowerGroupQueryAttention>(patterns, types);
}
