//===- StoreInstrumentation.h - Where a tool's passes put weights -*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_STOREINSTRUMENTATION_H
#define LLM_LIB_PIPELINE_STOREINSTRUMENTATION_H

#include "mlir/Pass/PassManager.h"

#include <string>

namespace llm {

/// While a pass of `pm` runs on a module, `llm.store` names `directory`; a
/// module that names another keeps that. The files go with the tool on Ctrl-C
/// where they are `scratch`.
void addStore(mlir::PassManager &pm, std::string directory, bool scratch);

/// The store of a module that is written to `output`: OUTPUT.weights, or "",
/// inline, where that is standard output, a device or a pipe.
std::string storeBeside(llvm::StringRef output);

} // namespace llm

#endif // LLM_LIB_PIPELINE_STOREINSTRUMENTATION_H
