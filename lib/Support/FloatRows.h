//===- FloatRows.h - Rows of floats, widened and narrowed -------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_SUPPORT_FLOATROWS_H
#define LLM_LIB_SUPPORT_FLOATROWS_H

#include <cstdint>

namespace llm {

/// The floats that weights are stored in, little endian.
enum class FloatKind { F64, F32, F16, BF16 };

/// Bytes of one element.
constexpr int64_t bytesOf(FloatKind kind) {
  return kind == FloatKind::F64 ? 8 : kind == FloatKind::F32 ? 4 : 2;
}

/// `count` elements at `from`, in order, as f32. Exact, but for f64, which is
/// rounded to nearest, ties to even.
void widenRow(FloatKind kind, const char *from, int64_t count, float *to);

/// `count` floats in `kind`, rounded to nearest, ties to even; NaN stays NaN,
/// what is too large becomes infinite.
void narrowRow(FloatKind kind, const float *from, int64_t count, char *to);

/// Each of `count` floats rounded to f16 and widened again.
void roundRowToF16(float *values, int64_t count);

} // namespace llm

#endif // LLM_LIB_SUPPORT_FLOATROWS_H
