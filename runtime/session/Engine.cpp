//===- Engine.cpp - Requests that come and go while others run --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Engine.h"

#include <algorithm>

namespace llm::runtime {

static double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

Engine::~Engine() {
  for (auto &[id, active] : running)
    if (!active.request().sequence)
      session.remove(id);
}

/// maxTokens, or what context and cache leave of it where it may be cut.
int64_t Engine::maxTokensFor(const GenerationRequest &request) const {
  if (!request.cutToFit)
    return request.maxTokens;
  int64_t held = request.sequence ? session.length(*request.sequence) : 0;
  int64_t room = std::min<int64_t>(session.context(), session.cacheSlots()) -
                 held - static_cast<int64_t>(request.prompt.size());
  // The last token is not fed back.
  return std::min(request.maxTokens, std::max<int64_t>(room + 1, 0));
}

Status Engine::verify(const GenerationRequest &request) const {
  LLM_RETURN_IF_ERROR(verifySampling(request.sampling));
  if (request.maxTokens < 0)
    return Status::invalidInput("a negative number of tokens is asked for");
  if (!request.stop.empty() && !tokenizer)
    return Status::invalidInput("stop strings need a tokenizer, and the "
                                "artifact has none");
  if (request.prompt.empty())
    return Status::invalidInput("the prompt has no tokens");
  if (request.n < 1 || request.n > maxChoices)
    return Status::invalidInput("n is " + std::to_string(request.n) +
                                ", and must lie in 1 to " +
                                std::to_string(maxChoices));
  if (request.n > 1 && request.sequence)
    return Status::invalidInput("a sequence is continued once, not " +
                                std::to_string(request.n) + " times");
  LLM_RETURN_IF_ERROR(session.verifyTokens(request.prompt));
  int64_t held = request.sequence ? session.length(*request.sequence) : 0;
  int64_t prompt = held + static_cast<int64_t>(request.prompt.size());
  int64_t most = std::max<int64_t>(maxTokensFor(request) - 1, 0);
  auto refuse = [&](const std::string &what, int64_t limit) {
    return "a prompt of " + std::to_string(prompt) + " tokens and " +
           std::to_string(request.maxTokens) + " more do not fit in the " +
           what + " of " + std::to_string(limit);
  };
  if (most > session.context() - prompt)
    return Status::invalidInput(refuse("context", session.context()));
  if (most > session.cacheSlots() - prompt)
    return Status::resource(refuse("cache", session.cacheSlots()) + " tokens");
  return Status::success();
}

Expected<Engine::RequestId>
Engine::submit(std::shared_ptr<const GenerationRequest> request) {
  LLM_RETURN_IF_ERROR(verify(*request));
  RequestId id = nextId++;
  queue.push_back({id, std::move(request), Clock::now()});
  return id;
}

bool Engine::cancel(RequestId id) {
  auto queued = std::find_if(queue.begin(), queue.end(),
                             [&](const Queued &each) { return each.id == id; });
  if (queued != queue.end()) {
    Active active = newActive(*queued, 0);
    queue.erase(queued);
    finish(active, "cancelled");
    return true;
  }
  // Those that a callback ends meanwhile stay in the map.
  bool wasStepping = std::exchange(stepping, true);
  bool found = false;
  for (auto &[sequence, active] : running)
    if (active.queued.id == id && !active.finished) {
      found = true;
      finish(active, "cancelled");
    }
  stepping = wasStepping;
  if (!stepping)
    removeFinished();
  return found;
}

void Engine::cancelAll() {
  std::vector<RequestId> ids;
  for (const auto &[sequence, active] : running)
    ids.push_back(active.queued.id);
  for (const Queued &queued : queue)
    ids.push_back(queued.id);
  for (RequestId id : ids)
    cancel(id);
}

Engine::Active Engine::newActive(const Queued &queued, int32_t choice) const {
  const GenerationRequest &request = *queued.request;
  Active active{.queued = queued,
                .sampling = request.sampling,
                .maxTokens = maxTokensFor(request),
                .branches = choice == 0 ? request.n - 1 : 0,
                .history = request.history,
                .stops = StopStrings(request.stop)};
  active.sampling.seed = choiceSeed(request.sampling.seed, choice);
  active.history.insert(active.history.end(), request.prompt.begin(),
                        request.prompt.end());
  active.result.choice = choice;
  active.result.seed = active.sampling.seed;
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
  return active;
}

/// Gives a request its sequence, with the prompt waiting.
void Engine::start(const Queued &queued) {
  Active active = newActive(queued, 0);
  Status status = begin(active);
  if (!status) {
    finish(active, "error", std::move(status));
    if (active.sequence >= 0 && !active.request().sequence)
      session.remove(active.sequence);
  } else if (active.maxTokens == 0) {
    finish(active, "length");
  } else {
    running.emplace(active.sequence, std::move(active));
  }
}

Status Engine::begin(Active &active) {
  const GenerationRequest &request = active.request();
  bool computes = active.maxTokens > 0;
  if (request.sequence) {
    if (running.count(*request.sequence))
      return Status::invalidInput("the sequence is being continued already");
    active.sequence = *request.sequence;
  } else if (computes) {
    // The last token is not fed back.
    LLM_ASSIGN_OR_RETURN(
        active.sequence,
        session.add(active.result.promptTokens + active.maxTokens - 1));
  } else {
    return Status::success();
  }
  active.before = session.history(active.sequence);
  LLM_RETURN_IF_ERROR(session.append(active.sequence, request.prompt,
                                     LLM_ROLE_PROMPT,
                                     computes ? Logits::Last : Logits::None));
  active.firstRow = session.length(active.sequence) - 1;
  return Status::success();
}

Status Engine::step() {
  return catchExceptions([&]() -> Status {
    stepping = true;
    // As many as could become resident now; more would only take memory. Those
    // that callbacks submit meanwhile are for the next step.
    for (size_t most = queue.size();
         most > 0 && !queue.empty() &&
         session.numWaiting() < session.maxSequences();
         --most) {
      Queued queued = std::move(queue.front());
      queue.pop_front();
      start(queued);
    }
    Status status = session.step(
        [&](Session::SequenceId id, int64_t position, const LogitRow &row) {
          return onRow(id, position, row);
        });
    stepping = false;
    removeFinished();
    return status;
  });
}

/// What follows a token of a sequence is known.
Status Engine::onRow(Session::SequenceId id, int64_t position,
                     const LogitRow &row) {
  auto found = running.find(id);
  if (found == running.end() || found->second.finished ||
      position < found->second.firstRow)
    return Status::success();
  // Continuations draw their first tokens from one row.
  std::vector<Active *> branches = branch(found->second);
  branches.insert(branches.begin(), &found->second);
  for (Active *active : branches) {
    if (active->finished)
      continue;
    Status status = consume(*active, position, row);
    if (!status && !active->finished)
      finish(*active, "error", std::move(status));
  }
  return Status::success();
}

/// Makes the further continuations of a request, whose prompt has just been
/// computed. They share its pages.
std::vector<Engine::Active *> Engine::branch(Active &leader) {
  std::vector<Active *> made;
  int32_t count = std::exchange(leader.branches, 0);
  for (int32_t choice = 1; choice <= count; ++choice) {
    Active active = newActive(leader.queued, choice);
    active.before = leader.before;
    active.before.preemptions = 0;
    Expected<Session::SequenceId> forked = session.fork(leader.sequence);
    if (!forked) {
      finish(active, "error", forked.takeStatus());
      continue;
    }
    active.sequence = *forked;
    made.push_back(
        &running.emplace(active.sequence, std::move(active)).first->second);
  }
  return made;
}

/// Draws a continuation's next token, and lets it go on or ends it.
Status Engine::consume(Active &active, int64_t position, const LogitRow &row) {
  const GenerationRequest &request = active.request();
  if (events.onLogits)
    events.onLogits(active.queued.id, active.result.choice, row);
  LLM_ASSIGN_OR_RETURN(
      int32_t token,
      sampler.sample(row, active.history, position + 1, active.sampling));
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
    if (active.finished)
      return Status::success();
    ends = active.stops.stopped();
  }
  bool last = ends || static_cast<int64_t>(active.result.tokens.size()) >=
                          active.maxTokens;
  bool right = active.accepts(token);
  active.result.accepted += right;
  if (right && !last)
    return accept(active, position);
  active.accepted += right;
  LLM_RETURN_IF_ERROR(reject(active, position));
  LLM_RETURN_IF_ERROR(contribute(active, token, last));
  if (last)
    finish(active, ends ? "stop" : "length");
  return Status::success();
}

/// The token that was drawn after `position` is computed already: its row
/// follows.
Status Engine::accept(Active &active, int64_t position) {
  ++active.accepted;
  session.keep(active.sequence, position + 2);
  return Status::success();
}

/// Ends what was drafted: the cache keeps the tokens up to `position`.
Status Engine::reject(Active &active, int64_t position) {
  const Speculation &speculation = session.speculation();
  if (speculation.tokens == 0)
    return Status::success();
  if (session.length(active.sequence) > position + 1)
    LLM_RETURN_IF_ERROR(session.rollback(active.sequence, position + 1));
  active.account.settle(static_cast<int32_t>(active.drafts.size()),
                        static_cast<int32_t>(active.accepted),
                        speculation.costs);
  active.drafts.clear();
  active.accepted = 0;
  return Status::success();
}

/// Drafts what may follow a continuation's last token, as far as it may have
/// more.
Status Engine::draft(Active &active) {
  const Speculation &speculation = session.speculation();
  int64_t most = std::min<int64_t>(
      {speculation.tokens, active.sampling.max_draft,
       // A step gives one token more than it verifies.
       active.maxTokens - static_cast<int64_t>(active.result.tokens.size()) - 1,
       std::min<int64_t>(session.context(), session.cacheSlots()) -
           session.length(active.sequence)});
  if (most <= 0)
    return Status::success();
  std::vector<int32_t> drafts =
      lookUp(active.history, speculation.lookup, static_cast<int32_t>(most));
  drafts.resize(static_cast<size_t>(active.account.affordable(
      static_cast<int32_t>(drafts.size()), speculation.costs)));
  if (drafts.empty())
    return Status::success();
  LLM_RETURN_IF_ERROR(session.draft(active.sequence, drafts));
  active.result.drafted += static_cast<int64_t>(drafts.size());
  active.drafts = std::move(drafts);
  return Status::success();
}

/// Queues what a continuation computes in the next iteration: the token that
/// was drawn, and drafts. A sequence that stays keeps all its tokens; one that
/// goes needs no cache entry for the last.
Status Engine::contribute(Active &active, int32_t token, bool last) {
  if (last && !active.request().sequence)
    return Status::success();
  if (last && session.length(active.sequence) >= session.context())
    return Status::success();
  LLM_RETURN_IF_ERROR(session.append(active.sequence, {{token}},
                                     LLM_ROLE_GENERATED,
                                     last ? Logits::None : Logits::Last));
  return last ? Status::success() : draft(active);
}

void Engine::show(Active &active, const std::string &text) {
  if (text.empty())
    return;
  active.result.text += text;
  if (events.onText)
    events.onText(active.queued.id, active.result.choice, text);
}

/// Shows what was held back, which may yet complete a stop string.
Status Engine::flushText(Active &active, std::string_view &reason) {
  if (!active.stream || active.stops.stopped())
    return Status::success();
  LLM_ASSIGN_OR_RETURN(std::string rest, active.stream->flush());
  show(active, active.stops.push(rest));
  if (active.stops.stopped())
    reason = "stop";
  else
    show(active, active.stops.flush());
  return Status::success();
}

/// Hands a result out, and those of continuations that have not branched off
/// yet.
void Engine::finish(Active &active, std::string_view reason, Status error) {
  active.finished = true;
  if (size_t undecided = active.drafts.size() - active.accepted) {
    Status dropped =
        session.rollback(active.sequence, session.length(active.sequence) -
                                              static_cast<int64_t>(undecided));
    if (error.ok())
      error = std::move(dropped);
  }
  if (error.ok())
    error = flushText(active, reason);
  GenerationResult &result = active.result;
  result.finishReason = error.ok() ? reason : "error";
  result.error = error;
  if (active.sequence >= 0) {
    const Scheduler::History &history = session.history(active.sequence);
    result.cachedTokens = history.reused - active.before.reused;
    result.preemptions = history.preemptions - active.before.preemptions;
  }
  if (!result.tokens.empty())
    result.ttftMilliseconds =
        1e3 * seconds(active.firstToken - active.queued.submitted);
  if (result.tokens.size() > 1)
    result.decodeTokensPerSecond =
        static_cast<double>(result.tokens.size() - 1) /
        seconds(active.lastToken - active.firstToken);
  if (events.onFinish)
    events.onFinish(active.queued.id, result);
  int32_t count = std::exchange(active.branches, 0);
  for (int32_t choice = 1; choice <= count; ++choice) {
    Active branch = newActive(active.queued, choice);
    branch.result.cachedTokens = result.cachedTokens;
    finish(branch, reason, error);
  }
}

void Engine::removeFinished() {
  for (auto it = running.begin(); it != running.end();) {
    if (!it->second.finished) {
      ++it;
      continue;
    }
    if (!it->second.request().sequence)
      session.remove(it->first);
    it = running.erase(it);
  }
}

} // namespace llm::runtime
