//===- SymbolicShapeElements.cpp - Integer tensors as symbols -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/SymbolicShape.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::llm;
using Exprs = SymbolicShape::Exprs;

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static SymbolicExpr product(ArrayRef<SymbolicExpr> dims) {
  SymbolicExpr result(1);
  for (const SymbolicExpr &dim : dims)
    result = result * dim;
  return result;
}

namespace {
/// The sign of a comparison, where it is the same for all symbol values.
enum class Order { less, equal, greater, unknown };
} // namespace

static Order compare(const SymbolicExpr &a, const SymbolicExpr &b) {
  if (!a.isKnown() || !b.isKnown())
    return Order::unknown;
  SymbolicExpr difference = a - b;
  if (difference == SymbolicExpr(0))
    return Order::equal;
  if ((difference - SymbolicExpr(1)).isNonNegative())
    return Order::greater;
  if ((SymbolicExpr(0) - difference - SymbolicExpr(1)).isNonNegative())
    return Order::less;
  return Order::unknown;
}

static SymbolicExpr truth(Order order, bool less, bool equal, bool greater) {
  switch (order) {
  case Order::less:
    return less;
  case Order::equal:
    return equal;
  case Order::greater:
    return greater;
  case Order::unknown:
    break;
  }
  return SymbolicExpr::unknown();
}

static SymbolicExpr evaluate(Operation *op, const SymbolicExpr &a,
                             const SymbolicExpr &b) {
  Order order = compare(a, b);
  return TypeSwitch<Operation *, SymbolicExpr>(op)
      .Case<AddOp>([&](Operation *) { return a + b; })
      .Case<SubOp>([&](Operation *) { return a - b; })
      .Case<MulOp>([&](Operation *) { return a * b; })
      .Case<DivOp>([&](Operation *) -> SymbolicExpr {
        std::optional<int64_t> x = a.getConstant(), y = b.getConstant();
        if (x && y && *y != 0 && *y != -1)
          return *x / *y;
        return a.dividedBy(b);
      })
      .Case<ModOp>([&](ModOp op) -> SymbolicExpr {
        std::optional<int64_t> x = a.getConstant(), y = b.getConstant();
        if (!x || !y || *y == 0 || *y == -1)
          return SymbolicExpr::unknown();
        int64_t r = *x % *y;
        if (!op.getFmod() && r != 0 && (r < 0) != (*y < 0))
          r += *y;
        return r;
      })
      .Case<MinOp>([&](Operation *) {
        return order == Order::unknown   ? SymbolicExpr::unknown()
               : order == Order::greater ? b
                                         : a;
      })
      .Case<MaxOp>([&](Operation *) {
        return order == Order::unknown ? SymbolicExpr::unknown()
               : order == Order::less  ? b
                                       : a;
      })
      .Case<EqualOp>(
          [&](Operation *) { return truth(order, false, true, false); })
      .Case<LessOp>(
          [&](Operation *) { return truth(order, true, false, false); })
      .Case<LessEqualOp>(
          [&](Operation *) { return truth(order, true, true, false); })
      .Case<GreaterOp>(
          [&](Operation *) { return truth(order, false, false, true); })
      .Case<GreaterEqualOp>(
          [&](Operation *) { return truth(order, false, true, true); })
      .Default([](Operation *) { return SymbolicExpr::unknown(); });
}

std::optional<Exprs> SymbolicShape::inferElements(Operation *op) {
  auto elementsOf = [&](Value value) -> std::optional<Exprs> {
    const Exprs *elements = getElements(value);
    return elements ? std::optional<Exprs>(*elements) : std::nullopt;
  };
  auto integers = [](Attribute value) -> std::optional<Exprs> {
    auto dense = dyn_cast<DenseIntElementsAttr>(value);
    if (!dense || dense.getNumElements() > kMaxElements)
      return std::nullopt;
    bool isUnsigned = dense.getElementType().isUnsignedInteger() ||
                      dense.getElementType().isInteger(1);
    Exprs out;
    for (const APInt &element : dense.getValues<APInt>()) {
      if (element.getBitWidth() > 64 ||
          (isUnsigned && element.getActiveBits() > 63))
        return std::nullopt;
      out.push_back(isUnsigned ? static_cast<int64_t>(element.getZExtValue())
                               : element.getSExtValue());
    }
    return out;
  };
  return TypeSwitch<Operation *, std::optional<Exprs>>(op)
      .Case<ConstantOp>([&](ConstantOp op) { return integers(op.getValue()); })
      .Case<GetWeightOp>([&](GetWeightOp op) -> std::optional<Exprs> {
        auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
            op, op.getWeightAttr());
        if (!weight)
          return std::nullopt;
        auto dense = dyn_cast<DenseFormatAttr>(weight.getFormat());
        return dense ? integers(dense.getData().getSource()) : std::nullopt;
      })
      .Case<ShapeOp>([&](ShapeOp op) -> std::optional<Exprs> {
        ArrayRef<SymbolicExpr> dims = getDims(op.getInput());
        int64_t rank = dims.size();
        auto bound = [&](int64_t at) {
          return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
        };
        int64_t start = bound(op.getStart());
        int64_t end = std::max(start, bound(op.getEnd().value_or(rank)));
        return Exprs(dims.slice(start, end - start));
      })
      .Case<CastOp>([&](CastOp op) -> std::optional<Exprs> {
        // Sizes fit every type that a model casts them to, bool apart.
        auto from = tensorOf(op.getInput()).getElementType();
        auto to = tensorOf(op.getResult()).getElementType();
        if (!isa<IntegerType>(from) || !to.isIntOrIndex() ||
            to.getIntOrFloatBitWidth() < 32)
          return std::nullopt;
        return elementsOf(op.getInput());
      })
      .Case<UnsqueezeOp, SqueezeOp>(
          [&](auto op) { return elementsOf(op.getInput()); })
      .Case<ReshapeOp>([&](ReshapeOp op) { return elementsOf(op.getInput()); })
      .Case<ConcatOp>([&](ConcatOp op) -> std::optional<Exprs> {
        if (tensorOf(op.getResult()).getRank() != 1)
          return std::nullopt;
        Exprs out;
        for (Value input : op.getInputs()) {
          std::optional<Exprs> part = elementsOf(input);
          if (!part)
            return std::nullopt;
          llvm::append_range(out, *part);
        }
        return out;
      })
      .Case<GatherOp>([&](GatherOp op) -> std::optional<Exprs> {
        std::optional<Exprs> input = elementsOf(op.getInput());
        auto indices = getConstants(op.getIndices());
        if (!input || !indices || tensorOf(op.getInput()).getRank() != 1)
          return std::nullopt;
        Exprs out;
        for (int64_t index : *indices) {
          std::optional<int64_t> i = normalizeAxis(index, input->size());
          if (!i)
            return std::nullopt;
          out.push_back((*input)[*i]);
        }
        return out;
      })
      .Case<SliceOp>([&](SliceOp op) -> std::optional<Exprs> {
        std::optional<Exprs> input = elementsOf(op.getInput());
        auto starts = getConstants(op.getStarts());
        auto ends = getConstants(op.getEnds());
        if (!input || !starts || !ends ||
            tensorOf(op.getInput()).getRank() != 1 || starts->size() != 1 ||
            ends->size() != 1)
          return std::nullopt;
        int64_t step = 1;
        if (op.getSteps()) {
          auto steps = getConstants(op.getSteps());
          if (!steps || steps->size() != 1 || steps->front() <= 0)
            return std::nullopt;
          step = steps->front();
        }
        SliceBounds bounds =
            clampSlice(starts->front(), ends->front(), input->size());
        std::optional<int64_t> start = bounds.start.getConstant(),
                               end = bounds.end.getConstant();
        if (!start || !end)
          return std::nullopt;
        Exprs out;
        for (int64_t i = *start; i < *end; i += step)
          out.push_back((*input)[i]);
        return out;
      })
      .Case<ConstantOfShapeOp>(
          [&](ConstantOfShapeOp op) -> std::optional<Exprs> {
            std::optional<Exprs> value = integers(op.getValue());
            if (!value || value->size() != 1)
              return std::nullopt;
            int64_t count = 1;
            for (const SymbolicExpr &dim : infos[op.getResult()]->dims)
              count *= *dim.getConstant();
            return Exprs(count, value->front());
          })
      .Case<ExpandOp>([&](ExpandOp op) -> std::optional<Exprs> {
        std::optional<Exprs> input = elementsOf(op.getInput());
        if (!input || input->size() != 1)
          return std::nullopt;
        int64_t count = 1;
        for (const SymbolicExpr &dim : infos[op.getResult()]->dims)
          count *= *dim.getConstant();
        return Exprs(count, input->front());
      })
      .Case<RangeOp>([&](RangeOp op) -> std::optional<Exprs> {
        std::optional<SymbolicExpr> start = getScalar(op.getStart()),
                                    delta = getScalar(op.getDelta());
        if (!start || !delta)
          return std::nullopt;
        Exprs out;
        for (int64_t i = 0, n = *infos[op.getResult()]->dims[0].getConstant();
             i < n; ++i)
          out.push_back(*start + *delta * SymbolicExpr(i));
        return out;
      })
      .Case<ReduceOp>([&](ReduceOp op) -> std::optional<Exprs> {
        std::optional<Exprs> input = elementsOf(op.getInput());
        if (!input || op.getAxes().empty() ||
            infos[op.getResult()]->dims.size() > 1 ||
            tensorOf(op.getInput()).getRank() != 1)
          return std::nullopt;
        if (op.getKind() == ReductionKind::prod)
          return Exprs{product(*input)};
        if (op.getKind() != ReductionKind::sum)
          return std::nullopt;
        SymbolicExpr sum;
        for (const SymbolicExpr &element : *input)
          sum = sum + element;
        return Exprs{sum};
      })
      .Case<WhereOp>([&](WhereOp op) -> std::optional<Exprs> {
        auto condition = getConstants(op.getCondition());
        std::optional<Exprs> x = elementsOf(op.getX()),
                             y = elementsOf(op.getY());
        if (!condition || !x || !y)
          return std::nullopt;
        size_t count = std::max({condition->size(), x->size(), y->size()});
        auto fits = [&](size_t n) { return n == 1 || n == count; };
        if (!fits(condition->size()) || !fits(x->size()) || !fits(y->size()))
          return std::nullopt;
        Exprs out;
        for (size_t i = 0; i < count; ++i) {
          auto at = [&](const auto &v) { return v[v.size() == 1 ? 0 : i]; };
          out.push_back(at(*condition) ? at(*x) : at(*y));
        }
        return out;
      })
      .Case<NegOp>([&](NegOp op) -> std::optional<Exprs> {
        std::optional<Exprs> input = elementsOf(op.getInput());
        if (input)
          for (SymbolicExpr &element : *input)
            element = -element;
        return input;
      })
      .Case<NotOp>([&](NotOp op) -> std::optional<Exprs> {
        std::optional<Exprs> input = elementsOf(op.getInput());
        if (input)
          for (SymbolicExpr &element : *input)
            element = SymbolicExpr(1) - element;
        return input;
      })
      .Default([&](Operation *op) -> std::optional<Exprs> {
        if (!isElementwise(op) || op->getNumOperands() != 2)
          return std::nullopt;
        std::optional<Exprs> a = elementsOf(op->getOperand(0)),
                             b = elementsOf(op->getOperand(1));
        if (!a || !b)
          return std::nullopt;
        size_t count = std::max(a->size(), b->size());
        if ((a->size() != 1 && a->size() != count) ||
            (b->size() != 1 && b->size() != count))
          return std::nullopt;
        Exprs out;
        for (size_t i = 0; i < count; ++i)
          out.push_back(evaluate(op, (*a)[a->size() == 1 ? 0 : i],
                                 (*b)[b->size() == 1 ? 0 : i]));
        return out;
      });
}
