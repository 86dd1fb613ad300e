//===- Rope.h - Rotary position embedding for a CPU -------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_ROPE_H
#define LLM_PASSES_KERNELS_CPU_ROPE_H

#include "passes/Kernels/CPU/Emitter.h"

namespace mlir::llm {

/// Rotates heads of `size` elements: `rotary_dim` of them, by the rows of two
/// tables.
struct Rotation {
  int64_t size = 0, rotary = 0, positions = 0;
  bool interleaved = false;
  Value position, cosines, sines; ///< buffers

  /// Reads the parameters `rotary_dim`, `positions` and `interleaved`.
  static FailureOr<Rotation> parse(const KernelBuilder &kernel, int64_t size);
  /// The operands `position`, `cosines` and `sines`.
  SmallVector<Emitter::Buffer> buffers(MLIRContext *context) const;
  /// Where a token's row of the tables begins.
  Value angleOf(Emitter &e, Value token) const;
  /// Rotates the head at `from` of `x`; to `to` of `out`, which may be there.
  void emit(Emitter &e, Value angle, Value x, Value from, Value out,
            Value to) const;
};

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_ROPE_H
