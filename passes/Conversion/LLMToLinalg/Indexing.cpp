//===- Indexing.cpp - Elements and slices by computed index ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Lowerings.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::llm;
using Pred = TensorEmitter::Predicate;

/// Whether `index` counts an element of an axis of size `extent`, from either
/// end.
static Value inRange(TensorEmitter &e, Value index, Value extent) {
  return e.land(e.cmp(Pred::sge, index, e.sub(e.idx(0), extent)),
                e.cmp(Pred::slt, index, extent));
}

/// The stored element `x` combined with the stored element `old`.
static Value combine(TensorEmitter &e, StringRef reduction, Value old, Value x,
                     Type logical) {
  if (reduction == "none")
    return x;
  Value a = e.widen(old, logical), b = e.widen(x, logical), result;
  bool isFloat = isa<FloatType>(a.getType());
  bool noSign = logical.isUnsignedInteger() || logical.isInteger(1);
  if (reduction == "add")
    result = e.add(a, b);
  else if (reduction == "mul")
    result = e.mul(a, b);
  else if (reduction == "max")
    result = isFloat  ? arith::MaximumFOp::create(e, a, b).getResult()
             : noSign ? arith::MaxUIOp::create(e, a, b).getResult()
                      : e.max(a, b);
  else
    result = isFloat  ? arith::MinimumFOp::create(e, a, b).getResult()
             : noSign ? arith::MinUIOp::create(e, a, b).getResult()
                      : e.min(a, b);
  return e.narrow(result, logical);
}

/// A copy of `input`, to be written to.
static Value copyOf(TensorEmitter &e, RankedTensorType type, Value input) {
  return e.generate(type, e.dims(input),
                    [&](ValueRange ivs) { return e.extract(input, ivs); });
}

//===----------------------------------------------------------------------===//
// One index for each element
//===----------------------------------------------------------------------===//

/// Checks indices that replace the coordinate along `axis` of an element.
static void checkElementIndices(TensorEmitter &e, Value input, Value indices,
                                Type indexType, int64_t axis) {
  SmallVector<Value> from = e.dims(input), index = e.dims(indices);
  for (int64_t i = 0; i < static_cast<int64_t>(from.size()); ++i)
    if (i != axis)
      e.check(e.cmp(Pred::sle, index[i], from[i]),
              "the indices reach past the input along axis " + Twine(i));
  e.check(e.all(index,
                [&](ValueRange at) {
                  return inRange(e,
                                 e.toIndex(e.extract(indices, at), indexType),
                                 from[axis]);
                }),
          "an index is out of range");
}

/// `ivs` with the coordinate along `axis` replaced by the index there.
static SmallVector<Value> elementPlace(TensorEmitter &e, ValueRange ivs,
                                       Value indices, Type indexType,
                                       int64_t axis, Value extent) {
  SmallVector<Value> at(ivs);
  at[axis] = e.wrap(e.toIndex(e.extract(indices, ivs), indexType), extent);
  return at;
}

static Value lowerGatherElements(TensorEmitter &e, GatherElementsOp op,
                                 GatherElementsOp::Adaptor adaptor) {
  Value input = adaptor.getInput(), indices = adaptor.getIndices();
  Type indexType = elementOf(op.getIndices());
  int64_t rank = cast<RankedTensorType>(input.getType()).getRank();
  int64_t axis = *normalizeAxis(op.getAxis(), rank);
  checkElementIndices(e, input, indices, indexType, axis);
  Value extent = e.dim(input, axis);
  return e.generate(
      storageTensor(op.getType()), e.dims(indices), [&](ValueRange ivs) {
        return e.extract(
            input, elementPlace(e, ivs, indices, indexType, axis, extent));
      });
}

static Value lowerScatterElements(TensorEmitter &e, ScatterElementsOp op,
                                  ScatterElementsOp::Adaptor adaptor) {
  Value input = adaptor.getInput(), indices = adaptor.getIndices();
  Value updates = adaptor.getUpdates();
  Type logical = elementOf(op.getInput()),
       indexType = elementOf(op.getIndices());
  SmallVector<Value> index = e.dims(indices), update = e.dims(updates);
  int64_t axis = *normalizeAxis(op.getAxis(), index.size());
  for (auto [i, sizes] : llvm::enumerate(llvm::zip(index, update)))
    e.check(e.cmp(Pred::eq, std::get<0>(sizes), std::get<1>(sizes)),
            "the updates do not fit the indices along axis " + Twine(i));
  checkElementIndices(e, input, indices, indexType, axis);
  Value extent = e.dim(input, axis);
  Value copy = copyOf(e, storageTensor(op.getType()), input);
  return e.loops(
      update, copy, [&](ValueRange at, ValueRange state) -> SmallVector<Value> {
        SmallVector<Value> place =
            elementPlace(e, at, indices, indexType, axis, extent);
        Value x = combine(e, op.getReduction(), e.extract(state[0], place),
                          e.extract(updates, at), logical);
        return {tensor::InsertOp::create(e, x, state[0], place)};
      })[0];
}

//===----------------------------------------------------------------------===//
// Index tuples
//===----------------------------------------------------------------------===//

namespace {
/// Tuples of `depth` indices along the last axis of a tensor, into the axes of
/// `from` after the first `batch`.
struct Tuples {
  TensorEmitter &e;
  Value indices;
  Type type;
  SmallVector<Value> from;
  int64_t batch, depth;

  /// Number `i` of the tuple at `at`.
  Value coordinate(ValueRange at, int64_t i) const {
    SmallVector<Value> place(at);
    place.push_back(e.idx(i));
    return e.toIndex(e.extract(indices, place), type);
  }
  void check() const {
    SmallVector<Value> sizes = e.dims(indices);
    sizes.pop_back();
    e.check(e.all(sizes,
                  [&](ValueRange at) {
                    Value ok = e.constantInt(e.getI1Type(), 1);
                    for (int64_t i = 0; i < depth; ++i)
                      ok = e.land(
                          ok, inRange(e, coordinate(at, i), from[batch + i]));
                    return ok;
                  }),
            "an index is out of range");
  }
  /// What the tuple at `at` points to.
  SmallVector<Value> place(ValueRange at) const {
    SmallVector<Value> result(at.take_front(batch));
    for (int64_t i = 0; i < depth; ++i)
      result.push_back(e.wrap(coordinate(at, i), from[batch + i]));
    return result;
  }
};
} // namespace

static Value lowerGatherND(TensorEmitter &e, GatherNDOp op,
                           GatherNDOp::Adaptor adaptor) {
  Value input = adaptor.getInput(), indices = adaptor.getIndices();
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(indices.getType()).getShape();
  int64_t batch = op.getBatchDims();
  Tuples tuples{e,     indices,     elementOf(op.getIndices()), e.dims(input),
                batch, shape.back()};
  SmallVector<Value> sizes = e.dims(indices);
  sizes.pop_back();
  for (int64_t i = 0; i < batch; ++i)
    e.check(e.cmp(Pred::eq, sizes[i], tuples.from[i]),
            "input and indices differ along axis " + Twine(i));
  tuples.check();
  size_t outer = sizes.size();
  sizes.append(tuples.from.begin() + batch + tuples.depth, tuples.from.end());
  return e.generate(storageTensor(op.getType()), sizes, [&](ValueRange ivs) {
    SmallVector<Value> at = tuples.place(ivs.take_front(outer));
    llvm::append_range(at, ivs.drop_front(outer));
    return e.extract(input, at);
  });
}

static Value lowerScatterND(TensorEmitter &e, ScatterNDOp op,
                            ScatterNDOp::Adaptor adaptor) {
  Value input = adaptor.getInput(), indices = adaptor.getIndices();
  Value updates = adaptor.getUpdates();
  Type logical = elementOf(op.getInput());
  SmallVector<Value> index = e.dims(indices), update = e.dims(updates);
  int64_t depth = cast<RankedTensorType>(indices.getType()).getShape().back();
  Tuples tuples{e, indices, elementOf(op.getIndices()), e.dims(input),
                0, depth};
  size_t outer = index.size() - 1;
  for (size_t i = 0; i < update.size(); ++i)
    e.check(e.cmp(Pred::eq, update[i],
                  i < outer ? index[i] : tuples.from[depth + i - outer]),
            "the updates do not fit the indices along axis " + Twine(i));
  tuples.check();
  Value copy = copyOf(e, storageTensor(op.getType()), input);
  return e.loops(
      update, copy, [&](ValueRange at, ValueRange state) -> SmallVector<Value> {
        SmallVector<Value> place = tuples.place(at.take_front(outer));
        llvm::append_range(place, at.drop_front(outer));
        Value x = combine(e, op.getReduction(), e.extract(state[0], place),
                          e.extract(updates, at), logical);
        return {tensor::InsertOp::create(e, x, state[0], place)};
      })[0];
}

void mlir::llm::populateIndexingLowerings(RewritePatternSet &patterns,
                                          const TypeConverter &types) {
  addLowering<GatherElementsOp, lowerGatherElements>(patterns, types);
  addLowering<GatherNDOp, lowerGatherND>(patterns, types);
  addLowering<ScatterElementsOp, lowerScatterElements>(patterns, types);
  addLowering<ScatterNDOp, lowerScatterND>(patterns, types);
}
