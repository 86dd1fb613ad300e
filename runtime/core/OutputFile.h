//===- OutputFile.h - Files that are whole or not there ---------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_CORE_OUTPUTFILE_H
#define LLM_RUNTIME_CORE_OUTPUTFILE_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace llm::runtime {

/// A file written beside its target and renamed when complete: an old file
/// stays whole whatever happens before. Symbolic links are followed, and stay.
/// A device, a pipe or an open descriptor (/dev/stdout) is never replaced: it
/// is written in place. Unless commit() succeeded, the destructor removes what
/// was written beside the target.
class OutputFile {
public:
  enum class Kind { Any, Regular };

  /// Resource, as "PATH: cannot write: REASON", when the directory does not
  /// take a new file, or where `kind` is Regular and `path` is something else.
  static Expected<OutputFile> create(const std::string &path,
                                     Kind kind = Kind::Any);
  /// Standard output, in place.
  static Expected<OutputFile> standardOutput();
  OutputFile(OutputFile &&other) noexcept
      : target(std::move(other.target)), temporary(std::move(other.temporary)),
        name(std::move(other.name)), slot(std::exchange(other.slot, -1)),
        file(std::exchange(other.file, nullptr)),
        buffer(std::move(other.buffer)) {}
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  Status write(const void *data, size_t bytes);
  /// Writes at `offset`, which may lie beyond the end: the gap reads as zeros.
  Status writeAt(uint64_t offset, const void *data, size_t bytes);
  /// Attaches `value` to the file under the extended attribute `key`, beside
  /// its contents. False where the file system has none.
  bool annotate(const char *key, const std::string &value);
  /// Flushes, synchronises, renames.
  Status commit();

  /// Removes what is written beside the targets of all files that are not
  /// committed. For handlers of signals that end the process.
  static void removeUnfinished() noexcept;

private:
  OutputFile(std::string name, std::string target, std::string temporary,
             std::FILE *file)
      : target(std::move(target)), temporary(std::move(temporary)),
        name(std::move(name)), file(file) {}
  static Expected<OutputFile> inPlace(const std::string &name, int descriptor);
  static Expected<OutputFile> beside(const std::string &name,
                                     const std::string &target, int mode);
  Status failed() const;

  /// Where it goes, and where it is until then: empty in place.
  std::string target, temporary;
  /// As the user wrote it.
  std::string name;
  /// What removeUnfinished() knows it by.
  int slot = -1;
  std::FILE *file = nullptr;
  /// What `file` collects writes in. A large file that is written by whole huge
  /// pages can be mapped by them, where the file system has such.
  std::unique_ptr<char[]> buffer;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_CORE_OUTPUTFILE_H
