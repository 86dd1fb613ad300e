//===- Shapes.cpp - Lowering of ops that change shapes --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Lowerings.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::llm;

using Pred = TensorEmitter::Predicate;

/// Checks that `sizes` are not negative and that their product stays below
/// 2^62, so that products of them do not wrap.
static void checkProduct(TensorEmitter &e, ValueRange sizes) {
  Type f64 = e.getF64Type();
  Value total = e.constant(f64, 1), ok = e.constantInt(e.getI1Type(), 1);
  for (Value size : sizes) {
    ok = e.land(ok, e.cmp(Pred::sge, size, 0));
    Value wide = arith::IndexCastOp::create(e, e.getI64Type(), size);
    total = e.mul(total, arith::SIToFPOp::create(e, f64, wide));
  }
  e.check(e.land(ok, arith::CmpFOp::create(e, arith::CmpFPredicate::OLT, total,
                                           e.constant(f64, 0x1p62))),
          "the shape is negative or too large");
}

/// The sizes in a shape operand that must have as many elements as `rank`.
static SmallVector<Value> readSizes(TensorEmitter &e, Value shape, Type logical,
                                    int64_t rank) {
  e.check(e.cmp(Pred::eq, e.dim(shape, 0), rank),
          "the shape must have " + Twine(rank) + " sizes");
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < rank; ++i)
    sizes.push_back(e.readIndex(shape, logical, i));
  return sizes;
}

static Value lowerReshape(TensorEmitter &e, ReshapeOp op,
                          ReshapeOp::Adaptor adaptor) {
  RankedTensorType type = storageTensor(op.getType());
  Value input = adaptor.getInput();
  SmallVector<Value> from = e.dims(input);
  SmallVector<Value> sizes = readSizes(
      e, adaptor.getShape(), elementOf(op.getShape()), type.getRank());
  if (!op.getAllowzero())
    for (auto [i, size] : llvm::enumerate(sizes)) {
      Value isZero = e.cmp(Pred::eq, size, 0);
      if (i < from.size())
        size = e.select(isZero, from[i], size);
      else
        e.check(e.lnot(isZero), "a size of 0 copies axis " + Twine(i) +
                                    ", which the input does not have");
    }
  // One size may be left open.
  Value known = e.idx(1), open = e.idx(0);
  SmallVector<Value> given;
  for (Value size : sizes) {
    Value isOpen = e.cmp(Pred::eq, size, -1);
    open = e.add(open, e.select(isOpen, e.idx(1), e.idx(0)));
    given.push_back(e.select(isOpen, e.idx(1), size));
  }
  if (!llvm::all_of(given, [](Value v) { return constantOf(v).has_value(); }))
    checkProduct(e, given);
  known = e.product(given);
  Value total = e.product(from);
  e.check(e.cmp(Pred::sle, open, 1), "more than one size is -1");
  Value divisor = e.max(known, e.idx(1));
  Value inferred = e.div(total, divisor);
  for (Value &size : sizes)
    size = e.select(e.cmp(Pred::eq, size, -1), inferred, size);
  e.check(e.cmp(Pred::eq, e.product(sizes), total),
          "the shape does not hold the input's elements");
  return e.view(input, type, sizes);
}

static Value lowerUnsqueeze(TensorEmitter &e, UnsqueezeOp op,
                            UnsqueezeOp::Adaptor adaptor) {
  RankedTensorType type = storageTensor(op.getType());
  SmallVector<bool> inserted(type.getRank(), false);
  for (int64_t axis : op.getAxes()) {
    std::optional<int64_t> at = normalizeAxis(axis, type.getRank());
    if (!at || inserted[*at]) {
      op.emitOpError("axis ") << axis << " does not fit " << op.getType();
      return {};
    }
    inserted[*at] = true;
  }
  SmallVector<Value> from = e.dims(adaptor.getInput()), sizes;
  if (from.size() + op.getAxes().size() != inserted.size()) {
    op.emitOpError("the ranks and the number of axes do not agree");
    return {};
  }
  size_t next = 0;
  for (bool isNew : inserted)
    sizes.push_back(isNew ? e.idx(1) : from[next++]);
  return e.view(adaptor.getInput(), type, sizes);
}

static Value lowerSqueeze(TensorEmitter &e, SqueezeOp op,
                          SqueezeOp::Adaptor adaptor) {
  RankedTensorType type = storageTensor(op.getType());
  SmallVector<Value> from = e.dims(adaptor.getInput()), sizes;
  SmallVector<bool> removed(from.size(), false);
  for (int64_t axis : op.getAxes()) {
    std::optional<int64_t> at = normalizeAxis(axis, from.size());
    if (!at || removed[*at]) {
      op.emitOpError("axis ")
          << axis << " does not fit " << op.getInput().getType();
      return {};
    }
    removed[*at] = true;
    e.check(e.cmp(Pred::eq, from[*at], 1),
            "axis " + Twine(*at) + " is not of size 1");
  }
  for (auto [gone, size] : llvm::zip(removed, from))
    if (!gone)
      sizes.push_back(size);
  if (static_cast<int64_t>(sizes.size()) != type.getRank()) {
    op.emitOpError("the ranks and the number of axes do not agree");
    return {};
  }
  return e.view(adaptor.getInput(), type, sizes);
}

static Value lowerShape(TensorEmitter &e, ShapeOp op,
                        ShapeOp::Adaptor adaptor) {
  SmallVector<Value> sizes = e.dims(adaptor.getInput());
  int64_t rank = sizes.size();
  int64_t start = op.getStart(), end = op.getEnd().value_or(rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, start, rank);
  Type element = elementOf(op.getResult());
  SmallVector<Value> values;
  for (int64_t i = start; i < end; ++i)
    values.push_back(e.fromIndex(sizes[i], element));
  RankedTensorType type = storageTensor(op.getType());
  auto own = RankedTensorType::get({end - start}, storageType(element));
  if (type.hasStaticShape() && type != own) {
    op.emitOpError("the result has ") << end - start << " elements";
    return {};
  }
  Value result = values.empty()
                     ? tensor::EmptyOp::create(e, own, ValueRange()).getResult()
                     : tensor::FromElementsOp::create(e, own, values);
  return type == own ? result
                     : tensor::CastOp::create(e, type, result).getResult();
}

static Value lowerExpand(TensorEmitter &e, ExpandOp op,
                         ExpandOp::Adaptor adaptor) {
  RankedTensorType type = storageTensor(op.getType());
  Value input = adaptor.getInput();
  SmallVector<Value> from = e.dims(input);
  auto shape = cast<RankedTensorType>(adaptor.getShape().getType());
  // A result of higher rank than the input has the shape's; else the length of
  // the shape must be known, or be the result's.
  int64_t rank = type.getRank();
  int64_t length = shape.isDynamicDim(0) ? rank : shape.getDimSize(0);
  SmallVector<Value> wanted =
      readSizes(e, adaptor.getShape(), elementOf(op.getShape()), length);
  if (std::max<int64_t>(length, from.size()) != rank) {
    op.emitOpError("a shape of ")
        << length << " sizes gives no " << op.getType();
    return {};
  }
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t own = i - (rank - static_cast<int64_t>(from.size()));
    int64_t other = i - (rank - length);
    if (own < 0 || other < 0) {
      sizes.push_back(own < 0 ? wanted[other] : from[own]);
      continue;
    }
    Value isOne = e.cmp(Pred::eq, from[own], 1);
    e.check(e.lor(isOne, e.lor(e.cmp(Pred::eq, wanted[other], 1),
                               e.cmp(Pred::eq, wanted[other], from[own]))),
            "the shape does not broadcast with the input along axis " +
                Twine(i));
    sizes.push_back(e.select(isOne, wanted[other], from[own]));
  }
  return e.generate(type, sizes, [&](ValueRange ivs) {
    return e.extract(input, e.broadcastIndices(input, ivs));
  });
}

static Value lowerConstantOfShape(TensorEmitter &e, ConstantOfShapeOp op,
                                  ConstantOfShapeOp::Adaptor adaptor) {
  RankedTensorType type = storageTensor(op.getType());
  SmallVector<Value> sizes = readSizes(
      e, adaptor.getShape(), elementOf(op.getShape()), type.getRank());
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements || elements.getNumElements() != 1) {
    op.emitOpError("the value must be one element");
    return {};
  }
  APInt bits;
  if (isa<FloatType>(elements.getElementType()))
    bits = (*elements.getValues<APFloat>().begin()).bitcastToAPInt();
  else
    bits = *elements.getValues<APInt>().begin();
  Type storage = type.getElementType();
  Type logical = elementOf(op.getResult());
  bits = logical.isSignlessInteger() && !logical.isInteger(1)
             ? bits.sextOrTrunc(storage.getIntOrFloatBitWidth())
             : bits.zextOrTrunc(storage.getIntOrFloatBitWidth());
  TypedAttr attr;
  if (auto f = dyn_cast<FloatType>(storage))
    attr = FloatAttr::get(f, APFloat(f.getFloatSemantics(), bits));
  else
    attr = IntegerAttr::get(storage, bits);
  Value value = arith::ConstantOp::create(e, attr);
  return e.generate(type, sizes, [&](ValueRange) { return value; });
}

static Value lowerRange(TensorEmitter &e, RangeOp op,
                        RangeOp::Adaptor adaptor) {
  RankedTensorType type = storageTensor(op.getType());
  Type logical = elementOf(op.getStart());
  auto scalar = [&](Value tensor) {
    e.check(e.cmp(Pred::eq, e.product(e.dims(tensor)), 1),
            "start, limit and delta are one number each");
    int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
    return e.read(tensor, SmallVector<Value>(rank, e.idx(0)), logical);
  };
  Value start = scalar(adaptor.getStart()), limit = scalar(adaptor.getLimit());
  Value delta = scalar(adaptor.getDelta());
  Value count;
  if (isa<FloatType>(logical)) {
    Type f64 = e.getF64Type();
    Type compute = computeType(logical);
    auto wide = [&](Value v) { return e.convert(v, compute, f64); };
    Value steps =
        arith::DivFOp::create(e, e.sub(wide(limit), wide(start)), wide(delta));
    steps = math::CeilOp::create(e, steps);
    // Also false for NaN.
    e.check(arith::CmpFOp::create(e, arith::CmpFPredicate::OLT, steps,
                                  e.constant(f64, 0x1p48)),
            "the range has no end");
    Value whole = e.convert(steps, f64, e.getI64Type());
    count = e.max(e.toIndex(whole, e.getI64Type()), e.idx(0));
  } else {
    Type i64 = e.getI64Type();
    auto wide = [&](Value v) { return e.convert(v, logical, i64); };
    Value d = wide(delta), from = wide(start), to = wide(limit);
    e.check(e.cmp(Pred::ne, d, 0), "the range has a delta of 0");
    Value up = e.cmp(Pred::sgt, d, 0);
    Value span = e.select(up, e.sub(to, from), e.sub(from, to));
    Value any =
        e.select(up, e.cmp(Pred::sgt, to, from), e.cmp(Pred::slt, to, from));
    Value step = e.select(up, d, e.sub(e.constantInt(i64, 0), d));
    step = e.select(e.cmp(Pred::eq, step, 0), e.constantInt(i64, 1), step);
    // The span of i64 values fits an unsigned i64; span - 1 does not wrap.
    Value last =
        arith::DivUIOp::create(e, e.sub(span, e.constantInt(i64, 1)), step);
    Value n = e.select(any, e.add(last, e.constantInt(i64, 1)),
                       e.constantInt(i64, 0));
    e.check(e.cmp(Pred::sge, n, 0), "the range is too long");
    count = e.toIndex(n, i64);
  }
  return e.generate(type, count, [&](ValueRange ivs) {
    Value at = e.fromIndex(ivs[0], e.getI64Type());
    Value i = e.convert(at, e.getI64Type(), computeType(logical));
    return e.narrow(e.add(start, e.mul(i, delta)), logical);
  });
}

void mlir::llm::populateShapeLowerings(RewritePatternSet &patterns,
                                       const TypeConverter &types) {
  addLowering<ReshapeOp, lowerReshape>(patterns, types);
  addLowering<UnsqueezeOp, lowerUnsqueeze>(patterns, types);
  addLowering<SqueezeOp, lowerSqueeze>(patterns, types);
  addLowering<ShapeOp, lowerShape>(patterns, types);
  addLowering<ExpandOp, lowerExpand>(patterns, types);
  addLowering<ConstantOfShapeOp, lowerConstantOfShape>(patterns, types);
  addLowering<RangeOp, lowerRange>(patterns, types);
}
