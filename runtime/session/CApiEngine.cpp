//===- CApiEngine.cpp - The C interface of engines ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/CApi.h"

using namespace llm::runtime;
using namespace llm::runtime::capi;

namespace llm::runtime::capi {

Status needFree(const llm_session *session) {
  if (!session->state->hasEngine)
    return Status::success();
  return Status::invalidInput("the session has an engine");
}

GenerationRequest convert(const llm_request &request,
                          const llm_artifact &artifact) {
  GenerationRequest result;
  result.prompt.assign(request.prompt, request.prompt + request.prompt_count);
  result.maxTokens = request.max_tokens;
  result.sampling = request.sampling;
  for (size_t i = 0; i < request.stop_count; ++i)
    result.stop.emplace_back(request.stop[i]);
  if (request.eos)
    result.eosIds.assign(request.eos, request.eos + request.eos_count);
  else
    result.eosIds = artifact.eosIds;
  result.n = request.n;
  return result;
}

static llm_finish_reason finishReason(std::string_view reason) {
  return reason == "stop"     ? LLM_FINISH_STOP
         : reason == "length" ? LLM_FINISH_LENGTH
         : reason == "error"  ? LLM_FINISH_ERROR
                              : LLM_FINISH_CANCELLED;
}

llm_result convert(const GenerationResult &answer) {
  llm_result result = {};
  result.tokens = answer.tokens.data();
  result.token_count = answer.tokens.size();
  result.text = answer.text.c_str();
  result.text_size = answer.text.size();
  result.finish_reason = finishReason(answer.finishReason);
  result.ttft_ms = answer.ttftMilliseconds;
  result.decode_tokens_per_s = answer.decodeTokensPerSecond;
  result.choice = answer.choice;
  result.prompt_tokens = answer.promptTokens;
  result.cached_tokens = answer.cachedTokens;
  result.preemptions = answer.preemptions;
  result.seed = answer.seed;
  result.error = answer.error.message().c_str();
  result.drafted = answer.drafted;
  result.accepted = answer.accepted;
  return result;
}

} // namespace llm::runtime::capi

llm_code llm_engine_create(llm_session *session,
                           const llm_engine_callbacks *callbacks,
                           llm_engine **engine) {
  return guarded([&]() -> Status {
    LLM_RETURN_IF_ERROR(needFree(session));
    llm_engine_callbacks hooks = {};
    if (callbacks)
      hooks = *callbacks;
    Engine::Events events;
    if (hooks.on_text)
      events.onText = [hooks](uint64_t id, int32_t choice,
                              std::string_view text) {
        hooks.on_text(hooks.context, id, choice, text.data(), text.size());
      };
    if (hooks.on_finish)
      events.onFinish = [hooks](uint64_t id, const GenerationResult &answer) {
        llm_result result = convert(answer);
        hooks.on_finish(hooks.context, id, &result);
      };
    auto result = std::make_unique<llm_engine>();
    result->state = session->state;
    result->engine = std::make_unique<Engine>(
        *session->state->session, session->state->source.tokenizer.get(),
        std::move(events));
    session->state->hasEngine = true;
    *engine = result.release();
    return Status::success();
  });
}

void llm_engine_destroy(llm_engine *engine) {
  if (!engine)
    return;
  engine->engine.reset();
  engine->state->hasEngine = false;
  delete engine;
}

llm_code llm_engine_submit(llm_engine *engine, const llm_request *request,
                           uint64_t *id) {
  return guarded([&]() -> Status {
    LLM_RETURN_IF_ERROR(checkSize(request));
    auto copy = std::make_shared<GenerationRequest>(
        convert(*request, engine->state->source));
    copy->cutToFit = false;
    LLM_ASSIGN_OR_RETURN(*id, engine->engine->submit(std::move(copy)));
    return Status::success();
  });
}

llm_code llm_engine_cancel(llm_engine *engine, uint64_t id) {
  return guarded([&]() -> Status {
    if (engine->engine->cancel(id))
      return Status::success();
    return Status::invalidInput("no request " + std::to_string(id) +
                                " is queued or running");
  });
}

llm_code llm_engine_step(llm_engine *engine, size_t *unfinished) {
  return guarded([&]() -> Status {
    LLM_RETURN_IF_ERROR(engine->engine->step());
    if (unfinished)
      *unfinished = engine->engine->numQueued() + engine->engine->numRunning();
    return Status::success();
  });
}
