//===- Recipes.h - Named compression pipelines ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_RECIPES_H
#define LLM_LIB_PIPELINE_RECIPES_H

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

#include <string>

namespace llm {

/// The pass pipeline of a recipe: `none`, or a text file (one pipeline, `#`
/// starts a comment). Reports an unknown name or unreadable file at `loc`.
mlir::FailureOr<std::string> loadRecipe(llvm::StringRef nameOrFile,
                                        mlir::Location loc);

} // namespace llm

#endif // LLM_LIB_PIPELINE_RECIPES_H
