//===- Output.h - What a tool writes ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_ARTIFACT_OUTPUT_H
#define LLM_LIB_ARTIFACT_OUTPUT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llm {

/// An output of the compiler's tools, written as runtime::OutputFile does:
/// beside its path and renamed by commit(), or in place where the path is a
/// pipe or a device. Errors are the reason alone, without the path.
class Output {
public:
  /// What a path may name. An artifact is not written front to back: it takes a
  /// regular file. For a text "-" is standard output.
  enum class Kind { Text, Artifact };

  static llvm::Expected<std::unique_ptr<Output>> open(llvm::StringRef path,
                                                      Kind kind);
  ~Output();

  llvm::Error write(const void *data, size_t bytes);
  llvm::Error writeAt(uint64_t offset, const void *data, size_t bytes);
  /// See runtime::OutputFile.
  bool annotate(const char *key, const std::string &value);
  llvm::Error commit();

  /// For messages.
  const std::string &path() const { return name; }
  /// Bytes that write() has written.
  uint64_t position() const { return written; }

private:
  struct File;
  explicit Output(llvm::StringRef path);

  std::string name;
  std::unique_ptr<File> file;
  uint64_t written = 0;
};

/// Opens `path`, writes `text` and commits.
llvm::Error writeText(llvm::StringRef path, llvm::StringRef text);

/// Removes what is written beside the paths of outputs that are not committed.
/// For handlers of signals that end the process.
void removeUnfinishedOutputs();

} // namespace llm

#endif // LLM_LIB_ARTIFACT_OUTPUT_H
