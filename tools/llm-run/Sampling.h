//===- Sampling.h - Sampling options of llm-run --------------------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TOOLS_LLM_RUN_SAMPLING_H
#define LLM_TOOLS_LLM_RUN_SAMPLING_H

#include "llm/ABI/step.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace llm::run {

/// What was asked for; greedy otherwise.
struct SamplingOptions {
  std::optional<float> temperature, topP, minP, repetitionPenalty;
  std::optional<int32_t> topK, maxDraft;
  std::optional<uint64_t> seed;

  void addTo(CLI::App &command);
  /// Takes a member of a request line. False for an unknown key or a value of
  /// the wrong type.
  bool set(const std::string &key, const nlohmann::ordered_json &value);
  /// A filter without a temperature samples at temperature 1. Without a seed, a
  /// random one where it matters.
  llm_sampling resolve() const;
};

} // namespace llm::run

#endif // LLM_TOOLS_LLM_RUN_SAMPLING_H
