//===- Generation.cpp - Answering prompts -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Generation.h"

namespace llm::runtime {

namespace {
Status answerAll(Session &session, const Tokenizer *tokenizer,
                 std::span<const GenerationRequest> requests,
                 const GenerationCallbacks &callbacks) {
  Status failure;
  Engine::Events events;
  if (callbacks.onText)
    events.onText = [&](Engine::RequestId id, int32_t choice,
                        std::string_view text) {
      callbacks.onText(id, choice, text);
    };
  events.onFinish = [&](Engine::RequestId id, const GenerationResult &result) {
    if (!failure)
      return;
    failure = result.error;
    if (failure.ok() && callbacks.onFinish)
      failure = callbacks.onFinish(id, result);
  };
  Engine engine(session, tokenizer, std::move(events));
  for (size_t i = 0; i < requests.size(); ++i) {
    // The caller keeps them.
    std::shared_ptr<const GenerationRequest> request(
        std::shared_ptr<const GenerationRequest>(), &requests[i]);
    auto id = engine.submit(std::move(request));
    if (id)
      continue;
    if (!requests[i].name.empty())
      return id.takeStatus().withContext(requests[i].name);
    return requests.size() == 1
               ? id.takeStatus()
               : id.takeStatus().withContext("request " + std::to_string(i));
  }
  while (!engine.idle() && failure.ok()) {
    if (callbacks.cancelled && callbacks.cancelled()) {
      engine.cancelAll();
      break;
    }
    LLM_RETURN_IF_ERROR(engine.step());
  }
  return failure;
}
} // namespace

Status generate(Session &session, const Tokenizer *tokenizer,
                std::span<const GenerationRequest> requests,
                const GenerationCallbacks &callbacks) {
  return catchExceptions([&]() -> Status {
    return answerAll(session, tokenizer, requests, callbacks);
  });
}

} // namespace llm::runtime
