//===- Scoring.cpp - How well a model predicts given tokens -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Scoring.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace llm::runtime {

double negativeLogLikelihood(std::span<const float> logits, int32_t token) {
  double largest = -std::numeric_limits<double>::infinity();
  for (float logit : logits)
    largest = std::max(largest, double(logit));
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - largest);
  return largest + std::log(sum) - double(logits[static_cast<size_t>(token)]);
}

namespace {

class Scorer {
public:
  Scorer(Session &session, std::span<const std::vector<int32_t>> windows,
         const ScoringOptions &options)
      : session(session), windows(windows), options(options),
        sums(windows.size(), 0) {}
  ~Scorer() {
    for (const auto &[id, window] : running)
      session.remove(id);
  }

  Status start(size_t window) {
    std::span<const int32_t> tokens = windows[window];
    // Nobody asks what follows the last token, unless for its logits.
    if (!options.onLogits && !tokens.empty())
      tokens = tokens.first(tokens.size() - 1);
    if (tokens.empty())
      return Status::success();
    LLM_ASSIGN_OR_RETURN(Session::SequenceId id, session.add());
    running.emplace(id, window);
    return session.append(id, tokens, options.role, Logits::All);
  }

  Status step() {
    std::vector<Session::SequenceId> done;
    Status status = session.step([&](Session::SequenceId id, int64_t position,
                                     const LogitRow &row) -> Status {
      size_t window = running.at(id);
      const std::vector<int32_t> &tokens = windows[window];
      auto next = static_cast<size_t>(position) + 1;
      if (next < tokens.size()) {
        sums[window] += negativeLogLikelihood(row.logits, tokens[next]);
        ++scored;
      }
      if (position + 1 == session.length(id))
        done.push_back(id);
      if (options.onLogits)
        return options.onLogits(window, position, row.logits);
      return Status::success();
    });
    for (Session::SequenceId id : done) {
      session.remove(id);
      running.erase(id);
    }
    return status;
  }

  int64_t active() const { return static_cast<int64_t>(running.size()); }

  ScoringResult result() const {
    ScoringResult result;
    for (double sum : sums)
      result.nll += sum;
    result.scored = scored;
    return result;
  }

private:
  Session &session;
  std::span<const std::vector<int32_t>> windows;
  const ScoringOptions &options;
  std::vector<double> sums;
  int64_t scored = 0;
  std::map<Session::SequenceId, size_t> running;
};

} // namespace

Expected<ScoringResult> score(Session &session,
                              std::span<const std::vector<int32_t>> windows,
                              int64_t maxSequences,
                              const ScoringOptions &options) {
  return catchExceptions([&]() -> Expected<ScoringResult> {
    // The last token of a window is looked up in the logits, never appended.
    for (const std::vector<int32_t> &window : windows)
      LLM_RETURN_IF_ERROR(session.verifyTokens(window));
    Scorer scorer(session, windows, options);
    size_t next = 0;
    while (next < windows.size() || scorer.active() > 0) {
      if (options.cancelled && options.cancelled())
        break;
      while (next < windows.size() && scorer.active() < maxSequences) {
        LLM_RETURN_IF_ERROR(scorer.start(next));
        ++next;
      }
      LLM_RETURN_IF_ERROR(scorer.step());
    }
    return scorer.result();
  });
}

} // namespace llm::runtime
