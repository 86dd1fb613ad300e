//===- SymbolicShapeInfer.cpp - What each op says about sizes -------------===//
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

Exprs SymbolicShape::broadcast(ArrayRef<SymbolicExpr> a,
                               ArrayRef<SymbolicExpr> b) {
  Exprs out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    SymbolicExpr x = i < a.size() ? a[a.size() - 1 - i] : SymbolicExpr(1);
    SymbolicExpr y = i < b.size() ? b[b.size() - 1 - i] : SymbolicExpr(1);
    std::optional<int64_t> cx = x.getConstant(), cy = y.getConstant();
    SymbolicExpr &r = out[out.size() - 1 - i];
    if (x == y || (cy && *cy == 1))
      r = x;
    else if (cx && *cx == 1)
      r = y;
    else if (cx)
      r = x; // y is x or 1.
    else if (cy)
      r = y;
    else
      r = SymbolicExpr::unknown(); // Either may be 1.
  }
  return out;
}

static SymbolicExpr product(ArrayRef<SymbolicExpr> dims) {
  SymbolicExpr result(1);
  for (const SymbolicExpr &dim : dims)
    result = result * dim;
  return result;
}

Exprs SymbolicShape::inferReshape(ReshapeOp op) {
  const Exprs *shape = getElements(op.getShape());
  if (!shape)
    return {};
  ArrayRef<SymbolicExpr> input = getDims(op.getInput());
  Exprs dims;
  std::optional<size_t> inferred;
  for (auto [i, element] : llvm::enumerate(*shape)) {
    std::optional<int64_t> constant = element.getConstant();
    if (constant && *constant == -1) {
      if (inferred)
        return {};
      inferred = i;
      dims.push_back(1);
    } else if (constant && *constant == 0 && !op.getAllowzero()) {
      if (i >= input.size())
        return {};
      dims.push_back(input[i]);
    } else {
      dims.push_back(element);
    }
  }
  if (inferred)
    dims[*inferred] = product(input).dividedBy(product(dims));
  return dims;
}

Exprs SymbolicShape::inferSlice(SliceOp op) {
  Exprs dims(getDims(op.getInput()));
  const Exprs *starts = getElements(op.getStarts());
  const Exprs *ends = getElements(op.getEnds());
  std::optional<SmallVector<int64_t>> axes, steps;
  if (op.getAxes())
    axes = getConstants(op.getAxes());
  if (op.getSteps())
    steps = getConstants(op.getSteps());
  if ((op.getAxes() && !axes))
    return {};
  size_t count = axes ? axes->size() : starts ? starts->size() : dims.size();
  for (size_t i = 0; i < count; ++i) {
    std::optional<int64_t> axis =
        normalizeAxis(axes ? (*axes)[i] : static_cast<int64_t>(i), dims.size());
    if (!axis)
      return {};
    int64_t step = !op.getSteps()               ? 1
                   : steps && i < steps->size() ? (*steps)[i]
                                                : 0;
    SymbolicExpr &dim = dims[*axis];
    if (!starts || !ends || i >= starts->size() || i >= ends->size() ||
        step <= 0) {
      dim = SymbolicExpr::unknown();
      continue;
    }
    SliceBounds bounds = clampSlice((*starts)[i], (*ends)[i], dim);
    SymbolicExpr length = bounds.end - bounds.start;
    if (std::optional<int64_t> constant = length.getConstant())
      dim = *constant <= 0 ? 0 : (*constant + step - 1) / step;
    else
      dim = step == 1 && length.isNonNegative() ? length
                                                : SymbolicExpr::unknown();
  }
  return dims;
}

SymbolicExpr SymbolicShape::inferRange(RangeOp op) {
  std::optional<SymbolicExpr> start = getScalar(op.getStart()),
                              limit = getScalar(op.getLimit()),
                              delta = getScalar(op.getDelta());
  if (!start || !limit || !delta)
    return SymbolicExpr::unknown();
  SymbolicExpr length = *limit - *start;
  std::optional<int64_t> step = delta->getConstant(),
                         constant = length.getConstant();
  if (!step || *step == 0)
    return SymbolicExpr::unknown();
  if (constant && *step > 0 && *constant <= kMaxElements * *step)
    return *constant <= 0 ? 0 : (*constant + *step - 1) / *step;
  return *step == 1 && length.isNonNegative() ? length
                                              : SymbolicExpr::unknown();
}

Exprs SymbolicShape::inferDims(Operation *op, unsigned result) {
  auto dimsOf = [&](Value value) { return Exprs(getDims(value)); };
  auto axisOf = [&](int64_t axis, size_t rank) {
    return normalizeAxis(axis, rank);
  };
  return TypeSwitch<Operation *, Exprs>(op)
      .Case<RMSNormOp, LayerNormOp, RopeOp, CastOp, ClipOp, CumSumOp, SoftmaxOp,
            TriluOp, GeluOp, ScatterNDOp>(
          [&](Operation *op) { return dimsOf(op->getOperand(0)); })
      .Case<WhereOp>([&](WhereOp op) {
        Exprs xy = broadcast(dimsOf(op.getX()), dimsOf(op.getY()));
        return broadcast(xy, dimsOf(op.getCondition()));
      })
      .Case<MatMulOp>([&](MatMulOp op) {
        Exprs a = dimsOf(op.getLhs()), b = dimsOf(op.getRhs()), tail;
        if (a.size() > 1)
          tail.push_back(a[a.size() - 2]);
        if (b.size() > 1)
          tail.push_back(b.back());
        a.truncate(a.size() - std::min<size_t>(a.size(), 2));
        b.truncate(b.size() - std::min<size_t>(b.size(), 2));
        Exprs dims = broadcast(a, b);
        llvm::append_range(dims, tail);
        return dims;
      })
      .Case<LinearOp>([&](LinearOp op) {
        Exprs dims = dimsOf(op.getInput());
        dims.back() = getDim(op.getWeight(), op.getTransposed() ? 1 : 0);
        return dims;
      })
      .Case<EmbeddingOp>([&](EmbeddingOp op) {
        Exprs dims = dimsOf(op.getIndices());
        dims.push_back(getDim(op.getTable(), 1));
        return dims;
      })
      .Case<GatherOp>([&](GatherOp op) {
        Exprs input = dimsOf(op.getInput());
        int64_t axis = *axisOf(op.getAxis(), input.size());
        Exprs dims(input.begin(), input.begin() + axis);
        llvm::append_range(dims, getDims(op.getIndices()));
        dims.append(input.begin() + axis + 1, input.end());
        return dims;
      })
      .Case<TransposeOp>([&](TransposeOp op) {
        Exprs dims;
        for (int64_t axis : op.getPerm())
          dims.push_back(getDim(op.getInput(), axis));
        return dims;
      })
      .Case<UnsqueezeOp>([&](UnsqueezeOp op) -> Exprs {
        Exprs input = dimsOf(op.getInput());
        size_t rank = input.size() + op.getAxes().size();
        SmallVector<bool> added(rank, false);
        for (int64_t axis : op.getAxes()) {
          std::optional<int64_t> a = axisOf(axis, rank);
          if (!a || added[*a])
            return {};
          added[*a] = true;
        }
        Exprs dims;
        size_t next = 0;
        for (bool isNew : added)
          dims.push_back(isNew ? SymbolicExpr(1) : input[next++]);
        return dims;
      })
      .Case<SqueezeOp>([&](SqueezeOp op) -> Exprs {
        Exprs input = dimsOf(op.getInput());
        SmallVector<bool> gone(input.size(), false);
        for (int64_t axis : op.getAxes())
          if (std::optional<int64_t> a = axisOf(axis, input.size()))
            gone[*a] = true;
        Exprs dims;
        for (auto [dim, drop] : llvm::zip(input, gone))
          if (!drop)
            dims.push_back(dim);
        return dims;
      })
      .Case<ReduceOp, ArgMaxOp>([&](auto op) {
        Exprs input = dimsOf(op.getInput());
        SmallVector<int64_t> axes;
        if constexpr (std::is_same_v<decltype(op), ArgMaxOp>)
          axes.push_back(op.getAxis());
        else
          llvm::append_range(axes, op.getAxes());
        SmallVector<bool> gone(input.size(), false);
        for (int64_t axis : axes)
          if (std::optional<int64_t> a = axisOf(axis, input.size()))
            gone[*a] = true;
        Exprs dims;
        for (auto [dim, drop] : llvm::zip(input, gone))
          if (!drop || op.getKeepdims())
            dims.push_back(drop ? SymbolicExpr(1) : dim);
        return dims;
      })
      .Case<ConcatOp>([&](ConcatOp op) {
        Exprs dims = dimsOf(op.getInputs().front());
        int64_t axis = *axisOf(op.getAxis(), dims.size());
        for (Value input : op.getInputs().drop_front()) {
          ArrayRef<SymbolicExpr> other = getDims(input);
          for (auto [i, dim] : llvm::enumerate(dims)) {
            if (static_cast<int64_t>(i) == axis)
              dim = dim + other[i];
            else if (!dim.getConstant() && other[i].getConstant())
              dim = other[i]; // They are equal; keep the clearer one.
          }
        }
        return dims;
      })
      .Case<ReshapeOp>([&](ReshapeOp op) { return inferReshape(op); })
      .Case<SliceOp>([&](SliceOp op) { return inferSlice(op); })
      .Case<RangeOp>([&](RangeOp op) { return Exprs{inferRange(op)}; })
      .Case<ExpandOp>([&](ExpandOp op) -> Exprs {
        const Exprs *shape = getElements(op.getShape());
        if (!shape)
          return {};
        return broadcast(dimsOf(op.getInput()), Exprs(*shape));
      })
      .Case<ConstantOfShapeOp>([&](ConstantOfShapeOp op) -> Exprs {
        const Exprs *shape = getElements(op.getShape());
        return shape ? Exprs(*shape) : Exprs();
      })
      .Case<TileOp>([&](TileOp op) -> Exprs {
        Exprs dims = dimsOf(op.getInput());
        const Exprs *repeats = getElements(op.getRepeats());
        if (!repeats || repeats->size() != dims.size())
          return {};
        for (auto [dim, repeat] : llvm::zip(dims, *repeats))
          dim = dim * repeat;
        return dims;
      })
      .Case<SplitOp>([&](SplitOp op) -> Exprs {
        Exprs dims = dimsOf(op.getInput());
        std::optional<int64_t> axis = axisOf(op.getAxis(), dims.size());
        if (!axis)
          return {};
        SymbolicExpr &dim = dims[*axis];
        const Exprs *sizes =
            op.getSplit() ? getElements(op.getSplit()) : nullptr;
        if (sizes && result < sizes->size())
          dim = (*sizes)[result];
        else if (!op.getSplit())
          dim = dim.dividedBy(SymbolicExpr(op.getNumResults()));
        else
          dim = SymbolicExpr::unknown();
        return dims;
      })
      .Case<TopKOp>([&](TopKOp op) -> Exprs {
        Exprs dims = dimsOf(op.getInput());
        std::optional<int64_t> axis = axisOf(op.getAxis(), dims.size());
        if (!axis)
          return {};
        dims[*axis] = getScalar(op.getK()).value_or(SymbolicExpr::unknown());
        return dims;
      })
      .Case<AttentionOp, GroupQueryAttentionOp>([&](auto op) -> Exprs {
        Exprs query = dimsOf(op.getQuery()), key = dimsOf(op.getKey()),
              value = dimsOf(op.getValue());
        SymbolicExpr kvHeads(op.getKvHeads()), heads(op.getNumHeads());
        bool flat = query.size() == 3;
        SymbolicExpr keySize = flat ? key[2].dividedBy(kvHeads) : key[3];
        SymbolicExpr valueSize = flat ? value[2].dividedBy(kvHeads) : value[3];
        if (result == 0)
          return flat ? Exprs{query[0], query[1], valueSize * heads}
                      : Exprs{query[0], heads, query[2], valueSize};
        SymbolicExpr total = flat ? key[1] : key[2];
        if (op.getPastKey())
          total = total + getDim(op.getPastKey(), 2);
        return {key[0], kvHeads, total, result == 1 ? keySize : valueSize};
      })
      .Default([&](Operation *op) -> Exprs {
        if (!isElementwise(op))
          return {};
        if (op->getNumOperands() == 1)
          return dimsOf(op->getOperand(0));
        if (op->getNumOperands() == 2)
          return broadcast(dimsOf(op->getOperand(0)),
                           dimsOf(op->getOperand(1)));
        return {};
      });
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

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
