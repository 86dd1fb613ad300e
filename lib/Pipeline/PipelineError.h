//===- PipelineError.h - What is wrong with a pass pipeline ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_PIPELINEERROR_H
#define LLM_LIB_PIPELINE_PIPELINEERROR_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace llm {

/// Runs `build`, which parses a pass pipeline and explains its failure to a
/// stream, and returns what is wrong in one line; empty where it succeeds.
/// MLIR says it up to three times, in part to standard error.
std::string pipelineError(
    llvm::function_ref<mlir::LogicalResult(llvm::raw_ostream &)> build);

/// The same of a textual pipeline on builtin.module.
std::string pipelineError(llvm::StringRef pipeline);

} // namespace llm

#endif // LLM_LIB_PIPELINE_PIPELINEERROR_H
