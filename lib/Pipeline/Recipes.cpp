//===- Recipes.cpp - Named compression pipelines ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/Recipes.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace llm {

FailureOr<std::string> loadRecipe(StringRef nameOrFile, Location loc) {
  if (nameOrFile == "none")
    return std::string();
  // Regular files only: a pipe or device would be read without an end.
  if (!llvm::sys::fs::is_regular_file(nameOrFile))
    return emitError(loc) << "no recipe is named '" << nameOrFile
                          << "' (there is: none), and it is no file",
           failure();
  auto buffer = llvm::MemoryBuffer::getFile(nameOrFile, /*IsText=*/true);
  if (!buffer)
    return emitError(loc) << "cannot read recipe '" << nameOrFile
                          << "': " << buffer.getError().message(),
           failure();
  std::string pipeline;
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (StringRef line : lines)
    pipeline += line.split('#').first.trim().str();
  return pipeline;
}

} // namespace llm
