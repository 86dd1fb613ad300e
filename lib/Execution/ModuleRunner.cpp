//===- ModuleRunner.cpp - Running a module while it is compiled -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Execution/ModuleRunner.h"

#include "dialects/LLM/IR/LLMDialect.h"

MLIR_DEFINE_EXPLICIT_TYPE_ID(::llm::ModuleRunner)

namespace llm {

LoadedModule::~LoadedModule() = default;

const ModuleRunner *ModuleRunner::get(mlir::MLIRContext *context) {
  auto *dialect = context->getLoadedDialect<mlir::llm::LLMDialect>();
  return dialect ? dialect->getRegisteredInterface<ModuleRunner>() : nullptr;
}

} // namespace llm
