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

/// Whether this is the name of a recipe (`none`), or can be meant as a file: it
/// exists, or is no plain word.
bool isRecipe(llvm::StringRef nameOrFile);

/// The pass pipeline of a recipe: `none`, or a text file (one pipeline, `#`
/// starts a comment). Reports at the file where it cannot be read, or is no
/// pipeline on builtin.module of passes that are registered.
mlir::FailureOr<std::string> loadRecipe(llvm::StringRef nameOrFile,
                                        mlir::MLIRContext *context);

} // namespace llm

#endif // LLM_LIB_PIPELINE_RECIPES_H
