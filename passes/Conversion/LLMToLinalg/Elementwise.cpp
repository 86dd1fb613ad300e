//===- Elementwise.cpp - Lowering of elementwise llm ops ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Lowerings.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::llm;

using CmpF = arith::CmpFPredicate;
using CmpI = arith::CmpIPredicate;

static bool isFloat(Type type) { return isa<FloatType>(type); }
static bool isUnsigned(Type type) {
  return type.isUnsignedInteger() || type.isInteger(1);
}

static Value compareF(TensorEmitter &e, CmpF predicate, Value a, Value b) {
  return arith::CmpFOp::create(e, predicate, a, b);
}

//===----------------------------------------------------------------------===//
// Integers: no operand traps
//===----------------------------------------------------------------------===//

/// x / y and x % y. Division by zero gives 0 and a remainder of 0, as NumPy
/// has it; the smallest value over -1 wraps.
static std::pair<Value, Value> divideIntegers(TensorEmitter &e, Value x,
                                              Value y, bool isUnsigned) {
  Type type = x.getType();
  Value zero = e.constantInt(type, 0), one = e.constantInt(type, 1);
  Value byZero = e.cmp(CmpI::eq, y, zero);
  if (isUnsigned) {
    Value safe = e.select(byZero, one, y);
    Value q = arith::DivUIOp::create(e, x, safe);
    Value r = arith::RemUIOp::create(e, x, safe);
    return {e.select(byZero, zero, q), e.select(byZero, zero, r)};
  }
  Value byMinusOne = e.cmp(CmpI::eq, y, -1);
  Value special = e.lor(byZero, byMinusOne);
  Value safe = e.select(special, one, y);
  Value q = arith::DivSIOp::create(e, x, safe);
  Value r = arith::RemSIOp::create(e, x, safe);
  q = e.select(byMinusOne, e.sub(zero, x), q);
  return {e.select(byZero, zero, q), e.select(special, zero, r)};
}

/// x to the power y by squaring. A negative power of an integer is 0 but for
/// the bases 1 and -1.
static Value integerPower(TensorEmitter &e, Value x, Value y, bool isSigned) {
  Type type = x.getType(), power = y.getType();
  Value one = e.constantInt(type, 1);
  // Not a counted loop: LLVM would unroll it, and its analysis of nested
  // squares takes exponential time.
  auto loop = scf::WhileOp::create(
      e, TypeRange{type, type, power}, ValueRange{one, x, y},
      [&](OpBuilder &, Location, ValueRange state) {
        scf::ConditionOp::create(e, e.cmp(CmpI::ne, state[2], 0), state);
      },
      [&](OpBuilder &, Location, ValueRange state) {
        Value odd =
            e.cmp(CmpI::ne, e.land(state[2], e.constantInt(power, 1)), 0);
        Value next = e.select(odd, e.mul(state[0], state[1]), state[0]);
        Value half =
            arith::ShRUIOp::create(e, state[2], e.constantInt(power, 1));
        scf::YieldOp::create(e,
                             ValueRange{next, e.mul(state[1], state[1]), half});
      });
  Value raised = loop.getResult(0);
  if (!isSigned)
    return raised;
  Value negative = e.cmp(CmpI::slt, y, 0);
  Value isOne = e.cmp(CmpI::eq, x, 1), isMinusOne = e.cmp(CmpI::eq, x, -1);
  Value even = e.cmp(CmpI::eq, e.land(y, e.constantInt(power, 1)), 0);
  Value unit = e.select(
      e.lor(isOne, e.land(isMinusOne, even)), one,
      e.select(isMinusOne, e.constantInt(type, -1), e.constantInt(type, 0)));
  return e.select(negative, unit, raised);
}

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

static Value sigmoid(TensorEmitter &e, Value x) {
  Value one = e.constant(x.getType(), 1);
  Value exp = math::ExpOp::create(e, arith::NegFOp::create(e, x));
  return arith::DivFOp::create(e, one, e.add(one, exp));
}

static Value gelu(TensorEmitter &e, GeluOp op, Value x) {
  Type type = x.getType();
  auto c = [&](double v) { return e.constant(type, v); };
  switch (op.getApproximation()) {
  case GeluApproximation::none: {
    Value erf = math::ErfOp::create(e, e.mul(x, c(std::sqrt(0.5))));
    return e.mul(e.mul(c(0.5), x), e.add(c(1), erf));
  }
  case GeluApproximation::tanh: {
    Value cube = e.mul(e.mul(x, x), x);
    Value inner =
        e.mul(c(std::sqrt(2 / M_PI)), e.add(x, e.mul(c(0.044715), cube)));
    return e.mul(e.mul(c(0.5), x), e.add(c(1), math::TanhOp::create(e, inner)));
  }
  case GeluApproximation::sigmoid:
    return e.mul(x, sigmoid(e, e.mul(c(1.702), x)));
  }
  llvm_unreachable("a GELU without a spelling");
}

static Value softplus(TensorEmitter &e, Value x) {
  // log(1 + exp(x)) without overflow.
  Value zero = e.constant(x.getType(), 0);
  Value small = math::ExpOp::create(
      e, arith::NegFOp::create(e, math::AbsFOp::create(e, x)));
  return e.add(arith::MaximumFOp::create(e, x, zero),
               math::Log1pOp::create(e, small));
}

static Value signOf(TensorEmitter &e, Value x, Type logical) {
  Type type = x.getType();
  Value zero = e.constant(type, 0), one = e.constant(type, 1);
  if (isFloat(type)) {
    Value result = e.select(compareF(e, CmpF::OGT, x, zero), one, zero);
    result =
        e.select(compareF(e, CmpF::OLT, x, zero), e.constant(type, -1), result);
    return e.select(compareF(e, CmpF::UNO, x, x), x, result);
  }
  Value positive = e.select(e.cmp(CmpI::ne, x, 0), one, zero);
  if (isUnsigned(logical))
    return positive;
  return e.select(e.cmp(CmpI::slt, x, 0), e.constantInt(type, -1), positive);
}

/// The result of a unary op on a computed element.
static Value unary(TensorEmitter &e, Operation *op, Value x, Type logical) {
  Type type = x.getType();
  bool integer = !isFloat(type);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AbsOp>([&](auto) -> Value {
        if (!integer)
          return math::AbsFOp::create(e, x);
        return isUnsigned(logical) ? x : math::AbsIOp::create(e, x).getResult();
      })
      .Case<NegOp>([&](auto) -> Value {
        if (!integer)
          return arith::NegFOp::create(e, x);
        return e.sub(e.constantInt(type, 0), x);
      })
      .Case<NotOp>([&](auto) -> Value {
        return arith::XOrIOp::create(e, x, e.constantInt(type, -1));
      })
      .Case<ReluOp>([&](auto) -> Value {
        if (!integer)
          return arith::MaximumFOp::create(e, x, e.constant(type, 0));
        return isUnsigned(logical) ? x : e.max(x, e.constantInt(type, 0));
      })
      .Case<SignOp>([&](auto) { return signOf(e, x, logical); })
      .Case<CeilOp>([&](auto) { return math::CeilOp::create(e, x); })
      .Case<FloorOp>([&](auto) { return math::FloorOp::create(e, x); })
      .Case<RoundOp>([&](auto) { return math::RoundEvenOp::create(e, x); })
      .Case<CosOp>([&](auto) { return math::CosOp::create(e, x); })
      .Case<SinOp>([&](auto) { return math::SinOp::create(e, x); })
      .Case<ErfOp>([&](auto) { return math::ErfOp::create(e, x); })
      .Case<ExpOp>([&](auto) { return math::ExpOp::create(e, x); })
      .Case<LogOp>([&](auto) { return math::LogOp::create(e, x); })
      .Case<SqrtOp>([&](auto) { return math::SqrtOp::create(e, x); })
      .Case<TanhOp>([&](auto) { return math::TanhOp::create(e, x); })
      .Case<ReciprocalOp>([&](auto) -> Value {
        return arith::DivFOp::create(e, e.constant(type, 1), x);
      })
      .Case<SigmoidOp>([&](auto) { return sigmoid(e, x); })
      .Case<SiluOp>([&](auto) { return e.mul(x, sigmoid(e, x)); })
      .Case<SoftplusOp>([&](auto) { return softplus(e, x); })
      .Case<GeluOp>([&](GeluOp gelu_) { return gelu(e, gelu_, x); })
      .Default([](Operation *) { return Value(); });
}

/// Ops that are defined on floats alone.
static bool needsFloat(Operation *op) {
  return isa<CeilOp, FloorOp, RoundOp, CosOp, SinOp, ErfOp, ExpOp, LogOp,
             SqrtOp, TanhOp, ReciprocalOp, SigmoidOp, SiluOp, SoftplusOp>(op);
}

template <typename OpTy>
static Value lowerUnary(TensorEmitter &e, OpTy op,
                        typename OpTy::Adaptor adaptor) {
  Type logical = elementOf(op.getInput());
  if (needsFloat(op) && !isFloat(logical)) {
    op.emitOpError("has no meaning for elements of type ") << logical;
    return {};
  }
  return e.map(storageTensor(op.getType()), adaptor.getInput(),
               [&](ValueRange args) {
                 Value x = e.widen(args[0], logical);
                 return e.narrow(unary(e, op, x, logical), logical);
               });
}

static Value lowerCast(TensorEmitter &e, CastOp op, CastOp::Adaptor adaptor) {
  Type from = elementOf(op.getInput()), to = elementOf(op.getResult());
  if (from == to)
    return adaptor.getInput();
  return e.map(storageTensor(op.getType()), adaptor.getInput(),
               [&](ValueRange args) {
                 Value x = e.convert(e.widen(args[0], from), from, to);
                 return e.narrow(x, to, op.getSaturate());
               });
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

static Value compare(TensorEmitter &e, Value x, Value y, CmpF floats, CmpI sign,
                     CmpI unsign, Type logical) {
  if (isFloat(x.getType()))
    return compareF(e, floats, x, y);
  return e.cmp(isUnsigned(logical) ? unsign : sign, x, y);
}

static Value modulo(TensorEmitter &e, ModOp op, Value x, Value y,
                    Type logical) {
  if (isFloat(x.getType())) {
    Value r = arith::RemFOp::create(e, x, y);
    if (op.getFmod())
      return r;
    Value zero = e.constant(x.getType(), 0);
    Value differ = arith::XOrIOp::create(e, compareF(e, CmpF::OLT, r, zero),
                                         compareF(e, CmpF::OLT, y, zero));
    Value adjust = e.land(compareF(e, CmpF::ONE, r, zero), differ);
    Value signedZero = math::CopySignOp::create(e, zero, y);
    r = e.select(compareF(e, CmpF::OEQ, r, zero), signedZero, r);
    return e.select(adjust, e.add(r, y), r);
  }
  Value r = divideIntegers(e, x, y, isUnsigned(logical)).second;
  if (op.getFmod() || isUnsigned(logical))
    return r;
  Value differ = e.cmp(CmpI::slt, arith::XOrIOp::create(e, r, y), 0);
  Value adjust = e.land(e.cmp(CmpI::ne, r, 0), differ);
  return e.select(adjust, e.add(r, y), r);
}

/// The result of a binary op on computed elements of one type.
static Value binary(TensorEmitter &e, Operation *op, Value x, Value y,
                    Type logical) {
  bool integer = !isFloat(x.getType());
  bool noSign = isUnsigned(logical);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AddOp>([&](auto) { return e.add(x, y); })
      .Case<SubOp>([&](auto) { return e.sub(x, y); })
      .Case<MulOp>([&](auto) { return e.mul(x, y); })
      .Case<DivOp>([&](auto) -> Value {
        if (!integer)
          return arith::DivFOp::create(e, x, y);
        return divideIntegers(e, x, y, noSign).first;
      })
      .Case<MaxOp>([&](auto) -> Value {
        if (!integer)
          return arith::MaximumFOp::create(e, x, y);
        return noSign ? arith::MaxUIOp::create(e, x, y).getResult()
                      : e.max(x, y);
      })
      .Case<MinOp>([&](auto) -> Value {
        if (!integer)
          return arith::MinimumFOp::create(e, x, y);
        return noSign ? arith::MinUIOp::create(e, x, y).getResult()
                      : e.min(x, y);
      })
      .Case<ModOp>([&](ModOp mod) { return modulo(e, mod, x, y, logical); })
      .Case<AndOp>([&](auto) { return e.land(x, y); })
      .Case<OrOp>([&](auto) { return e.lor(x, y); })
      .Case<XorOp>([&](auto) { return arith::XOrIOp::create(e, x, y); })
      .Case<EqualOp>([&](auto) {
        return compare(e, x, y, CmpF::OEQ, CmpI::eq, CmpI::eq, logical);
      })
      .Case<GreaterOp>([&](auto) {
        return compare(e, x, y, CmpF::OGT, CmpI::sgt, CmpI::ugt, logical);
      })
      .Case<GreaterEqualOp>([&](auto) {
        return compare(e, x, y, CmpF::OGE, CmpI::sge, CmpI::uge, logical);
      })
      .Case<LessOp>([&](auto) {
        return compare(e, x, y, CmpF::OLT, CmpI::slt, CmpI::ult, logical);
      })
      .Case<LessEqualOp>([&](auto) {
        return compare(e, x, y, CmpF::OLE, CmpI::sle, CmpI::ule, logical);
      })
      .Default([](Operation *) { return Value(); });
}

template <typename OpTy>
static Value lowerBinary(TensorEmitter &e, OpTy op,
                         typename OpTy::Adaptor adaptor) {
  Type logical = elementOf(op.getLhs());
  if (isa<AndOp, OrOp, XorOp>(op.getOperation()) && isFloat(logical)) {
    op.emitOpError("has no meaning for elements of type ") << logical;
    return {};
  }
  Type result = elementOf(op.getResult());
  return e.map(storageTensor(op.getType()),
               {adaptor.getLhs(), adaptor.getRhs()}, [&](ValueRange args) {
                 Value x = e.widen(args[0], logical);
                 Value y = e.widen(args[1], logical);
                 return e.narrow(binary(e, op, x, y, logical), result);
               });
}

/// The value that every element of a constant operand has.
static std::optional<double> splatOf(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements =
      constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  if (!elements || !elements.isSplat())
    return std::nullopt;
  if (auto floats = dyn_cast<DenseFPElementsAttr>(elements))
    return floats.getSplatValue<APFloat>().convertToDouble();
  if (auto integers = dyn_cast<DenseIntElementsAttr>(elements))
    return static_cast<double>(integers.getSplatValue<APInt>().getSExtValue());
  return std::nullopt;
}

static Value lowerPow(TensorEmitter &e, PowOp op, PowOp::Adaptor adaptor) {
  Type base = elementOf(op.getLhs()), power = elementOf(op.getRhs());
  std::optional<double> constant = splatOf(op.getRhs());
  return e.map(storageTensor(op.getType()),
               {adaptor.getLhs(), adaptor.getRhs()},
               [&](ValueRange args) -> Value {
                 Value x = e.widen(args[0], base), y = e.widen(args[1], power);
                 if (constant == 2.0)
                   return e.narrow(e.mul(x, x), base);
                 if (!isFloat(base) && !isFloat(power)) {
                   // The product wraps alike whatever the width of the power.
                   return integerPower(e, x, y, !isUnsigned(power));
                 }
                 // An integer does not always fit a float's mantissa.
                 bool wide = !isFloat(base) || !isFloat(power) ||
                             base.isF64() || power.isF64();
                 Type type = wide ? Type(e.getF64Type()) : Type(e.getF32Type());
                 Value result = math::PowFOp::create(
                     e, e.convert(x, base, type), e.convert(y, power, type));
                 return e.narrow(e.convert(result, type, base), base);
               });
}

static Value lowerWhere(TensorEmitter &e, WhereOp op,
                        WhereOp::Adaptor adaptor) {
  return e.map(
      storageTensor(op.getType()),
      {adaptor.getCondition(), adaptor.getX(), adaptor.getY()},
      [&](ValueRange args) { return e.select(args[0], args[1], args[2]); });
}

static Value lowerClip(TensorEmitter &e, ClipOp op, ClipOp::Adaptor adaptor) {
  Type logical = elementOf(op.getInput());
  auto bound = [&](Value tensor) -> Value {
    if (!tensor)
      return {};
    e.check(e.cmp(CmpI::eq, e.product(e.dims(tensor)), 1),
            "a bound must be one number");
    int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
    return e.read(tensor, SmallVector<Value>(rank, e.idx(0)), logical);
  };
  Value low = bound(adaptor.getLow()), high = bound(adaptor.getHigh());
  return e.map(
      storageTensor(op.getType()), adaptor.getInput(), [&](ValueRange args) {
        Value x = e.widen(args[0], logical);
        bool integer = !isFloat(x.getType()), noSign = isUnsigned(logical);
        if (low)
          x = !integer ? arith::MaximumFOp::create(e, x, low).getResult()
              : noSign ? arith::MaxUIOp::create(e, x, low).getResult()
                       : e.max(x, low);
        if (high)
          x = !integer ? arith::MinimumFOp::create(e, x, high).getResult()
              : noSign ? arith::MinUIOp::create(e, x, high).getResult()
                       : e.min(x, high);
        return e.narrow(x, logical);
      });
}

template <typename... Ops>
static void addUnary(RewritePatternSet &patterns, const TypeConverter &types) {
  (addLowering<Ops, lowerUnary<Ops>>(patterns, types), ...);
}
template <typename... Ops>
static void addBinary(RewritePatternSet &patterns, const TypeConverter &types) {
  (addLowering<Ops, lowerBinary<Ops>>(patterns, types), ...);
}

void mlir::llm::populateElementwiseLowerings(RewritePatternSet &patterns,
                                             const TypeConverter &types) {
  addUnary<AbsOp, CeilOp, CosOp, ErfOp, ExpOp, FloorOp, LogOp, NegOp, NotOp,
           ReciprocalOp, ReluOp, RoundOp, SigmoidOp, SignOp, SiluOp, SinOp,
           SoftplusOp, SqrtOp, TanhOp, GeluOp>(patterns, types);
  addBinary<AddOp, DivOp, MaxOp, MinOp, ModOp, MulOp, SubOp, AndOp, OrOp, XorOp,
            EqualOp, GreaterOp, GreaterEqualOp, LessOp, LessEqualOp>(patterns,
                                                                     types);
  addLowering<CastOp, lowerCast>(patterns, types);
  addLowering<ClipOp, lowerClip>(patterns, types);
  addLowering<PowOp, lowerPow>(patterns, types);
  addLowering<WhereOp, lowerWhere>(patterns, types);
}
