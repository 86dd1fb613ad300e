//===- Casts.cpp - Element conversions ------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Floats of 8 bits and fewer, and bf16, are integers to LLVM: what they hold is
// taken apart and put together here with integer arithmetic. The formats are
// those of the OCP 8-bit floating point (2023) and microscaling (2023)
// specifications, and the UZ variants of Noune et al. (2022); what ONNX adds is
// the table of its Cast operator.
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/TensorEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace mlir::llm;

namespace {
/// A float of at most 16 bits: sign, exponent, mantissa.
struct SmallFloat {
  unsigned exponentBits, mantissaBits;
  int bias;
  int nan;           ///< code of NaN without sign; -1: there is none
  int infinity;      ///< code of infinity; -1: there is none
  int largest;       ///< code of the largest finite value
  bool unsignedZero; ///< NaN takes the place of -0

  int signBit() const { return 1 << (exponentBits + mantissaBits); }
};
} // namespace

static SmallFloat smallFloat(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return SmallFloat{4, 3, 7, 0x7f, -1, 0x7e, false};
  if (isa<Float8E4M3FNUZType>(type))
    return SmallFloat{4, 3, 8, 0x80, -1, 0x7f, true};
  if (isa<Float8E5M2Type>(type))
    return SmallFloat{5, 2, 15, 0x7e, 0x7c, 0x7b, false};
  if (isa<Float8E5M2FNUZType>(type))
    return SmallFloat{5, 2, 16, 0x80, -1, 0x7f, true};
  if (isa<Float4E2M1FNType>(type))
    return SmallFloat{2, 1, 1, -1, -1, 0x7, false};
  // Not left to LLVM: it merges a truncation before this one into it, and has
  // no instruction for f64 to f16.
  assert(type.isF16() && "a float type that ONNX does not have");
  return SmallFloat{5, 10, 15, 0x7e00, 0x7c00, 0x7bff, false};
}

/// The f32 with the bits of the i32 `bits`.
static Value asFloat(TensorEmitter &e, Value bits) {
  return arith::BitcastOp::create(e, e.getF32Type(), bits);
}
static Value asBits(TensorEmitter &e, Value value) {
  return arith::BitcastOp::create(e, e.getI32Type(), value);
}

static Value decode(TensorEmitter &e, Value stored, const SmallFloat &format) {
  Type i32 = e.getI32Type(), f32 = e.getF32Type();
  auto c = [&](int64_t v) { return e.constantInt(i32, v); };
  Value code = arith::ExtUIOp::create(e, i32, stored);
  Value magnitude = e.land(code, c(format.signBit() - 1));
  unsigned shift = 23 - format.mantissaBits;
  Value normal =
      asFloat(e, e.add(arith::ShLIOp::create(e, magnitude, c(shift)),
                       c(static_cast<int64_t>(127 - format.bias) << 23)));
  // A subnormal is its mantissa times the smallest step.
  double step =
      std::ldexp(1.0, 1 - format.bias - static_cast<int>(format.mantissaBits));
  Value subnormal =
      e.mul(arith::UIToFPOp::create(e, f32, magnitude), e.constant(f32, step));
  Value isNormal = e.cmp(TensorEmitter::Predicate::sge, magnitude,
                         int64_t{1} << format.mantissaBits);
  Value bits = asBits(e, e.select(isNormal, normal, subnormal));
  Value sign = arith::ShLIOp::create(
      e, e.land(code, c(format.signBit())),
      c(31 - (format.exponentBits + format.mantissaBits)));
  Value result = asFloat(e, e.lor(bits, sign));
  if (format.infinity >= 0) {
    Value infinite = asFloat(e, e.lor(c(0x7f800000), sign));
    result = e.select(
        e.cmp(TensorEmitter::Predicate::eq, magnitude, format.infinity),
        infinite, result);
  }
  if (format.nan >= 0) {
    // With an infinity, every larger code is a NaN.
    Value isNaN =
        format.unsignedZero
            ? e.cmp(TensorEmitter::Predicate::eq, code, format.nan)
            : e.cmp(TensorEmitter::Predicate::sgt, magnitude,
                    format.infinity >= 0 ? format.infinity : format.largest);
    result = e.select(isNaN, asFloat(e, c(0x7fc00000)), result);
  }
  return result;
}

static Value encode(TensorEmitter &e, Value value, const SmallFloat &format,
                    bool saturate) {
  Type i32 = e.getI32Type(), f32 = e.getF32Type();
  auto c = [&](int64_t v) { return e.constantInt(i32, v); };
  Value bits = asBits(e, value);
  Value magnitude = e.land(bits, c(0x7fffffff));
  Value absolute = asFloat(e, magnitude);
  unsigned shift = 23 - format.mantissaBits;
  // Normal values: add half a step less one, plus the kept lowest bit, so that
  // ties go to even; a carry moves on to the next exponent by itself.
  Value odd = e.land(arith::ShRUIOp::create(e, magnitude, c(shift)), c(1));
  Value rounded =
      e.add(e.add(magnitude, c((int64_t{1} << (shift - 1)) - 1)), odd);
  Value normal =
      e.sub(arith::ShRUIOp::create(e, rounded, c(shift)),
            c(static_cast<int64_t>(127 - format.bias) << format.mantissaBits));
  // Subnormal values: a count of smallest steps. The clamp keeps the
  // conversion defined where the result is not used.
  double steps =
      std::ldexp(1.0, format.bias - 1 + static_cast<int>(format.mantissaBits));
  Value smallestNormal = e.constant(f32, std::ldexp(1.0, 1 - format.bias));
  Value isSmall = arith::CmpFOp::create(e, arith::CmpFPredicate::OLT, absolute,
                                        smallestNormal);
  Value count = e.mul(e.select(isSmall, absolute, e.constant(f32, 0)),
                      e.constant(f32, steps));
  Value subnormal = arith::FPToSIOp::create(
      e, i32, math::RoundEvenOp::create(e, count).getResult());
  Value code = e.select(isSmall, subnormal, normal);
  int beyond = saturate || (format.infinity < 0 && format.nan < 0)
                   ? format.largest
               : format.infinity >= 0 ? format.infinity
                                      : format.nan;
  code = e.select(e.cmp(TensorEmitter::Predicate::sgt, code, format.largest),
                  c(beyond), code);
  Value sign = arith::ShRUIOp::create(
      e, e.land(bits, c(static_cast<int64_t>(0x80000000u))),
      c(31 - (format.exponentBits + format.mantissaBits)));
  Value isNaN =
      arith::CmpFOp::create(e, arith::CmpFPredicate::UNO, value, value);
  if (format.unsignedZero) {
    Value signless =
        e.lor(e.cmp(TensorEmitter::Predicate::eq, code, 0),
              e.cmp(TensorEmitter::Predicate::eq, code, format.nan));
    code = e.select(signless, code, e.lor(code, sign));
    code = e.select(isNaN, c(format.nan), code);
  } else {
    // Without a NaN, -0 stands for it.
    Value special = c(format.nan >= 0 ? format.nan : format.signBit());
    code = e.select(isNaN, special, code);
    if (format.nan >= 0)
      code = e.lor(code, sign);
    else
      code = e.select(isNaN, code, e.lor(code, sign));
  }
  unsigned width = 1 + format.exponentBits + format.mantissaBits;
  return arith::TruncIOp::create(e, e.getIntegerType(std::max(width, 8u)),
                                 code);
}

/// E8M0: a power of two. 255 is NaN; there is no sign and no zero.
static Value decodePower(TensorEmitter &e, Value stored) {
  Type i32 = e.getI32Type();
  auto c = [&](int64_t v) { return e.constantInt(i32, v); };
  Value code = arith::ExtUIOp::create(e, i32, stored);
  Value bits = arith::ShLIOp::create(e, code, c(23));
  bits = e.select(e.cmp(TensorEmitter::Predicate::eq, code, 0), c(0x00400000),
                  bits);
  bits = e.select(e.cmp(TensorEmitter::Predicate::eq, code, 255), c(0x7fc00000),
                  bits);
  return asFloat(e, bits);
}

/// Rounds up to the next power of two, as ONNX Cast does by default.
static Value encodePower(TensorEmitter &e, Value value, bool saturate) {
  Type i32 = e.getI32Type();
  auto c = [&](int64_t v) { return e.constantInt(i32, v); };
  Value bits = e.land(asBits(e, value), c(0x7fffffff));
  Value mantissa = e.land(bits, c(0x007fffff));
  Value exponent = arith::ShRUIOp::create(e, bits, c(23));
  Value up = arith::ExtUIOp::create(
      e, i32, e.cmp(TensorEmitter::Predicate::ne, mantissa, 0));
  // Among subnormals, 2^-127 is exact and what is below it rounds up to it.
  Value small = e.select(e.cmp(TensorEmitter::Predicate::ule, bits, 0x00400000),
                         c(0), c(1));
  Value code = e.select(e.cmp(TensorEmitter::Predicate::eq, exponent, 0), small,
                        e.add(exponent, up));
  code = e.select(e.cmp(TensorEmitter::Predicate::sge, code, 255),
                  c(saturate ? 254 : 255), code);
  Value isNaN =
      arith::CmpFOp::create(e, arith::CmpFPredicate::UNO, value, value);
  code = e.select(isNaN, c(255), code);
  return arith::TruncIOp::create(e, e.getI8Type(), code);
}

/// bf16: the upper half of an f32.
static Value decodeUpperHalf(TensorEmitter &e, Value stored) {
  Type i32 = e.getI32Type();
  Value code = arith::ExtUIOp::create(e, i32, stored);
  return asFloat(e, arith::ShLIOp::create(e, code, e.constantInt(i32, 16)));
}

static Value encodeUpperHalf(TensorEmitter &e, Value value) {
  Type i32 = e.getI32Type();
  auto c = [&](int64_t v) { return e.constantInt(i32, v); };
  Value bits = asBits(e, value);
  // Half a step less one, plus the kept lowest bit: ties go to even.
  Value odd = e.land(arith::ShRUIOp::create(e, bits, c(16)), c(1));
  Value rounded = e.add(e.add(bits, c(0x7fff)), odd);
  // The carry of a NaN could make it an infinity, or a zero.
  Value quiet = e.lor(bits, c(0x00400000));
  Value isNaN =
      arith::CmpFOp::create(e, arith::CmpFPredicate::UNO, value, value);
  Value code =
      arith::ShRUIOp::create(e, e.select(isNaN, quiet, rounded), c(16));
  return arith::TruncIOp::create(e, e.getIntegerType(16), code);
}

Value TensorEmitter::widen(Value stored, Type type) {
  if (!isa<FloatType>(type) || type.isF32() || type.isF64())
    return stored;
  if (isa<Float8E8M0FNUType>(type))
    return decodePower(*this, stored);
  if (type.isBF16())
    return decodeUpperHalf(*this, stored);
  if (type.isF16())
    return arith::ExtFOp::create(*this, getF32Type(), stored);
  return decode(*this, stored, smallFloat(type));
}

Value TensorEmitter::narrow(Value computed, Type type, bool saturate) {
  if (!isa<FloatType>(type) || type.isF32() || type.isF64())
    return computed;
  if (isa<Float8E8M0FNUType>(type))
    return encodePower(*this, computed, saturate);
  if (type.isBF16())
    return encodeUpperHalf(*this, computed);
  if (type.isF16())
    return arith::BitcastOp::create(
        *this, type, encode(*this, computed, smallFloat(type), false));
  return encode(*this, computed, smallFloat(type), saturate);
}

/// f64 to f32 so that a second rounding, to fewer bits, is as good as one:
/// an inexact result has its lowest bit set (Boldo and Melquiond, 2008).
static Value roundToOdd(TensorEmitter &e, Value value) {
  Type f64 = e.getF64Type();
  Value nearest = arith::TruncFOp::create(e, e.getF32Type(), value);
  Value back = arith::ExtFOp::create(e, f64, nearest);
  Value exact =
      arith::CmpFOp::create(e, arith::CmpFPredicate::UEQ, back, value);
  Value bits = asBits(e, nearest);
  Value away = arith::CmpFOp::create(
      e, arith::CmpFPredicate::OGT, math::AbsFOp::create(e, back).getResult(),
      math::AbsFOp::create(e, value).getResult());
  Value one = e.constantInt(e.getI32Type(), 1);
  Value towardZero = e.select(away, e.sub(bits, one), bits);
  return asFloat(e, e.select(exact, bits, e.lor(towardZero, one)));
}

/// Float to integer: towards zero, saturating; NaN gives 0.
static Value toInteger(TensorEmitter &e, Value value, Type to) {
  Type storage = storageType(to);
  unsigned width = to.getIntOrFloatBitWidth();
  bool isUnsigned = to.isUnsignedInteger();
  Type f = value.getType();
  double high = std::ldexp(1.0, static_cast<int>(width) - (isUnsigned ? 0 : 1));
  double low = isUnsigned ? 0.0 : -high;
  Value truncated = math::TruncOp::create(e, value);
  Value tooHigh = arith::CmpFOp::create(e, arith::CmpFPredicate::OGE, truncated,
                                        e.constant(f, high));
  Value tooLow = arith::CmpFOp::create(e, arith::CmpFPredicate::OLT, truncated,
                                       e.constant(f, low));
  Value isNaN =
      arith::CmpFOp::create(e, arith::CmpFPredicate::UNO, value, value);
  Value outside = e.lor(isNaN, e.lor(tooHigh, tooLow));
  Value safe = e.select(outside, e.constant(f, 0), truncated);
  Value result = isUnsigned
                     ? arith::FPToUIOp::create(e, storage, safe).getResult()
                     : arith::FPToSIOp::create(e, storage, safe).getResult();
  int64_t highest = isUnsigned ? static_cast<int64_t>(llvm::maxUIntN(width))
                               : llvm::maxIntN(width);
  int64_t lowest = isUnsigned ? 0 : llvm::minIntN(width);
  result = e.select(tooHigh, e.constantInt(storage, highest), result);
  return e.select(tooLow, e.constantInt(storage, lowest), result);
}

/// Keeps the low bits of a byte that stands for an integer below 8 bits.
static Value wrapNarrow(TensorEmitter &e, Value byte, Type to) {
  unsigned width = to.getIntOrFloatBitWidth();
  if (width >= 8 || width == 1)
    return byte;
  Value shift = e.constantInt(byte.getType(), 8 - width);
  Value high = arith::ShLIOp::create(e, byte, shift);
  if (to.isUnsignedInteger())
    return arith::ShRUIOp::create(e, high, shift);
  return arith::ShRSIOp::create(e, high, shift);
}

Value TensorEmitter::convert(Value value, Type from, Type to) {
  if (from == to)
    return value;
  Type target = computeType(to);
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  bool fromUnsigned = from.isUnsignedInteger() || from.isInteger(1);
  if (to.isInteger(1)) {
    if (fromFloat)
      return arith::CmpFOp::create(*this, arith::CmpFPredicate::UNE, value,
                                   constant(value.getType(), 0));
    return cmp(Predicate::ne, value, 0);
  }
  if (fromFloat && toFloat) {
    if (value.getType() == target)
      return value;
    if (target.isF64())
      return arith::ExtFOp::create(*this, target, value);
    if (to.getIntOrFloatBitWidth() < 32)
      return roundToOdd(*this, value);
    return arith::TruncFOp::create(*this, target, value);
  }
  if (fromFloat) {
    // Below 8 bits, ONNX Cast keeps the low bits of the integer.
    if (to.getIntOrFloatBitWidth() < 8) {
      Value whole = toInteger(*this, value, getI32Type());
      return wrapNarrow(*this, arith::TruncIOp::create(*this, target, whole),
                        to);
    }
    return toInteger(*this, value, to);
  }
  if (toFloat) {
    // What f32 does not hold exactly goes through f64.
    bool wide = value.getType().getIntOrFloatBitWidth() > 24;
    bool viaF64 = wide && to.getIntOrFloatBitWidth() < 32;
    Type first = viaF64 ? Type(getF64Type()) : target;
    Value result =
        fromUnsigned ? arith::UIToFPOp::create(*this, first, value).getResult()
                     : arith::SIToFPOp::create(*this, first, value).getResult();
    return viaF64 ? roundToOdd(*this, result) : result;
  }
  unsigned have = value.getType().getIntOrFloatBitWidth();
  unsigned want = target.getIntOrFloatBitWidth();
  if (want > have)
    value = fromUnsigned
                ? arith::ExtUIOp::create(*this, target, value).getResult()
                : arith::ExtSIOp::create(*this, target, value).getResult();
  else if (want < have)
    value = arith::TruncIOp::create(*this, target, value);
  return wrapNarrow(*this, value, to);
}
