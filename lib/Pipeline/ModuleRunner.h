//===- ModuleRunner.h - Running modules by the runtime ----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_MODULERUNNER_H
#define LLM_LIB_PIPELINE_MODULERUNNER_H

#include "mlir/IR/DialectRegistry.h"

namespace llm {

/// Lets passes in contexts of `registry` run modules (lib/Execution): they are
/// compiled to an artifact, which the C interface of the runtime runs. This is
/// no part of the compiler's library; a tool links LLMModuleRunner for it.
void registerModuleRunner(mlir::DialectRegistry &registry);

} // namespace llm

#endif // LLM_LIB_PIPELINE_MODULERUNNER_H
