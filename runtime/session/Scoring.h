//===- Scoring.h - How well a model predicts given tokens ---------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_SCORING_H
#define LLM_RUNTIME_SESSION_SCORING_H

#include "runtime/session/Session.h"

#include <functional>
#include <span>
#include <vector>

namespace llm::runtime {

struct ScoringOptions {
  /// The role that all tokens get.
  llm_role role = LLM_ROLE_PROMPT;
  /// Called, where set, with the logits after each token of each window, the
  /// last one included; windows of a batch interleave.
  std::function<Status(size_t window, int64_t position,
                       std::span<const float> logits)>
      onLogits;
  /// Asked between steps; true ends the scoring early.
  std::function<bool()> cancelled;
};

struct ScoringResult {
  /// Sum over the scored tokens of -log p(token | those before it), in nats.
  double nll = 0;
  /// Every token but the first of its window.
  int64_t scored = 0;
};

/// -log softmax(logits)[token], in double precision.
double negativeLogLikelihood(std::span<const float> logits, int32_t token);

/// Scores disjoint windows of tokens, each a sequence of its own, as many at a
/// time as the session has sequences. A window's sum is added in the order of
/// its tokens, the windows' sums in the order of the windows: the result does
/// not depend on the batch. InvalidInput for a window longer than the context.
Expected<ScoringResult> score(Session &session,
                              std::span<const std::vector<int32_t>> windows,
                              int64_t maxSequences,
                              const ScoringOptions &options);

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_SCORING_H
