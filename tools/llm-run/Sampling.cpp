//===- Sampling.cpp - Sampling options of llm-run --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/llm-run/Sampling.h"

#include "runtime/session/Sampler.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

namespace llm::run {

/// Ranges let NaN through: it compares with nothing.
static std::string refuseNaN(const std::string &text) {
  return std::isnan(std::strtod(text.c_str(), nullptr)) ? "NaN is no value"
                                                        : "";
}

/// CLI11 takes -1 and 2^64 for unsigned numbers.
static std::string verifySeed(const std::string &text) {
  uint64_t seed = 0;
  const char *end = text.data() + text.size();
  auto [next, error] = std::from_chars(text.data(), end, seed);
  return error == std::errc() && next == end
             ? ""
             : "'" + text + "' is not a number from 0 to 2^64 - 1";
}

void SamplingOptions::addTo(CLI::App &command) {
  command
      .add_option("--temperature", temperature,
                  "0 takes the most probable token (the default)")
      ->check(CLI::Range(0.0f, 1e6f))
      ->check(refuseNaN)
      ->type_name("T");
  command
      .add_option("--top-k", topK, "choose among the K most probable tokens")
      ->check(CLI::Range(0, 1 << 28))
      ->type_name("K");
  command
      .add_option("--top-p", topP,
                  "choose among the fewest tokens with probability P together")
      ->check(CLI::Range(1e-9f, 1.0f))
      ->check(refuseNaN)
      ->type_name("P");
  command
      .add_option("--min-p", minP,
                  "leave out tokens below P times the largest probability")
      ->check(CLI::Range(0.0f, 1.0f))
      ->check(refuseNaN)
      ->type_name("P");
  command
      .add_option("--repetition-penalty", repetitionPenalty,
                  "divide the logits of tokens that occurred by R")
      ->check(CLI::Range(1e-6f, 1e6f))
      ->check(refuseNaN)
      ->type_name("R");
  command
      .add_option("--seed", seed,
                  "seed of the random numbers (default: random, reported)")
      ->check(verifySeed)
      ->type_name("N");
  command
      .add_option("--max-draft", maxDraft,
                  "verify N proposed tokens in a step at most, where the "
                  "artifact speculates (default: as many as it says; 0: none)")
      ->check(CLI::Range(0, LLM_MAX_DRAFT))
      ->type_name("N");
}

bool SamplingOptions::set(const std::string &key,
                          const nlohmann::ordered_json &value) {
  if (key == "seed" || key == "top_k" || key == "max_draft") {
    if (!value.is_number_unsigned())
      return false;
    auto number = value.get<uint64_t>();
    if (key == "seed") {
      seed = number;
      return true;
    }
    if (number > (key == "top_k" ? INT32_MAX : LLM_MAX_DRAFT))
      return false;
    (key == "top_k" ? topK : maxDraft) = static_cast<int32_t>(number);
    return true;
  }
  if (!value.is_number())
    return false;
  auto number = value.get<float>();
  if (key == "temperature")
    temperature = number;
  else if (key == "top_p")
    topP = number;
  else if (key == "min_p")
    minP = number;
  else if (key == "repetition_penalty")
    repetitionPenalty = number;
  else
    return false;
  return true;
}

llm_sampling SamplingOptions::resolve() const {
  llm_sampling sampling = runtime::greedySampling();
  bool filters = topK || topP || minP;
  sampling.temperature = temperature.value_or(filters ? 1.0f : 0.0f);
  sampling.top_k = topK.value_or(0);
  sampling.top_p = topP.value_or(1);
  sampling.min_p = minP.value_or(0);
  sampling.repetition_penalty = repetitionPenalty.value_or(1);
  sampling.max_draft = maxDraft.value_or(sampling.max_draft);
  if (seed) {
    sampling.seed = *seed;
  } else if (sampling.temperature > 0) {
    // 53 bits, so that JSON readers with doubles keep it.
    std::random_device device;
    sampling.seed = ((uint64_t(device()) << 32) | device()) >> 11;
  }
  return sampling;
}

} // namespace llm::run
