//===- Generation.cpp - Requests and their answers -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Generation.h"

#include "runtime/session/StopStrings.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace llm::runtime {

namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// A request on its way.
struct Active {
  size_t index;
  const GenerationRequest *request;
  Session::SequenceId sequence;
  std::vector<int32_t> history;
  GenerationResult result;
  StopStrings stops;
  std::unique_ptr<DecodeStream> stream;
  Clock::time_point firstToken, lastToken;
  bool finished = false;

  Active(size_t index, const GenerationRequest &request)
      : index(index), request(&request), stops(request.stop) {}
};

class Generation {
public:
  Generation(Session &session, const Tokenizer *tokenizer,
             const GenerationCallbacks &callbacks)
      : session(session), tokenizer(tokenizer), callbacks(callbacks) {}
  ~Generation() {
    for (auto &[id, active] : running)
      if (!active.request->sequence)
        session.remove(id);
  }

  Status start(size_t index, const GenerationRequest &request);
  Status run();

private:
  Status take(Active &active, int64_t position, const LogitRow &row);
  Status finish(Active &active, std::string_view reason);
  void show(Active &active, const std::string &text);
  Status finishAll(std::string_view reason);
  void removeFinished();

  Session &session;
  const Tokenizer *tokenizer;
  const GenerationCallbacks &callbacks;
  Clock::time_point begin = Clock::now();
  Sampler sampler;
  std::map<Session::SequenceId, Active> running;
};

Status Generation::start(size_t index, const GenerationRequest &request) {
  LLM_RETURN_IF_ERROR(verifySampling(request.sampling));
  if (request.maxTokens < 0)
    return Status::invalidInput("a negative number of tokens is asked for");
  if (!request.stop.empty() && !tokenizer)
    return Status::invalidInput("stop strings need a tokenizer, and the "
                                "artifact has none");
  if (request.prompt.empty())
    return Status::invalidInput("the prompt has no tokens");
  Session::SequenceId id;
  if (request.sequence) {
    id = *request.sequence;
  } else {
    LLM_ASSIGN_OR_RETURN(id, session.add());
  }
  Active &active = running.emplace(id, Active(index, request)).first->second;
  active.sequence = id;
  active.history = request.history;
  active.history.insert(active.history.end(), request.prompt.begin(),
                        request.prompt.end());
  active.result.promptTokens = static_cast<int64_t>(request.prompt.size());
  if (tokenizer) {
    // After special tokens alone, the answer is the beginning of a text.
    bool continues = std::any_of(
        active.history.begin(), active.history.end(),
        [&](int32_t token) { return !tokenizer->isSpecial(token); });
    active.stream = std::make_unique<DecodeStream>(
        *tokenizer,
        DecodeOptions{.skipSpecial = true, .continuation = continues});
  }
  LLM_RETURN_IF_ERROR(
      session.append(id, request.prompt, LLM_ROLE_PROMPT,
                     request.maxTokens > 0 ? Logits::Last : Logits::None));
  return Status::success();
}

void Generation::show(Active &active, const std::string &text) {
  if (text.empty())
    return;
  active.result.text += text;
  if (callbacks.onText)
    callbacks.onText(active.index, text);
}

Status Generation::finish(Active &active, std::string_view reason) {
  active.finished = true;
  if (active.stream && !active.stops.stopped()) {
    LLM_ASSIGN_OR_RETURN(std::string rest, active.stream->flush());
    show(active, active.stops.push(rest));
    if (active.stops.stopped())
      reason = "stop";
    else
      show(active, active.stops.flush());
  }
  GenerationResult &result = active.result;
  result.finishReason = reason;
  if (!result.tokens.empty())
    result.ttftMilliseconds = 1e3 * seconds(active.firstToken - begin);
  if (result.tokens.size() > 1)
    result.decodeTokensPerSecond =
        static_cast<double>(result.tokens.size() - 1) /
        seconds(active.lastToken - active.firstToken);
  if (callbacks.onFinish)
    return callbacks.onFinish(active.index, result);
  return Status::success();
}

Status Generation::take(Active &active, int64_t position, const LogitRow &row) {
  const GenerationRequest &request = *active.request;
  LLM_ASSIGN_OR_RETURN(
      int32_t token,
      sampler.sample(row, active.history, position + 1, request.sampling));
  active.lastToken = Clock::now();
  if (active.result.tokens.empty())
    active.firstToken = active.lastToken;
  active.result.tokens.push_back(token);
  active.history.push_back(token);
  bool ends = std::find(request.eosIds.begin(), request.eosIds.end(), token) !=
              request.eosIds.end();
  if (active.stream && !ends) {
    LLM_ASSIGN_OR_RETURN(std::string text, active.stream->push(token));
    show(active, active.stops.push(text));
    ends = active.stops.stopped();
  }
  bool full =
      static_cast<int64_t>(active.result.tokens.size()) >= request.maxTokens;
  bool last = ends || full;
  // A sequence that stays keeps all its tokens; one that goes needs no cache
  // entry for the last.
  if (!last || request.sequence) {
    if (session.length(active.sequence) < session.context()) {
      LLM_RETURN_IF_ERROR(session.append(active.sequence, {{token}},
                                         LLM_ROLE_GENERATED,
                                         last ? Logits::None : Logits::Last));
    } else {
      last = true;
    }
  }
  if (!last)
    return Status::success();
  return finish(active, ends ? "stop" : "length");
}

void Generation::removeFinished() {
  for (auto it = running.begin(); it != running.end();) {
    if (!it->second.finished) {
      ++it;
      continue;
    }
    if (!it->second.request->sequence)
      session.remove(it->first);
    it = running.erase(it);
  }
}

Status Generation::finishAll(std::string_view reason) {
  for (auto &[id, active] : running)
    LLM_RETURN_IF_ERROR(finish(active, reason));
  removeFinished();
  return Status::success();
}

Status Generation::run() {
  auto onRow = [&](Session::SequenceId id, int64_t position,
                   const LogitRow &row) -> Status {
    auto found = running.find(id);
    if (found == running.end())
      return Status::success();
    return take(found->second, position, row);
  };
  while (!running.empty() && !session.idle()) {
    if (callbacks.cancelled && callbacks.cancelled())
      return finishAll("cancelled");
    LLM_RETURN_IF_ERROR(session.step(onRow));
    removeFinished();
  }
  // What is left asked for no token.
  return finishAll("length");
}

} // namespace

Status generate(Session &session, const Tokenizer *tokenizer,
                std::span<const GenerationRequest> requests,
                const GenerationCallbacks &callbacks) {
  return catchExceptions([&]() -> Status {
    Generation generation(session, tokenizer, callbacks);
    for (size_t i = 0; i < requests.size(); ++i) {
      Status status = generation.start(i, requests[i]);
      if (status)
        continue;
      if (!requests[i].name.empty())
        return std::move(status).withContext(requests[i].name);
      return requests.size() == 1 ? status
                                  : std::move(status).withContext(
                                        "request " + std::to_string(i));
    }
    return generation.run();
  });
}

} // namespace llm::runtime
