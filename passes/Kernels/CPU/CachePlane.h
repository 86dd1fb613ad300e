//===- CachePlane.h - How planes of the cache lie in memory -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys and values lie in rows, [slot][head][size], or in blocks of 16 slots as
// products take them: docs/formats/kernel-families.md, "Planes".
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_CACHEPLANE_H
#define LLM_PASSES_KERNELS_CPU_CACHEPLANE_H

#include "passes/Kernels/CPU/Emitter.h"

namespace mlir::llm {

inline constexpr int64_t kSlotBlock = 16;

/// A plane of elements in blocks.
struct BlockPlane {
  int64_t heads, size;
  /// Elements side by side: two of a key, or of two slots' values.
  int64_t unit;

  static int64_t unitOf(Type type) {
    return type.isF32() || type.isF16() ? 1 : 2;
  }
};

/// Where the elements of a head begin in a block, and `offset` behind that.
/// With a size of 1, where its scales do.
Value blockElement(Emitter &e, const BlockPlane &plane, Value block, Value head,
                   int64_t offset = 0);

/// Columns of the square of `rows`: result i has element i of every row.
/// 32- and 64-bit interleaving within 128-bit lanes, then lanes: each step is
/// one instruction per register.
SmallVector<Value> transpose(Emitter &e, ArrayRef<Value> rows);

/// Lane i is `reduceMax` of vector i, bit for bit: n vectors of n lanes.
Value reduceMaxEach(Emitter &e, ArrayRef<Value> vectors);

/// `value` with zeros behind it, `count` lanes in all.
Value padTo(Emitter &e, Value value, int64_t count);

/// Calls `body(offset, lanes)` for the parts of `dim` elements, `step` at a
/// time, then what is left.
void forParts(Emitter &e, int64_t dim, int64_t step,
              function_ref<void(Value, int64_t)> body);

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_CACHEPLANE_H
