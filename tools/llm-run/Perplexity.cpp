//===- Perplexity.cpp - llm-run perplexity ---------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/OutputFile.h"
#include "runtime/session/Scoring.h"
#include "runtime/session/TensorFile.h"
#include "tools/llm-run/Common.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace llm::run {

using namespace runtime;
using Json = nlohmann::ordered_json;

namespace {

constexpr int32_t defaultWindow = 512;
/// Logits of a step are kept: that many bytes of them by default.
constexpr int64_t defaultLogitsBytes = 64 << 20;

struct PerplexityOptions {
  CommonOptions common;
  std::string file, tokenFile, role = "prompt", logits;
  int64_t maxTokens = 0;
  int64_t batch = 1;
};

using Windows = std::vector<std::vector<int32_t>>;

/// Disjoint windows of `size` tokens, each led by BOS where the tokenizer adds
/// it; BOS counts to the window.
Expected<Windows> textWindows(const PerplexityOptions &options,
                              const Tokenizer &tokenizer, int64_t size) {
  LLM_ASSIGN_OR_RETURN(std::string text, readText(options.file));
  LLM_ASSIGN_OR_RETURN(
      std::vector<int32_t> ids,
      tokenizer.encode(text, {.addSpecial = false, .parseSpecial = false}));
  std::vector<int32_t> lead;
  if (tokenizer.addsBos() && tokenizer.bosId())
    lead.push_back(*tokenizer.bosId());
  auto step = size - static_cast<int64_t>(lead.size());
  if (step < 1)
    return Status::invalidInput("--context must be 2 or more");
  Windows windows;
  for (size_t begin = 0; begin < ids.size();
       begin += static_cast<size_t>(step)) {
    size_t end = std::min(ids.size(), begin + static_cast<size_t>(step));
    std::vector<int32_t> window = lead;
    window.insert(window.end(), ids.begin() + static_cast<ptrdiff_t>(begin),
                  ids.begin() + static_cast<ptrdiff_t>(end));
    windows.push_back(std::move(window));
  }
  return windows;
}

Expected<Windows> fileWindows(const PerplexityOptions &options,
                              int64_t vocabulary) {
  LLM_ASSIGN_OR_RETURN(std::string text, readText(options.tokenFile));
  Windows windows;
  size_t number = 0;
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    ++number;
    std::string where = options.tokenFile + ":" + std::to_string(number);
    LLM_ASSIGN_OR_RETURN(
        std::vector<int32_t> ids,
        parseIds(text.substr(start, end - start)).withContext(where));
    for (int32_t id : ids)
      if (vocabulary > 0 && id >= vocabulary)
        return Status::invalidInput(where + ": token " + std::to_string(id) +
                                    " is not in the vocabulary of " +
                                    std::to_string(vocabulary));
    start = end + 1;
    if (!ids.empty())
      windows.push_back(std::move(ids));
  }
  return windows;
}

/// Keeps the first `count` tokens over all windows.
void truncate(Windows &windows, int64_t count) {
  auto left = static_cast<size_t>(count);
  for (size_t i = 0; i < windows.size(); ++i) {
    if (windows[i].size() > left) {
      windows[i].resize(left);
      windows.resize(left ? i + 1 : i);
      return;
    }
    left -= windows[i].size();
  }
}

/// The f32 [tokens, vocabulary] file of --logits.
class LogitsFile {
public:
  static Expected<LogitsFile>
  create(const std::string &path, const Windows &windows, int64_t vocabulary) {
    LLM_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
    LogitsFile result(std::move(file));
    int64_t rows = 0;
    for (const std::vector<int32_t> &window : windows) {
      result.firstRow.push_back(rows);
      rows += static_cast<int64_t>(window.size());
    }
    std::string header = npyHeader(artifact::F32, {{rows, vocabulary}});
    result.dataOffset = header.size();
    LLM_RETURN_IF_ERROR(result.file.write(header.data(), header.size()));
    return result;
  }
  Status write(size_t window, int64_t position, std::span<const float> row) {
    auto index = static_cast<uint64_t>(firstRow[window] + position);
    return file.writeAt(dataOffset + index * row.size_bytes(), row.data(),
                        row.size_bytes());
  }
  Status commit() { return file.commit(); }

private:
  explicit LogitsFile(OutputFile file) : file(std::move(file)) {}
  OutputFile file;
  std::vector<int64_t> firstRow;
  uint64_t dataOffset = 0;
};

Status perplexityAction(const PerplexityOptions &options) {
  const std::string &path = options.common.artifact;
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact,
                       openDecoder(options.common));
  auto maxContext =
      static_cast<int32_t>(artifact->manifest().generation().max_context());
  int32_t window =
      options.common.context ? options.common.context : defaultWindow;
  if (!options.common.context && maxContext > 0)
    window = std::min(window, maxContext);
  Windows windows;
  if (!options.tokenFile.empty()) {
    LLM_ASSIGN_OR_RETURN(
        windows, fileWindows(options, artifact->manifest().vocabulary_size()));
  } else {
    auto loaded = requireTokenizer(*artifact).withContext(path);
    if (!loaded)
      return loaded.takeStatus();
    LLM_ASSIGN_OR_RETURN(windows, textWindows(options, **loaded, window));
  }
  if (options.maxTokens)
    truncate(windows, options.maxTokens);
  SessionOptions session = options.common.sessionOptions();
  int64_t scored = 0;
  size_t longest = 1;
  for (const std::vector<int32_t> &each : windows) {
    longest = std::max(longest, each.size());
    scored += static_cast<int64_t>(each.size()) - !each.empty();
  }
  if (scored == 0)
    return Status::invalidInput(
        (options.file.empty() ? options.tokenFile : options.file) +
        ": fewer than two tokens, nothing to score");
  session.context = static_cast<int32_t>(longest);
  session.maxSequences =
      std::min(options.batch, static_cast<int64_t>(windows.size()));
  if (!session.chunk) {
    int64_t rowBytes =
        std::max<int64_t>(artifact->manifest().vocabulary_size(), 1) * 4;
    session.chunk = std::clamp<int64_t>(defaultLogitsBytes / rowBytes, 16, 512);
  }
  session.maxLogitRows = session.chunk;
  session.fair = true;
  auto created = Session::create(artifact, session).withContext(path);
  if (!created)
    return created.takeStatus();

  ScoringOptions scoring;
  scoring.role =
      options.role == "generated" ? LLM_ROLE_GENERATED : LLM_ROLE_PROMPT;
  scoring.cancelled = cancelled;
  std::optional<LogitsFile> logits;
  if (!options.logits.empty()) {
    LLM_RETURN_IF_ERROR(keepArtifact(options.common, options.logits));
    LLM_ASSIGN_OR_RETURN(LogitsFile file,
                         LogitsFile::create(options.logits, windows,
                                            (*created)->vocabularySize()));
    logits.emplace(std::move(file));
    scoring.onLogits = [&](size_t index, int64_t position,
                           std::span<const float> row) {
      return logits->write(index, position, row);
    };
  }
  LLM_ASSIGN_OR_RETURN(
      ScoringResult result,
      score(**created, windows, session.maxSequences, scoring));
  if (interrupted())
    return Status::success();
  if (logits)
    LLM_RETURN_IF_ERROR(logits->commit());
  double nll = result.nll / static_cast<double>(result.scored);
  if (options.common.json) {
    Json line;
    line["perplexity"] = std::exp(nll);
    line["nll"] = nll;
    line["tokens"] = result.scored;
    printJson(line);
    return Status::success();
  }
  char text[160];
  std::snprintf(text, sizeof(text),
                "perplexity %.6f (%.6f nats per token, %lld tokens)\n",
                std::exp(nll), nll, static_cast<long long>(result.scored));
  print(text);
  return Status::success();
}

} // namespace

void addPerplexity(CLI::App &app, Action &action) {
  auto options = std::make_shared<PerplexityOptions>();
  CLI::App *command = app.add_subcommand(
      "perplexity", "Measures how well the model predicts a text");
  options->common.addTo(*command);
  command->get_option("--context")
      ->description("tokens of a window (default 512); a token file's lines "
                    "are taken as they stand")
      ->check(CLI::Range(2, 1 << 28));
  command->get_option("--chunk")->description(
      "tokens computed in a step at most (default: what keeps the logits of a "
      "step under 64 MiB)");
  CLI::Option_group *text = command->add_option_group("text");
  text->add_option("--file", options->file, "a text; - is standard input")
      ->check(refuseEmpty)
      ->type_name("TEXT");
  text->add_option("--token-file", options->tokenFile,
                   "token ids, one sequence per line")
      ->check(refuseEmpty)
      ->type_name("FILE");
  text->require_option(1);
  command
      ->add_option("--max-tokens", options->maxTokens,
                   "stop after that many tokens")
      ->check(CLI::Range(int64_t(2), int64_t(1) << 40))
      ->type_name("N");
  command
      ->add_option("--role", options->role,
                   "treat the tokens as the prompt (default) or as generated")
      ->check(CLI::IsMember({"prompt", "generated"}));
  command
      ->add_option("--batch", options->batch,
                   "windows computed in one ragged batch (default 1)")
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  command
      ->add_option("--logits", options->logits,
                   "write all logits, f32 [tokens, vocabulary]")
      ->check(refuseEmpty)
      ->type_name("OUT.npy");
  command->add_flag("--json", options->common.json, "print JSON");
  command->footer("Example:\n  llm-run perplexity model.llmx --file text.txt "
                  "--context 512");
  command->callback([options, &action] {
    action = [options] { return perplexityAction(*options); };
  });
}

} // namespace llm::run
