//===- ScalarMath.h - Elementary functions in f64 --------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_HOST_SCALARMATH_H
#define LLM_PASSES_HOST_SCALARMATH_H

#include "mlir/IR/Builders.h"

namespace mlir::llm {

/// Each emits the arithmetic for the function on f64 scalars. Errors are below
/// 2 ulp (sin and cos: absolute 2^-52 for |x| < 2^30). NaN, infinities, signed
/// zeros and results that under- or overflow are those of C's functions.
Value emitExp(ImplicitLocOpBuilder &b, Value x);
Value emitLog(ImplicitLocOpBuilder &b, Value x);
Value emitLog1p(ImplicitLocOpBuilder &b, Value x);
Value emitTanh(ImplicitLocOpBuilder &b, Value x);
Value emitErf(ImplicitLocOpBuilder &b, Value x);
Value emitPow(ImplicitLocOpBuilder &b, Value x, Value y);
/// The remainder of x / y with the sign of x, exact (C's fmod).
Value emitRemainder(ImplicitLocOpBuilder &b, Value x, Value y);
Value emitSin(ImplicitLocOpBuilder &b, Value x);
Value emitCos(ImplicitLocOpBuilder &b, Value x);

} // namespace mlir::llm

#endif // LLM_PASSES_HOST_SCALARMATH_H
