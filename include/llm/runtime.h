//===- runtime.h - Running compiled models from C -----------------*- C -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime as a C library: link libllm_runtime, include this header.
//
//   llm_artifact *artifact;
//   if (llm_artifact_open("model.llmx", &artifact) != LLM_OK)
//     die(llm_last_error());
//
// Errors. A function that can fail returns an llm_code. On failure
// llm_last_error() has the message for the user, for the calling thread, until
// its next failure; outputs are left as they were.
//
// Ownership. What llm_..._open and llm_..._create give is ended by the function
// named for it, which accepts null. Memory that a function returns through a
// pointer (ids, texts) belongs to the caller and is freed with llm_free.
// Strings are UTF-8 and end with a zero; sizes do not count it.
//
// Threads. An artifact may be used by several threads at once. A session, and
// what is called with it, belongs to one thread at a time; sessions of one
// artifact are independent. Callbacks run on the thread of the call, and must
// not call functions of the same session.
//
// Units. Sizes are bytes, times milliseconds, unless a name says otherwise.
//
// Structs that callers fill begin with `struct_size`; the ..._init function
// sets it with the defaults. Later versions add fields at the end.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_H
#define LLM_RUNTIME_H

#include "llm/ABI/kernel.h"
#include "llm/ABI/step.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LLM_API __attribute__((visibility("default")))

typedef enum llm_code {
  LLM_OK = 0,
  LLM_INVALID_INPUT = 1, ///< the file, the request or the arguments are wrong
  LLM_UNSUPPORTED = 2,   ///< well-formed, but not done by this build or machine
  LLM_RESOURCE = 3,      ///< memory, disk, device or a limit
  LLM_INTERNAL = 4       ///< a fault of this library
} llm_code;

/// The version of this library, "0.1.0".
LLM_API const char *llm_version(void);

/// The message of the calling thread's last failure; "" if there was none.
LLM_API const char *llm_last_error(void);

/// Frees what a function returned; null is ignored.
LLM_API void llm_free(void *memory);

//===----------------------------------------------------------------------===//
// Artifacts
//===----------------------------------------------------------------------===//

typedef struct llm_artifact llm_artifact;

/// Maps a .llmx file and verifies all of it. The file must stay as it is while
/// the artifact, or a session made from it, is open.
LLM_API llm_code llm_artifact_open(const char *path, llm_artifact **artifact);
LLM_API void llm_artifact_close(llm_artifact *artifact);

typedef struct llm_artifact_info {
  int32_t is_decoder; ///< can generate; else llm_function_run runs it
  int32_t has_tokenizer;
  int32_t vocabulary_size;
  int32_t max_context;   ///< tokens
  int32_t bos_id;        ///< -1: none
  int32_t num_functions; ///< of the generic path
  uint64_t weights_bytes;
  uint64_t kv_bytes_per_token;
} llm_artifact_info;

LLM_API void llm_artifact_get_info(const llm_artifact *artifact,
                                   llm_artifact_info *info);

/// All that `llm-run inspect --json` prints.
LLM_API llm_code llm_artifact_inspect(const llm_artifact *artifact,
                                      char **json);

/// Ids that end generation; `ids` belongs to the artifact.
LLM_API void llm_artifact_eos_ids(const llm_artifact *artifact,
                                  const int32_t **ids, size_t *count);

/// The ids of `text` (`size` bytes). `add_special`: with the tokens that the
/// tokenizer puts around a text, such as BOS. `parse_special`: special tokens
/// that the text spells become their ids; 0 for text from outside.
LLM_API llm_code llm_tokenize(const llm_artifact *artifact, const char *text,
                              size_t size, int add_special, int parse_special,
                              int32_t **ids, size_t *count);

/// The text of ids; special tokens give none if `skip_special`.
LLM_API llm_code llm_detokenize(const llm_artifact *artifact,
                                const int32_t *ids, size_t count,
                                int skip_special, char **text);

typedef struct llm_message {
  const char *role; ///< "system", "user", "assistant"
  const char *content;
} llm_message;

/// The ids of a conversation in the model's chat template, up to where the
/// answer starts. Special tokens that contents spell stay text.
LLM_API llm_code llm_apply_chat_template(const llm_artifact *artifact,
                                         const llm_message *messages,
                                         size_t count, int32_t **ids,
                                         size_t *num_ids);

//===----------------------------------------------------------------------===//
// Sessions
//===----------------------------------------------------------------------===//

typedef struct llm_session llm_session;

typedef struct llm_session_options {
  size_t struct_size;
  const char *device;     ///< "cpu", ...; null: the best that the artifact has
  int32_t threads;        ///< 0: what affinity and control group allow
  int32_t context;        ///< tokens of a sequence; 0: the model's maximum
  int32_t chunk;          ///< tokens of a step at most; 0: 512
  int32_t max_sequences;  ///< sequences in a step; others wait. Default 1
  int32_t max_logit_rows; ///< rows of logits in a step; 0: max_sequences.
                          ///< llm_score is faster with as many as `chunk`
  uint64_t memory;        ///< bytes; 0: what the control group grants
  int32_t fit_cache;      ///< not 0: where memory does not suffice for
                          ///< max_sequences of `context` tokens, the cache gets
                          ///< what there is; sequences wait for each other then
  int32_t prefix_cache;   ///< not 0 (the default): a prompt that begins as an
                          ///< earlier one did takes what that one computed
} llm_session_options;

LLM_API void llm_session_options_init(llm_session_options *options);

/// Loads the code, and reserves the cache for max_sequences of `context`
/// tokens. LLM_RESOURCE, with what is needed, if that exceeds the memory.
LLM_API llm_code llm_session_create(llm_artifact *artifact,
                                    const llm_session_options *options,
                                    llm_session **session);
LLM_API void llm_session_destroy(llm_session *session);

/// The peak of memory that the session was admitted with.
LLM_API uint64_t llm_session_memory(const llm_session *session);

/// Tokens that the cache holds, over all sequences.
LLM_API int64_t llm_session_cache_tokens(const llm_session *session);

typedef struct llm_request {
  size_t struct_size;
  const int32_t *prompt; ///< [prompt_count] ids, at least one
  size_t prompt_count;
  int64_t max_tokens;
  struct llm_sampling sampling; ///< llm_request_init makes it greedy
  const char *const *stop; ///< [stop_count] the text ends before any of these
  size_t stop_count;
  const int32_t *eos; ///< [eos_count] ids that end it; null: the artifact's
  size_t eos_count;
  int32_t n; ///< continuations of the prompt, which is computed once; number k
             ///< has the seed of the first plus k. llm_generate takes 1 only
} llm_request;

LLM_API void llm_request_init(llm_request *request);

typedef enum llm_finish_reason {
  LLM_FINISH_STOP = 0,      ///< an end-of-sequence id or a stop string
  LLM_FINISH_LENGTH = 1,    ///< max_tokens, or the context is full
  LLM_FINISH_CANCELLED = 2, ///< a callback or llm_engine_cancel asked for it
  LLM_FINISH_ERROR = 3      ///< see llm_result.error; from an engine only
} llm_finish_reason;

/// A request's answer; valid during the callback.
typedef struct llm_result {
  const int32_t *tokens; ///< the generated ids, an end id included
  size_t token_count;
  const char *text; ///< "" without a tokenizer
  size_t text_size;
  llm_finish_reason finish_reason;
  double ttft_ms;             ///< from the call to the request's first token
  double decode_tokens_per_s; ///< after the first token
  int32_t choice;             ///< which of the request's n, from 0
  int64_t prompt_tokens;
  int64_t cached_tokens; ///< of which the prefix cache had so many
  int64_t preemptions;   ///< times that it made way for others for a while
  uint64_t seed;         ///< of this continuation
  const char *error;     ///< with LLM_FINISH_ERROR: why; else ""
  int64_t drafted;       ///< tokens that were proposed, where the artifact
                         ///< speculates and sampling.max_draft lets it
  int64_t accepted;      ///< those of them that are in the answer
} llm_result;

typedef struct llm_generate_callbacks {
  void *context; ///< handed to both
  /// Text as it grows, whole characters. May be null. Not 0: cancel all.
  int (*on_text)(void *context, size_t index, const char *text, size_t size);
  /// Each request once, as it finishes. May be null. Not 0: cancel the rest.
  int (*on_finish)(void *context, size_t index, const llm_result *result);
} llm_generate_callbacks;

/// Answers `count` requests, max_sequences at a time in one ragged batch. A
/// request's tokens do not depend on the others. Where one is refused, none is
/// answered.
LLM_API llm_code llm_generate(llm_session *session, const llm_request *requests,
                              size_t count,
                              const llm_generate_callbacks *callbacks);

//===----------------------------------------------------------------------===//
// Engines: requests that come and go
//===----------------------------------------------------------------------===//

typedef struct llm_engine llm_engine;

/// Called from llm_engine_step and llm_engine_cancel. They may submit to the
/// engine and cancel; they must not step it or end it.
typedef struct llm_engine_callbacks {
  void *context; ///< handed to both
  /// Text of continuation `choice` of a request as it grows, whole characters.
  /// May be null.
  void (*on_text)(void *context, uint64_t request, int32_t choice,
                  const char *text, size_t size);
  /// Each continuation once, as it finishes. May be null.
  void (*on_finish)(void *context, uint64_t request, const llm_result *result);
} llm_engine_callbacks;

/// An engine runs requests on a session, whose max_sequences and memory bound
/// how many at once. A session has one engine at a time, and while it has one,
/// llm_generate and llm_score refuse it. `callbacks` is copied; may be null.
LLM_API llm_code llm_engine_create(llm_session *session,
                                   const llm_engine_callbacks *callbacks,
                                   llm_engine **engine);
/// Ends what is left without a callback.
LLM_API void llm_engine_destroy(llm_engine *engine);

/// Queues a request, at any time between two steps. `id` counts from 0; the
/// request is copied. LLM_INVALID_INPUT where prompt and max_tokens exceed the
/// context, LLM_RESOURCE where they exceed what the cache can ever hold.
LLM_API llm_code llm_engine_submit(llm_engine *engine,
                                   const llm_request *request, uint64_t *id);

/// Ends a request, queued or running: each of its continuations gets its
/// on_finish. LLM_INVALID_INPUT where there is none of this id any more.
LLM_API llm_code llm_engine_cancel(llm_engine *engine, uint64_t id);

/// Runs one iteration: requests that fit join, each that runs gets one token or
/// a part of its prompt computed, those that are done leave. `unfinished`, if
/// not null, gets the number of requests and continuations that are left; 0:
/// there is nothing to do. After a failure the engine can only be ended.
LLM_API llm_code llm_engine_step(llm_engine *engine, size_t *unfinished);

//===----------------------------------------------------------------------===//
// Scoring
//===----------------------------------------------------------------------===//

/// The sum over tokens[1..count) of -log p(token | the tokens before it), in
/// nats. `on_logits`, if not null, is called with the logits after each token
/// [vocabulary_size]; not 0 from it ends the call with LLM_INVALID_INPUT.
LLM_API llm_code llm_score(llm_session *session, const int32_t *tokens,
                           size_t count, enum llm_role role,
                           int (*on_logits)(void *context, size_t position,
                                            const float *logits,
                                            size_t vocabulary),
                           void *context, double *nll);

typedef struct llm_rows {
  const char *name; ///< of kv.supply or kv.observe; valid during the callback
  size_t first;     ///< position of the token that the first row belongs to
  size_t rows;
  size_t width;
} llm_rows;

typedef struct llm_probe_callbacks {
  void *context; ///< handed to both
  /// Fills `data` [rows][width] before each step, for each kv.supply of the
  /// program. May be null where it has none. Not 0: end the call.
  int (*on_supply)(void *context, const llm_rows *rows, float *data);
  /// Reads `data` [rows][width] after each step, for each kv.observe. May be
  /// null. Not 0: end the call.
  int (*on_observe)(void *context, const llm_rows *rows, const float *data);
} llm_probe_callbacks;

/// Runs `tokens` as one sequence through a program that hands rows out and, if
/// it is a part of a decoder, takes rows in, in steps of at most the session's
/// `chunk` tokens. Rows of logits, where something observes them, are those of
/// all tokens; the session then needs as many `max_logit_rows` as `chunk`. A
/// call that a callback ended is LLM_INVALID_INPUT.
LLM_API llm_code llm_probe(llm_session *session, const int32_t *tokens,
                           size_t count, enum llm_role role,
                           const llm_probe_callbacks *callbacks);

//===----------------------------------------------------------------------===//
// The generic path
//===----------------------------------------------------------------------===//

typedef struct llm_function llm_function;

/// Loads function `index` of an artifact. `memory` bounds what a call
/// allocates, the weights counted; 0: what the control group grants.
LLM_API llm_code llm_function_load(llm_artifact *artifact, int32_t index,
                                   uint64_t memory, llm_function **function);
LLM_API void llm_function_destroy(llm_function *function);

LLM_API size_t llm_function_num_inputs(const llm_function *function);
LLM_API size_t llm_function_num_outputs(const llm_function *function);
/// Names belong to the artifact. Null where the index is out of range.
LLM_API const char *llm_function_input_name(const llm_function *function,
                                            size_t index);
LLM_API const char *llm_function_output_name(const llm_function *function,
                                             size_t index);

/// Runs it on dense row-major tensors in its order; types and shapes are
/// checked. `outputs` [num_outputs] get `data` and `dims`, each freed with
/// llm_free.
LLM_API llm_code llm_function_run(llm_function *function,
                                  const struct llm_tensor *inputs,
                                  size_t num_inputs, struct llm_tensor *outputs,
                                  size_t num_outputs);

#ifdef __cplusplus
}
#endif
#endif // LLM_RUNTIME_H
