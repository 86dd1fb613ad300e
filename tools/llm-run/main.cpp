//===- main.cpp - Runs artifacts -------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "llm/ABI/artifact.h"
#include "llm/ABI/kernel.h"
#include "llm/ABI/step.h"
#include "runtime/core/OutputFile.h"
#include "runtime/core/Printable.h"
#include "tools/Arguments.h"
#include "tools/llm-run/Common.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

namespace llm::run {

namespace {
volatile std::sig_atomic_t interruptCount = 0;

enum ExitCode {
  Fine = 0,
  InputAtFault = 1,
  WrongUsage = 2,
  OurFault = 3,
  Interrupted = 130,
};

extern "C" void onInterrupt(int) {
  // The second one does not wait for the step to end.
  interruptCount = interruptCount + 1;
  if (interruptCount > 1) {
    runtime::OutputFile::removeUnfinished();
    _exit(Interrupted);
  }
}

/// Ends as the signal does by itself, but leaves no half-written file.
extern "C" void onTermination(int signal) {
  runtime::OutputFile::removeUnfinished();
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  raise(signal);
}

void handleSignals() {
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = onTermination;
  for (int signal : {SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction old = {};
    // nohup has it ignored.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
  }
}

/// Fills descriptors 0 to 2 where the caller closed them: a file opened later
/// would take their place, and be written what is meant for the terminal. What
/// fills them refuses what they are for, so that it still fails. A pipe whose
/// reader is gone and a file at its size limit are errors, not signals.
void prepareStandardStreams() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
    int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", mode) < 0)
      _exit(InputAtFault);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

std::string versionText() {
  return "llm-run " LLM_VERSION "\nartifact format " +
         std::to_string(LLM_ARTIFACT_VERSION) + ", step ABI " +
         std::to_string(LLM_STEP_ABI_VERSION) + ", kernel ABI " +
         std::to_string(LLM_KERNEL_ABI_VERSION);
}

/// What is needed to see an internal failure again. Returns the file's path,
/// empty where it cannot be written.
std::string writeReproducer(int argc, char **argv, const std::string &message) {
  const char *directory = std::getenv("TMPDIR");
  std::string path = std::string(directory && *directory ? directory : "/tmp") +
                     "/llm-run-XXXXXX";
  int descriptor = mkstemp(path.data());
  std::FILE *file = descriptor < 0 ? nullptr : fdopen(descriptor, "w");
  if (!file)
    return "";
  char cwd[4096];
  std::fprintf(file, "%s\ndirectory: %s\ncommand:", versionText().c_str(),
               getcwd(cwd, sizeof(cwd)) ? cwd : "unknown");
  for (int i = 0; i < argc; ++i)
    std::fprintf(file, " '%s'", argv[i]);
  std::fprintf(file, "\nmessage: %s\n", message.c_str());
  std::fclose(file);
  return path;
}

int report(int argc, char **argv, const Status &status) {
  std::fprintf(stderr, "llm-run: error: %s\n",
               runtime::printable(status.message()).c_str());
  if (status.code() != runtime::StatusCode::Internal)
    return InputAtFault;
  std::string path = writeReproducer(argc, argv, status.message());
  std::fprintf(stderr,
               "llm-run: this is a fault of llm-run%s%s; please report it\n",
               path.empty() ? "" : ", described in ", path.c_str());
  return OurFault;
}

int run(int argc, char **argv) {
  prepareStandardStreams();
  CLI::App app("Runs language models that llm-compile has compiled.",
               "llm-run");
  app.set_version_flag("--version", versionText());
  app.require_subcommand(1);
  app.footer(
      "Example:\n  llm-run generate model.llmx --prompt 'The capital of "
      "France is' --max-tokens 16\n\nllm-run SUBCOMMAND --help says more. "
      "Exit codes: 0 fine, 1 the input or the\nsurroundings are at "
      "fault, 2 wrong usage, 3 a fault of llm-run, 130 interrupted.");
  Action action;
  addGenerate(app, action);
  addChat(app, action);
  addTokenize(app, action);
  addBench(app, action);
  addPerplexity(app, action);
  addInspect(app, action);
  addExec(app, action);

  try {
    parseArguments(app, argc, argv);
  } catch (const CLI::ParseError &error) {
    std::ostringstream help;
    if (app.exit(error, help) != 0)
      return WrongUsage;
    print(help.str());
    Status written = outputStatus();
    return written ? Fine : report(argc, argv, written);
  }

  handleSignals();
  Status status = runtime::catchExceptions(action);
  if (interruptCount > 0)
    return Interrupted;
  if (status)
    status = outputStatus();
  return status ? Fine : report(argc, argv, status);
}
} // namespace

bool interrupted() { return interruptCount > 0; }

} // namespace llm::run

int main(int argc, char **argv) { return llm::run::run(argc, argv); }
