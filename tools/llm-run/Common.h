//===- Common.h - What the subcommands of llm-run share -----------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TOOLS_LLM_RUN_COMMON_H
#define LLM_TOOLS_LLM_RUN_COMMON_H

#include "runtime/artifact/Artifact.h"
#include "runtime/session/Generation.h"
#include "runtime/session/Session.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace llm::run {

using runtime::Expected;
using runtime::Status;

/// Options of every subcommand that runs a model.
struct CommonOptions {
  std::string artifact;
  int threads = 0;
  std::string device;
  int32_t context = 0;
  int64_t chunk = 0;
  uint64_t memory = 0;
  bool json = false;

  void addTo(CLI::App &command);
  runtime::SessionOptions sessionOptions() const;
};

/// The artifact's path as the first argument.
void addArtifactArgument(CLI::App &command, std::string &path);
/// --memory SIZE.
void addMemoryOption(CLI::App &command, uint64_t &memory);

/// What a subcommand does once the arguments are parsed.
using Action = std::function<Status()>;

/// Each adds its subcommand to `app` and stores its action where it is the one
/// that was given.
void addBench(CLI::App &app, Action &action);
void addChat(CLI::App &app, Action &action);
void addExec(CLI::App &app, Action &action);
void addGenerate(CLI::App &app, Action &action);
void addInspect(CLI::App &app, Action &action);
void addPerplexity(CLI::App &app, Action &action);
void addTokenize(CLI::App &app, Action &action);

/// Refuses '' for an option of a subcommand: one that names nothing is not one
/// that is absent.
std::string refuseEmpty(const std::string &text);

/// Opens an artifact that can generate; Unsupported for one that cannot, and
/// InvalidInput where --context asks for more than the model has.
Expected<std::shared_ptr<const runtime::Artifact>>
openDecoder(const CommonOptions &options);
/// As above, and loads its tokenizer meanwhile (loadTokenizer).
Expected<std::shared_ptr<const runtime::Artifact>>
openDecoder(const CommonOptions &options,
            std::unique_ptr<runtime::Tokenizer> &tokenizer);

/// The tokenizer sealed in the artifact; null where there is none.
Expected<std::unique_ptr<runtime::Tokenizer>>
loadTokenizer(const runtime::Artifact &artifact);
/// InvalidInput where `output` is the artifact itself.
runtime::Status keepArtifact(const CommonOptions &options,
                             const std::string &output);

/// InvalidInput, saying what to do where there is none.
runtime::Status missingTokenizer();
/// As loadTokenizer, but missingTokenizer where there is none.
Expected<std::unique_ptr<runtime::Tokenizer>>
requireTokenizer(const runtime::Artifact &artifact);

/// Ids that end generation: the artifact's and its tokenizer's.
std::vector<int32_t> endIds(const runtime::Artifact &artifact,
                            const runtime::Tokenizer *tokenizer);

/// The ids of a prompt as it stands: with BOS where the tokenizer adds it,
/// spelled special tokens read as such. An empty text gives BOS alone.
Expected<std::vector<int32_t>> encodePrompt(const runtime::Tokenizer &tokenizer,
                                            const std::string &text);

/// The ids of a question in the model's chat template, up to where the answer
/// starts.
Expected<std::vector<int32_t>>
encodeChat(const runtime::Tokenizer &tokenizer,
           const std::optional<std::string> &system, const std::string &user);

/// A whole file, or standard input for "-".
Expected<std::string> readText(const std::string &path);
/// Ids separated by commas or white space.
Expected<std::vector<int32_t>> parseIds(const std::string &text);

/// Ctrl-C was pressed.
bool interrupted();
/// Writes to standard output; the failure is reported at exit.
void print(std::string_view text);
/// Resource where something could not be written to standard output.
Status outputStatus();
/// What ends a run between two steps: Ctrl-C, or nobody who could read on.
bool cancelled();
/// One JSON object on a line.
void printJson(const nlohmann::ordered_json &value);
/// Progress and figures for people: standard error, if it is a terminal.
void note(const std::string &text);
bool onTerminal();

} // namespace llm::run

#endif // LLM_TOOLS_LLM_RUN_COMMON_H
