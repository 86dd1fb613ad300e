//===- Diagnostics.h - How the tools print diagnostics ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_DIAGNOSTICS_H
#define LLM_LIB_PIPELINE_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

namespace llm {

/// Prints diagnostics to stderr as `FILE:LINE:COL: node 'NAME': error: TEXT`,
/// with what is known of the place. The first error alone: nothing goes on
/// after it.
class ToolDiagnostics {
public:
  explicit ToolDiagnostics(mlir::MLIRContext &context);

  /// Whether an error was reported: a failure without one is our own fault.
  bool sawError() const { return errors != 0; }

private:
  mlir::ScopedDiagnosticHandler handler;
  unsigned errors = 0;
};

} // namespace llm

#endif // LLM_LIB_PIPELINE_DIAGNOSTICS_H
