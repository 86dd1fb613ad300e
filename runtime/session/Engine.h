//===- Engine.h - Requests that come and go while others run ------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_ENGINE_H
#define LLM_RUNTIME_SESSION_ENGINE_H

#include "runtime/session/Acceptance.h"
#include "runtime/session/Sampler.h"
#include "runtime/session/Session.h"
#include "runtime/session/StopStrings.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llm::runtime {

struct GenerationRequest {
  /// Token ids, at least one.
  std::vector<int32_t> prompt;
  int64_t maxTokens = 0;
  /// maxTokens is cut to what context and cache leave; else a request that may
  /// exceed them is refused.
  bool cutToFit = true;
  llm_sampling sampling = greedySampling();
  /// The text ends before the first of these.
  std::vector<std::string> stop;
  /// Generation ends with one of these ids.
  std::vector<int32_t> eosIds;
  /// Continuations of the prompt, which is computed once; see choiceSeed.
  int32_t n = 1;
  /// A sequence to go on from, which stays afterwards, with the generated
  /// tokens; else one is made for the request. `history` are its tokens, which
  /// the repetition penalty sees. With n = 1 only.
  std::optional<Session::SequenceId> sequence;
  std::vector<int32_t> history;
  /// What messages about it begin with, such as "requests.jsonl:3"; where empty
  /// and there are several, "request N".
  std::string name;
};

/// A request has this many continuations at most.
inline constexpr int32_t maxChoices = 1024;

/// The seed of continuation `choice` of a request: `seed` + `choice`, modulo
/// 2^64. So a continuation alone is the request with that seed.
inline uint64_t choiceSeed(uint64_t seed, int32_t choice) {
  return seed + static_cast<uint64_t>(choice);
}

struct GenerationResult {
  /// Which of the n continuations, from 0.
  int32_t choice = 0;
  /// The generated ids, an end-of-sequence id included.
  std::vector<int32_t> tokens;
  /// Their text, cut before a stop string; empty without a tokenizer.
  std::string text;
  int64_t promptTokens = 0;
  /// Tokens that an earlier or other request had computed (the prefix cache).
  int64_t cachedTokens = 0;
  /// Times that it gave its pages up for others, and was computed again.
  int64_t preemptions = 0;
  /// Tokens that were proposed, and those of them that are in the answer.
  int64_t drafted = 0, accepted = 0;
  uint64_t seed = 0;
  /// "stop" (an end-of-sequence id or a stop string), "length", "cancelled",
  /// "error".
  std::string_view finishReason;
  /// With "error": why.
  Status error;
  /// From submission to the first token.
  double ttftMilliseconds = 0;
  /// Tokens after the first, per second; 0 for fewer than two tokens.
  double decodeTokensPerSecond = 0;
};

/// Answers requests that are submitted at any time, in one ragged batch that
/// they join and leave between iterations. They are admitted in the order of
/// submission, as far as the session has sequences and pages; see Scheduler for
/// what happens where pages run out. An answer does not depend on what else
/// runs.
///
/// The session is the engine's while it exists. One thread at a time.
class Engine {
public:
  using RequestId = uint64_t;

  /// Called from within step() and cancel(). They may submit() and cancel(),
  /// and must not step() or end the engine.
  struct Events {
    /// Text of a continuation as it grows; concatenated it is the result's.
    std::function<void(RequestId id, int32_t choice, std::string_view text)>
        onText;
    /// The logits that a continuation's next token is drawn from. For tests and
    /// statistics.
    std::function<void(RequestId id, int32_t choice, const LogitRow &row)>
        onLogits;
    /// Each of a request's n continuations once.
    std::function<void(RequestId id, const GenerationResult &result)> onFinish;
  };

  /// `tokenizer` may be null: then there is no text, and stop strings are
  /// InvalidInput. Both outlive the engine.
  Engine(Session &session, const Tokenizer *tokenizer, Events events)
      : session(session), tokenizer(tokenizer), events(std::move(events)) {}
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;
  ~Engine();

  /// What submit() would say of a request: InvalidInput for values without
  /// meaning or more tokens than the context, Resource for more than the cache
  /// can ever hold.
  Status verify(const GenerationRequest &request) const;

  /// Queues a request. Ids count from 0. Nothing is computed yet.
  Expected<RequestId> submit(std::shared_ptr<const GenerationRequest> request);

  /// Ends a request, queued or running, with "cancelled". False where there is
  /// none of this id any more.
  bool cancel(RequestId id);
  void cancelAll();

  /// Runs one iteration: admits, computes one step, hands out tokens. Does
  /// nothing when idle. After a failure the engine can only be ended.
  Status step();

  /// No request is left.
  bool idle() const { return queue.empty() && running.empty(); }
  /// Requests that have not begun.
  size_t numQueued() const { return queue.size(); }
  /// Continuations that have begun.
  size_t numRunning() const { return running.size(); }

private:
  using Clock = std::chrono::steady_clock;
  struct Queued {
    RequestId id;
    std::shared_ptr<const GenerationRequest> request;
    Clock::time_point submitted;
  };
  /// A continuation on its way.
  struct Active {
    Queued queued;
    Session::SequenceId sequence = -1; ///< -1: none yet
    /// What the sequence had met before.
    Scheduler::History before = {};
    /// The position whose row gives the first token. A cancelled request may
    /// have left a row before it to be computed.
    int64_t firstRow = 0;
    llm_sampling sampling;
    int64_t maxTokens = 0;
    /// Continuations that will branch off where the prompt ends.
    int32_t branches = 0;
    std::vector<int32_t> history;
    GenerationResult result = {};
    StopStrings stops;
    std::unique_ptr<DecodeStream> stream = nullptr;
    /// What was drafted after the last token, and how far it has turned out
    /// right.
    std::vector<int32_t> drafts = {};
    size_t accepted = 0;
    DraftAccount account = {};
    Clock::time_point firstToken = {}, lastToken = {};
    bool finished = false;

    const GenerationRequest &request() const { return *queued.request; }
    /// Whether there is a draft for the next token, and `drawn` leaves it.
    bool accepts(int32_t drawn) const {
      return accepted < drafts.size() &&
             verdictOnCertain(drafts[accepted], drawn).accepted;
    }
  };

  int64_t maxTokensFor(const GenerationRequest &request) const;
  Active newActive(const Queued &queued, int32_t choice) const;
  void start(const Queued &queued);
  Status begin(Active &active);
  Status onRow(Session::SequenceId id, int64_t position, const LogitRow &row);
  std::vector<Active *> branch(Active &leader);
  Status consume(Active &active, int64_t position, const LogitRow &row);
  Status contribute(Active &active, int32_t token, bool last);
  Status draft(Active &active);
  Status accept(Active &active, int64_t position);
  Status reject(Active &active, int64_t position);
  void show(Active &active, const std::string &text);
  Status flushText(Active &active, std::string_view &reason);
  void finish(Active &active, std::string_view reason,
              Status error = Status::success());
  void removeFinished();

  Session &session;
  const Tokenizer *tokenizer;
  Events events;
  Sampler sampler;
  RequestId nextId = 0;
  bool stepping = false;
  std::deque<Queued> queue;
  /// By sequence: in the order of their beginning.
  std::map<Session::SequenceId, Active> running;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_ENGINE_H
