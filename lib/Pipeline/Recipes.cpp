//===- Recipes.cpp - Named compression pipelines ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/Recipes.h"

#include "lib/Pipeline/PipelineError.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>

using namespace mlir;

namespace llm {

/// In the build and where it is installed the recipes lie beside the library.
static std::string recipeDirectory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&listRecipes), &info) || !info.dli_fname)
    return {};
  SmallString<128> path(llvm::sys::path::parent_path(info.dli_fname));
  llvm::sys::path::append(path, "llm-compiler", "recipes");
  return path.str().str();
}

static llvm::ErrorOr<Recipe> readRecipe(StringRef name, StringRef file) {
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/true);
  if (!buffer)
    return buffer.getError();
  Recipe recipe;
  recipe.name = name.str();
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (StringRef line : lines) {
    auto [text, comment] = line.split('#');
    recipe.pipeline += text.trim().str();
    comment = comment.trim();
    if (comment.consume_front("effect:"))
      recipe.effect = comment.trim().str();
  }
  return recipe;
}

std::vector<Recipe> listRecipes() {
  std::vector<Recipe> recipes;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(recipeDirectory(), error), end;
       !error && it != end; it.increment(error)) {
    StringRef file = it->path();
    if (llvm::sys::path::extension(file) != ".txt" ||
        !llvm::sys::fs::is_regular_file(file))
      continue;
    if (auto recipe = readRecipe(llvm::sys::path::stem(file), file))
      recipes.push_back(*recipe);
  }
  if (llvm::none_of(recipes, [](const Recipe &r) { return r.name == "none"; }))
    recipes.push_back({"none", "", ""});
  llvm::sort(recipes,
             [](const Recipe &a, const Recipe &b) { return a.name < b.name; });
  return recipes;
}

std::string recipeNames() {
  std::string names;
  for (const Recipe &recipe : listRecipes())
    names += (names.empty() ? "" : ", ") + recipe.name;
  return names;
}

bool isRecipe(StringRef nameOrFile) {
  auto inName = [](char c) { return llvm::isAlnum(c) || c == '-' || c == '_'; };
  return !llvm::all_of(nameOrFile, inName) ||
         llvm::sys::fs::exists(nameOrFile) ||
         llvm::any_of(listRecipes(), [&](const Recipe &recipe) {
           return recipe.name == nameOrFile;
         });
}

FailureOr<Recipe> loadRecipe(StringRef nameOrFile, MLIRContext *context) {
  for (Recipe &recipe : listRecipes())
    if (recipe.name == nameOrFile)
      return std::move(recipe);
  auto error = [&]() -> InFlightDiagnostic {
    return emitError(FileLineColLoc::get(context, nameOrFile, 0, 0));
  };
  // Regular files only: a pipe or device would be read without an end.
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(nameOrFile, status))
    return error() << "cannot read the recipe: " << code.message(), failure();
  if (status.type() != llvm::sys::fs::file_type::regular_file)
    return error() << "cannot read the recipe: not a regular file", failure();
  llvm::ErrorOr<Recipe> recipe = readRecipe(nameOrFile, nameOrFile);
  if (!recipe)
    return error() << "cannot read the recipe: " << recipe.getError().message(),
           failure();
  if (std::string wrong = pipelineError(recipe->pipeline);
      !recipe->pipeline.empty() && !wrong.empty())
    return error() << "invalid pass pipeline: " << wrong, failure();
  return std::move(*recipe);
}

llvm::Expected<Recipe> parseQuantize(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  auto isWord = [](StringRef word) {
    return !word.empty() && llvm::all_of(word, [](char c) {
      return llvm::isAlnum(c) || c == '-' || c == '.';
    });
  };
  std::string options = ("method=" + parts.front()).str();
  bool ok = isWord(parts.front());
  for (StringRef part : llvm::drop_begin(parts)) {
    auto [key, value] = part.split('=');
    ok = ok && isWord(value) &&
         llvm::is_contained({"bits", "group-size", "factor-group", "symmetric",
                             "search", "damping", "act-order"},
                            key);
    options += (" " + part).str();
  }
  if (!ok)
    return llvm::createStringError(
        "'" + text +
        "' is not METHOD[,bits=N,group-size=N|row,factor-group=N,"
        "symmetric=BOOL,search=N,damping=X,act-order=BOOL]");
  std::string calibrate = parts.front() == "gptq" ? "llm-calibrate," : "";
  return Recipe{("quantize=" + text).str(),
                calibrate + "llm-quantize-weights{" + options + "}", ""};
}

} // namespace llm
