//===- ScalarMath.cpp - Elementary functions in f64 -----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Textbook argument reductions (Muller, Elementary Functions, 2016) in front of
// Taylor series, long enough for f64 on the reduced range. Where one step loses
// bits, a second number carries them (double-double, Dekker 1971).
//
//===----------------------------------------------------------------------===//
#include "passes/Host/ScalarMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::llm;

using B = ImplicitLocOpBuilder;
using CmpF = arith::CmpFPredicate;
using CmpI = arith::CmpIPredicate;

static Value num(B &b, double value) {
  return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
}
static Value integer(B &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}
static Value add(B &b, Value x, Value y) {
  return arith::AddFOp::create(b, x, y);
}
static Value sub(B &b, Value x, Value y) {
  return arith::SubFOp::create(b, x, y);
}
static Value mul(B &b, Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}
static Value div(B &b, Value x, Value y) {
  return arith::DivFOp::create(b, x, y);
}
static Value fma(B &b, Value x, Value y, Value z) {
  return math::FmaOp::create(b, x, y, z);
}
static Value neg(B &b, Value x) { return arith::NegFOp::create(b, x); }
static Value absolute(B &b, Value x) { return math::AbsFOp::create(b, x); }
static Value is(B &b, CmpF predicate, Value x, Value y) {
  return arith::CmpFOp::create(b, predicate, x, y);
}
static Value select(B &b, Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, condition, x, y);
}
static Value both(B &b, Value x, Value y) {
  return arith::AndIOp::create(b, x, y);
}
static Value toBits(B &b, Value x) {
  return arith::BitcastOp::create(b, b.getI64Type(), x);
}
static Value fromBits(B &b, Value x) {
  return arith::BitcastOp::create(b, b.getF64Type(), x);
}

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// ln 2 in two parts; products of the first with integers below 2^15 are exact.
static constexpr double kLn2High = 0x1.62e42fefap-1;
static constexpr double kLn2Low = 0x1.cf79abc9e3b4p-40;

/// c[0] + c[1] x + c[2] x^2 + ...
static Value polynomial(B &b, Value x, ArrayRef<double> c) {
  Value sum = num(b, c.back());
  for (double each : llvm::reverse(c.drop_back()))
    sum = fma(b, sum, x, num(b, each));
  return sum;
}

/// `x` rounded to an integer, and the same as an i64; |x| < 2^31. NaN gives an
/// arbitrary integer, never an undefined one.
static std::pair<Value, Value> roundToInteger(B &b, Value x) {
  // Beside this number, f64 has steps of 1 and the low bits count them.
  Value shifted = add(b, x, num(b, 0x1.8p52));
  Value rounded = sub(b, shifted, num(b, 0x1.8p52));
  Value low = arith::TruncIOp::create(b, b.getI32Type(), toBits(b, shifted));
  return {rounded, arith::ExtSIOp::create(b, b.getI64Type(), low)};
}

/// 2^k for -1022 <= k <= 1023.
static Value powerOfTwo(B &b, Value k) {
  Value biased = arith::AddIOp::create(b, k, integer(b, 1023));
  return fromBits(b, arith::ShLIOp::create(b, biased, integer(b, 52)));
}

/// x * 2^k in two steps, so that one of them alone rounds; |k| <= 2000.
static Value scale(B &b, Value x, Value k) {
  Value half = arith::ShRSIOp::create(b, k, integer(b, 1));
  Value rest = arith::SubIOp::create(b, k, half);
  return mul(b, mul(b, x, powerOfTwo(b, half)), powerOfTwo(b, rest));
}

/// exp(r) - 1 = r * polynomial for |r| <= ln(2) / 2.
static Value expm1Reduced(B &b, Value r) {
  SmallVector<double> c;
  double factorial = 1;
  for (int i = 1; i <= 14; ++i)
    c.push_back(1 / (factorial *= i));
  // r + r^2 (1/2 + r/6 + ...): the leading term stays exact.
  Value tail = polynomial(b, r, ArrayRef(c).drop_front());
  return fma(b, mul(b, r, r), tail, r);
}

/// exp(high + low) where |low| is far below |high|.
static Value expOf(B &b, Value high, Value low) {
  high = select(b, is(b, CmpF::OGT, high, num(b, 720)), num(b, 720), high);
  high = select(b, is(b, CmpF::OLT, high, num(b, -760)), num(b, -760), high);
  auto [k, count] = roundToInteger(b, mul(b, high, num(b, M_LOG2E)));
  Value r = fma(b, k, num(b, -kLn2High), high);
  r = fma(b, k, num(b, -kLn2Low), r);
  if (low)
    r = add(b, r, low);
  return scale(b, add(b, expm1Reduced(b, r), num(b, 1)), count);
}

Value mlir::llm::emitExp(B &b, Value x) { return expOf(b, x, {}); }

/// log(x) of a positive finite x as an unevaluated sum.
static std::pair<Value, Value> logOf(B &b, Value x) {
  // Subnormals are scaled up; x = 2^e m with m between sqrt(1/2) and sqrt(2).
  Value tiny = is(b, CmpF::OLT, x, num(b, 0x1p-1022));
  Value scaled = select(b, tiny, mul(b, x, num(b, 0x1p54)), x);
  Value shift = select(b, tiny, integer(b, 54), integer(b, 0));
  Value bits = toBits(b, scaled);
  // Subtracting the bits of sqrt(1/2) puts the split where m = sqrt(1/2).
  Value base = integer(b, 0x3fe6a09e667f3bcd);
  Value e = arith::ShRSIOp::create(b, arith::SubIOp::create(b, bits, base),
                                   integer(b, 52));
  Value m =
      fromBits(b, arith::SubIOp::create(
                      b, bits, arith::ShLIOp::create(b, e, integer(b, 52))));
  e = arith::SubIOp::create(b, e, shift);
  Value exponent = arith::SIToFPOp::create(b, b.getF64Type(), e);
  // log m = 2 atanh s = 2 s + 2 s^3 / 3 + ... with s = (m - 1) / (m + 1).
  Value f = sub(b, m, num(b, 1)), g = add(b, f, num(b, 2));
  Value s = div(b, f, g);
  // What g lost, then what s lost.
  Value gLow = sub(b, f, sub(b, g, num(b, 2)));
  Value error = fma(b, neg(b, s), g, f);
  error = fma(b, neg(b, s), gLow, error);
  Value sLow = div(b, error, g);
  Value z = mul(b, s, s);
  SmallVector<double> c;
  for (int i = 1; i <= 12; ++i)
    c.push_back(2.0 / (2 * i + 1));
  Value tail = mul(b, mul(b, s, z), polynomial(b, z, c));
  Value high = mul(b, exponent, num(b, kLn2High));
  Value twice = add(b, s, s);
  // high + twice, with the error of the sum (Knuth's two-sum).
  Value sum = add(b, high, twice);
  Value t = sub(b, sum, high);
  Value lost = add(b, sub(b, high, sub(b, sum, t)), sub(b, twice, t));
  Value low = fma(b, exponent, num(b, kLn2Low), tail);
  low = add(b, low, add(b, add(b, sLow, sLow), lost));
  return {sum, low};
}

Value mlir::llm::emitLog(B &b, Value x) {
  auto [high, low] = logOf(b, x);
  Value result = add(b, high, low);
  Value zero = num(b, 0);
  result = select(b, is(b, CmpF::OEQ, x, num(b, kInfinity)), x, result);
  result = select(b, is(b, CmpF::OEQ, x, zero), num(b, -kInfinity), result);
  result = select(b, is(b, CmpF::OLT, x, zero), num(b, NAN), result);
  return select(b, is(b, CmpF::UNO, x, x), x, result);
}

Value mlir::llm::emitLog1p(B &b, Value x) {
  // log(u) x / (u - 1) makes good for what u = 1 + x lost (Goldberg, 1991).
  Value one = num(b, 1);
  Value u = add(b, one, x), rest = sub(b, u, one);
  Value log = emitLog(b, u);
  Value result = mul(b, log, div(b, x, rest));
  result = select(b, is(b, CmpF::OEQ, rest, num(b, 0)), x, result);
  // An infinity or a zero of u: the logarithm alone.
  Value special =
      arith::OrIOp::create(b, is(b, CmpF::OEQ, u, num(b, kInfinity)),
                           is(b, CmpF::OEQ, u, num(b, 0)));
  return select(b, special, log, result);
}

Value mlir::llm::emitTanh(B &b, Value x) {
  // tanh(a) = e / (e + 2) with e = exp(2 a) - 1.
  Value a = absolute(b, x);
  Value limited = select(b, is(b, CmpF::OGT, a, num(b, 22)), num(b, 22), a);
  Value twice = add(b, limited, limited);
  auto [k, count] = roundToInteger(b, mul(b, twice, num(b, M_LOG2E)));
  Value r = fma(b, k, num(b, -kLn2High), twice);
  r = fma(b, k, num(b, -kLn2Low), r);
  Value power = powerOfTwo(b, count);
  Value e = fma(b, power, expm1Reduced(b, r), sub(b, power, num(b, 1)));
  return math::CopySignOp::create(b, div(b, e, add(b, e, num(b, 2))), x);
}

Value mlir::llm::emitErf(B &b, Value x) {
  Value a = absolute(b, x);
  // Near 0: the Maclaurin series.
  SmallVector<double> c;
  double factorial = 1;
  for (int i = 0; i <= 13; ++i) {
    factorial *= i ? i : 1;
    c.push_back((i % 2 ? -2 : 2) / (std::sqrt(M_PI) * factorial * (2 * i + 1)));
  }
  Value near = mul(b, a, polynomial(b, mul(b, a, a), c));
  // From 0.5 to 6: 1 - exp(-a^2) erfcx(a); erfcx interpolated at 20 Chebyshev
  // nodes in u, which maps 1 / (a + 2) to [-1, 1].
  static constexpr double kErfcx[] = {
      0x1.1c069f029f363p-2,   0x1.fd125342df3ccp-3,   0x1.3a294879737d3p-4,
      0x1.b1adfbda20748p-7,   0x1.775fd0cbf765dp-13,  -0x1.7bf5f061a5d6bp-12,
      -0x1.d270f42cf7b9fp-17, 0x1.f6c266fc38193p-17,  -0x1.1947cc28d3307p-22,
      -0x1.84a941b6b656fp-21, 0x1.b71c66b118e69p-24,  0x1.c8ee6b927edf3p-26,
      -0x1.72ee5d50dfdafp-27, 0x1.9fd79e38a9fa6p-32,  0x1.631f5e929fbe6p-31,
      -0x1.813d1c2ed9535p-33, -0x1.bf8b46a2f70bdp-38, 0x1.ff00045484d02p-37,
      -0x1.251bbdafa63bap-39, -0x1.c90e66055f8d9p-42};
  Value limited = select(b, is(b, CmpF::OGT, a, num(b, 6)), num(b, 6), a);
  Value s = div(b, num(b, 1), add(b, limited, num(b, 2)));
  Value u = div(b, sub(b, s, num(b, 0.2625)), num(b, 0.1375));
  Value far = mul(b, emitExp(b, neg(b, mul(b, limited, limited))),
                  polynomial(b, u, kErfcx));
  far = sub(b, num(b, 1), far);
  Value result = select(b, is(b, CmpF::OLT, a, num(b, 0.5)), near, far);
  return math::CopySignOp::create(b, result, x);
}

Value mlir::llm::emitPow(B &b, Value x, Value y) {
  Value zero = num(b, 0), one = num(b, 1), infinity = num(b, kInfinity);
  Value a = absolute(b, x);
  auto [high, low] = logOf(b, a);
  // y log a as an unevaluated sum, cut off where exp is 0 or infinite anyway.
  Value product = mul(b, y, high);
  Value rest = fma(b, y, low, fma(b, y, high, neg(b, product)));
  Value large = is(b, CmpF::OGT, absolute(b, product), num(b, 800));
  rest = select(b, large, zero, rest);
  Value result = expOf(b, product, rest);
  // Bases 0 and infinity, powers of infinity.
  Value negative = is(b, CmpF::OLT, y, zero);
  Value atZero = select(b, negative, infinity, zero);
  Value atInfinity = select(b, negative, zero, infinity);
  result = select(b, is(b, CmpF::OEQ, a, zero), atZero, result);
  result = select(b, is(b, CmpF::OEQ, a, infinity), atInfinity, result);
  Value yInfinite = is(b, CmpF::OEQ, absolute(b, y), infinity);
  Value grows = arith::XOrIOp::create(b, is(b, CmpF::OLT, a, one), negative);
  Value withInfinitePower = select(b, is(b, CmpF::OEQ, a, one), one,
                                   select(b, grows, zero, infinity));
  // A base above 1 grows with y = +inf, one below 1 with y = -inf.
  result = select(b, yInfinite, withInfinitePower, result);
  result = select(b, is(b, CmpF::UNO, x, y), num(b, NAN), result);
  // A negative base: only integer powers, odd ones keep the sign.
  Value whole = is(b, CmpF::OEQ, math::FloorOp::create(b, y), y);
  Value half = mul(b, y, num(b, 0.5));
  Value even = is(b, CmpF::OEQ, math::FloorOp::create(b, half), half);
  Value odd =
      both(b, whole,
           arith::XOrIOp::create(
               b, even, arith::ConstantOp::create(b, b.getBoolAttr(true))));
  Value signed_ = math::CopySignOp::create(b, result, x);
  result = select(b, odd, signed_, result);
  Value finiteNegative =
      both(b, is(b, CmpF::OLT, x, zero),
           both(b, is(b, CmpF::OLT, a, infinity),
                is(b, CmpF::ONE, math::FloorOp::create(b, y), y)));
  result = select(b, finiteNegative, num(b, NAN), result);
  Value unity = arith::OrIOp::create(b, is(b, CmpF::OEQ, x, one),
                                     is(b, CmpF::OEQ, y, zero));
  return select(b, unity, one, result);
}

Value mlir::llm::emitRemainder(B &b, Value x, Value y) {
  Type f64 = b.getF64Type();
  Value zero = num(b, 0);
  Value a = absolute(b, x), d = absolute(b, y);
  Value usable = both(b, is(b, CmpF::OLT, a, num(b, kInfinity)),
                      is(b, CmpF::OGT, d, zero));
  a = select(b, usable, a, zero);
  d = select(b, usable, d, num(b, 1));
  // Double a divisor up to the dividend, then subtract it on the way down: all
  // of it exact. A divisor that is infinite stops at once.
  auto grow = scf::WhileOp::create(
      b, f64, d,
      [&](OpBuilder &, Location, ValueRange state) {
        Value go = is(b, CmpF::OLE, state[0], mul(b, a, num(b, 0.5)));
        scf::ConditionOp::create(b, go, state);
      },
      [&](OpBuilder &, Location, ValueRange state) {
        scf::YieldOp::create(b, add(b, state[0], state[0]));
      });
  auto shrink = scf::WhileOp::create(
      b, TypeRange{f64, f64}, ValueRange{a, grow.getResult(0)},
      [&](OpBuilder &, Location, ValueRange state) {
        Value go = is(b, CmpF::OGE, state[1], d);
        scf::ConditionOp::create(b, go, state);
      },
      [&](OpBuilder &, Location, ValueRange state) {
        Value fits = is(b, CmpF::OGE, state[0], state[1]);
        Value rest = select(b, fits, sub(b, state[0], state[1]), state[0]);
        Value infinite = is(b, CmpF::OEQ, state[1], num(b, kInfinity));
        Value next = select(b, infinite, zero, mul(b, state[1], num(b, 0.5)));
        scf::YieldOp::create(b, ValueRange{rest, next});
      });
  Value result = math::CopySignOp::create(b, shrink.getResult(0), x);
  return select(b, usable, result, num(b, NAN));
}

//===----------------------------------------------------------------------===//
// Trigonometry
//===----------------------------------------------------------------------===//

/// The nearest multiple k of pi / 2 (its low bits) and x - k pi / 2, for
/// |x| < 2^30.
static std::pair<Value, Value> reduceSmall(B &b, Value x) {
  auto [k, count] = roundToInteger(b, mul(b, x, num(b, M_2_PI)));
  // pi / 2 in three parts of 53 bits; the fused products round once each.
  Value r = fma(b, k, num(b, -0x1.921fb54442d18p+0), x);
  r = fma(b, k, num(b, -0x1.1a62633145c07p-54), r);
  r = fma(b, k, num(b, 0x1.f1976b7ed8fbcp-110), r);
  return {r, count};
}

/// The same for larger x = m 2^e: m 2^e 2 / pi modulo 4, from as many bits of
/// 2 / pi as matter (Payne and Hanek, 1983).
static std::pair<Value, Value> reduceLarge(B &b, Value x) {
  // The first 1280 bits of 2 / pi after the point, highest word first.
  static constexpr uint64_t kTwoOverPi[] = {
      0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
      0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c,
      0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
      0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
      0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
      0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08,
      0x56033046fc7b6bab, 0xf0cfbc209af4361d};
  constexpr unsigned kBits = 1280, kFraction = 180;
  SmallVector<uint64_t> words(llvm::reverse(kTwoOverPi));
  Type wide = b.getIntegerType(kBits), medium = b.getIntegerType(256);
  auto constant = [&](const APInt &value) -> Value {
    Type type = b.getIntegerType(value.getBitWidth());
    return arith::ConstantOp::create(b, IntegerAttr::get(type, value));
  };
  auto mediumBits = [&](unsigned bit) {
    return constant(APInt::getOneBitSet(256, bit));
  };
  auto shiftRight = [&](Value value, unsigned count) -> Value {
    return arith::ShRUIOp::create(b, value, constant(APInt(256, count)));
  };
  Value bits = toBits(b, absolute(b, x));
  Value e = arith::SubIOp::create(
      b, arith::ShRUIOp::create(b, bits, integer(b, 52)), integer(b, 1075));
  Value m = arith::OrIOp::create(
      b, arith::AndIOp::create(b, bits, integer(b, (int64_t{1} << 52) - 1)),
      integer(b, int64_t{1} << 52));
  // The product modulo 2^256 has kFraction bits after the point.
  Value skip = arith::SubIOp::create(b, integer(b, kBits - kFraction), e);
  Value window = arith::TruncIOp::create(
      b, medium,
      arith::ShRUIOp::create(b, constant(APInt(kBits, words)),
                             arith::ExtUIOp::create(b, wide, skip)));
  Value product =
      arith::MulIOp::create(b, window, arith::ExtUIOp::create(b, medium, m));
  product = arith::AddIOp::create(b, product, mediumBits(kFraction - 1));
  Value k = arith::TruncIOp::create(b, b.getI64Type(),
                                    shiftRight(product, kFraction));
  Value fraction = arith::AndIOp::create(
      b, product, constant(APInt::getLowBitsSet(256, kFraction)));
  Value half = mediumBits(kFraction - 1);
  Value below = arith::CmpIOp::create(b, CmpI::ult, fraction, half);
  Value distance = select(b, below, arith::SubIOp::create(b, half, fraction),
                          arith::SubIOp::create(b, fraction, half));
  // Two words of 63 bits hold what matters of the distance to the multiple.
  auto part = [&](unsigned from) -> Value {
    Value word =
        arith::TruncIOp::create(b, b.getI64Type(), shiftRight(distance, from));
    word = arith::AndIOp::create(
        b, word, integer(b, std::numeric_limits<int64_t>::max()));
    Value value = arith::SIToFPOp::create(b, b.getF64Type(), word);
    return mul(b, value,
               num(b, std::ldexp(1.0, static_cast<int>(from - kFraction))));
  };
  Value r = mul(b, add(b, part(kFraction - 64), part(kFraction - 127)),
                num(b, M_PI_2));
  Value negative =
      arith::XOrIOp::create(b, below, is(b, CmpF::OLT, x, num(b, 0)));
  Value flip = is(b, CmpF::OLT, x, num(b, 0));
  k = select(b, flip, arith::SubIOp::create(b, integer(b, 0), k), k);
  return {select(b, negative, neg(b, r), r), k};
}

/// sin(x + quarters pi / 2).
static Value sineOf(B &b, Value x, int64_t quarters) {
  Value small = is(b, CmpF::OLT, absolute(b, x), num(b, 0x1p30));
  auto choice = scf::IfOp::create(
      b, small,
      [&](OpBuilder &, Location) {
        auto [r, k] = reduceSmall(b, x);
        scf::YieldOp::create(b, ValueRange{r, k});
      },
      [&](OpBuilder &, Location) {
        auto [r, k] = reduceLarge(b, x);
        scf::YieldOp::create(b, ValueRange{r, k});
      });
  Value r = choice.getResult(0);
  Value k = arith::AddIOp::create(b, choice.getResult(1), integer(b, quarters));
  Value z = mul(b, r, r);
  SmallVector<double> odd, even;
  double factorial = 1;
  for (int i = 1; i <= 19; ++i) {
    factorial *= i;
    double term = (i / 2 % 2 ? -1 : 1) / factorial;
    if (i >= 3)
      (i % 2 ? odd : even).push_back(term);
  }
  Value sine = fma(b, mul(b, r, z), polynomial(b, z, odd), r);
  Value cosine = fma(b, mul(b, z, z), polynomial(b, z, even),
                     fma(b, z, num(b, -0.5), num(b, 1)));
  auto bit = [&](int64_t mask) -> Value {
    return arith::CmpIOp::create(b, CmpI::ne,
                                 arith::AndIOp::create(b, k, integer(b, mask)),
                                 integer(b, 0));
  };
  Value result = select(b, bit(1), cosine, sine);
  result = select(b, bit(2), neg(b, result), result);
  // Infinities and NaN.
  return add(b, result, sub(b, x, x));
}

Value mlir::llm::emitSin(B &b, Value x) { return sineOf(b, x, 0); }
Value mlir::llm::emitCos(B &b, Value x) { return sineOf(b, x, 1); }
