//===- AlongAxis.cpp - Lowering of argmax, running sums and top k ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Lowerings.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::llm;

using Pred = TensorEmitter::Predicate;
using CmpF = arith::CmpFPredicate;

static bool isFloat(Type type) { return isa<FloatType>(type); }
static bool isUnsigned(Type type) {
  return type.isUnsignedInteger() || type.isInteger(1);
}

static Value lowerArgMax(TensorEmitter &e, ArgMaxOp op,
                         ArgMaxOp::Adaptor adaptor) {
  Value input = adaptor.getInput();
  Type logical = elementOf(op.getInput());
  SmallVector<Value> sizes = e.dims(input);
  int64_t axis = *normalizeAxis(op.getAxis(), sizes.size());
  Value count = sizes[axis];
  e.check(e.cmp(Pred::sgt, count, 0), "the axis has no elements");
  if (op.getKeepdims())
    sizes[axis] = e.idx(1);
  else
    sizes.erase(sizes.begin() + axis);
  bool least = op.getMinimum(), last = op.getSelectLastIndex();
  auto wins = [&](Value x, Value best) -> Value {
    if (!isFloat(x.getType())) {
      Pred strict = isUnsigned(logical) ? (least ? Pred::ult : Pred::ugt)
                                        : (least ? Pred::slt : Pred::sgt);
      Pred weak = isUnsigned(logical) ? (least ? Pred::ule : Pred::uge)
                                      : (least ? Pred::sle : Pred::sge);
      return e.cmp(last ? weak : strict, x, best);
    }
    // As in NumPy, a NaN is beyond every number.
    CmpF strict = least ? CmpF::OLT : CmpF::OGT;
    CmpF weak = least ? CmpF::OLE : CmpF::OGE;
    Value wins = arith::CmpFOp::create(e, last ? weak : strict, x, best);
    Value isNaN = arith::CmpFOp::create(e, CmpF::UNO, x, x);
    Value ordered = arith::CmpFOp::create(e, CmpF::ORD, best, best);
    return e.lor(wins, last ? isNaN : e.land(isNaN, ordered));
  };
  return e.generate(storageTensor(op.getType()), sizes, [&](ValueRange ivs) {
    SmallVector<Value> at(ivs);
    if (!op.getKeepdims())
      at.insert(at.begin() + axis, e.idx(0));
    at[axis] = e.idx(0);
    Value first = e.read(input, at, logical);
    SmallVector<Value> best = e.loop(
        count, {first, e.idx(0)},
        [&](Value i, ValueRange acc) -> SmallVector<Value> {
          SmallVector<Value> here(at);
          here[axis] = i;
          Value x = e.read(input, here, logical);
          Value better = wins(x, acc[0]);
          return {e.select(better, x, acc[0]), e.select(better, i, acc[1])};
        });
    return e.fromIndex(best[1], elementOf(op.getResult()));
  });
}

static Value lowerCumSum(TensorEmitter &e, CumSumOp op,
                         CumSumOp::Adaptor adaptor) {
  Value input = adaptor.getInput();
  RankedTensorType type = storageTensor(op.getType());
  Type logical = elementOf(op.getInput()), compute = computeType(logical);
  std::optional<int64_t> axis = normalizeAxis(op.getAxis(), type.getRank());
  if (!axis) {
    op.emitOpError("axis ") << op.getAxis() << " is outside " << type;
    return {};
  }
  SmallVector<Value> sizes = e.dims(input), outer = sizes;
  Value count = sizes[*axis];
  outer.erase(outer.begin() + *axis);
  Value zero = e.constant(compute, 0), one = e.idx(1);
  Value init = e.generate(
      type, sizes, [&](ValueRange ivs) { return e.extract(input, ivs); });
  return e.loops(outer, init, [&](ValueRange at, ValueRange state) {
    return SmallVector<Value>{e.loop(
        count, {zero, state[0]},
        [&](Value i, ValueRange inner) -> SmallVector<Value> {
          Value place = op.getReverse() ? e.sub(e.sub(count, one), i) : i;
          SmallVector<Value> here(at);
          here.insert(here.begin() + *axis, place);
          Value sum = e.add(inner[0], e.read(input, here, logical));
          Value stored = op.getExclusive() ? inner[0] : sum;
          return {sum, tensor::InsertOp::create(e, e.narrow(stored, logical),
                                                inner[1], here)};
        })[1]};
  })[0];
}

/// An integer that orders computed elements as TopK does: NaN above all, -0
/// and 0 equal.
static Value orderKey(TensorEmitter &e, Value x, Type logical) {
  Type type = x.getType();
  Type i64 = e.getI64Type();
  if (!isFloat(type)) {
    Value wide = e.convert(x, logical, i64);
    if (!logical.isUnsignedInteger(64))
      return wide;
    return arith::XOrIOp::create(
        e, wide, e.constantInt(i64, std::numeric_limits<int64_t>::min()));
  }
  Value wide = e.convert(x, type, e.getF64Type());
  wide = e.add(wide, e.constant(e.getF64Type(), 0));
  Value bits = arith::BitcastOp::create(e, i64, wide);
  Value sign = arith::ShRSIOp::create(e, bits, e.constantInt(i64, 63));
  Value flip =
      e.land(sign, e.constantInt(i64, std::numeric_limits<int64_t>::max()));
  Value key = arith::XOrIOp::create(e, bits, flip);
  Value isNaN = arith::CmpFOp::create(e, CmpF::UNO, x, x);
  return e.select(isNaN,
                  e.constantInt(i64, std::numeric_limits<int64_t>::max()), key);
}

/// The j-th result is the best element behind the (j-1)-th, in the order of
/// value, then index: k passes over the axis, without further memory.
static SmallVector<Value> lowerTopK(TensorEmitter &e, TopKOp op,
                                    TopKOp::Adaptor adaptor) {
  Value input = adaptor.getInput();
  Type logical = elementOf(op.getInput()), i64 = e.getI64Type();
  auto valueType = storageTensor(op.getValues().getType());
  auto indexType = storageTensor(op.getIndices().getType());
  SmallVector<Value> from = e.dims(input), sizes = from, outer;
  std::optional<int64_t> axis = normalizeAxis(op.getAxis(), from.size());
  if (!axis) {
    op.emitOpError("axis ")
        << op.getAxis() << " is outside " << op.getInput().getType();
    return {};
  }
  e.check(e.cmp(Pred::eq, e.product(e.dims(adaptor.getK())), 1),
          "k is one number");
  Value k = e.readIndex(adaptor.getK(), elementOf(op.getK()));
  e.check(e.land(e.cmp(Pred::sge, k, 0), e.cmp(Pred::sle, k, from[*axis])),
          "k is negative or larger than the axis");
  sizes[*axis] = k;
  outer = from;
  outer.erase(outer.begin() + *axis);
  Value noValue = e.constant(valueType.getElementType(), 0);
  Value noIndex = e.constant(indexType.getElementType(), 0);
  Value values =
      e.generate(valueType, sizes, [&](ValueRange) { return noValue; });
  Value indices =
      e.generate(indexType, sizes, [&](ValueRange) { return noIndex; });
  // Smallest first is largest first of the complement.
  auto keyAt = [&](ValueRange at, Value i) -> Value {
    SmallVector<Value> here(at);
    here.insert(here.begin() + *axis, i);
    Value key = orderKey(e, e.read(input, here, logical), logical);
    return op.getLargest()
               ? key
               : arith::XOrIOp::create(e, key, e.constantInt(i64, -1))
                     .getResult();
  };
  auto lowest = e.constantInt(i64, std::numeric_limits<int64_t>::min());
  auto highest = e.constantInt(i64, std::numeric_limits<int64_t>::max());
  return e.loops(
      outer, {values, indices}, [&](ValueRange at, ValueRange state) {
        SmallVector<Value> done = e.loop(
            k, {state[0], state[1], highest, e.idx(-1)},
            [&](Value j, ValueRange inner) -> SmallVector<Value> {
              Value none = e.idx(-1);
              SmallVector<Value> best = e.loop(
                  from[*axis], {lowest, none},
                  [&](Value i, ValueRange acc) -> SmallVector<Value> {
                    Value key = keyAt(at, i);
                    Value behind = e.lor(e.cmp(Pred::slt, key, inner[2]),
                                         e.land(e.cmp(Pred::eq, key, inner[2]),
                                                e.cmp(Pred::sgt, i, inner[3])));
                    Value better = e.lor(e.cmp(Pred::slt, acc[1], e.idx(0)),
                                         e.cmp(Pred::sgt, key, acc[0]));
                    Value take = e.land(behind, better);
                    return {e.select(take, key, acc[0]),
                            e.select(take, i, acc[1])};
                  });
              SmallVector<Value> source(at), place(at);
              // There is one behind each of the first k - 1.
              source.insert(source.begin() + *axis, e.max(best[1], e.idx(0)));
              place.insert(place.begin() + *axis, j);
              Value value = e.extract(input, source);
              Value index = e.fromIndex(best[1], elementOf(op.getIndices()));
              return {tensor::InsertOp::create(e, value, inner[0], place),
                      tensor::InsertOp::create(e, index, inner[1], place),
                      best[0], best[1]};
            });
        return SmallVector<Value>{done[0], done[1]};
      });
}

void mlir::llm::populateAlongAxisLowerings(RewritePatternSet &patterns,
                                           const TypeConverter &types) {
  addLowering<ArgMaxOp, lowerArgMax>(patterns, types);
  addLowering<CumSumOp, lowerCumSum>(patterns, types);
  addLowering<TopKOp, lowerTopK>(patterns, types);
}
