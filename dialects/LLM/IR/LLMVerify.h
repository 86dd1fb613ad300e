//===- LLMVerify.h - Checks that verifiers of llm ops share -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_DIALECTS_LLM_IR_LLMVERIFY_H
#define LLM_DIALECTS_LLM_IR_LLMVERIFY_H

#include "dialects/LLM/IR/LLMDialect.h"

namespace mlir::llm::detail {
/// True when both sizes are known and differ.
inline bool differ(int64_t a, int64_t b) {
  return !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b) && a != b;
}

inline RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Sizes that may be equal, one by one.
bool compatible(ArrayRef<int64_t> a, ArrayRef<int64_t> b);

/// The product of static sizes, or nullopt for a dynamic one or overflow.
std::optional<int64_t> countElements(ArrayRef<int64_t> shape);

/// Result `index` of `op` has a shape that agrees with `expected`.
LogicalResult verifyResultShape(Operation *op, ArrayRef<int64_t> expected,
                                unsigned index = 0);

/// Result `index` has the element type of the first operand.
LogicalResult verifySameElements(Operation *op, unsigned index = 0);

/// `axis` is in [-rank, rank).
LogicalResult verifyAxis(Operation *op, int64_t axis, int64_t rank);

/// `axes` are in [-rank, rank) and none is named twice; `named` gets a flag for
/// each axis.
LogicalResult verifyAxes(Operation *op, ArrayRef<int64_t> axes, int64_t rank,
                         SmallVectorImpl<bool> &named);

/// `value` is a vector; `what` names it in the diagnostic.
LogicalResult verifyVector(Operation *op, Value value, StringRef what);

/// `value` holds one element, as a scalar or a vector.
LogicalResult verifyScalar(Operation *op, Value value, StringRef what);
} // namespace mlir::llm::detail

#endif // LLM_DIALECTS_LLM_IR_LLMVERIFY_H
