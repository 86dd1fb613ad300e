//===- Import.h - ONNX files to the llm dialect -----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_IMPORT_ONNX_IMPORT_H
#define LLM_LIB_IMPORT_ONNX_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace llm {

struct ImportOptions {
  /// Integer tensors of at most this many elements become `llm.constant`;
  /// larger ones, and all float tensors of more than one element that are
  /// initializers, become `llm.weight`.
  int64_t maxConstantElements = 1024;
  /// Nodes after functions are inlined; more is refused.
  uint64_t maxNodes = 1u << 20;
};

/// Imports an ONNX model: a module with `llm.source`, one `llm.weight` per
/// stored tensor (spans of the model file and of its external data, which are
/// mapped and never copied), and `func.func @main` in the llm dialect, whose
/// ops carry the names of the ONNX nodes as locations. `path` is kept in the
/// spans as it is given. Data that lies in typed integer fields is decoded and
/// kept inline.
///
/// The file is not trusted. On failure the result is null and one error was
/// emitted, at a FileLineColLoc of `path`, that names the node or the value
/// where there is one; operators that are not supported are reported all at
/// once. Loads the dialects it needs into `context`. Source: ONNX IR
/// specification, IR versions 3 to 13, and the operator sets up to
/// `maxOpset()`.
mlir::OwningOpRef<mlir::ModuleOp> importONNX(llvm::StringRef path,
                                             mlir::MLIRContext &context,
                                             const ImportOptions &options = {});

} // namespace llm

#endif // LLM_LIB_IMPORT_ONNX_IMPORT_H
