//===- Attend.cpp - What attention ops share ------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Attend.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace mlir::llm;

using Pred = TensorEmitter::Predicate;
using CmpF = arith::CmpFPredicate;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

RankedTensorType mlir::llm::dynamicTensor(int64_t rank, Type element) {
  return RankedTensorType::get(SmallVector<int64_t>(rank, ShapedType::kDynamic),
                               element);
}

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

std::array<Value, 3> mlir::llm::headSizes(TensorEmitter &e, Value tensor,
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

Value mlir::llm::headElement(TensorEmitter &e, Value tensor, Value size,
                             Value b, Value h, Value i, Value d) {
  if (cast<RankedTensorType>(tensor.getType()).getRank() == 4)
    return e.extract(tensor, {b, h, i, d});
  return e.extract(tensor, {b, i, e.add(e.mul(h, size), d)});
}
