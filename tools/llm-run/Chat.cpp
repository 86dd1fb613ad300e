//===- Chat.cpp - llm-run chat, and --chat ---------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/ChatTemplate.h"
#include "tools/llm-run/Common.h"
#include "tools/llm-run/Sampling.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace llm::run {

using namespace runtime;

namespace {

constexpr int64_t defaultAnswerTokens = 1024;

struct ChatOptions {
  CommonOptions common;
  std::optional<std::string> system;
  int64_t maxTokens = defaultAnswerTokens;
  SamplingOptions sampling;
};

/// Reads a line from standard input. False at its end, or when interrupted.
bool readLine(std::string &line) {
  line.clear();
  int c;
  while ((c = std::getchar()) != EOF) {
    if (c == '\n')
      return true;
    line += static_cast<char>(c);
  }
  return !line.empty();
}

/// A conversation in one sequence: what the cache holds of it stays.
class Conversation {
public:
  Conversation(const ChatOptions &options, const Artifact &artifact,
               Session &session, const Tokenizer &tokenizer, ChatTemplate chat)
      : options(options), artifact(artifact), session(session),
        tokenizer(tokenizer), chat(std::move(chat)),
        sampling(options.sampling.resolve()) {
    if (options.system)
      messages.push_back({"system", *options.system});
  }

  Status run() {
    LLM_RETURN_IF_ERROR(verifySampling(sampling));
    LLM_ASSIGN_OR_RETURN(sequence, session.add());
    bool terminal = isatty(STDIN_FILENO);
    std::string line;
    while (!cancelled()) {
      if (terminal)
        print("> ");
      if (!readLine(line))
        break;
      if (line.find_first_not_of(" \t\r") == std::string::npos)
        continue;
      LLM_RETURN_IF_ERROR(answer(line));
    }
    if (std::ferror(stdin) && !interrupted())
      return Status::invalidInput(std::string("cannot read standard input: ") +
                                  std::strerror(errno));
    if (terminal)
      print("\n");
    return Status::success();
  }

private:
  Status answer(const std::string &question) {
    messages.push_back({"user", question});
    LLM_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                         chat.encode(tokenizer, messages, true));
    // What the template spells like before is in the cache already, the
    // answers as generated tokens; only what differs is computed anew. The last
    // id is computed in any case, for its logits.
    size_t common = static_cast<size_t>(
        std::mismatch(ids.begin(), ids.end(), cached.begin(), cached.end())
            .first -
        ids.begin());
    common = std::min(common, ids.size() - 1);
    if (ids.size() >= static_cast<size_t>(session.context()))
      return Status::invalidInput(
          "the conversation has " + std::to_string(ids.size()) +
          " tokens and leaves no room for an answer in the context of " +
          std::to_string(session.context()));
    LLM_RETURN_IF_ERROR(
        session.rollback(sequence, static_cast<int64_t>(common)));
    GenerationRequest request;
    request.sequence = sequence;
    request.history.assign(ids.begin(),
                           ids.begin() + static_cast<ptrdiff_t>(common));
    request.prompt.assign(ids.begin() + static_cast<ptrdiff_t>(common),
                          ids.end());
    request.maxTokens =
        std::min<int64_t>(options.maxTokens,
                          session.context() - static_cast<int64_t>(ids.size()));
    request.sampling = sampling;
    request.eosIds = endIds(artifact, &tokenizer);
    GenerationResult result;
    GenerationCallbacks callbacks;
    callbacks.cancelled = cancelled;
    callbacks.onText = [](size_t, int32_t, std::string_view text) {
      print(text);
    };
    callbacks.onFinish = [&](size_t, const GenerationResult &finished) {
      result = finished;
      return Status::success();
    };
    LLM_RETURN_IF_ERROR(
        generate(session, &tokenizer, {&request, 1}, callbacks));
    print("\n");
    if (result.finishReason == "length")
      note("[cut at " + std::to_string(result.tokens.size()) + " tokens]");
    messages.push_back({"assistant", result.text});
    cached = std::move(ids);
    cached.insert(cached.end(), result.tokens.begin(), result.tokens.end());
    return Status::success();
  }

  const ChatOptions &options;
  const Artifact &artifact;
  Session &session;
  const Tokenizer &tokenizer;
  ChatTemplate chat;
  llm_sampling sampling;
  std::vector<ChatMessage> messages;
  Session::SequenceId sequence = 0;
  /// The tokens of the sequence.
  std::vector<int32_t> cached;
};

Status chatAction(const ChatOptions &options) {
  const std::string &path = options.common.artifact;
  std::unique_ptr<Tokenizer> tokenizer;
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact,
                       openDecoder(options.common, tokenizer));
  if (!tokenizer)
    return missingTokenizer().withContext(path);
  auto chat = ChatTemplate::of(*tokenizer).withContext(path);
  if (!chat)
    return chat.takeStatus();
  auto session = Session::create(artifact, options.common.sessionOptions())
                     .withContext(path);
  if (!session)
    return session.takeStatus();
  return Conversation(options, *artifact, **session, *tokenizer,
                      *std::move(chat))
      .run();
}

} // namespace

Expected<std::vector<int32_t>>
encodeChat(const Tokenizer &tokenizer, const std::optional<std::string> &system,
           const std::string &user) {
  LLM_ASSIGN_OR_RETURN(ChatTemplate chat, ChatTemplate::of(tokenizer));
  std::vector<ChatMessage> messages;
  if (system)
    messages.push_back({"system", *system});
  messages.push_back({"user", user});
  return chat.encode(tokenizer, messages, true);
}

void addChat(CLI::App &app, Action &action) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App *command = app.add_subcommand(
      "chat", "Talks: a line of standard input is a message, the end ends it");
  options->common.addTo(*command);
  command->add_option("--system", options->system, "a system message")
      ->type_name("TEXT");
  command
      ->add_option("--max-tokens", options->maxTokens,
                   "tokens of an answer at most (default 1024)")
      ->check(CLI::Range(1, 1 << 28))
      ->type_name("N");
  options->sampling.addTo(*command);
  command->footer("Example:\n  llm-run chat model.llmx --system 'You are "
                  "brief.' --temperature 0.7");
  command->callback([options, &action] {
    action = [options] { return chatAction(*options); };
  });
}

} // namespace llm::run
