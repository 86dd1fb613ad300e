//===- Register.h - Every dialect and pass of the compiler ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_REGISTER_H
#define LLM_LIB_PIPELINE_REGISTER_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/Support/Error.h"

namespace llm {

/// Adds our dialects, the upstream ones that they lower to, and the interface
/// implementations and translations that code generation needs.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers our passes and pipelines with the pass registry of this process.
/// Calling it again does nothing.
void registerPasses();

/// Loads the shared library at `path`, which defines mlirGetPassPluginInfo
/// (mlir/Tools/Plugins/PassPlugin.h), and registers its passes with the pass
/// registry of this process. Runs code of the library. Fails with the cause
/// where it cannot be loaded, is no plugin, or is one of another interface
/// version.
llvm::Error loadPassPlugin(llvm::StringRef path);

} // namespace llm

#endif // LLM_LIB_PIPELINE_REGISTER_H
