//===- Generation.h - Requests and their answers -----------------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_GENERATION_H
#define LLM_RUNTIME_SESSION_GENERATION_H

#include "runtime/session/Engine.h"

#include <functional>
#include <span>
#include <string_view>

namespace llm::runtime {

struct GenerationCallbacks {
  /// Text of continuation `choice` of request `index` as it grows;
  /// concatenated it is the result's.
  std::function<void(size_t index, int32_t choice, std::string_view text)>
      onText;
  std::function<Status(size_t index, const GenerationResult &result)> onFinish;
  /// Asked between steps; true ends all requests with "cancelled".
  std::function<bool()> cancelled;
};

/// Answers any number of requests by an Engine, and ends with the first one
/// that fails. Results come through onFinish as they are complete. Where a
/// request is refused, none is answered, and the message says which.
Status generate(Session &session, const Tokenizer *tokenizer,
                std::span<const GenerationRequest> requests,
                const GenerationCallbacks &callbacks);

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_GENERATION_H
