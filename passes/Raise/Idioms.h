//===- Idioms.h - The idioms of --llm-raise-idioms --------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function looks at every op of a function once, in order, builds the
// composite beside what it found, and moves the uses. It erases nothing, so
// that the symbolic analysis stays valid; the pass erases what is dead at the
// end. Each returns the number of composites made.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_RAISE_IDIOMS_H
#define LLM_PASSES_RAISE_IDIOMS_H

#include "passes/Raise/Utils.h"

namespace mlir::llm {

/// RMS and layer normalization over the last axis, with their scale.
unsigned raiseNorms(func::FuncOp func, SymbolicShape &shapes);
/// Rotary embeddings. Where cos and sin are computed from positions, tables of
/// `maxPositions` rows are made.
unsigned raiseRopes(func::FuncOp func, SymbolicShape &shapes,
                    int64_t maxPositions);
/// softmax(q k + mask) v with caches that are concatenated.
unsigned raiseAttentions(func::FuncOp func, SymbolicShape &shapes);
/// x * sigmoid(x), and GELU in its three forms.
unsigned raiseActivations(func::FuncOp func, SymbolicShape &shapes);
/// Rows of a weight picked by computed ids.
unsigned raiseEmbeddings(func::FuncOp func, SymbolicShape &shapes);
/// Products with a weight, and their biases.
unsigned raiseLinears(func::FuncOp func, SymbolicShape &shapes);
/// Attention and rope on [batch, seq, heads * size] instead of [batch, heads,
/// seq, size]; transposes and reshapes that meet cancel.
unsigned flattenHeads(func::FuncOp func, SymbolicShape &shapes);
/// Masks whose meaning is understood become attributes and a padding mask.
unsigned raiseMasks(func::FuncOp func, SymbolicShape &shapes);

/// All ops of the one-block body, as seen before the caller adds any.
SmallVector<Operation *> snapshot(func::FuncOp func);

/// The first value behind casts between float types.
Value skipFloatCasts(Value value);

/// The value when it is a weight, or a float constant made one; through casts.
/// Null where it is neither.
Value asWeight(OpBuilder &builder, Value value);

} // namespace mlir::llm

#endif // LLM_PASSES_RAISE_IDIOMS_H
