//===- Acceptance.h - Whether a draft stays ---------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A draft x was drawn from a distribution q, and the text shall have the
// distribution p. It stays with probability min(1, p(x) / q(x)); else another
// token is drawn from the normalised positive part of p - q. Then token t comes
// with probability min(p(t), q(t)) + max(0, p(t) - q(t)) = p(t).
//
// Source: Leviathan, Kalman, Matias, "Fast Inference from Transformers via
// Speculative Decoding" (ICML 2023); Chen et al., "Accelerating Large Language
// Model Decoding with Speculative Sampling" (2023).
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_ACCEPTANCE_H
#define LLM_RUNTIME_SESSION_ACCEPTANCE_H

#include <cstdint>
#include <span>
#include <vector>

namespace llm::runtime {

struct Verdict {
  bool accepted;
  /// The draft where it was accepted, else what takes its place.
  int32_t token;
};

/// The first index at which the running sum of `weights` (at least one, none
/// negative, not all 0) exceeds `draw` in [0, 1) times their total. One of a
/// weight of 0 never comes.
int32_t pick(std::span<const double> weights, double draw);

/// Writes the normalised positive part of p - q, [vocabulary] each; p itself
/// where no part is positive, which rounding alone can bring about.
void residual(std::span<const double> p, std::span<const double> q,
              std::vector<double> &out);

/// The rule, for probabilities p and q [vocabulary] and `draft` with q > 0, by
/// two independent uniform numbers in [0, 1).
Verdict verdictOn(int32_t draft, std::span<const double> p,
                  std::span<const double> q, double acceptDraw,
                  double residualDraw);

/// The rule where q is certain of the draft, by a token that was drawn from p:
/// the draft is it with probability p(draft) = min(1, p / q), and where it is
/// not, the token has the distribution p without the draft, which is the
/// normalised positive part of p - q. So a text with such drafts is the text
/// without, token by token, if `drawn` is what would have been drawn.
inline Verdict verdictOnCertain(int32_t draft, int32_t drawn) {
  return {draft == drawn, drawn};
}

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_ACCEPTANCE_H
