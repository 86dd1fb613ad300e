//===- CExample.c - Using the runtime from C --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Continues a prompt of token ids, greedily:
//
//   c_example MODEL.llmx COUNT ID...
//
// prints the generated ids and the average log-likelihood of the whole. The
// same as in docs/guide/c-api.md.
//
//===----------------------------------------------------------------------===//
#include <llm/runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, llm_last_error());
  return 1;
}

struct Answer {
  int32_t *tokens;
  size_t count;
};

static int on_finish(void *context, size_t index, const llm_result *result) {
  struct Answer *answer = context;
  (void)index;
  answer->tokens = malloc(result->token_count * sizeof(int32_t));
  if (!answer->tokens)
    return 1;
  memcpy(answer->tokens, result->tokens, result->token_count * sizeof(int32_t));
  answer->count = result->token_count;
  return 0;
}

int main(int argc, char **argv) {
  llm_artifact *artifact = NULL;
  llm_session *session = NULL;
  llm_session_options options;
  llm_request request;
  llm_generate_callbacks callbacks = {0};
  struct Answer answer = {0};
  int32_t *tokens;
  size_t count = 0;
  double nll = 0;
  if (argc < 4) {
    fprintf(stderr, "usage: c_example MODEL.llmx COUNT ID...\n");
    return 2;
  }
  if (llm_artifact_open(argv[1], &artifact) != LLM_OK)
    return fail("open");

  llm_session_options_init(&options);
  if (llm_session_create(artifact, &options, &session) != LLM_OK)
    return fail("session");

  tokens = malloc(((size_t)argc + (size_t)atoi(argv[2])) * sizeof(int32_t));
  if (!tokens)
    return 1;
  for (int i = 3; i < argc; ++i)
    tokens[count++] = atoi(argv[i]);
  llm_request_init(&request);
  request.prompt = tokens;
  request.prompt_count = count;
  request.max_tokens = atoi(argv[2]);
  callbacks.context = &answer;
  callbacks.on_finish = on_finish;
  if (llm_generate(session, &request, 1, &callbacks) != LLM_OK)
    return fail("generate");

  for (size_t i = 0; i < answer.count; ++i) {
    printf("%s%d", i ? "," : "", answer.tokens[i]);
    tokens[count++] = answer.tokens[i];
  }
  if (llm_score(session, tokens, count, LLM_ROLE_PROMPT, NULL, NULL, &nll) !=
      LLM_OK)
    return fail("score");
  printf("\nnll %.6f\n", nll / (double)(count - 1));

  free(tokens);
  free(answer.tokens);
  llm_session_destroy(session);
  llm_artifact_close(artifact);
  return 0;
}
