//===- Sampler.h - Picking a token from a row of logits -----------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_SAMPLER_H
#define LLM_RUNTIME_SESSION_SAMPLER_H

#include "llm/ABI/step.h"
#include "runtime/core/Status.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace llm::runtime {

/// Philox 4x32 with 10 rounds: four random words that depend on the counter and
/// the key only. Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers:
/// As Easy as 1, 2, 3" (SC 2011).
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key);

/// The streams of random numbers of a request.
enum class RandomStream : uint32_t { Sample = 0 };

/// A number in [0, 1) with 53 random bits, for the token at `position` of the
/// request with `seed`: independent of the batch and of earlier draws.
double uniform(uint64_t seed, uint64_t position, RandomStream stream);

/// Sampling without effect: greedy, everything else off, and with as many
/// drafts as there are.
llm_sampling greedySampling();

/// InvalidInput for parameters without meaning (a negative temperature, top_p
/// outside (0, 1], ...).
Status verifySampling(const llm_sampling &sampling);

/// A row of logits, [vocabulary]. `maxima`, where a program leaves them, has
/// the largest finite logit of each block of LLM_LOGITS_BLOCK.
struct LogitRow {
  std::span<const float> logits;
  std::span<const float> maxima = {};
};

/// Picks tokens. Holds scratch memory only.
class Sampler {
public:
  /// The token at `position` of a sequence whose earlier tokens are `history`.
  /// In this order: repetition penalty (a positive logit of a token in the
  /// history is divided by it, another multiplied), temperature, top-k (the k
  /// largest, of equals the lower ids), top-p (the fewest of the most probable
  /// whose probabilities reach p), min-p (those with at least min_p times the
  /// largest probability). Temperature 0 picks the largest logit, of equals the
  /// lowest id. A logit that is not a number counts as -infinity; Internal
  /// when no logit is a finite number.
  Expected<int32_t> sample(const LogitRow &row,
                           std::span<const int32_t> history, int64_t position,
                           const llm_sampling &sampling);

private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  std::span<const float> penalized(std::span<const float> logits,
                                   std::span<const int32_t> history,
                                   float penalty);
  void collect(const LogitRow &row, size_t topK);
  size_t keepTopP(double topP, double total);

  std::vector<float> adjusted, ordered;
  std::vector<Candidate> candidates;
  std::vector<double> weights;
  std::vector<bool> seen;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_SAMPLER_H
