//===- LLMDialect.h - The llm dialect ---------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_DIALECTS_LLM_IR_LLMDIALECT_H
#define LLM_DIALECTS_LLM_IR_LLMDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/LLM/IR/LLMDialect.h.inc"
#include "dialects/LLM/IR/LLMEnums.h.inc"

namespace mlir::llm {
class ComponentAttr;
}
#include "dialects/LLM/IR/LLMInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/LLM/IR/LLMAttrs.h.inc"

namespace mlir::llm {
/// Names of the attributes on function arguments and results.
inline constexpr StringRef kNameAttr = "llm.name";
inline constexpr StringRef kDimsAttr = "llm.dims";
/// On the module: DictionaryAttr {path, hash, producer, licence, opset}.
inline constexpr StringRef kSourceAttr = "llm.source";
/// On a function: why raising to the decoder form stopped (StringAttr).
inline constexpr StringRef kNotDecoderAttr = "llm.not_decoder";

/// Elementwise over operands that broadcast as NumPy does.
template <typename ConcreteOp>
class Broadcasting : public OpTrait::TraitBase<ConcreteOp, Broadcasting> {};
/// Whether each element of the result depends on one element of each operand.
bool isElementwise(Operation *op);

/// Checks that two operand shapes broadcast (NumPy's rules) to the result's.
LogicalResult verifyBroadcast(Operation *op);
/// The broadcast of `a` and `b` with dynamic sizes, or failure.
FailureOr<SmallVector<int64_t>> broadcastShapes(ArrayRef<int64_t> a,
                                                ArrayRef<int64_t> b);
/// `axis` in [0, rank) for an axis in [-rank, rank), else nullopt.
std::optional<int64_t> normalizeAxis(int64_t axis, int64_t rank);
} // namespace mlir::llm

#define GET_OP_CLASSES
#include "dialects/LLM/IR/LLMOps.h.inc"

#endif // LLM_DIALECTS_LLM_IR_LLMDIALECT_H
