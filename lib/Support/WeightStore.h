//===- WeightStore.h - Where passes put new weights -------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_SUPPORT_WEIGHTSTORE_H
#define LLM_LIB_SUPPORT_WEIGHTSTORE_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace llm {

/// On the module: the directory for components that passes make (StringAttr),
/// a path as in #llm.span, and whether it goes when the tool ends (UnitAttr).
inline constexpr llvm::StringRef kStoreAttr = "llm.store";
inline constexpr llvm::StringRef kScratchStoreAttr = "llm.scratch_store";

/// A component that a pass made: its type, and as many bytes as that takes, row
/// major, little endian.
struct NewComponent {
  llvm::StringRef name;
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes;
};

/// Stores what replaces a weight's components, and says where. Where `module`
/// names a directory in `llm.store`, they go there, into one safetensors file
/// whose name is a hash of its content, so that equal weights are one file and
/// a second run changes nothing. Else they stay in the module, inline. Reports
/// through `emitError` what cannot be written.
mlir::FailureOr<llvm::SmallVector<mlir::llm::ComponentAttr>>
storeComponents(mlir::ModuleOp module, llvm::ArrayRef<NewComponent> components,
                llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace llm

#endif // LLM_LIB_SUPPORT_WEIGHTSTORE_H
