//===- Attention.cpp - Lowering of attention and rotary embeddings --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Lowerings.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::llm;

using Pred = TensorEmitter::Predicate;
using CmpF = arith::CmpFPredicate;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

static RankedTensorType dynamicTensor(int64_t rank, Type element) {
  return RankedTensorType::get(SmallVector<int64_t>(rank, ShapedType::kDynamic),
                               element);
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

namespace {
/// Tables of cos and sin, [positions, half] or with more axes in front.
struct Rotation {
  TensorEmitter &e;
  Value cos, sin;
  Type tableType;
  bool interleaved;

  Value half() {
    return e.dim(cos, cast<RankedTensorType>(cos.getType()).getRank() - 1);
  }
  /// Element `d` of a head turned by the angles in the tables' row `row`;
  /// `read` gives an element of the head in `compute`.
  Value turn(ValueRange row, Value d, function_ref<Value(Value)> read,
             Type compute);
};
} // namespace

Value Rotation::turn(ValueRange row, Value d, function_ref<Value(Value)> read,
                     Type compute) {
  Value n = half(), two = e.idx(2), zero = e.idx(0), one = e.idx(1);
  Value turns = e.cmp(Pred::slt, d, e.mul(n, two));
  Value first, pair, partner;
  if (interleaved) {
    first = e.cmp(Pred::eq, e.rem(d, two), zero);
    pair = e.div(d, two);
    partner = e.select(first, e.add(d, one), e.sub(d, one));
  } else {
    first = e.cmp(Pred::slt, d, n);
    pair = e.select(first, d, e.sub(d, n));
    partner = e.select(first, e.add(d, n), e.sub(d, n));
  }
  pair = e.select(turns, pair, zero);
  partner = e.select(turns, partner, d);
  SmallVector<Value> at(row);
  at.push_back(pair);
  auto table = [&](Value tensor) {
    return e.convert(e.read(tensor, at, tableType), computeType(tableType),
                     compute);
  };
  Value x = read(d), p = read(partner);
  Value turned = e.select(first, arith::NegFOp::create(e, p), p);
  Value y = e.add(e.mul(x, table(cos)), e.mul(turned, table(sin)));
  return e.select(turns, y, x);
}

static Value lowerRope(TensorEmitter &e, RopeOp op, RopeOp::Adaptor adaptor) {
  Value input = adaptor.getInput();
  Type logical = elementOf(op.getInput()), compute = computeType(logical);
  SmallVector<Value> sizes = e.dims(input);
  int64_t rank = sizes.size();
  Rotation rotation{e, adaptor.getCosTable(), adaptor.getSinTable(),
                    elementOf(op.getCosTable()), op.getInterleaved()};
  Value half = rotation.half(), width = sizes.back();
  if (rank < 4) {
    Value heads = e.idx(op.getNumHeads());
    e.check(e.cmp(Pred::eq, e.rem(sizes.back(), heads), 0),
            "the heads do not divide the last axis");
    width = e.div(sizes.back(), heads);
  }
  e.check(e.land(e.cmp(Pred::sgt, half, 0),
                 e.cmp(Pred::sle, e.mul(half, e.idx(2)), width)),
          "the tables do not fit a head");
  SmallVector<Value> cosSizes = e.dims(rotation.cos);
  for (auto [a, b] : llvm::zip(cosSizes, e.dims(rotation.sin)))
    e.check(e.cmp(Pred::eq, a, b), "cos and sin have different sizes");
  // Tokens are numbered by batch and sequence, or by one axis.
  SmallVector<Value> tokens;
  if (rank > 2)
    tokens.push_back(sizes[0]);
  tokens.push_back(sizes[rank == 4 ? 2 : rank - 2]);
  Value positions = adaptor.getPositions();
  if (positions) {
    SmallVector<Value> own = e.dims(positions);
    if (own.size() != tokens.size()) {
      op.emitOpError("positions have one number for each token, not the type ")
          << op.getPositions().getType();
      return {};
    }
    for (auto [a, b] : llvm::zip(own, tokens))
      e.check(e.cmp(Pred::eq, a, b), "positions do not fit the input");
    Type type = elementOf(op.getPositions());
    e.check(e.all(tokens,
                  [&](ValueRange at) {
                    Value p = e.toIndex(e.extract(positions, at), type);
                    return e.land(e.cmp(Pred::sge, p, 0),
                                  e.cmp(Pred::slt, p, cosSizes[0]));
                  }),
            "a position is outside the tables");
  } else {
    for (auto [a, b] : llvm::zip(cosSizes, tokens))
      e.check(e.cmp(Pred::eq, a, b), "the tables do not fit the input");
  }
  return e.generate(storageTensor(op.getType()), sizes, [&](ValueRange ivs) {
    SmallVector<Value> token;
    if (rank > 2)
      token.push_back(ivs[0]);
    token.push_back(ivs[rank == 4 ? 2 : rank - 2]);
    SmallVector<Value> row = token;
    if (positions)
      row = {
          e.toIndex(e.extract(positions, token), elementOf(op.getPositions()))};
    Value d = rank == 4 ? ivs[3] : e.rem(ivs.back(), width);
    Value base = e.sub(ivs.back(), d);
    auto read = [&](Value at) {
      SmallVector<Value> place(ivs);
      place.back() = e.add(base, at);
      return e.read(input, place, logical);
    };
    return e.narrow(rotation.turn(row, d, read, compute), logical);
  });
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// What both kinds of attention share: q, k and v as functions of indices.
/// Scores are [batch, heads, seq, slots].
struct Attend {
  TensorEmitter &e;
  Type logical, compute;
  Value batch, seq, slots, size, valueSize;
  int64_t heads, kvHeads;
  double scale, softcap;
  function_ref<Value(Value b, Value h, Value i, Value d)> query;
  function_ref<Value(Value b, Value h, Value j, Value d)> key, value;
  /// What is added to a score (may be null).
  function_ref<Value(Value b, Value h, Value i, Value j)> bias;
  /// Whether a query sees a slot.
  function_ref<Value(Value b, Value h, Value i, Value j)> sees;
  /// A further logit of the softmax, without a value (may be null).
  function_ref<Value(Value h)> sink;

  Value kvHead(Value h) { return e.div(h, e.idx(heads / kvHeads)); }
  Value run(RankedTensorType type, ValueRange sizes, bool flat);
};
} // namespace

/// acc + a * b; the sum may be taken in another order, so that it vectorises.
static Value multiplyAdd(TensorEmitter &e, Value acc, Value a, Value b) {
  auto flags = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
  return arith::AddFOp::create(e, acc, arith::MulFOp::create(e, a, b, flags),
                               flags);
}

Value Attend::run(RankedTensorType type, ValueRange sizes, bool flat) {
  Value zero = e.constant(compute, 0);
  Value lowest = e.constant(compute, -kInfinity);
  Value h = e.idx(heads);
  Value scores = e.generate(
      dynamicTensor(4, compute), {batch, h, seq, slots}, [&](ValueRange at) {
        Value kv = kvHead(at[1]);
        Value dot = e.loop(
            size, zero, [&](Value d, ValueRange acc) -> SmallVector<Value> {
              return {multiplyAdd(e, acc[0], query(at[0], at[1], at[2], d),
                                  key(at[0], kv, at[3], d))};
            })[0];
        Value score = e.mul(dot, e.constant(compute, scale));
        if (softcap > 0) {
          Value cap = e.constant(compute, softcap);
          score = e.mul(cap, math::TanhOp::create(
                                 e, arith::DivFOp::create(e, score, cap)));
        }
        Value seen = sees(at[0], at[1], at[2], at[3]);
        if (bias) {
          Value add = bias(at[0], at[1], at[2], at[3]);
          // A score that is infinite itself must not undo the mask.
          seen = e.land(seen, arith::CmpFOp::create(e, CmpF::UNE, add, lowest));
          score = e.add(score, add);
        }
        return e.select(seen, score, lowest);
      });
  // The largest score, and the sum of exp(score - largest); 0 for a row that
  // sees nothing.
  auto rows = dynamicTensor(3, compute);
  Value largest = e.generate(rows, {batch, h, seq}, [&](ValueRange row) {
    Value init = sink ? sink(row[1]) : lowest;
    Value top =
        e.loop(slots, init, [&](Value j, ValueRange acc) -> SmallVector<Value> {
          SmallVector<Value> at(row);
          at.push_back(j);
          return {arith::MaximumFOp::create(e, acc[0], e.extract(scores, at))};
        })[0];
    Value none = arith::CmpFOp::create(e, CmpF::OEQ, top, lowest);
    return e.select(none, zero, top);
  });
  Value weights = e.generate(
      dynamicTensor(4, compute), {batch, h, seq, slots}, [&](ValueRange at) {
        Value top = e.extract(largest, at.drop_back());
        return math::ExpOp::create(e, e.sub(e.extract(scores, at), top));
      });
  Value total = e.generate(rows, {batch, h, seq}, [&](ValueRange row) {
    Value init = zero;
    if (sink)
      init =
          math::ExpOp::create(e, e.sub(sink(row[1]), e.extract(largest, row)));
    Value sum =
        e.loop(slots, init, [&](Value j, ValueRange acc) -> SmallVector<Value> {
          SmallVector<Value> at(row);
          at.push_back(j);
          return {e.add(acc[0], e.extract(weights, at))};
        })[0];
    Value none = arith::CmpFOp::create(e, CmpF::OEQ, sum, zero);
    return e.select(none, e.constant(compute, 1), sum);
  });
  return e.generate(type, sizes, [&](ValueRange ivs) {
    Value head = flat ? e.div(ivs[2], e.max(valueSize, e.idx(1))) : ivs[1];
    Value d = flat ? e.rem(ivs[2], e.max(valueSize, e.idx(1))) : ivs[3];
    Value i = flat ? ivs[1] : ivs[2];
    Value kv = kvHead(head);
    Value sum =
        e.loop(slots, zero, [&](Value j, ValueRange acc) -> SmallVector<Value> {
          Value w = e.extract(weights, {ivs[0], head, i, j});
          return {multiplyAdd(e, acc[0], w, value(ivs[0], kv, j, d))};
        })[0];
    Value y =
        arith::DivFOp::create(e, sum, e.extract(total, {ivs[0], head, i}));
    return e.narrow(y, logical);
  });
}

/// The sizes of a [batch, seq, heads * size] or [batch, heads, seq, size]
/// operand: batch, seq, size.
static std::array<Value, 3> headSizes(TensorEmitter &e, Value tensor,
                                      int64_t heads, StringRef name) {
  SmallVector<Value> sizes = e.dims(tensor);
  if (sizes.size() == 4) {
    e.check(e.cmp(Pred::eq, sizes[1], heads),
            name + " does not have " + Twine(heads) + " heads");
    return {sizes[0], sizes[2], sizes[3]};
  }
  e.check(e.cmp(Pred::eq, e.rem(sizes[2], e.idx(heads)), 0),
          name + " does not hold " + Twine(heads) + " heads");
  return {sizes[0], sizes[1], e.div(sizes[2], e.idx(heads))};
}

/// An element of such an operand, as stored.
static Value elementAt(TensorEmitter &e, Value tensor, Value size, Value b,
                       Value h, Value i, Value d) {
  if (cast<RankedTensorType>(tensor.getType()).getRank() == 4)
    return e.extract(tensor, {b, h, i, d});
  return e.extract(tensor, {b, i, e.add(e.mul(h, size), d)});
}

/// A cache of [batch, heads, slots, size]: the past, then the new slots.
static Value joinCache(TensorEmitter &e, Value past, Value fresh, int64_t heads,
                       std::array<Value, 3> sizes, RankedTensorType type) {
  auto [batch, seq, size] = sizes;
  Value before = past ? e.dim(past, 2) : e.idx(0);
  if (past) {
    SmallVector<Value> own = e.dims(past);
    e.check(e.land(e.land(e.cmp(Pred::eq, own[0], batch),
                          e.cmp(Pred::eq, own[1], heads)),
                   e.cmp(Pred::eq, own[3], size)),
            "the past does not fit key and value");
  }
  SmallVector<Value> all{batch, e.idx(heads), e.add(before, seq), size};
  if (!past)
    return e.generate(type, all, [&](ValueRange at) {
      return elementAt(e, fresh, size, at[0], at[1], at[2], at[3]);
    });
  Value zero = e.constant(type.getElementType(), 0);
  Value cache = e.generate(type, all, [&](ValueRange) { return zero; });
  cache = e.loops(
      e.dims(past), cache,
      [&](ValueRange at, ValueRange state) -> SmallVector<Value> {
        return {tensor::InsertOp::create(e, e.extract(past, at), state[0], at)};
      })[0];
  return e.loops({batch, e.idx(heads), seq, size}, cache,
                 [&](ValueRange at, ValueRange state) -> SmallVector<Value> {
                   Value x =
                       elementAt(e, fresh, size, at[0], at[1], at[2], at[3]);
                   SmallVector<Value> place(at);
                   place[2] = e.add(at[2], before);
                   return {tensor::InsertOp::create(e, x, state[0], place)};
                 })[0];
}

static SmallVector<Value> lowerAttention(TensorEmitter &e, AttentionOp op,
                                         AttentionOp::Adaptor adaptor) {
  Value query = adaptor.getQuery();
  Type logical = elementOf(op.getQuery()), compute = computeType(logical);
  int64_t heads = op.getNumHeads(), kvHeads = op.getKvHeads();
  bool flat = cast<RankedTensorType>(query.getType()).getRank() == 3;
  auto [batch, seq, size] = headSizes(e, query, heads, "the query");
  std::array<Value, 3> k = headSizes(e, adaptor.getKey(), kvHeads, "the key");
  std::array<Value, 3> v =
      headSizes(e, adaptor.getValue(), kvHeads, "the value");
  e.check(
      e.land(e.land(e.cmp(Pred::eq, k[0], batch), e.cmp(Pred::eq, v[0], batch)),
             e.land(e.cmp(Pred::eq, k[1], v[1]), e.cmp(Pred::eq, k[2], size))),
      "query, key and value do not fit each other");
  Type stored = storageType(logical);
  auto cacheType = [&](Value present) {
    return present ? storageTensor(present.getType())
                   : dynamicTensor(4, stored);
  };
  Value keys = joinCache(e, adaptor.getPastKey(), adaptor.getKey(), kvHeads, k,
                         cacheType(op.getPresentKey()));
  Value values = joinCache(e, adaptor.getPastValue(), adaptor.getValue(),
                           kvHeads, v, cacheType(op.getPresentValue()));
  Value slots = e.dim(keys, 2);
  e.check(e.cmp(Pred::eq, slots, e.dim(values, 2)),
          "the pasts of key and value differ in length");
  Value past = adaptor.getPastKey() ? e.dim(adaptor.getPastKey(), 2) : Value();
  Value lengths = adaptor.getNonpadKvSeqlen();
  if (lengths)
    e.check(e.cmp(Pred::eq, e.dim(lengths, 0), batch),
            "nonpad_kv_seqlen has one number for each sequence");

  Value mask = adaptor.getMask();
  Type maskType = mask ? elementOf(op.getMask()) : Type();
  SmallVector<Value> maskSizes;
  if (mask) {
    maskSizes = e.dims(mask);
    if (maskSizes.empty() || maskSizes.size() > 4) {
      op.emitOpError("the mask has one to four axes, not the type ")
          << op.getMask().getType();
      return {};
    }
    SmallVector<Value> full{batch, e.idx(heads), seq};
    for (size_t i = 0; i + 1 < maskSizes.size(); ++i) {
      Value wanted = full[4 - maskSizes.size() + i];
      e.check(e.lor(e.cmp(Pred::eq, maskSizes[i], 1),
                    e.cmp(Pred::eq, maskSizes[i], wanted)),
              "the mask does not fit along axis " + Twine(i));
    }
    // A short mask hides the slots that it does not reach; one of size 1 is
    // for all.
    e.check(e.cmp(Pred::sle, maskSizes.back(), e.max(slots, e.idx(1))),
            "the mask is longer than the slots");
  }
  auto maskAt = [&](Value b, Value h, Value i, Value j) {
    SmallVector<Value> all{b, h, i, j}, at;
    for (auto [n, own] : llvm::enumerate(maskSizes)) {
      Value iv = all[4 - maskSizes.size() + n];
      at.push_back(e.select(e.cmp(Pred::slt, iv, own), iv, e.idx(0)));
    }
    return e.extract(mask, at);
  };
  bool truth = mask && maskType.isInteger(1);
  auto sees = [&](Value b, Value h, Value i, Value j) {
    Value seen = e.constantInt(e.getI1Type(), 1);
    Value offset = past ? past : e.idx(0);
    if (lengths) {
      Value length =
          e.toIndex(e.extract(lengths, b), elementOf(op.getNonpadKvSeqlen()));
      seen = e.cmp(Pred::slt, j, length);
      if (!past)
        offset = e.sub(length, seq);
    }
    Value position = e.add(i, offset);
    if (op.getCausal())
      seen = e.land(seen, e.cmp(Pred::sle, j, position));
    if (op.getWindow() > 0)
      seen = e.land(
          seen, e.cmp(Pred::sgt, e.add(j, e.idx(op.getWindow())), position));
    if (mask) {
      Value reaches = e.lor(e.cmp(Pred::slt, j, maskSizes.back()),
                            e.cmp(Pred::eq, maskSizes.back(), 1));
      seen = e.land(seen, reaches);
    }
    if (truth)
      seen = e.land(seen, maskAt(b, h, i, j));
    return seen;
  };
  auto bias = [&](Value b, Value h, Value i, Value j) {
    return e.convert(e.widen(maskAt(b, h, i, j), maskType),
                     computeType(maskType), compute);
  };
  auto queryAt = [&](Value b, Value h, Value i, Value d) {
    return e.widen(elementAt(e, query, size, b, h, i, d), logical);
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
                slots,
                size,
                v[2],
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
  if (mask && !truth)
    attend.bias = bias;
  SmallVector<Value> sizes{batch, seq, e.mul(e.idx(heads), v[2])};
  if (!flat)
    sizes = {batch, e.idx(heads), seq, v[2]};
  SmallVector<Value> results{
      attend.run(storageTensor(op.getOutput().getType()), sizes, flat)};
  if (op.getPresentKey())
    results.append({keys, values});
  return results;
}

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
      return e.widen(elementAt(e, tensor, size, b, h, i, at), logical);
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
                               return elementAt(e, value, size, b, h, i, d);
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

void mlir::llm::populateAttentionLowerings(RewritePatternSet &patterns,
                                           const TypeConverter &types) {
  addLowering<AttentionOp, lowerAttention>(patterns, types);
  addLowering<GroupQueryAttentionOp, lowerGroupQueryAttention>(patterns, types);
  addLowering<RopeOp, lowerRope>(patterns, types);
}
