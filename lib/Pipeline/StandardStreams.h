//===- StandardStreams.h - Standard streams that fail well ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_STANDARDSTREAMS_H
#define LLM_LIB_PIPELINE_STANDARDSTREAMS_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>

namespace llm {

/// For a tool's main, before anything else. Streams that the caller closed fail
/// when used, and no file opened later takes their place. What llvm::outs()
/// could not write ends the program in one line, as `TOOL: error: ...`, and
/// exit code 1; a full standard error ends nothing.
void prepareStandardStreams(const char *tool);

/// Makes a pipe whose reader is gone and a file at its size limit errors of
/// writing, not signals. Once LLVM has installed its own handlers: it would
/// take them for crashes.
void ignoreOutputSignals();

/// Reports that standard output cannot be written, for `reason` (an errno).
void reportOutputFailure(const char *tool, int reason);

/// Runs `body` and returns what it wrote to standard error.
std::string captureStandardError(llvm::function_ref<void()> body);

} // namespace llm

#endif // LLM_LIB_PIPELINE_STANDARDSTREAMS_H
