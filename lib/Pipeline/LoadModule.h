//===- LoadModule.h - What a tool was given, as a module --------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_LOADMODULE_H
#define LLM_LIB_PIPELINE_LOADMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace llm {

/// Whether the file at `path` is an ONNX model: it is named `*.onnx`, or
/// begins as a serialized ModelProto does and is neither MLIR text nor
/// bytecode. False for what cannot be read.
bool isONNXFile(llvm::StringRef path);

/// Whether `path` is an artifact: the magic number decides.
bool isArtifactFile(llvm::StringRef path);

/// The model file that `path` means. A file means itself. A directory means
/// the decoder that its genai_config.json names, else model.onnx, else the
/// only model*.onnx, looked for in the directory and then in onnx/ below it.
/// Fails when there is none, or more than one and no way to choose, and names
/// what was looked for.
llvm::Expected<std::string> resolveModelPath(llvm::StringRef path);

/// Where `text` nests its brackets deeper than MLIR's recursive parser should
/// be given; nullopt where it does not.
std::optional<std::string> findDeepNesting(llvm::StringRef text);

/// Loads an ONNX model, MLIR text or MLIR bytecode; `path` may be a directory.
/// On failure the result is null and one error was emitted through `context`,
/// whose dialects must be registered.
mlir::OwningOpRef<mlir::ModuleOp> loadModule(llvm::StringRef path,
                                             mlir::MLIRContext &context);

} // namespace llm

#endif // LLM_LIB_PIPELINE_LOADMODULE_H
