//===- Elementwise.cpp - Elementwise operators
//------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

using namespace mlir;

namespace llm::importer {

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult numeric(Node &n) {
  Value x = n.in(0);
  if (!n.isNumeric(0))
    return failure();
  n.set(0, n.unary<Op>(x));
  return success();
}

template <typename Op> static LogicalResult floating(Node &n) {
  if (!n.isFloat(0))
    return failure();
  n.set(0, n.unary<Op>(n.in(0)));
  return success();
}

static LogicalResult logicalNot(Node &n) {
  if (!n.isBool(0))
    return failure();
  n.set(0, n.unary<ir::NotOp>(n.in(0)));
  return success();
}

static LogicalResult cast(Node &n) {
  Type to = n.elementTypeOf(n.requiredInt("to"));
  bool saturate = n.version < 19 || n.flag("saturate", true);
  if (n.version >= 24 && n.stringAttr("round_mode", "up") != "up")
    n.error() << "only the round_mode 'up' is supported";
  if (n.hasFailed())
    return failure();
  Value x = n.in(0);
  n.set(0, Node::element(x) == to
               ? x
               : n.make<ir::CastOp>(Node::type(x).clone(to), x,
                                    n.builder.getBoolAttr(saturate)));
  return success();
}

static LogicalResult castLike(Node &n) {
  bool saturate = n.version < 19 || n.flag("saturate", true);
  if (n.version >= 24 && n.stringAttr("round_mode", "up") != "up")
    n.error() << "only the round_mode 'up' is supported";
  Value x = n.in(0);
  Type to = Node::element(n.in(1));
  n.set(0, Node::element(x) == to
               ? x
               : n.make<ir::CastOp>(Node::type(x).clone(to), x,
                                    n.builder.getBoolAttr(saturate)));
  return success();
}

/// x * sigmoid(alpha * x).
static Value scaledSilu(Node &n, Value x, double alpha) {
  if (alpha == 1.0)
    return n.unary<ir::SiluOp>(x);
  Value scaled =
      n.binary<ir::MulOp>(x, n.constantScalar(Node::element(x), alpha));
  return n.binary<ir::MulOp>(x, n.unary<ir::SigmoidOp>(scaled));
}

static LogicalResult swish(Node &n) {
  if (!n.isFloat(0))
    return failure();
  n.set(0, scaledSilu(n, n.in(0), n.floatAttr("alpha", 1.0)));
  return success();
}

static Value geluOf(Node &n, Value x, ir::GeluApproximation how) {
  return n.make<ir::GeluOp>(
      x.getType(), x, ir::GeluApproximationAttr::get(n.graph.context, how));
}

static LogicalResult gelu(Node &n) {
  std::string how = n.stringAttr("approximate", "none");
  if (how != "none" && how != "tanh")
    return n.error() << "approximate is 'none' or 'tanh', not '"
                     << printable(how) << "'";
  if (!n.isFloat(0))
    return failure();
  n.set(0, geluOf(n, n.in(0),
                  how == "tanh" ? ir::GeluApproximation::tanh
                                : ir::GeluApproximation::none));
  return success();
}

template <ir::GeluApproximation how> static LogicalResult biasedGelu(Node &n) {
  if (!n.isFloat(0))
    return failure();
  Value x = n.in(0);
  if (n.has(1))
    x = n.binary<ir::AddOp>(x, n.in(1));
  n.set(0, geluOf(n, x, how));
  return success();
}

static LogicalResult quickGelu(Node &n) {
  if (!n.isFloat(0))
    return failure();
  // The attribute is a float: its default is the float nearest to 1.702.
  double alpha = n.floatAttr("alpha", 1.702f);
  n.set(0, alpha == static_cast<double>(1.702f)
               ? geluOf(n, n.in(0), ir::GeluApproximation::sigmoid)
               : scaledSilu(n, n.in(0), alpha));
  return success();
}

static LogicalResult leakyRelu(Node &n) {
  if (!n.isFloat(0))
    return failure();
  Value x = n.in(0);
  Type element = Node::element(x);
  Value scaled = n.binary<ir::MulOp>(
      x, n.constantScalar(element, n.floatAttr("alpha", 0.01f)));
  Value negative =
      n.make<ir::LessOp>(Node::type(x).clone(n.builder.getI1Type()), x,
                         n.constantScalar(element, 0.0));
  n.set(0, n.make<ir::WhereOp>(x.getType(), negative, scaled, x));
  return success();
}

//===----------------------------------------------------------------------===//
// Binary and more
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult arithmetic(Node &n) {
  if (!n.isNumeric(0) || !n.sameElements(0, 1))
    return failure();
  n.set(0, n.binary<Op>(n.in(0), n.in(1)));
  return success();
}

template <typename Op> static LogicalResult logic(Node &n) {
  if (!n.isBool(0) || !n.sameElements(0, 1))
    return failure();
  n.set(0, n.binary<Op>(n.in(0), n.in(1)));
  return success();
}

template <typename Op> static LogicalResult bitwise(Node &n) {
  if (!n.isInteger(0) || !n.sameElements(0, 1))
    return failure();
  n.set(0, n.binary<Op>(n.in(0), n.in(1)));
  return success();
}

template <typename Op> static LogicalResult compare(Node &n) {
  if (!n.sameElements(0, 1))
    return failure();
  Value a = n.in(0), b = n.in(1);
  n.set(0, n.make<Op>(n.makeType(n.broadcast(Node::shape(a), Node::shape(b)),
                                 n.builder.getI1Type()),
                      a, b));
  return success();
}

static LogicalResult pow(Node &n) {
  if (!n.isNumeric(0) || !n.isNumeric(1))
    return failure();
  n.set(0, n.binary<ir::PowOp>(n.in(0), n.in(1)));
  return success();
}

static LogicalResult mod(Node &n) {
  bool fmod = n.flag("fmod");
  if (!n.isNumeric(0) || !n.sameElements(0, 1))
    return failure();
  Value a = n.in(0), b = n.in(1);
  n.set(0, n.make<ir::ModOp>(
               n.makeType(n.broadcast(Node::shape(a), Node::shape(b)),
                          Node::element(a)),
               a, b, n.unit(fmod)));
  return success();
}

/// Sum, Min, Max, Mean: any number of operands, in order.
template <typename Op, bool mean = false>
static LogicalResult variadic(Node &n) {
  Value total;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    if (!n.has(i))
      return n.error() << "input " << i << " is required";
    if (!n.isNumeric(i) || !n.sameElements(0, i))
      return failure();
    total = total ? n.binary<Op>(total, n.in(i)) : n.in(i);
  }
  if (mean) {
    if (!n.isFloat(0))
      return failure();
    total = n.binary<ir::DivOp>(
        total, n.constantScalar(Node::element(total), n.numInputs()));
  }
  n.set(0, total);
  return success();
}

static LogicalResult where(Node &n) {
  if (!n.isBool(0) || !n.sameElements(1, 2))
    return failure();
  Value c = n.in(0), x = n.in(1), y = n.in(2);
  Shape shape =
      n.broadcast(n.broadcast(Node::shape(x), Node::shape(y)), Node::shape(c));
  n.set(0, n.make<ir::WhereOp>(n.makeType(shape, Node::element(x)), c, x, y));
  return success();
}

static LogicalResult clip(Node &n) {
  if (!n.isNumeric(0))
    return failure();
  Value x = n.in(0), low, high;
  if (n.version < 11) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    double min = n.floatAttr("min", -kLargest);
    double max = n.floatAttr("max", kLargest);
    if (min != -kLargest)
      low = n.constantScalar(Node::element(x), min);
    if (max != kLargest)
      high = n.constantScalar(Node::element(x), max);
  } else {
    for (unsigned i : {1u, 2u}) {
      if (!n.has(i))
        continue;
      if (!n.sameElements(0, i))
        return failure();
      if (Node::type(n.in(i)).getRank() != 0)
        return n.error() << "the bounds are scalars, not " << n.in(i).getType();
      (i == 1 ? low : high) = n.in(i);
    }
  }
  n.set(0, n.make<ir::ClipOp>(x.getType(), x, low, high));
  return success();
}

void registerElementwise(Registry &r) {
  r.add("Abs", {numeric<ir::AbsOp>, 1, 1});
  r.add("Ceil", {floating<ir::CeilOp>, 1, 1});
  r.add("Cos", {floating<ir::CosOp>, 1, 1});
  r.add("Erf", {floating<ir::ErfOp>, 1, 1, 1, 9});
  r.add("Exp", {floating<ir::ExpOp>, 1, 1});
  r.add("Floor", {floating<ir::FloorOp>, 1, 1});
  r.add("Log", {floating<ir::LogOp>, 1, 1});
  r.add("Neg", {numeric<ir::NegOp>, 1, 1});
  r.add("Not", {logicalNot, 1, 1});
  r.add("Reciprocal", {floating<ir::ReciprocalOp>, 1, 1});
  r.add("Relu", {numeric<ir::ReluOp>, 1, 1});
  r.add("Round", {floating<ir::RoundOp>, 1, 1, 1, 11});
  r.add("Sigmoid", {floating<ir::SigmoidOp>, 1, 1});
  r.add("Sign", {numeric<ir::SignOp>, 1, 1, 1, 9});
  r.add("Sin", {floating<ir::SinOp>, 1, 1});
  r.add("Softplus", {floating<ir::SoftplusOp>, 1, 1});
  r.add("Sqrt", {floating<ir::SqrtOp>, 1, 1});
  r.add("Tanh", {floating<ir::TanhOp>, 1, 1});
  r.add("LeakyRelu", {leakyRelu, 1, 1});

  r.add("Cast", {cast, 1, 1, 1, 9});
  r.add("CastLike", {castLike, 2, 2, 1, 15});
  r.add("Gelu", {gelu, 1, 1, 1, 20});
  r.add("Swish", {swish, 1, 1, 1, 24});
  r.add(kMicrosoft, "Gelu", {biasedGelu<ir::GeluApproximation::none>, 1, 1});
  r.add(kMicrosoft, "BiasGelu",
        {biasedGelu<ir::GeluApproximation::none>, 2, 2});
  r.add(kMicrosoft, "FastGelu",
        {biasedGelu<ir::GeluApproximation::tanh>, 1, 2});
  r.add(kMicrosoft, "QuickGelu", {quickGelu, 1, 1});

  r.add("Add", {arithmetic<ir::AddOp>, 2, 2});
  r.add("Sub", {arithmetic<ir::SubOp>, 2, 2});
  r.add("Mul", {arithmetic<ir::MulOp>, 2, 2});
  r.add("Div", {arithmetic<ir::DivOp>, 2, 2});
  r.add("Pow", {pow, 2, 2});
  r.add("Mod", {mod, 2, 2, 1, 10});
  r.add("And", {logic<ir::AndOp>, 2, 2});
  r.add("Or", {logic<ir::OrOp>, 2, 2});
  r.add("Xor", {logic<ir::XorOp>, 2, 2});
  r.add("BitwiseAnd", {bitwise<ir::AndOp>, 2, 2, 1, 18});
  r.add("BitwiseOr", {bitwise<ir::OrOp>, 2, 2, 1, 18});
  r.add("BitwiseXor", {bitwise<ir::XorOp>, 2, 2, 1, 18});
  r.add("Equal", {compare<ir::EqualOp>, 2, 2});
  r.add("Less", {compare<ir::LessOp>, 2, 2});
  r.add("LessOrEqual", {compare<ir::LessEqualOp>, 2, 2, 1, 12});
  r.add("Greater", {compare<ir::GreaterOp>, 2, 2});
  r.add("GreaterOrEqual", {compare<ir::GreaterEqualOp>, 2, 2, 1, 12});

  r.add("Max", {variadic<ir::MaxOp>, 1, kAny, 1, 8});
  r.add("Mean", {variadic<ir::AddOp, true>, 1, kAny, 1, 8});
  r.add("Min", {variadic<ir::MinOp>, 1, kAny, 1, 8});
  r.add("Sum", {variadic<ir::AddOp>, 1, kAny, 1, 8});
  r.add("Clip", {clip, 1, 3});
  r.add("Where", {where, 3, 3, 1, 9});
}

} // namespace llm::importer
