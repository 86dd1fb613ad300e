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

using namespace mlir;

namespace llm {

bool isRecipe(StringRef nameOrFile) {
  auto inName = [](char c) { return llvm::isAlnum(c) || c == '-' || c == '_'; };
  return nameOrFile == "none" || !llvm::all_of(nameOrFile, inName) ||
         llvm::sys::fs::exists(nameOrFile);
}

FailureOr<std::string> loadRecipe(StringRef nameOrFile, MLIRContext *context) {
  if (nameOrFile == "none")
    return std::string();
  auto error = [&]() -> InFlightDiagnostic {
    return emitError(FileLineColLoc::get(context, nameOrFile, 0, 0));
  };
  // Regular files only: a pipe or device would be read without an end.
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(nameOrFile, status))
    return error() << "cannot read the recipe: " << code.message(), failure();
  if (status.type() != llvm::sys::fs::file_type::regular_file)
    return error() << "cannot read the recipe: not a regular file", failure();
  auto buffer = llvm::MemoryBuffer::getFile(nameOrFile, /*IsText=*/true);
  if (!buffer)
    return error() << "cannot read the recipe: " << buffer.getError().message(),
           failure();
  std::string pipeline;
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (StringRef line : lines)
    pipeline += line.split('#').first.trim().str();
  if (std::string wrong = pipelineError(pipeline);
      !pipeline.empty() && !wrong.empty())
    return error() << "invalid pass pipeline: " << wrong, failure();
  return pipeline;
}

} // namespace llm
