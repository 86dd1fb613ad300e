//===- RunState.cpp - What a run over the layers has done -----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/RunState.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <tuple>
#include <unistd.h>

namespace fs = llvm::sys::fs;

namespace mlir::llm {

/// The first lines of the files that tell whose a directory is. What is in one
/// without such a file is never touched.
static constexpr StringLiteral kStateMagic = "llm run state 1\n",
                               kDirectoryMagic = "llm run directory 1\n",
                               kState = "state", kMarker = "llm.runs";

static std::string pathOf(StringRef directory, StringRef name) {
  SmallString<128> path(directory);
  ::llvm::sys::path::append(path, name);
  return path.str().str();
}

/// What follows `magic` in a file; nothing where it is not such a file.
static std::optional<std::string> readAfter(StringRef path, StringRef magic) {
  fs::file_status status;
  if (fs::status(path, status) ||
      status.type() != fs::file_type::regular_file || status.getSize() > 4096)
    return std::nullopt;
  auto buffer = ::llvm::MemoryBuffer::getFile(path);
  if (!buffer || !(*buffer)->getBuffer().starts_with(magic))
    return std::nullopt;
  return (*buffer)->getBuffer().drop_front(magic.size()).str();
}

/// Writes a file whole or not at all.
static std::error_code writeFile(const std::string &path, StringRef text) {
  auto temporary = fs::TempFile::create(path + ".%%%%%%");
  if (!temporary)
    return errorToErrorCode(temporary.takeError());
  ::llvm::raw_fd_ostream os(temporary->FD, /*shouldClose=*/false);
  os << text;
  os.flush();
  if (std::error_code error = os.error()) {
    os.clear_error();
    ::llvm::consumeError(temporary->discard());
    return error;
  }
  return errorToErrorCode(temporary->keep(path));
}

/// Makes a directory, or takes an empty one; files whose names begin with
/// `ours` and a dot, which a killed run left, do not count.
static LogicalResult makeEmpty(ModuleOp module, StringRef directory,
                               StringRef ours) {
  std::error_code error = fs::create_directory(directory);
  if (error)
    return module.emitError() << "cannot make the directory '" << directory
                              << "': " << error.message();
  for (fs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    StringRef name = ::llvm::sys::path::filename(it->path());
    if (!name.starts_with((ours + ".").str()))
      return module.emitError()
             << "the directory '" << directory << "' holds '" << name
             << "' and is of no earlier run: name an empty one, or one that "
                "does not exist";
  }
  if (error)
    return module.emitError() << "cannot read the directory '" << directory
                              << "': " << error.message();
  return success();
}

LogicalResult openRunDirectory(ModuleOp module, StringRef directory) {
  std::string marker = pathOf(directory, kMarker);
  if (readAfter(marker, kDirectoryMagic))
    return success();
  if (failed(makeEmpty(module, directory, kMarker)))
    return failure();
  if (std::error_code error = writeFile(marker, kDirectoryMagic))
    return module.emitError()
           << "cannot write '" << marker << "': " << error.message();
  return success();
}

void removeRunDirectory(StringRef directory) {
  if (readAfter(pathOf(directory, kMarker), kDirectoryMagic))
    std::ignore = fs::remove_directories(directory);
}

std::string RunState::file(StringRef name) const { return pathOf(dir, name); }

/// Whether a run leaves files of this name in its directory.
static bool isOurs(StringRef name) {
  return name == "statistics" || name == "run.llmx" ||
         name.starts_with("state.") || name.starts_with("hidden.") ||
         name.starts_with("layer.");
}

/// All but the state.
void RunState::removeFiles() {
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error))
    if (isOurs(::llvm::sys::path::filename(it->path())))
      std::ignore = fs::remove(it->path());
  std::ignore = fs::remove_directories(weights());
}

LogicalResult RunState::lock() {
  int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return module.emitError()
           << "cannot open the directory '" << dir
           << "': " << std::generic_category().message(errno);
  locked = std::shared_ptr<int>(new int(fd), [](int *open) {
    ::close(*open);
    delete open;
  });
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return module.emitError()
           << "the directory '" << dir << "' is in use by another run";
  return success();
}

FailureOr<RunState> RunState::open(ModuleOp module, StringRef directory,
                                   StringRef key) {
  RunState state(module, directory, key);
  std::optional<std::string> left = readAfter(state.file(kState), kStateMagic);
  if (!left && failed(makeEmpty(module, directory, kState)))
    return failure();
  if (failed(state.lock()))
    return failure();
  // Again: another run may have ended meanwhile.
  left = readAfter(state.file(kState), kStateMagic);
  if (left) {
    auto [hash, count] = StringRef(*left).split('\n');
    if (hash == key && !count.trim().getAsInteger(10, state.layers) &&
        state.layers >= 0)
      return state;
  }
  if (failed(state.restart()))
    return failure();
  return state;
}

LogicalResult RunState::setDone(int64_t count) {
  std::string text =
      (kStateMagic + Twine(key) + "\n" + Twine(count) + "\n").str();
  if (std::error_code error = writeFile(file(kState), text))
    return module.emitError()
           << "cannot write '" << file(kState) << "': " << error.message();
  layers = count;
  return success();
}

LogicalResult RunState::restart() {
  // The state first: without it the rest would not be known as a run's.
  if (failed(setDone(0)))
    return failure();
  removeFiles();
  return success();
}

void RunState::remove() {
  removeFiles();
  std::ignore = fs::remove(file(kState));
  std::ignore = fs::remove(dir);
}

} // namespace mlir::llm
