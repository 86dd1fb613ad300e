//===- Utils.h - Shared by the raise passes ---------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_RAISE_UTILS_H
#define LLM_PASSES_RAISE_UTILS_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Analysis/SymbolicShape.h"
#include "mlir/IR/Builders.h"

namespace mlir::llm {

/// The ranked tensor type of a value of the llm dialect.
inline RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The elements of an llm.constant, or of a dense weight held in the IR; null
/// where the value is neither.
DenseElementsAttr getConstantElements(Value value);

/// The one number that all elements of a constant are, whatever its shape and
/// element type (casts on the way included).
std::optional<double> getSplatNumber(Value value);

/// The elements of a dense float weight or constant, from wherever they are
/// stored; nullopt for another value, more than `limit` elements, or bytes that
/// cannot be read.
std::optional<SmallVector<double>> readFloats(Value value, int64_t limit);

/// A weight held in the IR, named `name` or, where that is taken, something
/// like it; and its value at the top of `func`.
Value createWeight(func::FuncOp func, Location loc, StringRef name,
                   DenseElementsAttr elements);

/// Whether `value` is computed from weights and constants alone.
bool isModelConstant(Value value);

/// An i64 vector constant.
Value createIntVector(OpBuilder &builder, Location loc,
                      ArrayRef<int64_t> values);

/// Erases pure ops without users, in all regions of `func`. Returns how many.
unsigned eraseDeadOps(func::FuncOp func);

/// Erases weights that nothing in the module refers to.
void eraseUnusedWeights(ModuleOp module);

/// The constant target that makes llm.reshape give `dims` from `input` (a
/// number, 0 for "as the input", or one -1), or nullopt where there is none.
std::optional<SmallVector<int64_t>> reshapeTarget(ArrayRef<SymbolicExpr> input,
                                                  ArrayRef<SymbolicExpr> dims);

/// A reshape of `input` to `dims` with a constant target, folded through an
/// llm.reshape that made `input`, and away where it changes nothing. Null where
/// no constant target says it.
Value createReshape(OpBuilder &builder, Location loc, SymbolicShape &shapes,
                    Value input, ArrayRef<SymbolicExpr> dims);

/// The type with `dims`' constants as static sizes.
RankedTensorType typeOf(ArrayRef<SymbolicExpr> dims, Type elementType);

/// Puts the ops of a block of pure ops into the order in which its terminator
/// needs them, depth first. The order then depends on the graph only, not on
/// the spelling that it was raised from.
void sortByNeed(Block &block);

} // namespace mlir::llm

#endif // LLM_PASSES_RAISE_UTILS_H
