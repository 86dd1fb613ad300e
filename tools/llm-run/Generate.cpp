//===- Generate.cpp - llm-run generate -------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/llm-run/Common.h"
#include "tools/llm-run/Sampling.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

namespace llm::run {

using namespace runtime;
using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t defaultMaxTokens = 256;
constexpr int64_t maxRequestTokens = 1 << 28;

struct GenerateOptions {
  CommonOptions common;
  std::optional<std::string> prompt, promptFile, promptIds, prompts;
  bool chat = false;
  std::optional<std::string> system;
  std::optional<int64_t> maxTokens;
  std::vector<std::string> stop;
  SamplingOptions sampling;
  int32_t n = 1;
  int64_t maxSequences = 0;
  bool noPrefixCache = false;
};

Expected<std::vector<int32_t>> encodeRequest(const GenerateOptions &options,
                                             const Tokenizer &tokenizer,
                                             const std::string &text) {
  if (options.chat)
    return encodeChat(tokenizer, options.system, text);
  return encodePrompt(tokenizer, text);
}

/// The requests of a run, before the session exists.
struct Requests {
  std::vector<GenerationRequest> list;
  /// Whether the number of tokens was asked for, or may be cut to the context.
  std::vector<bool> explicitLength;
  /// What reading them from a file took.
  uint64_t readingBytes = 0;
};

/// What a request takes besides the context of its sequences.
uint64_t heldBytes(const GenerationRequest &request) {
  uint64_t bytes =
      sizeof(request) + request.name.capacity() +
      (request.prompt.capacity() + request.eosIds.capacity()) * sizeof(int32_t);
  for (const std::string &stop : request.stop)
    bytes += sizeof(stop) + stop.capacity();
  return bytes;
}

/// An empty text would end nothing.
bool isStop(const Json &value) {
  return value.is_string() && !value.get_ref<const std::string &>().empty();
}

/// Parses a request. A key that is given twice is an error, where the parser
/// would take the last.
Expected<Json> parseRequest(std::string_view line) {
  std::set<std::string> keys;
  std::optional<std::string> twice;
  auto watch = [&](int depth, Json::parse_event_t event, Json &parsed) {
    if (event == Json::parse_event_t::key && depth == 1)
      if (auto key = parsed.get<std::string>(); !keys.insert(key).second)
        twice = key;
    return true;
  };
  Json value = Json::parse(line, watch, /*allow_exceptions=*/false);
  if (value.is_discarded())
    return Status::invalidInput("not valid JSON");
  if (twice)
    return Status::invalidInput("\"" + *twice + "\" is given twice");
  return value;
}

Status readRequestLine(const Json &line, const GenerateOptions &options,
                       const Tokenizer *tokenizer, GenerationRequest &request,
                       bool &explicitLength) {
  if (!line.is_object())
    return Status::invalidInput("not a JSON object");
  SamplingOptions sampling = options.sampling;
  if (line.contains("prompt") && line.contains("prompt_ids"))
    return Status::invalidInput("both \"prompt\" and \"prompt_ids\"");
  bool hasPrompt = false;
  for (const auto &[key, value] : line.items()) {
    if (key == "prompt" && value.is_string()) {
      if (!tokenizer)
        return Status::invalidInput("the artifact has no tokenizer: give "
                                    "\"prompt_ids\" in place of \"prompt\"");
      LLM_ASSIGN_OR_RETURN(
          request.prompt,
          encodeRequest(options, *tokenizer, value.get<std::string>()));
      hasPrompt = true;
    } else if (key == "prompt_ids" && value.is_array()) {
      request.prompt.clear();
      for (const Json &id : value) {
        if (!id.is_number_integer() || id < 0 || id > INT32_MAX)
          return Status::invalidInput("\"prompt_ids\" has something that is "
                                      "not a token id");
        request.prompt.push_back(id.get<int32_t>());
      }
      hasPrompt = true;
    } else if (key == "max_tokens" && value.is_number_unsigned() &&
               value.get<uint64_t>() <= maxRequestTokens) {
      request.maxTokens = value.get<int64_t>();
      explicitLength = true;
    } else if (key == "n" && value.is_number_unsigned() &&
               value.get<uint64_t>() >= 1 &&
               value.get<uint64_t>() <= maxChoices) {
      request.n = value.get<int32_t>();
    } else if (key == "stop" && isStop(value)) {
      request.stop = {value.get<std::string>()};
    } else if (key == "stop" && value.is_array() &&
               std::all_of(value.begin(), value.end(), isStop)) {
      request.stop = value.get<std::vector<std::string>>();
    } else if (!sampling.set(key, value)) {
      return Status::invalidInput("\"" + key +
                                  "\" is not known or has a wrong value");
    }
  }
  if (!hasPrompt)
    return Status::invalidInput("no \"prompt\"");
  request.sampling = sampling.resolve();
  return verifySampling(request.sampling);
}

Status readRequestFile(const GenerateOptions &options,
                       const Tokenizer *tokenizer,
                       const GenerationRequest &defaults, Requests &requests) {
  LLM_ASSIGN_OR_RETURN(std::string text, readText(*options.prompts));
  size_t lineNumber = 0, longest = 0;
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = std::string_view(text).substr(start, end - start);
    longest = std::max(longest, line.size());
    start = end + 1;
    ++lineNumber;
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    std::string where = *options.prompts + ":" + std::to_string(lineNumber);
    LLM_ASSIGN_OR_RETURN(Json value, parseRequest(line).withContext(where));
    GenerationRequest request = defaults;
    request.name = where;
    bool explicitLength = options.maxTokens.has_value();
    LLM_RETURN_IF_ERROR(
        readRequestLine(value, options, tokenizer, request, explicitLength)
            .withContext(where));
    requests.list.push_back(std::move(request));
    requests.explicitLength.push_back(explicitLength);
  }
  if (requests.list.empty())
    return Status::invalidInput(*options.prompts + ": no requests");
  // The parser has a long string twice, and gives a third.
  requests.readingBytes = text.capacity() + 3 * longest;
  return Status::success();
}

Status readSingle(const GenerateOptions &options, const Tokenizer *tokenizer,
                  GenerationRequest request, Requests &requests) {
  if (options.promptIds) {
    LLM_ASSIGN_OR_RETURN(
        request.prompt,
        parseIds(*options.promptIds).withContext("--prompt-ids"));
  } else {
    if (!tokenizer)
      return Status::invalidInput(
          options.common.artifact +
          ": the artifact has no tokenizer: give --prompt-ids, or compile the "
          "model with --tokenizer");
    std::string text = options.prompt.value_or("");
    if (options.promptFile) {
      LLM_ASSIGN_OR_RETURN(text, readText(*options.promptFile));
    }
    LLM_ASSIGN_OR_RETURN(request.prompt,
                         encodeRequest(options, *tokenizer, text));
  }
  if (request.prompt.empty())
    return Status::invalidInput("the prompt has no tokens");
  requests.list.push_back(std::move(request));
  requests.explicitLength.push_back(options.maxTokens.has_value());
  return Status::success();
}

/// The lengths of the longest sequences, as many as may run at once.
void setLengths(const Requests &requests, int64_t maxSequences,
                SessionOptions &session) {
  struct Lengths {
    int64_t most, usual;
    int32_t count;
  };
  std::vector<Lengths> list;
  for (const GenerationRequest &request : requests.list) {
    auto prompt = static_cast<int64_t>(request.prompt.size());
    // The last token is not fed back. On average, a sequence is half way
    // through its answer.
    int64_t more = std::max<int64_t>(request.maxTokens - 1, 0);
    list.push_back({prompt + more, prompt + (more + 1) / 2, request.n});
  }
  std::sort(list.begin(), list.end(),
            [](const Lengths &a, const Lengths &b) { return a.most > b.most; });
  auto limit =
      static_cast<size_t>(maxSequences ? maxSequences : defaultMaxSequences);
  for (const Lengths &lengths : list)
    for (int32_t i = 0; i < lengths.count; ++i) {
      if (session.lengths.size() == limit)
        return;
      session.lengths.push_back(lengths.most);
      session.usualLengths.push_back(lengths.usual);
    }
}

/// The session that the requests need; numbers of tokens that were not asked
/// for are cut to its context.
Status fitSession(const Artifact &artifact, const GenerateOptions &options,
                  Requests &requests, SessionOptions &session) {
  auto limit =
      static_cast<int64_t>(artifact.manifest().generation().max_context());
  if (options.common.context)
    limit = std::min<int64_t>(limit, options.common.context);
  int64_t longest = 1, sequences = 0;
  for (size_t i = 0; i < requests.list.size(); ++i) {
    GenerationRequest &request = requests.list[i];
    auto prompt = static_cast<int64_t>(request.prompt.size());
    // The last token is not fed back.
    int64_t needed = prompt + std::max<int64_t>(request.maxTokens - 1, 0);
    if (needed > limit && !requests.explicitLength[i] && prompt <= limit) {
      request.maxTokens = limit - prompt + 1;
      needed = limit;
    }
    if (needed > limit || request.maxTokens > maxRequestTokens) {
      std::string which = request.name.empty() ? "" : request.name + ": ";
      return Status::invalidInput(
          which + "a prompt of " + std::to_string(prompt) + " tokens and " +
          std::to_string(request.maxTokens) +
          " more do not fit in the context of " + std::to_string(limit) +
          (options.common.context ? " (--context)" : ", the model's maximum"));
    }
    longest = std::max(longest, needed);
    sequences += request.n;
    session.held += heldBytes(request);
  }
  session.held += requests.readingBytes;
  session.context = static_cast<int32_t>(longest);
  session.maxSequences = std::min(options.maxSequences, sequences);
  setLengths(requests, options.maxSequences, session);
  session.fitCache = true;
  // Where there is one sequence, nobody shares.
  session.prefixCache = !options.noPrefixCache && (requests.list.size() > 1 ||
                                                   requests.list.front().n > 1);
  return Status::success();
}

Json resultJson(const GenerationResult &result, bool speculates) {
  Json json;
  json["text"] = result.text;
  json["tokens"] = result.tokens;
  json["prompt_tokens"] = result.promptTokens;
  json["cached_tokens"] = result.cachedTokens;
  json["finish_reason"] = result.finishReason;
  json["ttft_ms"] = result.ttftMilliseconds;
  json["decode_tokens_per_s"] = result.decodeTokensPerSecond;
  json["preemptions"] = result.preemptions;
  json["seed"] = result.seed;
  if (speculates) {
    json["drafted"] = result.drafted;
    json["accepted"] = result.accepted;
  }
  return json;
}

std::string idsText(const std::vector<int32_t> &ids) {
  std::string text;
  for (int32_t id : ids)
    text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

void printLine(const GenerationResult &result, std::optional<size_t> index,
               bool hasChoices, bool speculates) {
  if (result.finishReason == "cancelled")
    return;
  Json line;
  if (index)
    line["index"] = *index;
  if (hasChoices)
    line["choice"] = result.choice;
  line.update(resultJson(result, speculates));
  printJson(line);
}

void noteFigures(const GenerationResult &result,
                 const GenerationRequest &request) {
  char figures[200];
  std::snprintf(figures, sizeof(figures),
                "[%lld prompt tokens, %lld of them cached, first token after "
                "%.0f ms; %zu tokens, %.1f per second; %s]",
                static_cast<long long>(result.promptTokens),
                static_cast<long long>(result.cachedTokens),
                result.ttftMilliseconds, result.tokens.size(),
                result.decodeTokensPerSecond,
                std::string(result.finishReason).c_str());
  note(figures);
  if (request.sampling.temperature > 0)
    note("[seed " + std::to_string(result.seed) + "]");
}

Status generateAction(const GenerateOptions &options) {
  const std::string &path = options.common.artifact;
  std::unique_ptr<Tokenizer> tokenizer;
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact,
                       openDecoder(options.common, tokenizer));

  GenerationRequest defaults;
  defaults.maxTokens = options.maxTokens.value_or(defaultMaxTokens);
  defaults.sampling = options.sampling.resolve();
  defaults.stop = options.stop;
  defaults.n = options.n;
  defaults.eosIds = endIds(*artifact, tokenizer.get());
  LLM_RETURN_IF_ERROR(verifySampling(defaults.sampling));
  bool batch = options.prompts.has_value();
  Requests requests;
  LLM_RETURN_IF_ERROR(
      batch ? readRequestFile(options, tokenizer.get(), defaults, requests)
            : readSingle(options, tokenizer.get(), defaults, requests));

  SessionOptions sessionOptions = options.common.sessionOptions();
  LLM_RETURN_IF_ERROR(fitSession(*artifact, options, requests, sessionOptions));
  auto created = Session::create(artifact, sessionOptions).withContext(path);
  if (!created)
    return created.takeStatus();
  std::unique_ptr<Session> session = *std::move(created);

  GenerationCallbacks callbacks;
  callbacks.cancelled = cancelled;
  bool streams = !options.common.json && !batch && options.n == 1;
  if (streams)
    callbacks.onText = [](size_t, int32_t, std::string_view text) {
      print(text);
    };
  callbacks.onFinish = [&](size_t index,
                           const GenerationResult &result) -> Status {
    const GenerationRequest &request = requests.list[index];
    if (options.common.json) {
      printLine(result, batch ? std::optional(index) : std::nullopt,
                request.n > 1, session->speculation().tokens > 0);
      return Status::success();
    }
    std::string text = tokenizer ? result.text : idsText(result.tokens);
    if (streams) {
      print(tokenizer ? "\n" : text + "\n");
    } else if (result.finishReason != "cancelled" || !result.tokens.empty()) {
      std::string number = batch ? std::to_string(index) : "";
      if (request.n > 1)
        number += (batch ? "." : "") + std::to_string(result.choice);
      print("[" + number + "] " + text + "\n");
    }
    noteFigures(result, request);
    return Status::success();
  };
  return generate(*session, tokenizer.get(), requests.list, callbacks);
}

} // namespace

void addGenerate(CLI::App &app, Action &action) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App *command =
      app.add_subcommand("generate", "Answers a prompt, or several at once");
  options->common.addTo(*command);
  CLI::Option_group *prompts = command->add_option_group("prompt");
  prompts
      ->add_option("--prompt", options->prompt,
                   "the text to continue; '' is the beginning-of-sequence "
                   "token alone")
      ->type_name("TEXT");
  prompts
      ->add_option("--prompt-file", options->promptFile,
                   "a file with the text; - is standard input")
      ->check(refuseEmpty)
      ->type_name("FILE");
  prompts
      ->add_option("--prompt-ids", options->promptIds,
                   "token ids, separated by commas")
      ->type_name("IDS");
  prompts
      ->add_option("--prompts", options->prompts,
                   "requests to answer, a JSON object a line: prompt or "
                   "prompt_ids, and optionally max_tokens, n, stop, "
                   "temperature, top_k, top_p, min_p, repetition_penalty, seed")
      ->check(refuseEmpty)
      ->type_name("FILE.jsonl");
  prompts->require_option(1);
  command
      ->add_option("--max-tokens", options->maxTokens,
                   "tokens to generate at most (default 256, or what fits)")
      ->check(CLI::Range(int64_t(0), maxRequestTokens))
      ->type_name("N");
  command
      ->add_option("--stop", options->stop,
                   "end before this text; may be given several times")
      ->check(refuseEmpty)
      ->type_name("TEXT")
      ->take_all()
      ->allow_extra_args(false);
  options->sampling.addTo(*command);
  command
      ->add_option("--n", options->n,
                   "continuations of the prompt; number K has the seed of the "
                   "first plus K (default 1)")
      ->check(CLI::Range(1, int(maxChoices)))
      ->type_name("N");
  command
      ->add_option("--max-sequences", options->maxSequences,
                   "sequences in a batch at most, the rest waits (default: as "
                   "memory allows, up to 64)")
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  command->add_flag("--no-prefix-cache", options->noPrefixCache,
                    "compute each prompt anew, also where it begins as another "
                    "one did");
  CLI::Option *chat = command->add_flag(
      "--chat", options->chat,
      "put the prompt into the model's chat template, as a user's message");
  command->add_option("--system", options->system, "a system message")
      ->needs(chat)
      ->type_name("TEXT");
  command->add_flag("--json", options->common.json,
                    "print JSON: one object per request");
  command->footer(
      "Example:\n  llm-run generate model.llmx --prompt 'Once upon a time' "
      "--max-tokens 64 --temperature 0.8 --seed 1");
  command->callback([options, &action] {
    action = [options] { return generateAction(*options); };
  });
}

} // namespace llm::run
