//===- Support.h - Is a model supported at all? -----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_IMPORT_ONNX_SUPPORT_H
#define LLM_LIB_IMPORT_ONNX_SUPPORT_H

#include "lib/Import/ONNX/Registry.h"
#include "lib/Import/ONNX/Tensor.h"

namespace llm::importer {

/// Identifies a model-local function.
std::string functionKey(llvm::StringRef domain, llvm::StringRef name,
                        llvm::StringRef overload);

/// Reports an operator-set version that the importer does not know. Domains
/// without a supported operator pass: only their nodes matter.
mlir::LogicalResult checkOpsets(const llvm::StringMap<int64_t> &opsets,
                                EmitError emitError);

/// Walks the graph, its subgraphs and the functions it calls, and reports in
/// one error every operator that is not supported, with its number of nodes.
/// Also refuses functions that call themselves.
mlir::LogicalResult
checkSupported(const StrippedModel &model, const Registry &registry,
               const llvm::StringMap<int64_t> &opsets,
               const llvm::StringMap<llvm::StringMap<int64_t>> &functionOpsets,
               const llvm::StringMap<const ::onnx::FunctionProto *> &functions,
               EmitError emitError);

} // namespace llm::importer

#endif // LLM_LIB_IMPORT_ONNX_SUPPORT_H
