//===- RaiseIdiomsNorms.cpp - RMS and layer normalization -----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Idioms.h"

using namespace mlir;
using namespace mlir::llm;

namespace {
/// value = centered / sqrt(mean(centered^2) + epsilon), the mean over the last
/// axis.
struct Normalized {
  Value centered;
  double epsilon = 0;
};
} // namespace

static bool isNumber(Value value, double number) {
  std::optional<double> splat = getSplatNumber(value);
  return splat && *splat == number;
}

/// The operand of a mean over the last axis that keeps it, or null.
static Value meanOfLast(Value value) {
  auto reduce = skipFloatCasts(value).getDefiningOp<ReduceOp>();
  if (!reduce || reduce.getKind() != ReductionKind::mean ||
      !reduce.getKeepdims() || reduce.getAxes().size() != 1)
    return {};
  int64_t rank = tensorOf(reduce.getInput()).getRank();
  if (normalizeAxis(reduce.getAxes().front(), rank) != rank - 1)
    return {};
  return skipFloatCasts(reduce.getInput());
}

/// x where `value` is x * x or x to the power of 2.
static Value squared(Value value) {
  if (auto pow = value.getDefiningOp<PowOp>())
    return isNumber(pow.getRhs(), 2) ? skipFloatCasts(pow.getLhs()) : Value();
  auto mul = value.getDefiningOp<MulOp>();
  return mul && mul.getLhs() == mul.getRhs() ? skipFloatCasts(mul.getLhs())
                                             : Value();
}

/// Matches mean(x^2) + epsilon.
static bool matchVariance(Value value, Normalized &out) {
  auto add = skipFloatCasts(value).getDefiningOp<AddOp>();
  if (!add)
    return false;
  for (auto [mean, epsilon] : {std::pair(add.getLhs(), add.getRhs()),
                               std::pair(add.getRhs(), add.getLhs())}) {
    std::optional<double> number = getSplatNumber(epsilon);
    Value square = meanOfLast(mean);
    if (!number || !square)
      continue;
    out.centered = squared(square);
    out.epsilon = *number;
    return static_cast<bool>(out.centered);
  }
  return false;
}

/// Matches the square root of the variance.
static bool matchDeviation(Value value, Normalized &out) {
  value = skipFloatCasts(value);
  if (auto sqrt = value.getDefiningOp<SqrtOp>())
    return matchVariance(sqrt.getInput(), out);
  auto pow = value.getDefiningOp<PowOp>();
  return pow && isNumber(pow.getRhs(), 0.5) && matchVariance(pow.getLhs(), out);
}

/// Matches one over the square root of the variance.
static bool matchInverse(Value value, Normalized &out) {
  value = skipFloatCasts(value);
  if (auto reciprocal = value.getDefiningOp<ReciprocalOp>())
    return matchDeviation(reciprocal.getInput(), out);
  if (auto div = value.getDefiningOp<DivOp>())
    return isNumber(div.getLhs(), 1) && matchDeviation(div.getRhs(), out);
  auto pow = value.getDefiningOp<PowOp>();
  return pow && isNumber(pow.getRhs(), -0.5) &&
         matchVariance(pow.getLhs(), out);
}

/// The same value computed twice: exporters subtract the mean once for the
/// variance and once for the quotient.
static bool sameDifference(Value a, Value b) {
  if (a == b)
    return true;
  auto x = a.getDefiningOp<SubOp>(), y = b.getDefiningOp<SubOp>();
  return x && y && skipFloatCasts(x.getLhs()) == skipFloatCasts(y.getLhs()) &&
         meanOfLast(x.getRhs()) &&
         meanOfLast(x.getRhs()) == meanOfLast(y.getRhs());
}

static bool matchNormalized(Value value, Normalized &out) {
  value = skipFloatCasts(value);
  if (auto div = value.getDefiningOp<DivOp>())
    return matchDeviation(div.getRhs(), out) &&
           sameDifference(skipFloatCasts(div.getLhs()), out.centered);
  auto mul = value.getDefiningOp<MulOp>();
  if (!mul)
    return false;
  for (auto [x, inverse] : {std::pair(mul.getLhs(), mul.getRhs()),
                            std::pair(mul.getRhs(), mul.getLhs())})
    if (matchInverse(inverse, out) &&
        sameDifference(skipFloatCasts(x), out.centered))
      return true;
  return false;
}

/// Weights of norms are vectors of the hidden size.
static constexpr int64_t kMaxScale = 1 << 20;

/// The numbers of a vector computed from a weight in few steps, each rounded to
/// the type it has: Gemma's scale is 1 + w.
static std::optional<SmallVector<double>> evaluate(Value value,
                                                   unsigned depth = 0) {
  if (std::optional<SmallVector<double>> stored = readFloats(value, kMaxScale))
    return stored;
  Operation *op = value.getDefiningOp();
  auto type = dyn_cast<FloatType>(tensorOf(value).getElementType());
  if (!op || !type || depth > 4 || !isa<CastOp, AddOp, SubOp, MulOp, DivOp>(op))
    return std::nullopt;
  SmallVector<SmallVector<double>> operands;
  for (Value operand : op->getOperands()) {
    auto numbers = evaluate(operand, depth + 1);
    if (!numbers || numbers->empty())
      return std::nullopt;
    operands.push_back(std::move(*numbers));
  }
  size_t count = std::max(operands.front().size(), operands.back().size());
  SmallVector<double> out;
  for (size_t i = 0; i < count; ++i) {
    double x[2];
    for (int k : {0, 1}) {
      const auto &numbers = k ? operands.back() : operands.front();
      if (numbers.size() != 1 && numbers.size() != count)
        return std::nullopt;
      x[k] = numbers[numbers.size() == 1 ? 0 : i];
    }
    double result = isa<CastOp>(op)  ? x[0]
                    : isa<AddOp>(op) ? x[0] + x[1]
                    : isa<SubOp>(op) ? x[0] - x[1]
                    : isa<MulOp>(op) ? x[0] * x[1]
                                     : x[0] / x[1];
    bool loses;
    APFloat number(result);
    number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &loses);
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    out.push_back(number.convertToDouble());
  }
  return out;
}

/// A vector along the last dimension of `like`, the same for all rows, as a
/// weight; computed ones become weights of their own.
static Value rowVector(OpBuilder &builder, Value value, Value like) {
  RankedTensorType type = tensorOf(value);
  if (type.getRank() != 1 ||
      type.getDimSize(0) != tensorOf(like).getShape().back())
    return {};
  if (Value weight = asWeight(builder, value))
    return weight;
  std::optional<SmallVector<double>> numbers = evaluate(value);
  if (!numbers ||
      static_cast<int64_t>(numbers->size()) != type.getNumElements())
    return {};
  SmallVector<APFloat> elements;
  for (double number : *numbers) {
    bool loses;
    elements.emplace_back(number);
    elements.back().convert(
        cast<FloatType>(type.getElementType()).getFloatSemantics(),
        APFloat::rmNearestTiesToEven, &loses);
  }
  auto func = value.getDefiningOp()->getParentOfType<func::FuncOp>();
  return createWeight(func, value.getLoc(), "scale",
                      DenseElementsAttr::get(type, elements));
}

unsigned mlir::llm::raiseNorms(func::FuncOp func, SymbolicShape &shapes) {
  unsigned count = 0;
  for (Operation *op : snapshot(func)) {
    auto mul = dyn_cast<MulOp>(op);
    if (!mul || !isa<FloatType>(mul.getType().getElementType()))
      continue;
    OpBuilder builder(op);
    for (auto [value, factor] : {std::pair(mul.getLhs(), mul.getRhs()),
                                 std::pair(mul.getRhs(), mul.getLhs())}) {
      Normalized normalized;
      if (!matchNormalized(value, normalized))
        continue;
      Value scale = rowVector(builder, factor, normalized.centered);
      if (!scale)
        continue;
      // x - mean(x) makes it a layer norm, of x.
      auto sub = normalized.centered.getDefiningOp<SubOp>();
      Value input = sub ? meanOfLast(sub.getRhs()) : Value();
      bool layer = input && skipFloatCasts(sub.getLhs()) == input;
      if (!layer) {
        mul.getResult().replaceAllUsesWith(RMSNormOp::create(
            builder, op->getLoc(), mul.getType(), normalized.centered, scale,
            /*axis=*/-1, APFloat(normalized.epsilon)));
        ++count;
        break;
      }
      // The bias, where it is the only thing that follows.
      Value result = mul.getResult(), bias;
      Value narrow = result;
      if (narrow.hasOneUse())
        if (auto cast = dyn_cast<CastOp>(*narrow.getUsers().begin()))
          narrow = cast.getResult();
      if (narrow.hasOneUse())
        if (auto add = dyn_cast<AddOp>(*narrow.getUsers().begin())) {
          Value other = add.getLhs() == narrow ? add.getRhs() : add.getLhs();
          OpBuilder atAdd(add);
          bias = rowVector(atAdd, other, input);
          if (bias) {
            result = add.getResult();
            builder.setInsertionPoint(add);
          }
        }
      result.replaceAllUsesWith(LayerNormOp::create(
          builder, op->getLoc(), result.getType(), input, scale, bias,
          /*axis=*/-1, APFloat(normalized.epsilon)));
      ++count;
      break;
    }
  }
  return count;
}
