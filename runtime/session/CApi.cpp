//===- CApi.cpp - The C interface --------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/CApi.h"

#include "runtime/artifact/ElementTypes.h"
#include "runtime/session/Generation.h"
#include "runtime/session/HostFunction.h"
#include "runtime/session/Inspect.h"
#include "runtime/session/Scoring.h"
#include "runtime/tokenizer/ChatTemplate.h"
#include "runtime/tokenizer/TokenizerSource.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace llm::runtime;
using namespace llm::runtime::capi;
namespace pb = llm::artifact;

struct llm_function {
  std::unique_ptr<HostFunction> function;
};

namespace {

thread_local std::string lastError;

Status copyOut(const void *data, size_t bytes, void **out) {
  void *memory = std::malloc(std::max<size_t>(bytes, 1));
  if (!memory)
    return Status::resource("out of memory");
  if (bytes)
    std::memcpy(memory, data, bytes);
  *out = memory;
  return Status::success();
}

Status copyIds(const std::vector<int32_t> &ids, int32_t **out, size_t *count) {
  void *memory;
  LLM_RETURN_IF_ERROR(
      copyOut(ids.data(), ids.size() * sizeof(int32_t), &memory));
  *out = static_cast<int32_t *>(memory);
  *count = ids.size();
  return Status::success();
}

Status copyText(const std::string &text, char **out) {
  void *memory;
  LLM_RETURN_IF_ERROR(copyOut(text.c_str(), text.size() + 1, &memory));
  *out = static_cast<char *>(memory);
  return Status::success();
}

Status needTokenizer(const llm_artifact *artifact) {
  if (artifact->tokenizer)
    return Status::success();
  return Status::invalidInput("the artifact has no tokenizer");
}

Status open(const char *path, llm_artifact **out) {
  auto result = std::make_unique<llm_artifact>();
  LLM_ASSIGN_OR_RETURN(result->artifact, Artifact::open(path));
  const pb::Manifest &manifest = result->artifact->manifest();
  result->eosIds.assign(manifest.generation().eos_ids().begin(),
                        manifest.generation().eos_ids().end());
  if (manifest.has_tokenizer() && !manifest.tokenizer().kind().empty()) {
    std::span<const std::byte> bytes =
        result->artifact->payload(manifest.tokenizer().payload());
    auto loaded =
        loadSealedTokenizer(
            {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()})
            .withContext(std::string(path) + ": tokenizer");
    if (!loaded)
      return loaded.takeStatus();
    result->tokenizer = *std::move(loaded);
    for (int32_t id : result->tokenizer->eosIds())
      if (std::find(result->eosIds.begin(), result->eosIds.end(), id) ==
          result->eosIds.end())
        result->eosIds.push_back(id);
  }
  *out = result.release();
  return Status::success();
}

Status generateAll(llm_session *session, const llm_request *requests,
                   size_t count, const llm_generate_callbacks *callbacks) {
  LLM_RETURN_IF_ERROR(needFree(session));
  llm_session::State &state = *session->state;
  std::vector<GenerationRequest> list;
  for (size_t i = 0; i < count; ++i) {
    LLM_RETURN_IF_ERROR(checkSize(&requests[i]));
    if (requests[i].n != 1)
      return Status::invalidInput("llm_generate gives one answer, n is " +
                                  std::to_string(requests[i].n) +
                                  ": use an engine");
    list.push_back(convert(requests[i], state.source));
  }
  bool cancelled = false;
  GenerationCallbacks hooks;
  hooks.cancelled = [&] { return cancelled; };
  if (callbacks && callbacks->on_text)
    hooks.onText = [&](size_t index, int32_t, std::string_view text) {
      cancelled |= callbacks->on_text(callbacks->context, index, text.data(),
                                      text.size()) != 0;
    };
  if (callbacks && callbacks->on_finish)
    hooks.onFinish = [&](size_t index,
                         const GenerationResult &answer) -> Status {
      llm_result result = convert(answer);
      cancelled |=
          callbacks->on_finish(callbacks->context, index, &result) != 0;
      return Status::success();
    };
  return generate(*state.session, state.source.tokenizer.get(), list, hooks);
}

Expected<HostTensor> convert(const llm_tensor &tensor) {
  HostTensor result;
  result.type = static_cast<pb::ElementType>(tensor.element_type);
  if (tensor.rank < 0 || tensor.rank > 32)
    return Status::invalidInput("a rank of " + std::to_string(tensor.rank));
  result.dims.assign(tensor.dims, tensor.dims + tensor.rank);
  LLM_ASSIGN_OR_RETURN(int64_t count, elementCount(result.dims));
  std::optional<uint64_t> bytes = elementBytes(result.type, count);
  if (!bytes)
    return Status::invalidInput(
        "an unknown element type, or too many elements");
  const auto *data = static_cast<const std::byte *>(tensor.data);
  result.data.assign(data, data + *bytes);
  return result;
}

Status runFunction(llm_function *function, const llm_tensor *inputs,
                   size_t numInputs, llm_tensor *outputs, size_t numOutputs) {
  if (numOutputs != llm_function_num_outputs(function))
    return Status::invalidInput(
        "the function has " +
        std::to_string(llm_function_num_outputs(function)) + " outputs");
  std::vector<HostTensor> arguments;
  for (size_t i = 0; i < numInputs; ++i) {
    auto converted =
        convert(inputs[i]).withContext("input " + std::to_string(i));
    if (!converted)
      return converted.takeStatus();
    arguments.push_back(*std::move(converted));
  }
  LLM_ASSIGN_OR_RETURN(std::vector<HostTensor> results,
                       function->function->run(arguments));
  std::vector<llm_tensor> filled;
  Status status;
  for (const HostTensor &result : results) {
    llm_tensor tensor = {};
    tensor.element_type = static_cast<int32_t>(result.type);
    tensor.rank = static_cast<int64_t>(result.dims.size());
    void *dims = nullptr;
    status = copyOut(result.data.data(), result.data.size(), &tensor.data);
    if (status.ok())
      status = copyOut(result.dims.data(), result.dims.size() * sizeof(int64_t),
                       &dims);
    tensor.dims = static_cast<int64_t *>(dims);
    filled.push_back(tensor);
    if (!status)
      break;
  }
  if (!status) {
    for (llm_tensor &tensor : filled) {
      std::free(tensor.data);
      std::free(tensor.dims);
    }
    return status;
  }
  std::copy(filled.begin(), filled.end(), outputs);
  return Status::success();
}

} // namespace

namespace llm::runtime::capi {

llm_code report(const Status &status) {
  if (status.ok())
    return LLM_OK;
  lastError = status.message();
  switch (status.code()) {
  case StatusCode::InvalidInput:
    return LLM_INVALID_INPUT;
  case StatusCode::Unsupported:
    return LLM_UNSUPPORTED;
  case StatusCode::Resource:
    return LLM_RESOURCE;
  default:
    return LLM_INTERNAL;
  }
}

} // namespace llm::runtime::capi

const char *llm_version(void) { return LLM_VERSION; }
const char *llm_last_error(void) { return lastError.c_str(); }
void llm_free(void *memory) { std::free(memory); }

llm_code llm_artifact_open(const char *path, llm_artifact **artifact) {
  return guarded([&] { return open(path, artifact); });
}
void llm_artifact_close(llm_artifact *artifact) { delete artifact; }

void llm_artifact_get_info(const llm_artifact *artifact,
                           llm_artifact_info *info) {
  const pb::Manifest &manifest = artifact->artifact->manifest();
  *info = {};
  info->is_decoder = manifest.decoder();
  info->has_tokenizer = artifact->tokenizer != nullptr;
  info->vocabulary_size = static_cast<int32_t>(manifest.vocabulary_size());
  info->max_context = static_cast<int32_t>(manifest.generation().max_context());
  info->bos_id =
      manifest.has_generation() ? manifest.generation().bos_id() : -1;
  info->num_functions = manifest.host_functions_size();
  info->weights_bytes = manifest.certificate().weights_bytes();
  info->kv_bytes_per_token = manifest.certificate().kv_bytes_per_slot();
}

llm_code llm_artifact_inspect(const llm_artifact *artifact, char **json) {
  return guarded([&]() -> Status {
    LLM_ASSIGN_OR_RETURN(std::string text, inspectJson(*artifact->artifact));
    return copyText(text, json);
  });
}

void llm_artifact_eos_ids(const llm_artifact *artifact, const int32_t **ids,
                          size_t *count) {
  *ids = artifact->eosIds.data();
  *count = artifact->eosIds.size();
}

llm_code llm_tokenize(const llm_artifact *artifact, const char *text,
                      size_t size, int add_special, int parse_special,
                      int32_t **ids, size_t *count) {
  return guarded([&]() -> Status {
    LLM_RETURN_IF_ERROR(needTokenizer(artifact));
    LLM_ASSIGN_OR_RETURN(
        std::vector<int32_t> result,
        artifact->tokenizer->encode(std::string_view(text, size),
                                    {.addSpecial = add_special != 0,
                                     .parseSpecial = parse_special != 0}));
    return copyIds(result, ids, count);
  });
}

llm_code llm_detokenize(const llm_artifact *artifact, const int32_t *ids,
                        size_t count, int skip_special, char **text) {
  return guarded([&]() -> Status {
    LLM_RETURN_IF_ERROR(needTokenizer(artifact));
    LLM_ASSIGN_OR_RETURN(std::string result,
                         artifact->tokenizer->decode(
                             {ids, count}, {.skipSpecial = skip_special != 0}));
    return copyText(result, text);
  });
}

llm_code llm_apply_chat_template(const llm_artifact *artifact,
                                 const llm_message *messages, size_t count,
                                 int32_t **ids, size_t *num_ids) {
  return guarded([&]() -> Status {
    LLM_RETURN_IF_ERROR(needTokenizer(artifact));
    LLM_ASSIGN_OR_RETURN(ChatTemplate chat,
                         ChatTemplate::of(*artifact->tokenizer));
    std::vector<ChatMessage> list;
    for (size_t i = 0; i < count; ++i)
      list.push_back({messages[i].role, messages[i].content});
    LLM_ASSIGN_OR_RETURN(std::vector<int32_t> result,
                         chat.encode(*artifact->tokenizer, list, true));
    return copyIds(result, ids, num_ids);
  });
}

void llm_session_options_init(llm_session_options *options) {
  *options = {};
  options->struct_size = sizeof(*options);
  options->max_sequences = 1;
  options->prefix_cache = 1;
}

llm_code llm_session_create(llm_artifact *artifact,
                            const llm_session_options *options,
                            llm_session **session) {
  return guarded([&]() -> Status {
    SessionOptions converted;
    converted.prefixCache = true;
    if (options) {
      LLM_RETURN_IF_ERROR(checkSize(options));
      if (options->threads < 0 || options->context < 0 || options->chunk < 0 ||
          options->max_sequences < 1 || options->max_logit_rows < 0)
        return Status::invalidInput("a session option is negative");
      converted.device = options->device ? options->device : "";
      converted.threads = options->threads;
      converted.context = options->context;
      converted.chunk = options->chunk;
      converted.maxSequences = options->max_sequences;
      converted.maxLogitRows = options->max_logit_rows;
      converted.memory = options->memory;
      converted.fitCache = options->fit_cache != 0;
      converted.prefixCache = options->prefix_cache != 0;
    }
    auto result = std::make_unique<llm_session>();
    result->state = std::make_shared<llm_session::State>();
    LLM_ASSIGN_OR_RETURN(result->state->session,
                         Session::create(artifact->artifact, converted));
    result->state->source = *artifact;
    *session = result.release();
    return Status::success();
  });
}
void llm_session_destroy(llm_session *session) { delete session; }

uint64_t llm_session_memory(const llm_session *session) {
  return session->state->session->memory().total();
}
int64_t llm_session_cache_tokens(const llm_session *session) {
  return session->state->session->cacheSlots();
}

void llm_request_init(llm_request *request) {
  *request = {};
  request->struct_size = sizeof(*request);
  request->max_tokens = 256;
  request->sampling = greedySampling();
  request->n = 1;
}

llm_code llm_generate(llm_session *session, const llm_request *requests,
                      size_t count, const llm_generate_callbacks *callbacks) {
  return guarded(
      [&] { return generateAll(session, requests, count, callbacks); });
}

llm_code llm_score(llm_session *session, const int32_t *tokens, size_t count,
                   enum llm_role role,
                   int (*on_logits)(void *context, size_t position,
                                    const float *logits, size_t vocabulary),
                   void *context, double *nll) {
  return guarded([&]() -> Status {
    LLM_RETURN_IF_ERROR(needFree(session));
    ScoringOptions options;
    options.role = role;
    if (on_logits)
      options.onLogits = [&](size_t, int64_t position,
                             std::span<const float> logits) -> Status {
        if (on_logits(context, static_cast<size_t>(position), logits.data(),
                      logits.size()) != 0)
          return Status::invalidInput("the callback ended the scoring");
        return Status::success();
      };
    std::vector<int32_t> window(tokens, tokens + count);
    LLM_ASSIGN_OR_RETURN(ScoringResult result, score(*session->state->session,
                                                     {&window, 1}, 1, options));
    *nll = result.nll;
    return Status::success();
  });
}

/// Runs one sequence and hands the rows beside its steps to the callbacks.
static Status probe(Session &session, std::span<const int32_t> tokens,
                    llm_role role, const llm_probe_callbacks &callbacks) {
  // All side rows of a step are of its tokens, which are consecutive.
  size_t first = 0, count = 0;
  auto describe = [&](const SideBuffer &buffer, int64_t rows) {
    count = static_cast<size_t>(rows);
    return llm_rows{buffer.name.c_str(), first, static_cast<size_t>(rows),
                    static_cast<size_t>(buffer.width)};
  };
  auto ended = [](int code) {
    return code == 0 ? Status::success()
                     : Status::invalidInput("the callback ended the probe");
  };
  SideCallbacks sides;
  if (callbacks.on_supply)
    sides.supply = [&](const SideBuffer &buffer, int64_t rows, float *data) {
      llm_rows description = describe(buffer, rows);
      return ended(callbacks.on_supply(callbacks.context, &description, data));
    };
  if (callbacks.on_observe)
    sides.observe = [&](const SideBuffer &buffer, int64_t rows,
                        const float *data) {
      llm_rows description = describe(buffer, rows);
      return ended(callbacks.on_observe(callbacks.context, &description, data));
    };
  session.setSideCallbacks(std::move(sides));
  LLM_ASSIGN_OR_RETURN(Session::SequenceId id, session.add());
  Status status = session.append(
      id, tokens, role,
      session.sideRows().needsLogitRows() ? Logits::All : Logits::None);
  while (status && !session.idle()) {
    status = session.step(
        [](auto, auto, const auto &) { return Status::success(); });
    first += count;
  }
  session.remove(id);
  session.setSideCallbacks({});
  return status;
}

llm_code llm_probe(llm_session *session, const int32_t *tokens, size_t count,
                   enum llm_role role, const llm_probe_callbacks *callbacks) {
  return guarded([&]() -> Status {
    LLM_RETURN_IF_ERROR(needFree(session));
    if (count == 0)
      return Status::success();
    return probe(*session->state->session, {tokens, count}, role,
                 callbacks ? *callbacks : llm_probe_callbacks{});
  });
}

llm_code llm_function_load(llm_artifact *artifact, int32_t index,
                           uint64_t memory, llm_function **function) {
  return guarded([&]() -> Status {
    int count = artifact->artifact->manifest().host_functions_size();
    if (index < 0 || index >= count)
      return Status::invalidInput("function " + std::to_string(index) + " of " +
                                  std::to_string(count));
    auto result = std::make_unique<llm_function>();
    LLM_ASSIGN_OR_RETURN(result->function,
                         HostFunction::load(artifact->artifact, index, memory));
    *function = result.release();
    return Status::success();
  });
}
void llm_function_destroy(llm_function *function) { delete function; }

size_t llm_function_num_inputs(const llm_function *function) {
  return static_cast<size_t>(function->function->description().inputs_size());
}
size_t llm_function_num_outputs(const llm_function *function) {
  return static_cast<size_t>(function->function->description().outputs_size());
}
const char *llm_function_input_name(const llm_function *function,
                                    size_t index) {
  const auto &list = function->function->description().inputs();
  return index < static_cast<size_t>(list.size())
             ? list[static_cast<int>(index)].name().c_str()
             : nullptr;
}
const char *llm_function_output_name(const llm_function *function,
                                     size_t index) {
  const auto &list = function->function->description().outputs();
  return index < static_cast<size_t>(list.size())
             ? list[static_cast<int>(index)].name().c_str()
             : nullptr;
}

llm_code llm_function_run(llm_function *function,
                          const struct llm_tensor *inputs, size_t num_inputs,
                          struct llm_tensor *outputs, size_t num_outputs) {
  return guarded([&] {
    return runFunction(function, inputs, num_inputs, outputs, num_outputs);
  });
}
