//===- Linear.h - What the linear kernels of a CPU share --------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_LINEAR_H
#define LLM_PASSES_KERNELS_CPU_LINEAR_H

#include "passes/Kernels/CPU/Emitter.h"
#include "passes/Kernels/Layouts.h"

namespace mlir::llm {

/// Calls `body(first token, tokens)` for tiles of `tiles` tokens (largest
/// first, the last one 1) that cover [0, tokens); just once, for token 0, where
/// `single`.
void forTokenTiles(Emitter &e, Value tokens, bool single,
                   ArrayRef<int64_t> tiles,
                   function_ref<void(Value, int64_t)> body);

/// Stores a token's `outputs` of one panel (vectors of e.width() lanes) at
/// `row`
/// + 32 * panel, after adding `bias` (may be null); the last panel of `n`
/// outputs may be short.
void storePanelRow(Emitter &e, ArrayRef<Value> outputs, Value bias, Value out,
                   Value row, Value panel, int64_t n);

/// Prefetches weights some way ahead of the `count` elements at `at`: where a
/// tile of tokens, or unpacking, fills the window in which the processor would
/// find the next loads by itself. One token with dense weights streams faster
/// without.
void prefetchWeights(Emitter &e, Value weight, Value at, int64_t count);

/// The function `name` of a linear over panel_affine, for one token or any
/// number. `int8`: it reads what quantize_rows writes, else f32.
void emitAffineLinear(KernelBuilder &kernel, const Layout &layout, bool hasBias,
                      bool int8, StringRef name, bool single);

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_LINEAR_H
