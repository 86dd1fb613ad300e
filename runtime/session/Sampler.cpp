//===- Sampler.cpp - Picking a token from a row of logits -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace llm::runtime {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key) {
  constexpr uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
  constexpr uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t(multiplier0) * counter[0];
    uint64_t product1 = uint64_t(multiplier1) * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += weyl0;
    key[1] += weyl1;
  }
  return counter;
}

double uniform(uint64_t seed, uint64_t position, RandomStream stream) {
  std::array<uint32_t, 4> words = philox4x32(
      {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
       static_cast<uint32_t>(stream), 0},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  uint64_t bits = (uint64_t(words[1]) << 32 | words[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

llm_sampling greedySampling() {
  llm_sampling sampling = {};
  sampling.top_p = 1;
  sampling.repetition_penalty = 1;
  sampling.max_draft = LLM_MAX_DRAFT;
  return sampling;
}

Status verifySampling(const llm_sampling &sampling) {
  if (!(sampling.temperature >= 0) || !std::isfinite(sampling.temperature))
    return Status::invalidInput("the temperature must be 0 or more");
  if (sampling.top_k < 0)
    return Status::invalidInput("top-k must be 0 (off) or more");
  if (!(sampling.top_p > 0 && sampling.top_p <= 1))
    return Status::invalidInput("top-p must lie in (0, 1]");
  if (!(sampling.min_p >= 0 && sampling.min_p <= 1))
    return Status::invalidInput("min-p must lie in [0, 1]");
  if (!(sampling.repetition_penalty > 0) ||
      !std::isfinite(sampling.repetition_penalty))
    return Status::invalidInput("the repetition penalty must be positive");
  if (sampling.max_draft < 0)
    return Status::invalidInput("max-draft must be 0 (off) or more");
  return Status::success();
}

namespace {
/// More probable first; of equals the lower id.
bool before(float logitA, int32_t idA, float logitB, int32_t idB) {
  return logitA != logitB ? logitA > logitB : idA < idB;
}
} // namespace

/// The row with the repetition penalty applied.
std::span<const float> Sampler::penalized(std::span<const float> logits,
                                          std::span<const int32_t> history,
                                          float penalty) {
  adjusted.assign(logits.begin(), logits.end());
  seen.assign(logits.size(), false);
  for (int32_t id : history) {
    auto index = static_cast<size_t>(id);
    if (id < 0 || index >= logits.size() || seen[index])
      continue;
    seen[index] = true;
    float &logit = adjusted[index];
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
  return adjusted;
}

namespace {
constexpr float minusInfinity = -std::numeric_limits<float>::infinity();

/// Calls `body(id, logit)` for the finite logits [begin, end).
template <typename Body>
void forFinite(std::span<const float> logits, size_t begin, size_t end,
               Body &&body) {
  for (size_t i = begin; i < end; ++i)
    if (std::isfinite(logits[i]))
      body(static_cast<int32_t>(i), logits[i]);
}

/// Calls `body(id, logit)` for the finite logits of the row; those of blocks
/// whose maximum is below `least` may be left out.
template <typename Body>
void forFiniteFrom(const LogitRow &row, float least, Body &&body) {
  if (row.maxima.empty())
    return forFinite(row.logits, 0, row.logits.size(), body);
  for (size_t i = 0; i < row.maxima.size(); ++i)
    if (row.maxima[i] >= least)
      forFinite(row.logits, i * LLM_LOGITS_BLOCK,
                std::min(row.logits.size(), (i + 1) * LLM_LOGITS_BLOCK), body);
}
} // namespace

/// Fills the candidates: all finite logits, or those from which the `topK`
/// largest come, where that is not 0.
void Sampler::collect(const LogitRow &row, size_t topK) {
  float least = minusInfinity;
  if (topK > 0 && topK < row.maxima.size()) {
    // So many blocks have a logit of at least this.
    ordered.assign(row.maxima.begin(), row.maxima.end());
    auto last = ordered.begin() + static_cast<ptrdiff_t>(topK - 1);
    std::nth_element(ordered.begin(), last, ordered.end(), std::greater<>());
    least = *last;
  }
  candidates.clear();
  forFiniteFrom(row, least, [&](int32_t id, float logit) {
    candidates.push_back({logit, id});
  });
}

Expected<int32_t> Sampler::sample(const LogitRow &given,
                                  std::span<const int32_t> history,
                                  int64_t position,
                                  const llm_sampling &sampling) {
  LogitRow row = given;
  if (sampling.repetition_penalty != 1)
    row = {penalized(given.logits, history, sampling.repetition_penalty)};

  float largest = row.maxima.empty()
                      ? minusInfinity
                      : *std::max_element(row.maxima.begin(), row.maxima.end());
  int32_t best = -1;
  float bestLogit = minusInfinity;
  forFiniteFrom(row, largest, [&](int32_t id, float logit) {
    if (logit > bestLogit) {
      bestLogit = logit;
      best = id;
    }
  });
  largest = bestLogit;
  if (best < 0)
    return Status::invalidInput("the model gave no finite logit: it has "
                                "weights, or makes numbers, that are none");
  if (sampling.temperature == 0)
    return best;

  auto topK = static_cast<size_t>(sampling.top_k);
  collect(row, topK);
  auto order = [](const Candidate &a, const Candidate &b) {
    return before(a.logit, a.id, b.logit, b.id);
  };
  if (topK > 0 && topK < candidates.size()) {
    std::partial_sort(candidates.begin(),
                      candidates.begin() + static_cast<ptrdiff_t>(topK),
                      candidates.end(), order);
    candidates.resize(topK);
  } else if (sampling.top_p < 1 || sampling.min_p > 0) {
    std::sort(candidates.begin(), candidates.end(), order);
  }

  // Probabilities relative to the largest.
  weights.clear();
  double total = 0;
  for (const Candidate &candidate : candidates) {
    weights.push_back(std::exp((double(candidate.logit) - double(largest)) /
                               double(sampling.temperature)));
    total += weights.back();
  }
  if (sampling.top_p < 1)
    weights.resize(keepTopP(double(sampling.top_p), total));
  if (sampling.min_p > 0)
    while (weights.size() > 1 && weights.back() < double(sampling.min_p))
      weights.pop_back();

  total = 0;
  for (double weight : weights)
    total += weight;
  double target = uniform(sampling.seed, static_cast<uint64_t>(position),
                          RandomStream::Sample) *
                  total;
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (target < sum)
      return candidates[i].id;
  }
  // Rounding: the last one with any weight.
  size_t last = weights.size() - 1;
  while (last > 0 && weights[last] == 0)
    --last;
  return candidates[last].id;
}

/// How many of the sorted candidates are the fewest that reach `topP`.
size_t Sampler::keepTopP(double topP, double total) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= topP * total)
      return i + 1;
  }
  return weights.size();
}

} // namespace llm::runtime
