//===- LLMShapeOps.cpp - Shapes and data movement -------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/LLM/IR/LLMVerify.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::detail;

//===----------------------------------------------------------------------===//
// Shape and data movement
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError("needs an input");
  auto result = tensorOf(getResult());
  if (failed(verifyAxis(*this, getAxis(), result.getRank())))
    return failure();
  int64_t axis = *normalizeAxis(getAxis(), result.getRank()), sum = 0;
  for (Value input : getInputs()) {
    auto type = tensorOf(input);
    if (type.getRank() != result.getRank() ||
        type.getElementType() != result.getElementType())
      return emitOpError("input ") << type << " does not fit " << result;
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (i != axis && differ(type.getDimSize(i), result.getDimSize(i)))
        return emitOpError("input ")
               << type << " does not fit " << result << " beside axis " << axis;
    if (ShapedType::isDynamic(sum) || type.isDynamicDim(axis))
      sum = ShapedType::kDynamic;
    else if (__builtin_add_overflow(sum, type.getDimSize(axis), &sum))
      return emitOpError("inputs are too long along the axis");
  }
  if (differ(sum, result.getDimSize(axis)))
    return emitOpError("inputs add up to ") << sum << " along the axis";
  return success();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getInputs().size() == 1 && getInputs()[0].getType() == getType())
    return getInputs()[0];
  return {};
}

LogicalResult ConstantOfShapeOp::verify() {
  auto shape = tensorOf(getShape()), result = tensorOf(getResult());
  if (failed(verifyVector(*this, getShape(), "the shape")))
    return failure();
  if (differ(shape.getDimSize(0), result.getRank()))
    return emitOpError("a shape of ")
           << shape.getDimSize(0) << " sizes gives no " << result;
  auto value = cast<ElementsAttr>(getValueAttr());
  if (value.getNumElements() != 1 ||
      value.getElementType() != result.getElementType())
    return emitOpError("value must be one element of type ")
           << result.getElementType() << ", it is " << value.getType();
  return success();
}

LogicalResult ExpandOp::verify() {
  auto input = tensorOf(getInput()), shape = tensorOf(getShape()),
       result = tensorOf(getResult());
  if (failed(verifyVector(*this, getShape(), "the shape")) ||
      failed(verifySameElements(*this)))
    return failure();
  int64_t length = shape.getDimSize(0);
  bool ranks = ShapedType::isDynamic(length)
                   ? result.getRank() >= input.getRank()
                   : result.getRank() == std::max(length, input.getRank());
  if (!ranks)
    return emitOpError("a shape of ")
           << shape << " expands " << input << " to no " << result;
  for (auto [from, to] : llvm::zip(llvm::reverse(input.getShape()),
                                   llvm::reverse(result.getShape())))
    if (from != 1 && differ(from, to))
      return emitOpError("does not expand ") << input << " to " << result;
  return success();
}

/// To the own type, where every size is known.
OpFoldResult ExpandOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType() && getType().hasStaticShape())
    return getInput();
  return {};
}

LogicalResult GatherOp::verify() {
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices());
  if (failed(verifyAxis(*this, getAxis(), input.getRank())))
    return failure();
  int64_t axis = *normalizeAxis(getAxis(), input.getRank());
  SmallVector<int64_t> shape(input.getShape().take_front(axis));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, input.getShape().drop_front(axis + 1));
  if (failed(verifySameElements(*this)))
    return failure();
  return verifyResultShape(*this, shape);
}

/// Gather of a constant vector by a constant scalar or vector of indices: the
/// commonest piece of shape arithmetic.
OpFoldResult GatherOp::fold(FoldAdaptor adaptor) {
  // A splat says that it is larger than anyone wants written out.
  constexpr int64_t kMaxElements = 4096;
  auto data = dyn_cast_or_null<DenseIntElementsAttr>(adaptor.getInput());
  auto indices = dyn_cast_or_null<DenseIntElementsAttr>(adaptor.getIndices());
  if (!data || !indices || tensorOf(getInput()).getRank() != 1 ||
      !getType().hasStaticShape() || indices.getNumElements() > kMaxElements)
    return {};
  bool isUnsigned = indices.getElementType().isUnsignedInteger();
  SmallVector<APInt> out;
  for (const APInt &index : indices.getValues<APInt>()) {
    // A bit more makes an unsigned index a signed one.
    std::optional<int64_t> at =
        (isUnsigned ? index.zext(index.getBitWidth() + 1) : index)
            .trySExtValue();
    if (at)
      at = normalizeAxis(*at, data.getNumElements());
    if (!at)
      return {};
    out.push_back(*(data.value_begin<APInt>() + *at));
  }
  return DenseIntElementsAttr::get(getType(), out);
}

LogicalResult RangeOp::verify() {
  for (Value operand : getOperands())
    if (tensorOf(operand).getRank() != 0 ||
        tensorOf(operand).getElementType() !=
            tensorOf(getStart()).getElementType())
      return emitOpError("start, limit and delta are scalars of one type, not ")
             << operand.getType();
  if (failed(verifySameElements(*this)))
    return failure();
  return verifyResultShape(*this, {ShapedType::kDynamic});
}

LogicalResult ReshapeOp::verify() {
  auto shape = tensorOf(getShape());
  if (failed(verifyVector(*this, getShape(), "the shape")) ||
      failed(verifySameElements(*this)))
    return failure();
  auto input = tensorOf(getInput()), result = tensorOf(getResult());
  if (differ(shape.getDimSize(0), result.getRank()))
    return emitOpError("a shape of ")
           << shape.getDimSize(0) << " sizes gives no " << result;
  std::optional<int64_t> from = countElements(input.getShape());
  std::optional<int64_t> to = countElements(result.getShape());
  if (from && to && from != to)
    return emitOpError("the input has ")
           << *from << " elements, the result " << *to;
  return success();
}

/// To the own type. At most one size may be dynamic, and then none may be zero:
/// the number of elements says what it is. A reshape of a reshape stays two:
/// raising reads heads and flattened rows in the shapes between.
OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  auto type = tensorOf(getResult());
  int64_t dynamic = type.getNumDynamicDims();
  bool certain =
      dynamic == 0 || (dynamic == 1 && !llvm::is_contained(type.getShape(), 0));
  if (getInput().getType() == type && certain)
    return getInput();
  return {};
}

/// `start` and the end of an llm.shape, in [0, rank].
static std::pair<int64_t, int64_t> boundsOf(ShapeOp op) {
  int64_t rank = tensorOf(op.getInput()).getRank();
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t start = clamp(op.getStart());
  std::optional<uint64_t> end = op.getEnd();
  return {start, std::max(start, end ? clamp(*end) : rank)};
}

LogicalResult ShapeOp::verify() {
  auto [start, end] = boundsOf(*this);
  return verifyResultShape(*this, {end - start});
}

OpFoldResult ShapeOp::fold(FoldAdaptor) {
  auto [start, end] = boundsOf(*this);
  ArrayRef<int64_t> dims =
      tensorOf(getInput()).getShape().slice(start, end - start);
  auto result = tensorOf(getResult());
  if (llvm::any_of(dims, ShapedType::isDynamic) || !result.hasStaticShape())
    return {};
  unsigned width = result.getElementTypeBitWidth();
  SmallVector<APInt> sizes;
  for (int64_t dim : dims) {
    if (width < 64 && !llvm::isIntN(width, dim))
      return {};
    sizes.emplace_back(width, dim);
  }
  return DenseIntElementsAttr::get(result, sizes);
}

LogicalResult SliceOp::verify() {
  auto input = tensorOf(getInput()), result = tensorOf(getResult());
  int64_t length = ShapedType::kDynamic;
  std::pair<Value, StringRef> lists[] = {{getStarts(), "starts"},
                                         {getEnds(), "ends"},
                                         {getAxes(), "axes"},
                                         {getSteps(), "steps"}};
  for (auto [list, name] : lists) {
    if (!list)
      continue;
    if (failed(verifyVector(*this, list, name)))
      return failure();
    int64_t own = tensorOf(list).getDimSize(0);
    if (differ(length, own))
      return emitOpError("starts, ends, axes and steps differ in length");
    if (!ShapedType::isDynamic(own))
      length = own;
  }
  if (!ShapedType::isDynamic(length) && length > input.getRank())
    return emitOpError("cuts ") << length << " axes of " << input;
  if (failed(verifySameElements(*this)))
    return failure();
  SmallVector<int64_t> any(input.getRank(), ShapedType::kDynamic);
  if (failed(verifyResultShape(*this, any)))
    return failure();
  for (auto [from, to] : llvm::zip(input.getShape(), result.getShape()))
    if (!ShapedType::isDynamic(from) && to > from)
      return emitOpError("gives ") << result << ", more than " << input;
  return success();
}

LogicalResult SplitOp::verify() {
  auto input = tensorOf(getInput());
  if (failed(verifyAxis(*this, getAxis(), input.getRank())))
    return failure();
  int64_t axis = *normalizeAxis(getAxis(), input.getRank()), sum = 0;
  int64_t parts = getNumResults();
  if (parts == 0)
    return emitOpError("needs a result");
  if (getSplit() && (failed(verifyVector(*this, getSplit(), "sizes"))))
    return failure();
  if (getSplit() && differ(tensorOf(getSplit()).getDimSize(0), parts))
    return emitOpError("has ") << tensorOf(getSplit()).getDimSize(0)
                               << " sizes for " << parts << " results";
  SmallVector<int64_t> shape(input.getShape());
  shape[axis] = ShapedType::kDynamic;
  for (int64_t i = 0; i < parts; ++i) {
    if (failed(verifySameElements(*this, i)) ||
        failed(verifyResultShape(*this, shape, i)))
      return failure();
    int64_t dim = tensorOf(getResult(i)).getDimSize(axis);
    if (ShapedType::isDynamic(sum) || ShapedType::isDynamic(dim))
      sum = ShapedType::kDynamic;
    else if (__builtin_add_overflow(sum, dim, &sum))
      return emitOpError("results are too long along the axis");
  }
  if (differ(sum, input.getDimSize(axis)))
    return emitOpError("results add up to ")
           << sum << " along the axis, the input has "
           << input.getDimSize(axis);
  return success();
}

LogicalResult TileOp::verify() {
  auto input = tensorOf(getInput()), result = tensorOf(getResult());
  if (failed(verifyVector(*this, getRepeats(), "repeats")) ||
      failed(verifySameElements(*this)))
    return failure();
  if (differ(tensorOf(getRepeats()).getDimSize(0), input.getRank()))
    return emitOpError("has ")
           << tensorOf(getRepeats()).getDimSize(0) << " repeats for " << input;
  SmallVector<int64_t> any(input.getRank(), ShapedType::kDynamic);
  if (failed(verifyResultShape(*this, any)))
    return failure();
  for (auto [from, to] : llvm::zip(input.getShape(), result.getShape())) {
    if (ShapedType::isDynamic(from) || ShapedType::isDynamic(to))
      continue;
    if (from == 0 ? to != 0 : to % from != 0)
      return emitOpError("gives ") << result << ", no multiple of " << input;
  }
  return success();
}

LogicalResult TransposeOp::verify() {
  auto input = tensorOf(getInput());
  ArrayRef<int64_t> perm = getPerm();
  SmallVector<bool> seen(input.getRank(), false);
  if (static_cast<int64_t>(perm.size()) != input.getRank())
    return emitOpError("perm has ")
           << perm.size() << " axes, the input " << input.getRank();
  SmallVector<int64_t> shape;
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= input.getRank() || seen[axis])
      return emitOpError("perm is no permutation");
    seen[axis] = true;
    shape.push_back(input.getDimSize(axis));
  }
  if (failed(verifySameElements(*this)))
    return failure();
  return verifyResultShape(*this, shape);
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  bool identity = true;
  for (auto [i, axis] : llvm::enumerate(getPerm()))
    identity &= static_cast<int64_t>(i) == axis;
  if (identity && getInput().getType() == getType())
    return getInput();
  // transpose(transpose(x)) back to x.
  auto inner = getInput().getDefiningOp<TransposeOp>();
  if (!inner || inner.getInput().getType() != getType())
    return {};
  for (auto [i, axis] : llvm::enumerate(getPerm()))
    if (inner.getPerm()[axis] != static_cast<int64_t>(i))
      return {};
  return inner.getInput();
}

/// A constant keeps its elements when only dimensions of size 1 change.
static OpFoldResult foldReshaped(Attribute input, Type type) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(input);
  auto result = cast<RankedTensorType>(type);
  if (!elements || !result.hasStaticShape())
    return {};
  return elements.reshape(result);
}

/// `shape` without the axes `named`.
static SmallVector<int64_t> dropAxes(ArrayRef<int64_t> shape,
                                     ArrayRef<bool> named) {
  SmallVector<int64_t> rest;
  for (auto [dim, gone] : llvm::zip(shape, named))
    if (!gone)
      rest.push_back(dim);
  return rest;
}

LogicalResult SqueezeOp::verify() {
  auto input = tensorOf(getInput());
  SmallVector<bool> named;
  if (failed(verifyAxes(*this, getAxes(), input.getRank(), named)) ||
      failed(verifySameElements(*this)))
    return failure();
  for (auto [i, gone] : llvm::enumerate(named))
    if (gone && differ(input.getDimSize(i), 1))
      return emitOpError("axis ")
             << i << " of " << input << " is not of size 1";
  return verifyResultShape(*this, dropAxes(input.getShape(), named));
}

/// A constant; or back from an unsqueeze, whatever the axes: sizes of 1 carry
/// no elements, and the types say that the others are in place.
OpFoldResult SqueezeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto inner = getInput().getDefiningOp<UnsqueezeOp>();
  if (inner && inner.getInput().getType() == getType() &&
      getType().getNumDynamicDims() <= 1)
    return inner.getInput();
  return foldReshaped(adaptor.getInput(), getType());
}

LogicalResult TriluOp::verify() {
  auto input = tensorOf(getInput());
  if (input.getRank() < 2)
    return emitOpError("the input is at least a matrix, not ") << input;
  if (getDiagonal() &&
      failed(verifyScalar(*this, getDiagonal(), "the diagonal")))
    return failure();
  if (failed(verifySameElements(*this)))
    return failure();
  return verifyResultShape(*this, input.getShape());
}

LogicalResult UnsqueezeOp::verify() {
  auto input = tensorOf(getInput()), result = tensorOf(getResult());
  SmallVector<bool> named;
  if (failed(verifyAxes(*this, getAxes(), result.getRank(), named)) ||
      failed(verifySameElements(*this)))
    return failure();
  SmallVector<int64_t> rest = dropAxes(result.getShape(), named);
  for (auto [i, added] : llvm::enumerate(named))
    if (added && differ(result.getDimSize(i), 1))
      return emitOpError("axis ")
             << i << " of " << result << " is not of size 1";
  if (!compatible(rest, input.getShape()))
    return emitOpError("the result ")
           << result << " has other sizes than " << input << " beside the axes";
  return success();
}

OpFoldResult UnsqueezeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto inner = getInput().getDefiningOp<SqueezeOp>();
  if (inner && inner.getInput().getType() == getType() &&
      getType().getNumDynamicDims() <= 1)
    return inner.getInput();
  return foldReshaped(adaptor.getInput(), getType());
}
