//===- Diagnostics.h - How the tools print diagnostics ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_DIAGNOSTICS_H
#define LLM_LIB_PIPELINE_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace llm {

/// Prints diagnostics to stderr as `FILE:LINE:COL: node 'NAME': error: TEXT`,
/// with what is known of the place.
class ToolDiagnostics {
public:
  ToolDiagnostics(mlir::MLIRContext &context, llvm::StringRef tool);

  /// A failure that nobody explained is our own fault; says so.
  void reportSilentFailure() const;

private:
  mlir::ScopedDiagnosticHandler handler;
  std::string tool;
  unsigned errors = 0;
};

} // namespace llm

#endif // LLM_LIB_PIPELINE_DIAGNOSTICS_H
