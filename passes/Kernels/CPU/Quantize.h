//===- Quantize.h - Scales and codes of f32 elements ------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_QUANTIZE_H
#define LLM_PASSES_KERNELS_CPU_QUANTIZE_H

#include "passes/Kernels/CPU/Emitter.h"

namespace mlir::llm {

/// The largest magnitude of the `size` elements of `source` from `from` on; NaN
/// where one is NaN.
Value magnitudeOf(Emitter &e, Value source, Value from, int64_t size);

/// What elements that share it are multiplied with to become codes, and codes
/// to become elements.
struct GroupScale {
  Value scale, inverse;
};
/// The scale with which `magnitude` becomes the code `largest`. Where it is
/// below 2^-120, `inverse` is 0.
GroupScale scaleOf(Emitter &e, Value magnitude, float largest);

/// The kernel's parameter `name`: elements in int8 that share a scale, a
/// multiple of the weights' `groupSize`, which it is where absent.
FailureOr<int64_t> scaleGroupOf(KernelBuilder &kernel, StringRef name,
                                int64_t groupSize);

/// f32 lanes that round to [-127, 127] as integers (i32), ties to even; NaN
/// becomes -127.
Value toInt8(Emitter &e, Value x);

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_QUANTIZE_H
