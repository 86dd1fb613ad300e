//===- Attend.h - What attention ops share ---------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_CONVERSION_LLMTOLINALG_ATTEND_H
#define LLM_PASSES_CONVERSION_LLMTOLINALG_ATTEND_H

#include "passes/Conversion/LLMToLinalg/TensorEmitter.h"

#include <array>

namespace mlir::llm {

/// Tables of cos and sin, [positions, half] or with more axes in front.
struct Rotation {
  TensorEmitter &e;
  Value cos, sin;
  Type tableType;
  bool interleaved;

  Value half() {
    return e.dim(cos, cast<RankedTensorType>(cos.getType()).getRank() - 1);
  }
  /// Element `d` of a head turned by the angles in the tables' row `row`;
  /// `read` gives an element of the head in `compute`.
  Value turn(ValueRange row, Value d, function_ref<Value(Value)> read,
             Type compute);
};

/// What both kinds of attention share: q, k and v as functions of indices.
/// Scores are [batch, heads, seq, slots].
struct Attend {
  TensorEmitter &e;
  Type logical, compute;
  Value batch, seq, slots, size, valueSize;
  int64_t heads, kvHeads;
  double scale, softcap;
  function_ref<Value(Value b, Value h, Value i, Value d)> query;
  function_ref<Value(Value b, Value h, Value j, Value d)> key, value;
  /// What is added to a score (may be null).
  function_ref<Value(Value b, Value h, Value i, Value j)> bias;
  /// Whether a query sees a slot.
  function_ref<Value(Value b, Value h, Value i, Value j)> sees;
  /// A further logit of the softmax, without a value (may be null).
  function_ref<Value(Value h)> sink;

  Value kvHead(Value h) { return e.div(h, e.idx(heads / kvHeads)); }
  Value run(RankedTensorType type, ValueRange sizes, bool flat);
};

/// A tensor type of `rank` dynamic sizes.
RankedTensorType dynamicTensor(int64_t rank, Type element);

/// The sizes of a [batch, seq, heads * size] or [batch, heads, seq, size]
/// operand: batch, seq, size.
std::array<Value, 3> headSizes(TensorEmitter &e, Value tensor, int64_t heads,
                               StringRef name);

/// An element of such an operand, as stored.
Value headElement(TensorEmitter &e, Value tensor, Value size, Value b, Value h,
                  Value i, Value d);

} // namespace mlir::llm

#endif // LLM_PASSES_CONVERSION_LLMTOLINALG_ATTEND_H
