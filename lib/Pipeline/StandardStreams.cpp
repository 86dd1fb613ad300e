//===- StandardStreams.cpp - Standard streams that fail well ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/StandardStreams.h"

#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace llm {

static const char *toolName = "";

/// LLVM's streams, when destroyed with an error, abort.
static void checkStreams() {
  llvm::errs().clear_error();
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return;
  int reason = llvm::outs().error().value();
  llvm::outs().clear_error();
  reportOutputFailure(toolName, reason);
  _exit(1);
}

void prepareStandardStreams(const char *tool) {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
    int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", mode) < 0)
      _exit(1);
  }
  toolName = tool;
  // Made before the handler is registered, so destroyed after it ran.
  (void)llvm::outs();
  (void)llvm::errs();
  std::atexit(checkStreams);
}

void ignoreOutputSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void reportOutputFailure(const char *tool, int reason) {
  std::fprintf(stderr, "%s: error: cannot write to standard output: %s\n", tool,
               std::strerror(reason));
}

std::string captureStandardError(llvm::function_ref<void()> body) {
  int file = memfd_create("stderr", MFD_CLOEXEC);
  int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  bool captured = file >= 0 && saved >= 0 && dup2(file, STDERR_FILENO) >= 0;
  body();
  std::string text;
  if (captured) {
    dup2(saved, STDERR_FILENO);
    lseek(file, 0, SEEK_SET);
    char buffer[4096];
    for (ssize_t count; (count = read(file, buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<size_t>(count));
  }
  if (saved >= 0)
    close(saved);
  if (file >= 0)
    close(file);
  return text;
}

} // namespace llm
