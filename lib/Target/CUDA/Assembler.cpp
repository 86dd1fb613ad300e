//===- Assembler.cpp - PTX to machine code --------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/Assembler.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace mlir;

namespace llm::cuda {

//===----------------------------------------------------------------------===//
// Finding the assembler
//===----------------------------------------------------------------------===//

static std::optional<std::string> executableIn(const Twine &directory) {
  SmallString<128> path;
  directory.toVector(path);
  llvm::sys::path::append(path, "ptxas");
  if (llvm::sys::fs::can_execute(path))
    return std::string(path);
  return std::nullopt;
}

/// The package nvidia-cuda-nvcc keeps it at nvidia/cu13/bin in site-packages.
static std::optional<std::string> findInPackages() {
  static int anchor;
  SmallString<128> libs(llvm::sys::fs::getMainExecutable(nullptr, &anchor));
  if (libs.empty())
    return std::nullopt;
  llvm::sys::path::remove_filename(libs);
  llvm::sys::path::append(libs, "..", "venv", "lib");
  // Sorted, so that the choice does not depend on the file system.
  std::set<std::string> found;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator python(libs, error), end;
       !error && python != end; python.increment(error)) {
    if (!llvm::sys::path::filename(python->path()).starts_with("python3"))
      continue;
    SmallString<128> packages(python->path());
    llvm::sys::path::append(packages, "site-packages", "nvidia");
    std::error_code inner;
    for (llvm::sys::fs::directory_iterator package(packages, inner);
         !inner && package != end; package.increment(inner))
      if (auto path = executableIn(package->path() + "/bin"))
        found.insert(*path);
  }
  if (found.empty())
    return std::nullopt;
  return *found.rbegin();
}

std::optional<std::string> findAssembler(StringRef toolkit) {
  if (!toolkit.empty()) {
    if (auto path = executableIn(toolkit + "/bin"))
      return path;
    return executableIn(toolkit);
  }
  for (StringRef variable : {"CUDA_ROOT", "CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> root = llvm::sys::Process::GetEnv(variable);
        root && !root->empty())
      if (auto path = executableIn(*root + "/bin"))
        return path;
  if (auto path = llvm::sys::findProgramByName("ptxas"))
    return *path;
  // Where NVIDIA's installers put the toolkit.
  if (auto path = executableIn("/usr/local/cuda/bin"))
    return path;
  return findInPackages();
}

//===----------------------------------------------------------------------===//
// Running it
//===----------------------------------------------------------------------===//

/// The number that stands before `what`, as in "96 bytes spill stores".
static int64_t numberBefore(StringRef line, StringRef what) {
  size_t at = line.find(what);
  if (at == StringRef::npos)
    return 0;
  StringRef before = line.take_front(at).rtrim();
  StringRef digits = before.take_back(
      before.size() - (before.find_last_not_of("0123456789") + 1));
  int64_t value = 0;
  return digits.getAsInteger(10, value) ? 0 : value;
}

std::vector<KernelResources> parseAssemblerLog(StringRef log) {
  std::vector<KernelResources> kernels;
  KernelResources *current = nullptr;
  for (StringRef line : llvm::split(log, '\n')) {
    StringRef rest = line;
    if (size_t at = rest.find("Compiling entry function '");
        at != StringRef::npos) {
      rest = rest.drop_front(at).split('\'').second;
      kernels.emplace_back();
      current = &kernels.back();
      current->name = rest.take_until([](char c) { return c == '\''; }).str();
    } else if (current && line.contains("bytes spill stores")) {
      current->spillBytes = std::max(numberBefore(line, "bytes spill stores"),
                                     numberBefore(line, "bytes spill loads"));
    } else if (current && line.contains(" registers")) {
      current->registers = numberBefore(line, " registers");
      current->sharedBytes = numberBefore(line, "bytes smem");
    }
  }
  llvm::sort(kernels,
             [](const auto &a, const auto &b) { return a.name < b.name; });
  return kernels;
}

/// The assembler's words in one line, shortened.
static std::string summarize(StringRef log) {
  SmallVector<StringRef> lines;
  for (StringRef line : llvm::split(log, '\n')) {
    line = line.trim();
    if (!line.empty() && !line.starts_with("ptxas info"))
      lines.push_back(line);
    if (lines.size() == 3)
      break;
  }
  return llvm::join(lines, "; ").substr(0, 400);
}

static std::string readFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

FailureOr<Cubin> assemble(StringRef assembler, StringRef ptx, StringRef arch,
                          unsigned timeoutSeconds,
                          function_ref<InFlightDiagnostic()> emitError) {
  SmallString<128> input, output, log;
  llvm::scope_exit cleanUp([&] {
    for (StringRef path : {StringRef(input), StringRef(output), StringRef(log)})
      if (!path.empty())
        std::ignore = llvm::sys::fs::remove(path);
  });
  int fd = -1;
  std::error_code error;
  if ((error = llvm::sys::fs::createTemporaryFile("llm", "ptx", fd, input)))
    return emitError() << "cannot make a temporary file: " << error.message();
  {
    llvm::raw_fd_ostream stream(fd, /*shouldClose=*/true);
    stream << ptx;
    stream.close();
    if (stream.has_error()) {
      error = stream.error();
      stream.clear_error();
      return emitError() << "cannot write '" << input
                         << "': " << error.message();
    }
  }
  if ((error = llvm::sys::fs::createTemporaryFile("llm", "cubin", output)) ||
      (error = llvm::sys::fs::createTemporaryFile("llm", "log", log)))
    return emitError() << "cannot make a temporary file: " << error.message();

  std::string archFlag = ("-arch=" + arch).str();
  StringRef arguments[] = {assembler, "-v", archFlag, input, "-o", output};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                          StringRef(log)};
  std::string message;
  bool notStarted = false;
  int code = llvm::sys::ExecuteAndWait(
      assembler, arguments, std::nullopt, redirects, timeoutSeconds,
      /*MemoryLimit=*/0, &message, &notStarted);
  std::string text = readFile(log);
  if (code != 0) {
    InFlightDiagnostic diagnostic = emitError();
    diagnostic << "'" << assembler << "' ";
    if (notStarted)
      diagnostic << "does not start: " << message;
    else if (code == -2)
      diagnostic << "crashed or took more than " << timeoutSeconds
                 << " s: " << message;
    else
      diagnostic << "failed with code " << code << ": "
                 << summarize(text.empty() ? message : text);
    return diagnostic;
  }
  Cubin cubin;
  std::string bytes = readFile(output);
  cubin.bytes.assign(bytes.begin(), bytes.end());
  if (!StringRef(bytes).starts_with("\x7f"
                                    "ELF"))
    return emitError() << "'" << assembler << "' wrote no machine code";
  cubin.kernels = parseAssemblerLog(text);
  return cubin;
}

} // namespace llm::cuda
