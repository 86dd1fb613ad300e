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
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace llm {

/// A pass pipeline of the compress stage. In its file `#` starts a comment, and
/// the comment `# effect: TEXT` says in one line what it costs and gains.
struct Recipe {
  std::string name;
  std::string pipeline;
  std::string effect; ///< empty where unknown
};

/// The recipes that come with the compiler, by name: the files NAME.txt in
/// llm-compiler/recipes beside the compiler's library. `none`, the empty one,
/// is always there.
std::vector<Recipe> listRecipes();

/// Their names, separated by commas.
std::string recipeNames();

/// Whether this is the name of a recipe, or can be meant as a file: it exists,
/// or is no plain word.
bool isRecipe(llvm::StringRef nameOrFile);

/// The recipe of that name, or else in that file. Reports at the file where it
/// cannot be read, or is no pipeline on builtin.module of passes that are
/// registered.
mlir::FailureOr<Recipe> loadRecipe(llvm::StringRef nameOrFile,
                                   mlir::MLIRContext *context);

/// METHOD[,bits=N,group-size=N|row,factor-group=N,symmetric=BOOL,search=N,
/// damping=X,act-order=BOOL], as a recipe; one of a method that looks at data
/// calibrates first.
llvm::Expected<Recipe> parseQuantize(llvm::StringRef text);

} // namespace llm

#endif // LLM_LIB_PIPELINE_RECIPES_H
