//===- Movement.cpp - Lowering of ops that move elements ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Lowerings.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::llm;

using Pred = TensorEmitter::Predicate;

static Value lowerConcat(TensorEmitter &e, ConcatOp op,
                         ConcatOp::Adaptor adaptor) {
  RankedTensorType type = storageTensor(op.getType());
  int64_t axis = *normalizeAxis(op.getAxis(), type.getRank());
  SmallVector<Value> sizes = e.dims(adaptor.getInputs()[0]);
  Value total = e.idx(0);
  for (auto [n, input] : llvm::enumerate(adaptor.getInputs())) {
    SmallVector<Value> own = e.dims(input);
    for (size_t i = 0; i < own.size(); ++i)
      if (static_cast<int64_t>(i) != axis)
        e.check(e.cmp(Pred::eq, own[i], sizes[i]),
                "input " + Twine(n) + " has another size along axis " +
                    Twine(i));
    total = e.add(total, own[axis]);
  }
  sizes[axis] = total;
  e.checkSizes(type, sizes);
  SmallVector<Value> dynamic;
  for (auto [size, extent] : llvm::zip(sizes, type.getShape()))
    if (ShapedType::isDynamic(extent))
      dynamic.push_back(size);
  Value result = tensor::EmptyOp::create(e, type, dynamic);
  Value offset = e.idx(0);
  for (Value input : adaptor.getInputs()) {
    SmallVector<Value> own = e.dims(input);
    result =
        e.loops(own, result,
                [&](ValueRange at, ValueRange state) -> SmallVector<Value> {
                  SmallVector<Value> place(at);
                  place[axis] = e.add(at[axis], offset);
                  return {tensor::InsertOp::create(e, e.extract(input, at),
                                                   state[0], place)};
                })[0];
    offset = e.add(offset, own[axis]);
  }
  return result;
}

static Value lowerTranspose(TensorEmitter &e, TransposeOp op,
                            TransposeOp::Adaptor adaptor) {
  Value input = adaptor.getInput();
  SmallVector<Value> from = e.dims(input), sizes;
  for (int64_t axis : op.getPerm())
    sizes.push_back(from[axis]);
  return e.generate(storageTensor(op.getType()), sizes, [&](ValueRange ivs) {
    SmallVector<Value> at(ivs.size());
    for (auto [i, axis] : llvm::enumerate(op.getPerm()))
      at[axis] = ivs[i];
    return e.extract(input, at);
  });
}

static Value lowerGather(TensorEmitter &e, GatherOp op,
                         GatherOp::Adaptor adaptor) {
  Value input = adaptor.getInput(), indices = adaptor.getIndices();
  Type indexType = elementOf(op.getIndices());
  SmallVector<Value> from = e.dims(input), index = e.dims(indices), sizes;
  int64_t axis = *normalizeAxis(op.getAxis(), from.size());
  Value extent = from[axis];
  e.check(e.all(index,
                [&](ValueRange at) {
                  Value i = e.toIndex(e.extract(indices, at), indexType);
                  Value zero = e.idx(0);
                  return e.land(e.cmp(Pred::sge, i, e.sub(zero, extent)),
                                e.cmp(Pred::slt, i, extent));
                }),
          "an index is out of range");
  sizes.append(from.begin(), from.begin() + axis);
  sizes.append(index);
  sizes.append(from.begin() + axis + 1, from.end());
  return e.generate(storageTensor(op.getType()), sizes, [&](ValueRange ivs) {
    SmallVector<Value> at(ivs.take_front(axis));
    Value i =
        e.toIndex(e.extract(indices, ivs.slice(axis, index.size())), indexType);
    at.push_back(e.wrap(i, extent));
    llvm::append_range(at, ivs.drop_front(axis + index.size()));
    return e.extract(input, at);
  });
}

static Value lowerEmbedding(TensorEmitter &e, EmbeddingOp op,
                            EmbeddingOp::Adaptor adaptor) {
  Value table = adaptor.getTable(), indices = adaptor.getIndices();
  SmallVector<Value> sizes = e.dims(indices);
  Value rows = e.dim(table, 0);
  e.check(e.cmp(Pred::sgt, rows, 0), "the table has no rows");
  sizes.push_back(e.dim(table, 1));
  Type from = elementOf(op.getTable()), to = elementOf(op.getResult());
  return e.generate(storageTensor(op.getType()), sizes, [&](ValueRange ivs) {
    Value i = e.toIndex(e.extract(indices, ivs.drop_back()),
                        elementOf(op.getIndices()));
    i = e.min(e.max(i, e.idx(0)), e.sub(rows, e.idx(1)));
    Value x = e.read(table, {i, ivs.back()}, from);
    return e.narrow(e.convert(x, from, to), to);
  });
}

static Value lowerTile(TensorEmitter &e, TileOp op, TileOp::Adaptor adaptor) {
  Value input = adaptor.getInput(), repeats = adaptor.getRepeats();
  SmallVector<Value> from = e.dims(input), sizes;
  int64_t rank = from.size();
  e.check(e.cmp(Pred::eq, e.dim(repeats, 0), rank),
          "one count is needed for each axis");
  for (int64_t i = 0; i < rank; ++i) {
    Value count = e.readIndex(repeats, elementOf(op.getRepeats()), i);
    e.check(e.land(e.cmp(Pred::sge, count, 0),
                   e.cmp(Pred::slt, count, int64_t{1} << 40)),
            "a count is negative or absurd");
    sizes.push_back(e.mul(from[i], count));
  }
  return e.generate(storageTensor(op.getType()), sizes, [&](ValueRange ivs) {
    SmallVector<Value> at;
    for (int64_t i = 0; i < rank; ++i)
      at.push_back(e.rem(ivs[i], e.max(from[i], e.idx(1))));
    return e.extract(input, at);
  });
}

static Value lowerTrilu(TensorEmitter &e, TriluOp op,
                        TriluOp::Adaptor adaptor) {
  Value input = adaptor.getInput();
  RankedTensorType type = storageTensor(op.getType());
  if (type.getRank() < 2) {
    op.emitOpError("the input has at least two axes");
    return {};
  }
  Value diagonal = e.idx(0);
  if (adaptor.getDiagonal()) {
    e.check(e.cmp(Pred::eq, e.product(e.dims(adaptor.getDiagonal())), 1),
            "the diagonal is one number");
    diagonal = e.readIndex(adaptor.getDiagonal(), elementOf(op.getDiagonal()));
    // Beyond 2^48 nothing changes any more, and sums do not wrap.
    int64_t limit = int64_t{1} << 48;
    diagonal = e.max(e.min(diagonal, e.idx(limit)), e.idx(-limit));
  }
  Value zero = e.constant(type.getElementType(), 0);
  return e.generate(type, e.dims(input), [&](ValueRange ivs) {
    Value row = e.add(ivs[ivs.size() - 2], diagonal), column = ivs.back();
    Value keep = e.cmp(op.getUpper() ? Pred::sge : Pred::sle, column, row);
    return e.select(keep, e.extract(input, ivs), zero);
  });
}

static Value lowerSlice(TensorEmitter &e, SliceOp op,
                        SliceOp::Adaptor adaptor) {
  Value input = adaptor.getInput();
  SmallVector<Value> from = e.dims(input), sizes = from;
  int64_t rank = from.size();
  auto starts = cast<RankedTensorType>(op.getStarts().getType());
  int64_t count = starts.getDimSize(0);
  if (ShapedType::isDynamic(count) || count > rank) {
    op.emitOpError("the number of sliced axes must be known and at most the "
                   "rank, got ")
        << starts;
    return {};
  }
  for (Value operand :
       {adaptor.getEnds(), adaptor.getAxes(), adaptor.getSteps()})
    if (operand)
      e.check(e.cmp(Pred::eq, e.dim(operand, 0), count),
              "starts, ends, axes and steps have the same length");
  SmallVector<Value> begin(rank, e.idx(0)), step(rank, e.idx(1));
  Value zero = e.idx(0), one = e.idx(1);
  SmallVector<std::array<Value, 4>> parts;
  for (int64_t i = 0; i < count; ++i) {
    Value axis =
        adaptor.getAxes()
            ? e.wrap(e.readIndex(adaptor.getAxes(), elementOf(op.getAxes()), i),
                     e.idx(rank))
            : e.idx(i);
    Value stride = adaptor.getSteps() ? e.readIndex(adaptor.getSteps(),
                                                    elementOf(op.getSteps()), i)
                                      : one;
    e.check(e.land(e.cmp(Pred::sge, axis, 0), e.cmp(Pred::slt, axis, rank)),
            "an axis is out of range");
    e.check(e.cmp(Pred::ne, stride, 0), "a step is 0");
    // Far beyond any size; the negation below does not wrap.
    Value limit = e.idx(int64_t{1} << 48);
    stride = e.max(e.min(stride, limit), e.sub(zero, limit));
    parts.push_back(
        {axis, e.readIndex(adaptor.getStarts(), elementOf(op.getStarts()), i),
         e.readIndex(adaptor.getEnds(), elementOf(op.getEnds()), i), stride});
  }
  // With axes that only the run knows, every part is offered to every axis.
  for (int64_t axis = 0; axis < rank; ++axis)
    for (auto [at, first, last, stride] : parts) {
      Value here = e.cmp(Pred::eq, at, axis);
      if (constantOf(here) == 0)
        continue;
      Value size = from[axis];
      Value forward = e.cmp(Pred::sgt, stride, 0);
      auto clamp = [&](Value v, Value low, Value high) {
        return e.min(e.max(e.wrap(v, size), low), high);
      };
      Value minusOne = e.idx(-1), top = e.sub(size, one);
      // Forwards within [0, size]; backwards within [-1, size - 1].
      Value start =
          e.select(forward, clamp(first, zero, size), clamp(first, zero, top));
      Value end = e.select(forward, clamp(last, zero, size),
                           clamp(last, minusOne, top));
      Value span = e.select(forward, e.sub(end, start), e.sub(start, end));
      Value stepSize = e.select(forward, stride, e.sub(zero, stride));
      stepSize = e.max(stepSize, one);
      Value length =
          e.div(e.add(e.max(span, zero), e.sub(stepSize, one)), stepSize);
      sizes[axis] = e.select(here, length, sizes[axis]);
      begin[axis] = e.select(here, start, begin[axis]);
      step[axis] = e.select(here, stride, step[axis]);
    }
  return e.generate(storageTensor(op.getType()), sizes, [&](ValueRange ivs) {
    SmallVector<Value> at;
    for (int64_t i = 0; i < rank; ++i)
      at.push_back(e.add(begin[i], e.mul(ivs[i], step[i])));
    return e.extract(input, at);
  });
}

static SmallVector<Value> lowerSplit(TensorEmitter &e, SplitOp op,
                                     SplitOp::Adaptor adaptor) {
  Value input = adaptor.getInput();
  SmallVector<Value> from = e.dims(input), results;
  std::optional<int64_t> axis = normalizeAxis(op.getAxis(), from.size());
  if (!axis) {
    op.emitOpError("axis ")
        << op.getAxis() << " is outside " << op.getInput().getType();
    return {};
  }
  int64_t count = op.getNumResults();
  Value extent = from[*axis];
  SmallVector<Value> lengths;
  if (adaptor.getSplit()) {
    e.check(e.cmp(Pred::eq, e.dim(adaptor.getSplit(), 0), count),
            "one size is needed for each of " + Twine(count) + " parts");
    Value total = e.idx(0);
    for (int64_t i = 0; i < count; ++i) {
      Value length =
          e.readIndex(adaptor.getSplit(), elementOf(op.getSplit()), i);
      e.check(
          e.land(e.cmp(Pred::sge, length, 0), e.cmp(Pred::sle, length, extent)),
          "a part is negative or larger than the axis");
      total = e.add(total, length);
      lengths.push_back(length);
    }
    e.check(e.cmp(Pred::eq, total, extent),
            "the parts do not add up to the axis");
  } else {
    // Equal parts, the last ones what is left.
    Value parts = e.idx(count), left = extent;
    Value part = e.div(e.add(extent, e.idx(count - 1)), parts);
    for (int64_t i = 0; i < count; ++i) {
      lengths.push_back(e.min(part, left));
      left = e.sub(left, lengths.back());
    }
  }
  Value offset = e.idx(0);
  for (auto [length, result] : llvm::zip(lengths, op.getResults())) {
    SmallVector<Value> sizes = from;
    sizes[*axis] = length;
    results.push_back(
        e.generate(storageTensor(result.getType()), sizes, [&](ValueRange ivs) {
          SmallVector<Value> at(ivs);
          at[*axis] = e.add(at[*axis], offset);
          return e.extract(input, at);
        }));
    offset = e.add(offset, length);
  }
  return results;
}

/// The index in the input, along an axis of size `extent`, of what stands `at`
/// (from the input's first element) in a padded result.
static Value paddedIndex(TensorEmitter &e, StringRef mode, Value at,
                         Value extent) {
  Value one = e.idx(1), last = e.sub(extent, one);
  if (mode == "edge")
    return e.max(e.min(at, last), e.idx(0));
  // Mirroring at the end elements has a period of all but one, twice.
  Value period = mode == "wrap" ? extent : e.add(last, last);
  period = e.max(period, one);
  Value within = e.wrap(arith::RemSIOp::create(e, at, period), period);
  if (mode == "wrap")
    return within;
  return e.select(e.cmp(Pred::slt, within, extent), within,
                  e.sub(period, within));
}

static Value lowerPad(TensorEmitter &e, PadOp op, PadOp::Adaptor adaptor) {
  Value input = adaptor.getInput(), pads = adaptor.getPads();
  Type padType = elementOf(op.getPads());
  RankedTensorType type = storageTensor(op.getType());
  SmallVector<Value> from = e.dims(input), begin, sizes;
  int64_t rank = from.size();
  bool constant = op.getMode() == "constant";
  e.check(e.cmp(Pred::eq, e.dim(pads, 0), 2 * rank),
          "two pads are needed for each axis");
  for (int64_t i = 0; i < rank; ++i) {
    Value before = e.readIndex(pads, padType, i);
    Value behind = e.readIndex(pads, padType, rank + i);
    for (Value pad : {before, behind})
      e.check(e.land(e.cmp(Pred::sgt, pad, -(int64_t{1} << 40)),
                     e.cmp(Pred::slt, pad, int64_t{1} << 40)),
              "a pad is absurd");
    Value size = e.add(from[i], e.add(before, behind));
    e.check(e.cmp(Pred::sge, size, 0), "the pads cut off more than there is");
    if (!constant)
      e.check(e.lor(e.cmp(Pred::sgt, from[i], 0), e.cmp(Pred::eq, size, 0)),
              "there is no element to pad with along axis " + Twine(i));
    begin.push_back(before);
    sizes.push_back(size);
  }
  Value value = e.constant(type.getElementType(), 0);
  if (Value given = adaptor.getValue()) {
    e.check(e.cmp(Pred::eq, e.product(e.dims(given)), 1),
            "the value is one element");
    int64_t valueRank = cast<RankedTensorType>(given.getType()).getRank();
    value = e.extract(given, SmallVector<Value>(valueRank, e.idx(0)));
  }
  return e.generate(type, sizes, [&](ValueRange ivs) -> Value {
    SmallVector<Value> at;
    Value inside = e.constantInt(e.getI1Type(), 1);
    for (int64_t i = 0; i < rank; ++i) {
      Value place = e.sub(ivs[i], begin[i]);
      if (constant)
        inside = e.land(inside, e.land(e.cmp(Pred::sge, place, 0),
                                       e.cmp(Pred::slt, place, from[i])));
      else
        place = paddedIndex(e, op.getMode(), place, from[i]);
      at.push_back(place);
    }
    if (!constant)
      return e.extract(input, at);
    auto branch = scf::IfOp::create(e, value.getType(), inside, true);
    OpBuilder::InsertionGuard guard(e);
    e.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(e, e.extract(input, at));
    e.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(e, value);
    return branch.getResult(0);
  });
}

void mlir::llm::populateMovementLowerings(RewritePatternSet &patterns,
                                          const TypeConverter &types) {
  addLowering<ConcatOp, lowerConcat>(patterns, types);
  addLowering<EmbeddingOp, lowerEmbedding>(patterns, types);
  addLowering<GatherOp, lowerGather>(patterns, types);
  addLowering<PadOp, lowerPad>(patterns, types);
  addLowering<SliceOp, lowerSlice>(patterns, types);
  addLowering<SplitOp, lowerSplit>(patterns, types);
  addLowering<TileOp, lowerTile>(patterns, types);
  addLowering<TransposeOp, lowerTranspose>(patterns, types);
  addLowering<TriluOp, lowerTrilu>(patterns, types);
}
