//===- Output.cpp - What a tool writes ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Artifact/Output.h"

#include "runtime/core/OutputFile.h"

namespace llm {

struct Output::File {
  runtime::OutputFile file;
};

/// The reason in a message of runtime::OutputFile: what follows the path.
static llvm::Error reason(const runtime::Status &status) {
  if (status.ok())
    return llvm::Error::success();
  constexpr llvm::StringLiteral before = ": cannot write: ";
  llvm::StringRef message = status.message();
  size_t at = message.rfind(before);
  if (at != llvm::StringRef::npos)
    message = message.substr(at + before.size());
  return llvm::createStringError(message);
}

Output::Output(llvm::StringRef path) : name(path) {}
Output::~Output() = default;

llvm::Expected<std::unique_ptr<Output>> Output::open(llvm::StringRef path,
                                                     Kind kind) {
  using runtime::OutputFile;
  auto file =
      path == "-" && kind == Kind::Text
          ? OutputFile::standardOutput()
          : OutputFile::create(path.str(), kind == Kind::Text
                                               ? OutputFile::Kind::Any
                                               : OutputFile::Kind::Regular);
  if (!file)
    return reason(file.status());
  std::unique_ptr<Output> output(new Output(path));
  output->file.reset(new File{std::move(*file)});
  return output;
}

llvm::Error Output::write(const void *data, size_t bytes) {
  written += bytes;
  return reason(file->file.write(data, bytes));
}

llvm::Error Output::writeAt(uint64_t offset, const void *data, size_t bytes) {
  return reason(file->file.writeAt(offset, data, bytes));
}

bool Output::annotate(const char *key, const std::string &value) {
  return file->file.annotate(key, value);
}

llvm::Error Output::commit() { return reason(file->file.commit()); }

llvm::Error writeText(llvm::StringRef path, llvm::StringRef text) {
  llvm::Expected<std::unique_ptr<Output>> output =
      Output::open(path, Output::Kind::Text);
  if (!output)
    return output.takeError();
  if (llvm::Error error = (*output)->write(text.data(), text.size()))
    return error;
  return (*output)->commit();
}

void removeUnfinishedOutputs() { runtime::OutputFile::removeUnfinished(); }

} // namespace llm
