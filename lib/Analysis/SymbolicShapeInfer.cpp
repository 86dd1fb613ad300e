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
            TriluOp, GeluOp, ScatterElementsOp, ScatterNDOp>(
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
      .Case<GatherElementsOp>(
          [&](GatherElementsOp op) { return dimsOf(op.getIndices()); })
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
