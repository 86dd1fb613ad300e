//===- Generation.h - Requests and their answers -----------------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_GENERATION_H
#define LLM_RUNTIME_SESSION_GENERATION_H

#include "runtime/session/Sampler.h"
#include "runtime/session/Session.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llm::runtime {

struct GenerationRequest {
  /// Token ids, at least one unless `sequence` has tokens already.
  std::vector<int32_t> prompt;
  int64_t maxTokens = 0;
  llm_sampling sampling = greedySampling();
  /// The text ends before the first of these.
  std::vector<std::string> stop;
  /// Generation ends with one of these ids.
  std::vector<int32_t> eosIds;
  /// A sequence to go on from, which stays afterwards, with the generated
  /// tokens; else one is made for the request. `history` are its tokens, which
  /// the repetition penalty sees.
  std::optional<Session::SequenceId> sequence;
  std::vector<int32_t> history;
  /// What messages about it begin with, such as "requests.jsonl:3"; where empty
  /// and there are several, "request N".
  std::string name;
};

struct GenerationResult {
  /// The generated ids, an end-of-sequence id included.
  std::vector<int32_t> tokens;
  /// Their text, cut before a stop string; empty without a tokenizer.
  std::string text;
  int64_t promptTokens = 0;
  /// "stop" (an end-of-sequence id or a stop string), "length", "cancelled".
  std::string_view finishReason;
  /// From the start of generate() to the request's first token.
  double ttftMilliseconds = 0;
  /// Tokens after the first, per second; 0 for fewer than two tokens.
  double decodeTokensPerSecond = 0;
};

struct GenerationCallbacks {
  /// Text of request `index` as it grows; concatenated it is the result's.
  std::function<void(size_t index, std::string_view text)> onText;
  std::function<Status(size_t index, const GenerationResult &result)> onFinish;
  /// Asked between steps; true ends all requests with "cancelled".
  std::function<bool()> cancelled;
};

/// Answers all requests in one ragged batch, admitted together. Results come
/// through onFinish as they are complete. `tokenizer` may be null: then there
/// is no text, and stop strings are InvalidInput. A request does not depend on
/// the others in the batch.
Status generate(Session &session, const Tokenizer *tokenizer,
                std::span<const GenerationRequest> requests,
                const GenerationCallbacks &callbacks);

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_GENERATION_H
