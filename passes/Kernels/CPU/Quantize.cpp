//===- Quantize.cpp - Scales and codes of f32 elements --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Quantize.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace mlir::llm {

Value magnitudeOf(Emitter &e, Value source, Value from, int64_t size) {
  int64_t width = e.width(), full = size / width * width;
  // Magnitudes are ordered as integers, NaN above all.
  auto part = [&](Value d, int64_t lanes) -> Value {
    Value bits =
        arith::BitcastOp::create(e, VectorType::get({lanes}, e.getI32Type()),
                                 e.loadVec(source, e.addi(from, d), lanes));
    return arith::AndIOp::create(e, bits, e.splatInt(0x7fffffff, lanes, 32));
  };
  auto largest = [&](Value bits) -> Value {
    return vector::ReductionOp::create(e, vector::CombiningKind::MAXSI, bits);
  };
  Value top = e.i32(0);
  if (full)
    top = largest(
        e.loop(e.idx(0), e.idx(full), width, {e.splatInt(0, width, 32)},
               [&](Value d, ValueRange sofar) -> SmallVector<Value> {
                 return {arith::MaxSIOp::create(e, part(d, width), sofar[0])};
               })[0]);
  if (full != size)
    top =
        arith::MaxSIOp::create(e, top, largest(part(e.idx(full), size - full)));
  return arith::BitcastOp::create(e, e.getF32Type(), top);
}

GroupScale scaleOf(Emitter &e, Value magnitude, float largest) {
  Value scale = e.div(magnitude, e.f32(largest));
  // Below this the reciprocal could overflow: the group counts as zero.
  Value tiny = arith::CmpFOp::create(e, arith::CmpFPredicate::OLT, scale,
                                     e.f32(0x1p-120f));
  return {scale, e.select(tiny, e.f32(0), e.div(e.f32(1), scale))};
}

FailureOr<int64_t> scaleGroupOf(KernelBuilder &kernel, StringRef name,
                                int64_t groupSize) {
  if (!kernel.kernel().getParams().contains(name))
    return groupSize;
  FailureOr<int64_t> size = kernel.getInt(name);
  if (succeeded(size) && *size % groupSize)
    return kernel.kernel().emitOpError()
           << name << " " << *size << " is not a multiple of the groups of "
           << groupSize;
  return size;
}

Value toInt8(Emitter &e, Value x) {
  int64_t lanes = cast<VectorType>(x.getType()).getDimSize(0);
  // Only a NaN is out of range, and converting it is undefined.
  Value number = e.larger(x, e.splat(-127, lanes));
  return arith::FPToSIOp::create(e, VectorType::get({lanes}, e.getI32Type()),
                                 math::RoundEvenOp::create(e, number));
}

} // namespace mlir::llm
