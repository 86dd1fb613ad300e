//===- ExpandInstructions.cpp - What an old processor lacks ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CPU/ExpandInstructions.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using llvm::Value;
using B = llvm::IRBuilder<>;

namespace llm {

/// `type` (a scalar or a vector) with elements of `element`.
static llvm::Type *withElement(llvm::Type *type, llvm::Type *element) {
  if (auto *vector = llvm::dyn_cast<llvm::VectorType>(type))
    return llvm::VectorType::get(element, vector->getElementCount());
  return element;
}

static Value *integer(Value *like, uint32_t value) {
  return llvm::ConstantInt::get(like->getType(), value);
}
static Value *number(Value *like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}

//===----------------------------------------------------------------------===//
// f16
//===----------------------------------------------------------------------===//

/// 2^-14, the smallest normal f16, as bits of an f32; and how far exponents of
/// the two formats are apart.
static constexpr uint32_t kSmallestNormal = 113 << 23;
static constexpr uint32_t kBias = 112 << 23;

static Value *widenHalf(B &b, Value *x) {
  llvm::Type *type = x->getType();
  llvm::Type *words = withElement(type, b.getInt32Ty());
  llvm::Type *floats = withElement(type, b.getFloatTy());
  // In the upper half, where a single instruction puts them.
  Value *bits = b.CreateZExt(
      b.CreateBitCast(x, withElement(type, b.getInt16Ty())), words);
  bits = b.CreateShl(bits, 16);
  Value *sign = b.CreateAnd(bits, integer(bits, 0x80000000));
  Value *magnitude =
      b.CreateLShr(b.CreateAnd(bits, integer(bits, 0x7fff0000)), 3);
  auto where = [&](Value *condition, uint32_t value) {
    return b.CreateSelect(condition, integer(bits, value), integer(bits, 0));
  };
  // Infinities and NaN: the largest exponent stays the largest. Subnormals: a
  // mantissa behind 2^-14, which is then taken off.
  Value *isTiny = b.CreateICmpSLT(magnitude, integer(bits, 1 << 23));
  Value *isLargest =
      b.CreateICmpSGT(magnitude, integer(bits, (0x7c00 << 13) - 1));
  Value *code = b.CreateAdd(magnitude, integer(bits, kBias));
  code = b.CreateAdd(code, where(isLargest, kBias));
  code = b.CreateAdd(code, where(isTiny, 1 << 23));
  Value *anchor = b.CreateBitCast(where(isTiny, kSmallestNormal), floats);
  Value *number = b.CreateFSub(b.CreateBitCast(code, floats), anchor);
  return b.CreateBitCast(b.CreateOr(b.CreateBitCast(number, words), sign),
                         floats);
}

static Value *narrowToHalf(B &b, Value *x) {
  llvm::Type *type = x->getType();
  llvm::Type *words = withElement(type, b.getInt32Ty());
  Value *bits = b.CreateBitCast(x, words);
  Value *sign = b.CreateAnd(b.CreateLShr(bits, 16), integer(bits, 0x8000));
  Value *magnitude = b.CreateAnd(bits, integer(bits, 0x7fffffff));
  // Half a step less one, plus the kept lowest bit: ties go to even. What is
  // too large for an f16 by less than a step becomes infinity by the carry.
  Value *odd = b.CreateAnd(b.CreateLShr(magnitude, 13), integer(bits, 1));
  Value *rounded =
      b.CreateAdd(b.CreateAdd(magnitude, odd), integer(bits, 0xfff - kBias));
  Value *code = b.CreateLShr(rounded, 13);
  // Subnormals: the last bit of a sum with 1/2 is theirs.
  Value *half = number(x, 0.5);
  Value *sum = b.CreateFAdd(b.CreateBitCast(magnitude, type), half);
  Value *tiny =
      b.CreateSub(b.CreateBitCast(sum, words), b.CreateBitCast(half, words));
  auto above = [&](uint32_t most) {
    return b.CreateICmpSGT(magnitude, integer(bits, most));
  };
  code = b.CreateSelect(above(kSmallestNormal - 1), code, tiny);
  code = b.CreateSelect(above(0x477fffff), integer(bits, 0x7c00), code);
  code = b.CreateSelect(above(0x7f800000), integer(bits, 0x7e00), code);
  Value *stored =
      b.CreateTrunc(b.CreateOr(code, sign), withElement(type, b.getInt16Ty()));
  return b.CreateBitCast(stored, withElement(type, b.getHalfTy()));
}

//===----------------------------------------------------------------------===//
// Rounding to integers
//===----------------------------------------------------------------------===//

/// `x` rounded as `id` does. A sum with 2^23 (f32) or 2^52 has no fraction;
/// what is not below that has none, is infinite or a NaN.
static Value *roundTo(B &b, llvm::Intrinsic::ID id, Value *x) {
  bool isDouble = x->getType()->getScalarType()->isDoubleTy();
  Value *large = number(x, isDouble ? 0x1p52 : 0x1p23);
  Value *magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  auto withSign = [&](Value *value) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, value, x);
  };
  // Nearest, ties to even; then a step towards where it should be.
  Value *shift = withSign(large);
  Value *result = b.CreateFSub(b.CreateFAdd(x, shift), shift);
  Value *one = number(x, 1);
  auto step = [&](Value *past, Value *by) {
    result = b.CreateSelect(past, b.CreateFSub(result, by), result);
  };
  switch (id) {
  case llvm::Intrinsic::floor:
    step(b.CreateFCmpOGT(result, x), one);
    break;
  case llvm::Intrinsic::ceil:
    step(b.CreateFCmpOLT(result, x), number(x, -1));
    break;
  case llvm::Intrinsic::trunc:
    step(b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, result),
                         magnitude),
         withSign(one));
    break;
  default:
    break;
  }
  // No fraction of a negative number is +0.
  return b.CreateSelect(b.CreateFCmpOLT(magnitude, large), withSign(result), x);
}

//===----------------------------------------------------------------------===//
// Fused multiply-adds
//===----------------------------------------------------------------------===//

/// The upper half of a number's bits, and the rest (Veltkamp, 1968).
static std::pair<Value *, Value *> split(B &b, Value *x) {
  Value *scaled = b.CreateFMul(x, number(x, 0x1p27 + 1));
  Value *high = b.CreateFSub(scaled, b.CreateFSub(scaled, x));
  return {high, b.CreateFSub(x, high)};
}

static Value *multiplyAdd(B &b, Value *x, Value *y, Value *z) {
  Value *product = b.CreateFMul(x, y);
  Value *sum = b.CreateFAdd(product, z);
  if (!x->getType()->getScalarType()->isDoubleTy())
    return sum;
  // What the product lost (Dekker, 1971), then what the sum lost (Knuth).
  auto [xHigh, xLow] = split(b, x);
  auto [yHigh, yLow] = split(b, y);
  Value *lost = b.CreateFSub(b.CreateFMul(xHigh, yHigh), product);
  lost = b.CreateFAdd(lost, b.CreateFMul(xHigh, yLow));
  lost = b.CreateFAdd(lost, b.CreateFMul(xLow, yHigh));
  lost = b.CreateFAdd(lost, b.CreateFMul(xLow, yLow));
  Value *added = b.CreateFSub(sum, product);
  lost = b.CreateFAdd(lost, b.CreateFSub(product, b.CreateFSub(sum, added)));
  lost = b.CreateFAdd(lost, b.CreateFSub(z, added));
  // Beside an infinity, or a number that `split` makes one, it is a NaN.
  Value *finite = b.CreateFCmpORD(lost, lost);
  return b.CreateFAdd(sum, b.CreateSelect(finite, lost, number(lost, 0)));
}

/// What `instruction` becomes, or null where `target` has it.
static Value *expand(B &b, llvm::Instruction &instruction,
                     const CPUTarget &target) {
  Value *x = instruction.getNumOperands() ? instruction.getOperand(0) : nullptr;
  llvm::Type *type = instruction.getType();
  if (!target.has("f16c")) {
    if (llvm::isa<llvm::FPExtInst>(instruction) &&
        x->getType()->getScalarType()->isHalfTy())
      return b.CreateFPExt(widenHalf(b, x), type);
    if (llvm::isa<llvm::FPTruncInst>(instruction) &&
        x->getType()->getScalarType()->isFloatTy() &&
        type->getScalarType()->isHalfTy())
      return narrowToHalf(b, x);
  }
  auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (!call)
    return nullptr;
  switch (llvm::Intrinsic::ID id = call->getIntrinsicID()) {
  case llvm::Intrinsic::fma:
    return target.has("fma") ? nullptr
                             : multiplyAdd(b, x, call->getArgOperand(1),
                                           call->getArgOperand(2));
  case llvm::Intrinsic::ceil:
  case llvm::Intrinsic::floor:
  case llvm::Intrinsic::roundeven:
  case llvm::Intrinsic::trunc:
    return target.has("sse4.1") || target.has("avx2") ? nullptr
                                                      : roundTo(b, id, x);
  default:
    return nullptr;
  }
}

void expandInstructions(llvm::Module &module, const CPUTarget &target) {
  for (llvm::Function &fn : module)
    for (llvm::Instruction &instruction :
         llvm::make_early_inc_range(llvm::instructions(fn))) {
      B b(&instruction);
      if (Value *value = expand(b, instruction, target)) {
        instruction.replaceAllUsesWith(value);
        instruction.eraseFromParent();
      }
    }
}

} // namespace llm
