//===- RaiseIdiomsActivations.cpp - SiLU and GELU -------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Idioms.h"

#include <cmath>

using namespace mlir;
using namespace mlir::llm;

/// Constants are stored in the model's type, which may be bf16.
static bool isAbout(std::optional<double> number, double wanted) {
  return number && std::fabs(*number - wanted) <= 4e-3 * std::fabs(wanted);
}

namespace {
/// A product as its factors and one number, through nested products and
/// quotients by numbers.
struct Product {
  SmallVector<Value, 4> factors;
  double number = 1;
};
} // namespace

static void flattenProduct(Value value, Product &out, unsigned depth = 0) {
  value = skipFloatCasts(value);
  if (std::optional<double> number = getSplatNumber(value)) {
    out.number *= *number;
    return;
  }
  auto mul = value.getDefiningOp<MulOp>();
  auto div = value.getDefiningOp<DivOp>();
  if (mul && depth < 4) {
    flattenProduct(mul.getLhs(), out, depth + 1);
    flattenProduct(mul.getRhs(), out, depth + 1);
    return;
  }
  if (div && depth < 4)
    if (std::optional<double> divisor = getSplatNumber(div.getRhs());
        divisor && *divisor != 0) {
      flattenProduct(div.getLhs(), out, depth + 1);
      out.number /= *divisor;
      return;
    }
  out.factors.push_back(value);
}

/// number * x, where `value` is that.
static std::optional<double> multipleOf(Value value, Value x) {
  Product product;
  flattenProduct(value, product);
  if (product.factors.size() != 1 || product.factors[0] != x)
    return std::nullopt;
  return product.number;
}

/// The other summand where `value` is 1 + something.
static Value besideOne(Value value) {
  auto add = value.getDefiningOp<AddOp>();
  if (!add)
    return {};
  for (auto [one, other] : {std::pair(add.getLhs(), add.getRhs()),
                            std::pair(add.getRhs(), add.getLhs())})
    if (std::optional<double> number = getSplatNumber(one);
        number && *number == 1)
      return skipFloatCasts(other);
  return {};
}

/// sqrt(2 / pi) * (x + 0.044715 x^3), factored in either way.
static bool isTanhArgument(Value value, Value x) {
  static const double kRoot = std::sqrt(2.0 / M_PI);
  Product product;
  flattenProduct(value, product);
  if (!isAbout(product.number, kRoot))
    return false;
  auto isCube = [&](Value cube) {
    Product parts;
    flattenProduct(cube, parts);
    if (!isAbout(parts.number, 0.044715))
      return false;
    if (parts.factors.size() == 1)
      if (auto pow = parts.factors[0].getDefiningOp<PowOp>())
        return skipFloatCasts(pow.getLhs()) == x &&
               isAbout(getSplatNumber(pow.getRhs()), 3);
    return parts.factors.size() == 3 &&
           llvm::all_of(parts.factors, [&](Value f) { return f == x; });
  };
  auto isSquare = [&](Value square) {
    Product parts;
    flattenProduct(square, parts);
    if (!isAbout(parts.number, 0.044715))
      return false;
    if (parts.factors.size() == 1)
      if (auto pow = parts.factors[0].getDefiningOp<PowOp>())
        return skipFloatCasts(pow.getLhs()) == x &&
               isAbout(getSplatNumber(pow.getRhs()), 2);
    return parts.factors.size() == 2 &&
           llvm::all_of(parts.factors, [&](Value f) { return f == x; });
  };
  if (product.factors.size() == 1) {
    auto add = product.factors[0].getDefiningOp<AddOp>();
    if (!add)
      return false;
    Value a = skipFloatCasts(add.getLhs()), b = skipFloatCasts(add.getRhs());
    return (a == x && isCube(b)) || (b == x && isCube(a));
  }
  // x * (1 + 0.044715 x^2).
  if (product.factors.size() != 2)
    return false;
  for (int i : {0, 1})
    if (product.factors[i] == x)
      if (Value other = besideOne(product.factors[1 - i]);
          other && isSquare(other))
        return true;
  return false;
}

unsigned mlir::llm::raiseActivations(func::FuncOp func, SymbolicShape &shapes) {
  unsigned count = 0;
  for (Operation *op : snapshot(func)) {
    auto mul = dyn_cast<MulOp>(op);
    if (!mul || !isa<FloatType>(mul.getType().getElementType()))
      continue;
    Product product;
    flattenProduct(mul.getResult(), product);
    if (product.factors.size() != 2)
      continue;
    for (int i : {0, 1}) {
      Value x = product.factors[i], gate = product.factors[1 - i];
      // The result may be narrower or wider than x by casts.
      if (tensorOf(x).getShape() != mul.getType().getShape())
        continue;
      OpBuilder builder(op);
      Value result;
      auto create = [&](auto make) {
        result = make(x);
        if (result.getType() != mul.getType())
          result = CastOp::create(builder, op->getLoc(), mul.getType(), result);
      };
      auto gelu = [&](GeluApproximation approximation) {
        create([&](Value x) -> Value {
          return GeluOp::create(builder, op->getLoc(), x.getType(), x,
                                approximation);
        });
      };
      if (auto sigmoid = gate.getDefiningOp<SigmoidOp>()) {
        if (product.number != 1)
          continue;
        std::optional<double> slope = multipleOf(sigmoid.getInput(), x);
        if (slope && *slope == 1)
          create([&](Value x) -> Value {
            return SiluOp::create(builder, op->getLoc(), x.getType(), x);
          });
        else if (isAbout(slope, 1.702))
          gelu(GeluApproximation::sigmoid);
      } else if (Value inner = besideOne(gate);
                 inner && product.number == 0.5) {
        if (auto erf = inner.getDefiningOp<ErfOp>()) {
          if (isAbout(multipleOf(erf.getInput(), x), M_SQRT1_2))
            gelu(GeluApproximation::none);
        } else if (auto tanh = inner.getDefiningOp<TanhOp>()) {
          if (isTanhArgument(tanh.getInput(), x))
            gelu(GeluApproximation::tanh);
        }
      }
      if (!result)
        continue;
      mul.getResult().replaceAllUsesWith(result);
      ++count;
      break;
    }
  }
  return count;
}
