//===- PipelineError.cpp - What is wrong with a pass pipeline ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/PipelineError.h"

#include "lib/Pipeline/StandardStreams.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace llm {

std::string pipelineError(function_ref<LogicalResult(raw_ostream &)> build) {
  std::string said;
  llvm::raw_string_ostream os(said);
  LogicalResult built = success();
  std::string printed = captureStandardError([&] { built = build(os); });
  if (succeeded(built)) {
    llvm::errs() << printed;
    return "";
  }
  // A value that does not fit its option is LLVM's to report; it prints where
  // MLIR goes on to say that the pass could not be added.
  for (StringRef text : {StringRef(printed), StringRef(said)}) {
    SmallVector<StringRef> lines;
    text.split(lines, '\n');
    for (StringRef line : lines) {
      for (StringRef before : {"error: ", ": for the "})
        if (size_t at = line.find(before); at != StringRef::npos)
          line = line.substr(before[0] == ':' ? at + 2 : at + before.size());
      if (!line.trim().empty())
        return line.trim().str();
    }
  }
  return "it cannot be parsed";
}

std::string pipelineError(StringRef pipeline) {
  // It would run on modules in the module.
  if (pipeline.ltrim().starts_with("builtin.module("))
    return "builtin.module(...) around the passes: none would run";
  return pipelineError([&](raw_ostream &os) {
    OpPassManager pm(ModuleOp::getOperationName());
    return parsePassPipeline(pipeline, pm, os);
  });
}

} // namespace llm
