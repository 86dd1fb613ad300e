//===- SampleRunner.cpp - Samples through the parts of a decoder ----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/SampleRunner.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Support/WeightData.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "passes/Compress/DecoderParts.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <tuple>
#include <unistd.h>

namespace fs = llvm::sys::fs;

namespace mlir::llm {

//===----------------------------------------------------------------------===//
// RunState
//===----------------------------------------------------------------------===//

std::string RunState::file(StringRef name) const {
  SmallString<128> path(dir);
  ::llvm::sys::path::append(path, name);
  return path.str().str();
}

/// Whether a run leaves files of this name in its directory.
static bool isOurs(StringRef name) {
  return name == "state" || name == "statistics" || name == "run.llmx" ||
         name.starts_with("state.") || name.starts_with("hidden.") ||
         name.starts_with("layer.") || name.ends_with(".safetensors");
}

void RunState::removeFiles() {
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error))
    if (isOurs(::llvm::sys::path::filename(it->path())))
      std::ignore = fs::remove(it->path());
}

FailureOr<RunState> RunState::open(ModuleOp module, StringRef directory,
                                   StringRef key) {
  RunState state(module, directory, key);
  if (std::error_code error = fs::create_directory(directory))
    return module.emitError() << "cannot make the directory '" << directory
                              << "': " << error.message();
  fs::file_status status;
  std::string path = state.file("state");
  if (!fs::status(path, status) &&
      status.type() == fs::file_type::regular_file) {
    auto buffer = ::llvm::MemoryBuffer::getFile(path);
    if (buffer) {
      auto [hash, count] = (*buffer)->getBuffer().split('\n');
      if (hash == key && !count.trim().getAsInteger(10, state.steps) &&
          state.steps >= 0)
        return state;
    }
  }
  // A directory with a state is a run's, and files of these names in it are,
  // too. Of another one nothing must be removed.
  if (!fs::exists(path)) {
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error))
      if (StringRef name = ::llvm::sys::path::filename(it->path());
          !name.starts_with("state."))
        return module.emitError()
               << "the directory '" << directory << "' holds '" << name
               << "' and is of no earlier run: name an empty one, or one that "
                  "does not exist";
    if (error)
      return module.emitError() << "cannot read the directory '" << directory
                                << "': " << error.message();
  }
  state.removeFiles();
  if (failed(state.setDone(0)))
    return failure();
  return state;
}

LogicalResult RunState::setDone(int64_t count) {
  auto failedWith = [&](const std::string &reason) {
    return module.emitError()
           << "cannot write '" << file("state") << "': " << reason;
  };
  auto temporary = fs::TempFile::create(file("state") + ".%%%%%%");
  if (!temporary)
    return failedWith(toString(temporary.takeError()));
  ::llvm::raw_fd_ostream os(temporary->FD, /*shouldClose=*/false);
  os << key << "\n" << count << "\n";
  os.flush();
  if (std::error_code error = os.error()) {
    os.clear_error();
    ::llvm::consumeError(temporary->discard());
    return failedWith(error.message());
  }
  if (::llvm::Error error = temporary->keep(file("state")))
    return failedWith(toString(std::move(error)));
  steps = count;
  return success();
}

void RunState::remove() {
  removeFiles();
  std::ignore = fs::remove(dir);
}

//===----------------------------------------------------------------------===//
// SampleRunner
//===----------------------------------------------------------------------===//

SampleRunner::SampleRunner(ModuleOp module, const ::llm::ModuleRunner &runner,
                           Samples samples, const RunState &state)
    : module(module), runner(runner), samples(std::move(samples)), firsts{0},
      state(state) {
  for (const std::vector<int32_t> &sample : this->samples)
    firsts.push_back(firsts.back() + static_cast<int64_t>(sample.size()));
}

std::string SampleRunner::hiddenFile(int64_t number) const {
  return state.file("hidden." + std::to_string(number));
}

void SampleRunner::removeHidden(int64_t number) const {
  std::ignore = fs::remove(hiddenFile(number));
}

/// Reads or writes all of [data, data + bytes) at `offset`.
static LogicalResult transfer(ModuleOp module, StringRef path, int fd,
                              char *data, size_t bytes, int64_t offset,
                              bool write) {
  while (bytes) {
    ssize_t count = write ? pwrite(fd, data, bytes, offset)
                          : pread(fd, data, bytes, offset);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return module.emitError()
             << "cannot " << (write ? "write" : "read") << " '" << path << "': "
             << (count < 0 ? std::generic_category().message(errno)
                           : std::string("it ends too early"));
    data += count;
    offset += count;
    bytes -= count;
  }
  return success();
}

LogicalResult SampleRunner::run(ModuleOp part, int64_t in, int64_t out,
                                Observe observe, StringRef what) const {
  ModuleOp where = module;
  size_t longest = 0;
  for (const std::vector<int32_t> &sample : samples)
    longest = std::max(longest, sample.size());
  ::llm::RunOptions options;
  options.scratch = state.directory();
  options.context = static_cast<int64_t>(longest);
  options.chunk = std::min<int64_t>(options.context, 512);
  auto loaded = runner.load(part, options);
  if (failed(loaded))
    return failure();

  int reads = -1, writes = -1;
  ::llvm::scope_exit close([&] {
    for (int fd : {reads, writes})
      if (fd >= 0)
        ::close(fd);
  });
  std::string inFile = hiddenFile(in), outFile = hiddenFile(out);
  size_t current = 0;
  auto supply = [&](const ::llm::StepRows &rows, float *data) -> LogicalResult {
    if (reads < 0)
      if (std::error_code error = fs::openFileForRead(inFile, reads))
        return where.emitError()
               << "cannot read '" << inFile << "': " << error.message();
    int64_t bytes = rows.width * static_cast<int64_t>(sizeof(float));
    return transfer(where, inFile, reads, reinterpret_cast<char *>(data),
                    rows.rows * bytes, (firsts[current] + rows.first) * bytes,
                    /*write=*/false);
  };
  auto observeRows = [&](const ::llm::StepRows &rows,
                         const float *data) -> LogicalResult {
    if (rows.name != DecoderParts::kHidden)
      return observe(rows.name, rows.rows, rows.width, data);
    if (writes < 0)
      if (std::error_code error = fs::openFileForWrite(outFile, writes))
        return where.emitError()
               << "cannot write '" << outFile << "': " << error.message();
    int64_t bytes = rows.width * static_cast<int64_t>(sizeof(float));
    return transfer(where, outFile, writes,
                    const_cast<char *>(reinterpret_cast<const char *>(data)),
                    rows.rows * bytes, (firsts[current] + rows.first) * bytes,
                    /*write=*/true);
  };
  bool shown = ::llvm::errs().is_displayed();
  for (; current < samples.size(); ++current) {
    if (shown)
      ::llvm::errs() << "\r" << what << ", sample " << current + 1 << " of "
                     << samples.size() << " ";
    if (failed((*loaded)->run(samples[current], supply, observeRows)))
      return failure();
  }
  if (shown)
    ::llvm::errs() << "\n";
  return success();
}

std::string hashRun(ModuleOp module, const Samples &samples,
                    StringRef options) {
  std::string text;
  ::llvm::raw_string_ostream os(text);
  // Without the module's own attributes: they say where things are.
  for (Operation &op : *module.getBody()) {
    auto weight = dyn_cast<WeightOp>(op);
    op.print(os, OpPrintingFlags().useLocalScope());
    os << "\n";
    if (!weight)
      continue;
    SmallVector<ComponentAttr> parts;
    weight.getFormat().getParts(parts);
    for (ComponentAttr part : parts)
      if (auto resource = dyn_cast<DenseResourceElementsAttr>(part.getSource());
          resource && resource.getRawHandle().getBlob())
        os << ::llm::hashBytes(resource.getRawHandle().getBlob()->getData());
  }
  for (const std::vector<int32_t> &sample : samples) {
    for (int32_t id : sample)
      os << id << ",";
    os << "\n";
  }
  os << options;
  return ::llm::hashBytes(ArrayRef<char>(text.data(), text.size()));
}

} // namespace mlir::llm
