//===- Attention.cpp - Lowering of attention and rotary embeddings --------===//
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
      return headElement(e, fresh, size, at[0], at[1], at[2], at[3]);
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
                       headElement(e, fresh, size, at[0], at[1], at[2], at[3]);
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
    return e.widen(headElement(e, query, size, b, h, i, d), logical);
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

void mlir::llm::populateAttentionLowerings(RewritePatternSet &patterns,
                                           const TypeConverter &types) {
  addLowering<AttentionOp, lowerAttention>(patterns, types);
  addLowering<RopeOp, lowerRope>(patterns, types);
}
