//===- CApiTest.cpp - The C interface, from its shared library -------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ToyModel.h"
#include "llm/runtime.h"

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace llm;
using namespace llm::test;

namespace {

std::string runExample(const std::string &arguments, int &code) {
  std::string command = std::string(LLM_C_EXAMPLE) + " " + arguments + " 2>&1";
  std::FILE *pipe = popen(command.c_str(), "r");
  std::string output;
  char buffer[256];
  while (pipe && std::fgets(buffer, sizeof(buffer), pipe))
    output += buffer;
  code = pipe ? pclose(pipe) : -1;
  return output;
}

TEST(CApi, ExampleGeneratesTheDefinedTokens) {
  TemporaryFile file(toyArtifact(), ".llmx");
  int code = 0;
  std::string output = runExample(file.path() + " 8 1 2 3", code);
  EXPECT_EQ(code, 0) << output;
  std::string expected;
  for (int32_t id : toyGenerate({1, 2, 3}, 8, 101))
    expected += (expected.empty() ? "" : ",") + std::to_string(id);
  EXPECT_EQ(output.substr(0, output.find('\n')), expected);
  output = runExample("/nonexistent.llmx 1 1", code);
  EXPECT_NE(code, 0);
  EXPECT_NE(output.find("/nonexistent.llmx"), std::string::npos);
}

TEST(CApi, ReportsErrorsAndKeepsOutputs) {
  llm_artifact *artifact = nullptr;
  EXPECT_EQ(llm_artifact_open("/nonexistent.llmx", &artifact),
            LLM_INVALID_INPUT);
  EXPECT_EQ(artifact, nullptr);
  EXPECT_NE(std::string(llm_last_error()).find("/nonexistent.llmx"),
            std::string::npos);
  TemporaryFile file(toyArtifact(), ".llmx");
  ASSERT_EQ(llm_artifact_open(file.path().c_str(), &artifact), LLM_OK);
  llm_artifact_info info;
  llm_artifact_get_info(artifact, &info);
  EXPECT_EQ(info.is_decoder, 1);
  EXPECT_EQ(info.has_tokenizer, 0);
  EXPECT_EQ(info.vocabulary_size, 101);
  EXPECT_EQ(info.max_context, 256);
  int32_t *ids = nullptr;
  size_t count = 0;
  EXPECT_EQ(llm_tokenize(artifact, "a", 1, 1, 0, &ids, &count),
            LLM_INVALID_INPUT);
  char *json = nullptr;
  ASSERT_EQ(llm_artifact_inspect(artifact, &json), LLM_OK);
  EXPECT_NE(std::string(json).find("\"decoder\":true"), std::string::npos);
  llm_free(json);

  llm_session *session = nullptr;
  llm_session_options options;
  std::memset(&options, 0, sizeof(options));
  EXPECT_EQ(llm_session_create(artifact, &options, &session),
            LLM_INVALID_INPUT);
  llm_session_options_init(&options);
  options.memory = 1;
  EXPECT_EQ(llm_session_create(artifact, &options, &session), LLM_RESOURCE);
  options.memory = 0;
  ASSERT_EQ(llm_session_create(artifact, &options, &session), LLM_OK);
  // A session keeps what it needs.
  llm_artifact_close(artifact);
  EXPECT_GT(llm_session_memory(session), 16u << 20);
  llm_request request;
  llm_request_init(&request);
  EXPECT_EQ(llm_generate(session, &request, 1, nullptr), LLM_INVALID_INPUT);
  llm_session_destroy(session);
}

TEST(CApi, CallbacksCancel) {
  TemporaryFile file(toyArtifact(), ".llmx");
  llm_artifact *artifact = nullptr;
  ASSERT_EQ(llm_artifact_open(file.path().c_str(), &artifact), LLM_OK);
  llm_session_options options;
  llm_session_options_init(&options);
  options.max_sequences = 2;
  llm_session *session = nullptr;
  ASSERT_EQ(llm_session_create(artifact, &options, &session), LLM_OK);
  int32_t prompt = 5;
  llm_request requests[2];
  for (llm_request &request : requests) {
    llm_request_init(&request);
    request.prompt = &prompt;
    request.prompt_count = 1;
  }
  requests[0].max_tokens = 2;
  requests[1].max_tokens = 50;
  llm_finish_reason reasons[2] = {};
  llm_generate_callbacks callbacks = {};
  callbacks.context = reasons;
  callbacks.on_finish = [](void *context, size_t index,
                           const llm_result *result) {
    static_cast<llm_finish_reason *>(context)[index] = result->finish_reason;
    return 1;
  };
  ASSERT_EQ(llm_generate(session, requests, 2, &callbacks), LLM_OK);
  EXPECT_EQ(reasons[0], LLM_FINISH_LENGTH);
  EXPECT_EQ(reasons[1], LLM_FINISH_CANCELLED);
  llm_session_destroy(session);
  llm_artifact_close(artifact);
}

TEST(CApi, CountsDraftsAndForbidsThem) {
  ToyOptions toy;
  toy.lookup = 1;
  TemporaryFile file(toyArtifact(toy), ".llmx");
  llm_artifact *artifact = nullptr;
  ASSERT_EQ(llm_artifact_open(file.path().c_str(), &artifact), LLM_OK);
  llm_session_options options;
  llm_session_options_init(&options);
  llm_session *session = nullptr;
  ASSERT_EQ(llm_session_create(artifact, &options, &session), LLM_OK);
  std::vector<int32_t> prompt{7, 7};
  llm_request requests[2];
  for (llm_request &request : requests) {
    llm_request_init(&request);
    request.prompt = prompt.data();
    request.prompt_count = prompt.size();
    request.max_tokens = 21;
    // Repeats what has been said.
    request.sampling.repetition_penalty = 1e-6f;
  }
  requests[1].sampling.max_draft = 0;
  struct Counts {
    std::vector<int32_t> tokens;
    int64_t drafted, accepted;
  } counts[2] = {};
  llm_generate_callbacks callbacks = {};
  callbacks.context = counts;
  callbacks.on_finish = [](void *context, size_t index,
                           const llm_result *result) {
    static_cast<Counts *>(context)[index] = {
        {result->tokens, result->tokens + result->token_count},
        result->drafted,
        result->accepted};
    return 0;
  };
  ASSERT_EQ(llm_generate(session, requests, 2, &callbacks), LLM_OK);
  EXPECT_EQ(counts[0].drafted, 16);
  EXPECT_EQ(counts[0].accepted, 16);
  EXPECT_EQ(counts[1].drafted, 0);
  EXPECT_EQ(counts[0].tokens, std::vector<int32_t>(21, 7));
  EXPECT_EQ(counts[1].tokens, counts[0].tokens);
  llm_session_destroy(session);
  llm_artifact_close(artifact);
}

/// What an engine's callbacks have said.
struct Heard {
  std::map<std::pair<uint64_t, int32_t>, std::vector<int32_t>> tokens;
  std::map<std::pair<uint64_t, int32_t>, llm_finish_reason> reasons;
  std::map<uint64_t, int64_t> cached;
  llm_engine *engine = nullptr;
  uint64_t cancels = UINT64_MAX; ///< when any request finishes
};

void hear(void *context, uint64_t id, const llm_result *result) {
  auto *heard = static_cast<Heard *>(context);
  heard->tokens[{id, result->choice}].assign(
      result->tokens, result->tokens + result->token_count);
  heard->reasons[{id, result->choice}] = result->finish_reason;
  heard->cached[id] = result->cached_tokens;
  EXPECT_STREQ(result->error, "");
  EXPECT_EQ(result->seed, static_cast<uint64_t>(result->choice));
  if (heard->cancels != UINT64_MAX && id != heard->cancels)
    EXPECT_EQ(llm_engine_cancel(heard->engine, heard->cancels), LLM_OK);
}

TEST(CApi, EnginesTakeRequestsAtAnyTime) {
  TemporaryFile file(toyArtifact(), ".llmx");
  llm_artifact *artifact = nullptr;
  ASSERT_EQ(llm_artifact_open(file.path().c_str(), &artifact), LLM_OK);
  llm_session_options options;
  llm_session_options_init(&options);
  options.max_sequences = 2;
  llm_session *session = nullptr;
  ASSERT_EQ(llm_session_create(artifact, &options, &session), LLM_OK);
  EXPECT_EQ(llm_session_cache_tokens(session), 2 * 256);
  Heard heard;
  llm_engine_callbacks callbacks = {};
  callbacks.context = &heard;
  callbacks.on_finish = hear;
  ASSERT_EQ(llm_engine_create(session, &callbacks, &heard.engine), LLM_OK);
  llm_engine *engine = heard.engine, *other = nullptr;
  // The session is the engine's.
  EXPECT_EQ(llm_engine_create(session, &callbacks, &other), LLM_INVALID_INPUT);
  EXPECT_EQ(other, nullptr);
  std::vector<int32_t> prompt(40, 7);
  llm_request request;
  llm_request_init(&request);
  request.prompt = prompt.data();
  request.prompt_count = prompt.size();
  request.max_tokens = 8;
  EXPECT_EQ(llm_generate(session, &request, 1, nullptr), LLM_INVALID_INPUT);
  double nll = 0;
  EXPECT_EQ(llm_score(session, prompt.data(), 40, LLM_ROLE_PROMPT, nullptr,
                      nullptr, &nll),
            LLM_INVALID_INPUT);

  uint64_t first = 99, second = 99, third = 99, refused = 99;
  ASSERT_EQ(llm_engine_submit(engine, &request, &first), LLM_OK);
  size_t unfinished = 0;
  ASSERT_EQ(llm_engine_step(engine, &unfinished), LLM_OK);
  EXPECT_EQ(unfinished, 1u);
  request.n = 3;
  ASSERT_EQ(llm_engine_submit(engine, &request, &second), LLM_OK);
  request.n = 1;
  request.max_tokens = 100;
  ASSERT_EQ(llm_engine_submit(engine, &request, &third), LLM_OK);
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(third, 2u);
  heard.cancels = third;
  // 40 + 217 is one more than the context.
  request.max_tokens = 218;
  EXPECT_EQ(llm_engine_submit(engine, &request, &refused), LLM_INVALID_INPUT);
  EXPECT_NE(std::string(llm_last_error()).find("218"), std::string::npos);
  EXPECT_EQ(refused, 99u);
  request.struct_size = 8;
  EXPECT_EQ(llm_engine_submit(engine, &request, &refused), LLM_INVALID_INPUT);
  // Once only: it is cancelled when the first one ends.
  while (unfinished > 0) {
    ASSERT_EQ(llm_engine_step(engine, &unfinished), LLM_OK);
    if (heard.reasons.count({third, 0}))
      heard.cancels = UINT64_MAX;
  }
  std::vector<int32_t> expected = toyGenerate(prompt, 8, 101);
  EXPECT_EQ((heard.tokens[{first, 0}]), expected);
  for (int32_t choice = 0; choice < 3; ++choice)
    EXPECT_EQ((heard.tokens[{second, choice}]), expected);
  EXPECT_EQ((heard.reasons[{third, 0}]), LLM_FINISH_CANCELLED);
  EXPECT_EQ(heard.cached[first], 0);
  EXPECT_EQ(heard.cached[second], 32);
  EXPECT_EQ(llm_engine_cancel(engine, third), LLM_INVALID_INPUT);
  // In any order: the engine keeps what it needs.
  request.struct_size = sizeof(request);
  request.max_tokens = 8;
  llm_session_destroy(session);
  llm_artifact_close(artifact);
  ASSERT_EQ(llm_engine_submit(engine, &request, &first), LLM_OK);
  ASSERT_EQ(llm_engine_step(engine, nullptr), LLM_OK);
  // What is left ends without a callback.
  llm_engine_destroy(engine);
  EXPECT_EQ(heard.reasons.count({first, 0}), 0u);
  llm_engine_destroy(nullptr);
}

TEST(CApi, GivesASessionBackWhenAnEngineEnds) {
  TemporaryFile file(toyArtifact(), ".llmx");
  llm_artifact *artifact = nullptr;
  ASSERT_EQ(llm_artifact_open(file.path().c_str(), &artifact), LLM_OK);
  llm_session *session = nullptr;
  ASSERT_EQ(llm_session_create(artifact, nullptr, &session), LLM_OK);
  llm_engine *engine = nullptr;
  ASSERT_EQ(llm_engine_create(session, nullptr, &engine), LLM_OK);
  llm_engine_destroy(engine);
  int32_t prompt = 5;
  llm_request request;
  llm_request_init(&request);
  request.prompt = &prompt;
  request.prompt_count = 1;
  request.max_tokens = 3;
  EXPECT_EQ(llm_generate(session, &request, 1, nullptr), LLM_OK);
  request.n = 2;
  EXPECT_EQ(llm_generate(session, &request, 1, nullptr), LLM_INVALID_INPUT);
  llm_session_destroy(session);
  llm_artifact_close(artifact);
}

/// A toy whose hashes of what a token sees are handed out, bit by bit, and
/// which, with `fed`, takes the ids of tokens in.
std::string toyWithRows(bool fed, artifact::ElementType type = artifact::F32) {
  std::vector<std::string> contents;
  artifact::Manifest manifest = toyManifest({}, contents);
  for (artifact::Buffer &buffer :
       *manifest.mutable_programs(0)->mutable_buffers()) {
    if (fed && buffer.name() == "token") {
      buffer.set_name("feed.id");
      buffer.set_element_type(artifact::F32);
    }
    // The first transient one.
    if (buffer.lifetime() != artifact::Buffer::TRANSIENT ||
        buffer.elements().nodes(0).value() != 0)
      continue;
    buffer.set_lifetime(artifact::Buffer::IO);
    buffer.set_name("tap.hash");
    buffer.set_element_type(type);
    buffer.clear_arena_offset();
  }
  return writeArtifact(manifest, contents);
}

struct Probe {
  std::vector<int32_t> ids;
  std::vector<uint32_t> hashes;
  std::vector<size_t> firsts;
  bool ends = false;

  static int supply(void *context, const llm_rows *rows, float *data) {
    auto &self = *static_cast<Probe *>(context);
    EXPECT_STREQ(rows->name, "id");
    std::memcpy(data, self.ids.data() + rows->first,
                rows->rows * sizeof(float));
    return self.ends;
  }
  static int observe(void *context, const llm_rows *rows, const float *data) {
    auto &self = *static_cast<Probe *>(context);
    EXPECT_STREQ(rows->name, "hash");
    EXPECT_EQ(rows->width, 1u);
    self.firsts.push_back(rows->first);
    size_t before = self.hashes.size();
    self.hashes.resize(before + rows->rows);
    std::memcpy(self.hashes.data() + before, data,
                rows->rows * sizeof(uint32_t));
    return self.ends;
  }
  llm_code run(const std::string &bytes, const std::vector<int32_t> &tokens,
               int32_t chunk, bool supplies = true) {
    TemporaryFile file(bytes, ".llmx");
    llm_artifact *artifact = nullptr;
    EXPECT_EQ(llm_artifact_open(file.path().c_str(), &artifact), LLM_OK);
    llm_session_options options;
    llm_session_options_init(&options);
    options.chunk = chunk;
    llm_session *session = nullptr;
    llm_code code = llm_session_create(artifact, &options, &session);
    llm_probe_callbacks callbacks = {this, supplies ? supply : nullptr,
                                     observe};
    if (code == LLM_OK)
      code = llm_probe(session, tokens.data(), tokens.size(), LLM_ROLE_PROMPT,
                       &callbacks);
    // What one call left does not reach into the next.
    if (code == LLM_OK) {
      std::vector<uint32_t> first = std::exchange(hashes, {});
      EXPECT_EQ(llm_probe(session, tokens.data(), tokens.size(),
                          LLM_ROLE_PROMPT, &callbacks),
                LLM_OK);
      EXPECT_EQ(first, hashes);
    }
    llm_session_destroy(session);
    llm_artifact_close(artifact);
    return code;
  }
};

TEST(CApi, ProbesHandRowsOutAndTakeThemIn) {
  std::vector<int32_t> ids = {5, 6, 7, 8, 9, 10, 11};
  Probe whole, chunked, fed;
  ASSERT_EQ(whole.run(toyWithRows(false), ids, 0), LLM_OK);
  EXPECT_EQ(whole.hashes.size(), 7u);
  EXPECT_EQ(whole.firsts, (std::vector<size_t>{0, 0}));
  ASSERT_EQ(chunked.run(toyWithRows(false), ids, 3), LLM_OK);
  EXPECT_EQ(chunked.hashes, whole.hashes);
  EXPECT_EQ(chunked.firsts, (std::vector<size_t>{0, 3, 6, 0, 3, 6}));
  // The ids that count are those that are supplied.
  fed.ids = ids;
  ASSERT_EQ(fed.run(toyWithRows(true), std::vector<int32_t>(7, 1), 3), LLM_OK);
  EXPECT_EQ(fed.hashes, whole.hashes);
}

TEST(CApi, ProbesReportWhatIsMissing) {
  Probe probe;
  probe.ids = {1, 2};
  EXPECT_EQ(probe.run(toyWithRows(true), {1, 2}, 0, /*supplies=*/false),
            LLM_INVALID_INPUT);
  EXPECT_NE(std::string(llm_last_error()).find("llm_probe supplies"),
            std::string::npos);
  EXPECT_EQ(probe.run(toyWithRows(false), {1, 101}, 0), LLM_INVALID_INPUT);
  EXPECT_EQ(probe.run(toyWithRows(false, artifact::I32), {1}, 0),
            LLM_UNSUPPORTED);
  probe.ends = true;
  EXPECT_EQ(probe.run(toyWithRows(false), {1, 2}, 0), LLM_INVALID_INPUT);
  EXPECT_NE(std::string(llm_last_error()).find("callback ended"),
            std::string::npos);
}

TEST(CApi, RunsAFunction) {
  ToyOptions toy;
  toy.hostFunction = true;
  TemporaryFile file(toyArtifact(toy), ".llmx");
  llm_artifact *artifact = nullptr;
  ASSERT_EQ(llm_artifact_open(file.path().c_str(), &artifact), LLM_OK);
  llm_function *function = nullptr;
  EXPECT_EQ(llm_function_load(artifact, 1, 0, &function), LLM_INVALID_INPUT);
  ASSERT_EQ(llm_function_load(artifact, 0, 0, &function), LLM_OK);
  EXPECT_EQ(llm_function_num_inputs(function), 1u);
  EXPECT_STREQ(llm_function_output_name(function, 0), "y");
  EXPECT_EQ(llm_function_output_name(function, 1), nullptr);
  float data[3] = {1, 2, 4};
  int64_t dims[2] = {1, 3};
  llm_tensor input = {data, 2, dims, 1 /* F32 */};
  llm_tensor output = {};
  ASSERT_EQ(llm_function_run(function, &input, 1, &output, 1), LLM_OK)
      << llm_last_error();
  EXPECT_EQ(output.rank, 2);
  EXPECT_EQ(output.dims[1], 3);
  EXPECT_EQ(static_cast<float *>(output.data)[2], 10.0f);
  llm_free(output.data);
  llm_free(output.dims);
  dims[1] = 2;
  EXPECT_EQ(llm_function_run(function, &input, 1, &output, 1),
            LLM_INVALID_INPUT);
  llm_function_destroy(function);
  llm_artifact_close(artifact);
}

} // namespace
