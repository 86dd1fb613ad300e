//===- Common.cpp - What the subcommands of llm-run share -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/llm-run/Common.h"

#include "runtime/core/Limits.h"
#include "runtime/tokenizer/TokenizerSource.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace llm::run {

using namespace runtime;

std::string refuseEmpty(const std::string &text) {
  return text.empty() ? "must not be empty" : "";
}

void addArtifactArgument(CLI::App &command, std::string &path) {
  command.add_option("artifact", path, "the compiled model (.llmx)")
      ->required()
      ->check(refuseEmpty)
      ->type_name("M.llmx");
}

void addMemoryOption(CLI::App &command, uint64_t &memory) {
  command
      .add_option_function<std::string>(
          "--memory",
          [&memory](const std::string &text) {
            Expected<uint64_t> size = parseSize(text);
            if (!size || *size == 0)
              throw CLI::ValidationError("--memory",
                                         size ? "must be more than 0"
                                              : size.status().message());
            memory = *size;
          },
          "memory to stay within, such as 24GiB (default: the control group's "
          "limit)")
      ->type_name("SIZE");
}

void CommonOptions::addTo(CLI::App &command) {
  addArtifactArgument(command, artifact);
  command
      .add_option("--threads", threads,
                  "threads (default: what affinity and control group allow)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  command
      .add_option("--device", device,
                  "device to run on (default: the best that the artifact has)")
      ->check(CLI::IsMember(availableDevices()));
  command
      .add_option("--context", context,
                  "tokens of a sequence (default: the model's maximum, or what "
                  "is needed)")
      ->check(CLI::Range(1, 1 << 28))
      ->type_name("N");
  command
      .add_option("--chunk", chunk,
                  "prompt tokens computed in a step at most (default 512)")
      ->check(CLI::Range(1, 1 << 28))
      ->type_name("N");
  addMemoryOption(command, memory);
}

SessionOptions CommonOptions::sessionOptions() const {
  SessionOptions options;
  options.device = device;
  options.threads = threads;
  options.context = context;
  options.chunk = chunk;
  options.memory = memory;
  return options;
}

static Expected<std::shared_ptr<const Artifact>>
openDecoder(const CommonOptions &options,
            const std::function<void(const Artifact &)> &meanwhile) {
  const std::string &path = options.artifact;
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact,
                       Artifact::open(path, options.threads, meanwhile));
  LLM_RETURN_IF_ERROR(requireDecoder(artifact->manifest()).withContext(path));
  auto longest =
      static_cast<int64_t>(artifact->manifest().generation().max_context());
  if (options.context > longest)
    return Status::invalidInput(
        path + ": --context " + std::to_string(options.context) +
        " is more than the model's maximum of " + std::to_string(longest));
  return artifact;
}

Expected<std::shared_ptr<const Artifact>>
openDecoder(const CommonOptions &options) {
  return openDecoder(options, std::function<void(const Artifact &)>());
}

Expected<std::shared_ptr<const Artifact>>
openDecoder(const CommonOptions &options,
            std::unique_ptr<Tokenizer> &tokenizer) {
  Status loading = Status::success();
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact,
                       openDecoder(options, [&](const Artifact &opened) {
                         auto loaded = loadTokenizer(opened).withContext(
                             options.artifact);
                         if (loaded)
                           tokenizer = *std::move(loaded);
                         else
                           loading = loaded.takeStatus();
                       }));
  LLM_RETURN_IF_ERROR(loading);
  return artifact;
}

Expected<std::unique_ptr<Tokenizer>> loadTokenizer(const Artifact &artifact) {
  if (!artifact.manifest().has_tokenizer() ||
      artifact.manifest().tokenizer().kind().empty())
    return std::unique_ptr<Tokenizer>();
  std::span<const std::byte> bytes =
      artifact.payload(artifact.manifest().tokenizer().payload());
  return loadSealedTokenizer(
             {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()})
      .withContext("tokenizer");
}

Status keepArtifact(const CommonOptions &options, const std::string &output) {
  std::error_code error;
  if (std::filesystem::equivalent(options.artifact, output, error))
    return Status::invalidInput(output +
                                ": would replace the artifact that is run");
  return Status::success();
}

Status missingTokenizer() {
  return Status::invalidInput(
      "the artifact has no tokenizer: give token ids (--prompt-ids, "
      "--token-file), or compile the model with --tokenizer");
}

Expected<std::unique_ptr<Tokenizer>>
requireTokenizer(const Artifact &artifact) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                       loadTokenizer(artifact));
  if (!tokenizer)
    return missingTokenizer();
  return tokenizer;
}

std::vector<int32_t> endIds(const Artifact &artifact,
                            const Tokenizer *tokenizer) {
  const auto &ids = artifact.manifest().generation().eos_ids();
  std::vector<int32_t> result(ids.begin(), ids.end());
  if (tokenizer)
    for (int32_t id : tokenizer->eosIds())
      if (std::find(result.begin(), result.end(), id) == result.end())
        result.push_back(id);
  return result;
}

Expected<std::vector<int32_t>> encodePrompt(const Tokenizer &tokenizer,
                                            const std::string &text) {
  LLM_ASSIGN_OR_RETURN(
      std::vector<int32_t> ids,
      tokenizer.encode(text, {.addSpecial = true, .parseSpecial = true}));
  if (ids.empty() && tokenizer.bosId())
    ids.push_back(*tokenizer.bosId());
  if (ids.empty())
    return Status::invalidInput("the prompt is empty, and the tokenizer has no "
                                "beginning-of-sequence token");
  return ids;
}

Expected<std::string> readText(const std::string &path) {
  std::FILE *file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!file)
    return Status::invalidInput(path +
                                ": cannot open: " + std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  size_t count;
  Status status;
  while ((count = std::fread(buffer, 1, sizeof(buffer), file)) > 0) {
    text.append(buffer, count);
    if (text.size() > maxTextBytes) {
      status = Status::invalidInput(path + ": more than " +
                                    formatSize(maxTextBytes));
      break;
    }
  }
  if (std::ferror(file))
    status =
        Status::invalidInput(path + ": cannot read: " + std::strerror(errno));
  if (file != stdin)
    std::fclose(file);
  if (!status)
    return status;
  return text;
}

Expected<std::vector<int32_t>> parseIds(const std::string &text) {
  std::vector<int32_t> ids;
  const char *p = text.data(), *end = p + text.size();
  auto separator = [](char c) {
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
  };
  while (p < end) {
    if (separator(*p)) {
      ++p;
      continue;
    }
    int32_t id = 0;
    auto [next, error] = std::from_chars(p, end, id);
    if (error != std::errc() || id < 0 || (next < end && !separator(*next))) {
      const char *stop = std::find_if(p, end, separator);
      return Status::invalidInput(
          "'" + std::string(p, std::min<ptrdiff_t>(stop - p, 40)) +
          "' is not a token id");
    }
    ids.push_back(id);
    p = next;
  }
  return ids;
}

/// Why standard output could not be written first; 0 where it could.
static int outputError = 0;

void print(std::string_view text) {
  bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0;
  if (!written && !outputError)
    outputError = errno;
}

Status outputStatus() {
  if (!outputError && std::fflush(stdout) != 0)
    outputError = errno;
  if (!outputError)
    return Status::success();
  return Status::resource(std::string("cannot write to standard output: ") +
                          std::strerror(outputError));
}

bool cancelled() { return interrupted() || outputError != 0; }

void printJson(const nlohmann::ordered_json &value) {
  print(value.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
        "\n");
}

bool onTerminal() { return isatty(STDERR_FILENO); }

void note(const std::string &text) {
  if (onTerminal())
    std::fprintf(stderr, "%s\n", text.c_str());
}

} // namespace llm::run
