//===- LLMComputeOps.cpp - Elementwise ops, reductions and products -------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/LLM/IR/LLMVerify.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::detail;

//===----------------------------------------------------------------------===//
// Elementwise, reductions and products
//===----------------------------------------------------------------------===//

/// Whether `to` holds every value of `from` (signless integers are signed, i1
/// is 0 or 1).
static bool holds(Type to, Type from) {
  auto toInt = dyn_cast<IntegerType>(to), fromInt = dyn_cast<IntegerType>(from);
  // Bits that the magnitude takes.
  auto magnitude = [](IntegerType type) {
    bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
    return std::pair(type.getWidth() - (isUnsigned ? 0u : 1u), isUnsigned);
  };
  if (toInt && fromInt) {
    auto [toBits, toUnsigned] = magnitude(toInt);
    auto [fromBits, fromUnsigned] = magnitude(fromInt);
    return toBits >= fromBits && (!toUnsigned || fromUnsigned);
  }
  auto toFloat = dyn_cast<FloatType>(to), fromFloat = dyn_cast<FloatType>(from);
  // Narrower ones may lack infinities, and a cast back to them saturates.
  if (toFloat && fromFloat)
    return toFloat.getWidth() >= 16 && fromFloat.getWidth() >= 16 &&
           APFloat::isRepresentableBy(fromFloat.getFloatSemantics(),
                                      toFloat.getFloatSemantics());
  // A float type of 32 bits or more has the range for what its fraction holds.
  return toFloat && fromInt && toFloat.getWidth() >= 32 &&
         APFloat::semanticsPrecision(toFloat.getFloatSemantics()) >=
             magnitude(fromInt).first;
}

/// A cast to the own type, or there and back through a type that holds all
/// values.
OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto inner = getInput().getDefiningOp<CastOp>();
  if (inner && inner.getInput().getType() == getType() &&
      holds(tensorOf(inner.getResult()).getElementType(),
            tensorOf(getResult()).getElementType()))
    return inner.getInput();
  return {};
}

LogicalResult WhereOp::verify() {
  auto x = tensorOf(getX()), y = tensorOf(getY());
  if (x.getElementType() != y.getElementType() ||
      x.getElementType() != tensorOf(getResult()).getElementType())
    return emitOpError("x, y and the result share an element type");
  FailureOr<SmallVector<int64_t>> xy =
      broadcastShapes(x.getShape(), y.getShape());
  if (succeeded(xy))
    xy = broadcastShapes(*xy, tensorOf(getCondition()).getShape());
  if (failed(xy))
    return emitOpError("the operands do not broadcast");
  return verifyResultShape(*this, *xy);
}

int FusedElementwiseOp::arity(StringRef op) {
  return llvm::StringSwitch<int>(op)
      .Cases({"add", "sub", "mul", "div", "max", "min"}, 2)
      .Cases({"neg", "abs", "exp", "log", "sqrt", "reciprocal"}, 1)
      .Cases({"sigmoid", "tanh", "silu", "relu", "gelu", "gelu_tanh"}, 1)
      .Cases({"gelu_sigmoid", "softplus", "erf"}, 1)
      .Default(0);
}

LogicalResult FusedElementwiseOp::verify() {
  int64_t depth = 0;
  for (StringRef op : getOps().getAsValueRange<StringAttr>()) {
    unsigned index;
    StringRef rest = op;
    if (rest.consume_front("in")) {
      if (rest.getAsInteger(10, index) || index >= getInputs().size())
        return emitOpError("'") << op << "' names no operand";
      ++depth;
    } else if (rest.consume_front("const:0x")) {
      if (rest.size() != 8 || rest.getAsInteger(16, index))
        return emitOpError("'") << op << "' is no f32 in 8 hex digits";
      ++depth;
    } else {
      int count = arity(op);
      if (count == 0)
        return emitOpError("unknown operator '") << op << "'";
      if (depth < count)
        return emitOpError("'") << op << "' finds too few values";
      depth -= count - 1;
    }
  }
  if (depth != 1)
    return emitOpError("leaves ") << depth << " values, not one";
  auto result = tensorOf(getResult());
  if (result.getRank() != 2)
    return emitOpError("the result is [rows, width], not ") << result;
  for (Value input : getInputs()) {
    auto type = tensorOf(input);
    if (type.getRank() < 1 || type.getRank() > 2 ||
        differ(type.getShape().back(), result.getDimSize(1)))
      return emitOpError("operand ") << type << " has no rows like " << result;
  }
  return success();
}

LogicalResult ClipOp::verify() {
  auto input = tensorOf(getInput());
  for (Value bound : {getLow(), getHigh()}) {
    if (!bound)
      continue;
    if (failed(verifyScalar(*this, bound, "a bound")))
      return failure();
    if (tensorOf(bound).getElementType() != input.getElementType())
      return emitOpError("a bound of type ")
             << bound.getType() << " does not fit " << input;
  }
  if (failed(verifySameElements(*this)))
    return failure();
  return verifyResultShape(*this, input.getShape());
}

LogicalResult ArgMaxOp::verify() {
  auto input = tensorOf(getInput());
  if (failed(verifyAxis(*this, getAxis(), input.getRank())))
    return failure();
  int64_t axis = *normalizeAxis(getAxis(), input.getRank());
  SmallVector<int64_t> shape(input.getShape());
  if (getKeepdims())
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + axis);
  return verifyResultShape(*this, shape);
}

LogicalResult CumSumOp::verify() {
  return verifyAxis(*this, getAxis(), tensorOf(getInput()).getRank());
}

LogicalResult SoftmaxOp::verify() {
  return verifyAxis(*this, getAxis(), tensorOf(getInput()).getRank());
}

LogicalResult TopKOp::verify() {
  auto input = tensorOf(getInput());
  if (failed(verifyAxis(*this, getAxis(), input.getRank())) ||
      failed(verifyScalar(*this, getK(), "k")) ||
      failed(verifySameElements(*this)))
    return failure();
  int64_t axis = *normalizeAxis(getAxis(), input.getRank());
  auto values = tensorOf(getValues()), indices = tensorOf(getIndices());
  SmallVector<int64_t> shape(input.getShape());
  shape[axis] = ShapedType::kDynamic;
  if (failed(verifyResultShape(*this, shape, 0)) ||
      failed(verifyResultShape(*this, values.getShape(), 1)))
    return failure();
  for (auto type : {values, indices})
    if (!input.isDynamicDim(axis) && !type.isDynamicDim(axis) &&
        type.getDimSize(axis) > input.getDimSize(axis))
      return emitOpError("takes ") << type.getDimSize(axis) << " elements of "
                                   << input.getDimSize(axis);
  return success();
}

LogicalResult MatMulOp::verify() {
  auto lhs = tensorOf(getLhs()), rhs = tensorOf(getRhs());
  if (lhs.getRank() < 1 || rhs.getRank() < 1)
    return emitOpError("operands are at least vectors");
  if (lhs.getElementType() != rhs.getElementType())
    return emitOpError("element types differ");
  SmallVector<int64_t> a(lhs.getShape()), b(rhs.getShape());
  if (a.size() == 1)
    a.insert(a.begin(), 1);
  if (b.size() == 1)
    b.push_back(1);
  if (failed(verifySameElements(*this)))
    return failure();
  if (differ(a.back(), b[b.size() - 2]))
    return emitOpError("inner dimensions differ: ") << lhs << " and " << rhs;
  FailureOr<SmallVector<int64_t>> shape = broadcastShapes(
      ArrayRef<int64_t>(a).drop_back(2), ArrayRef<int64_t>(b).drop_back(2));
  if (failed(shape))
    return emitOpError("batch dimensions do not broadcast");
  if (lhs.getRank() > 1)
    shape->push_back(a[a.size() - 2]);
  if (rhs.getRank() > 1)
    shape->push_back(b.back());
  return verifyResultShape(*this, *shape);
}

LogicalResult ReduceOp::verify() {
  auto input = tensorOf(getInput());
  SmallVector<bool> reduced;
  if (failed(verifyAxes(*this, getAxes(), input.getRank(), reduced)) ||
      failed(verifySameElements(*this)))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [dim, gone] : llvm::zip(input.getShape(), reduced)) {
    if (!gone)
      shape.push_back(dim);
    else if (getKeepdims())
      shape.push_back(1);
  }
  return verifyResultShape(*this, shape);
}
