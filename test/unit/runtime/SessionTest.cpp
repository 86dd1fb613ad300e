//===- SessionTest.cpp - Forks, functions, tensors --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ToyModel.h"
#include "runtime/session/Generation.h"
#include "runtime/session/HostFunction.h"
#include "runtime/session/Scoring.h"
#include "runtime/session/TensorFile.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

using namespace llm;
using namespace llm::runtime;
using namespace llm::test;

namespace {

std::shared_ptr<const Artifact> open(const ToyOptions &options) {
  TemporaryFile file(toyArtifact(options));
  auto artifact = Artifact::open(file.path());
  EXPECT_TRUE(artifact) << artifact.status().message();
  return artifact ? *artifact : nullptr;
}

std::unique_ptr<Session> session(const ToyOptions &toy,
                                 const SessionOptions &options) {
  auto created = Session::create(open(toy), options);
  EXPECT_TRUE(created) << created.status().message();
  return created ? *std::move(created) : nullptr;
}

/// Runs until idle; the logits of the last row of each sequence.
std::map<Session::SequenceId, std::vector<float>> drain(Session &session) {
  std::map<Session::SequenceId, std::vector<float>> last;
  while (!session.idle()) {
    Status status =
        session.step([&](Session::SequenceId id, int64_t, const LogitRow &row) {
          last[id].assign(row.logits.begin(), row.logits.end());
          return Status::success();
        });
    EXPECT_TRUE(status) << status.message();
    if (!status)
      break;
  }
  return last;
}

TEST(Session, RefusesAContextBeyondTheModel) {
  SessionOptions options;
  options.context = 257;
  auto refused = Session::create(open({}), options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.status().message().find("257"), std::string::npos);
  EXPECT_NE(refused.status().message().find("256"), std::string::npos);
}

TEST(Session, PassesOverVariantsThatThisMachineLacks) {
  ToyOptions toy;
  toy.impossibleVariant = true;
  auto created = session(toy, {});
  ASSERT_TRUE(created);
  toy.onlyImpossible = true;
  auto refused = Session::create(open(toy), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), StatusCode::Unsupported);
  EXPECT_NE(refused.status().message().find("entanglement"), std::string::npos);
  EXPECT_EQ(refused.status().message().find("sse2"), std::string::npos);
}

TEST(Session, RefusesConcurrentDispatchesThatShareWrites) {
  ToyOptions toy;
  // The second dispatch reads what the first one writes.
  toy.concurrent = true;
  auto created = session(toy, {});
  ASSERT_TRUE(created);
  auto id = created->add();
  ASSERT_TRUE(id);
  std::vector<int32_t> tokens{1, 2};
  ASSERT_TRUE(created->append(*id, tokens, LLM_ROLE_PROMPT, Logits::Last));
  Status status = created->step([](auto...) { return Status::success(); });
  ASSERT_FALSE(status);
  EXPECT_NE(status.message().find("concurrent"), std::string::npos)
      << status.message();
}

TEST(Session, RefusesAnUnknownDevice) {
  SessionOptions options;
  options.device = "cuda";
  auto refused = Session::create(open({}), options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.status().message().find("--target=cuda"),
            std::string::npos);
}

TEST(Session, RefusesIdsOutsideTheVocabulary) {
  auto created = session({}, {});
  ASSERT_TRUE(created);
  auto id = created->add();
  ASSERT_TRUE(id);
  for (int32_t token : {-1, 101})
    EXPECT_FALSE(
        created->append(*id, {{token}}, LLM_ROLE_PROMPT, Logits::Last));
}

// A sequence with nothing to do makes way, and comes back as it was.
TEST(Session, HasMoreSequencesThanArePutIntoAStep) {
  auto created = session({}, {});
  ASSERT_TRUE(created);
  std::vector<std::vector<int32_t>> tokens{{1, 2, 3}, {4, 5}, {6}};
  std::vector<Session::SequenceId> ids;
  for (const std::vector<int32_t> &each : tokens) {
    auto id = created->add();
    ASSERT_TRUE(id);
    ids.push_back(*id);
    ASSERT_TRUE(created->append(*id, each, LLM_ROLE_PROMPT, Logits::Last));
  }
  for (int32_t next : {50, 60}) {
    auto last = drain(*created);
    for (size_t i = 0; i < ids.size(); ++i) {
      std::vector<llm_role> roles(tokens[i].size(), LLM_ROLE_PROMPT);
      EXPECT_EQ(last[ids[i]], toyLogits(tokens[i], roles, 101));
      tokens[i].push_back(next);
      ASSERT_TRUE(
          created->append(ids[i], {{next}}, LLM_ROLE_PROMPT, Logits::Last));
    }
  }
}

class Forks : public testing::TestWithParam<uint32_t> {};

// Children see the parent's tokens, and none of each other's.
TEST_P(Forks, DivergeWithoutDisturbing) {
  ToyOptions toy;
  toy.pageSize = GetParam();
  SessionOptions options;
  options.maxSequences = 3;
  auto created = session(toy, options);
  ASSERT_TRUE(created);
  std::vector<int32_t> common{5, 6, 7, 8, 9, 10};
  auto parent = created->add();
  ASSERT_TRUE(parent);
  ASSERT_TRUE(created->append(*parent, common, LLM_ROLE_PROMPT, Logits::Last));
  drain(*created);
  std::vector<std::pair<Session::SequenceId, int32_t>> children;
  children.emplace_back(*parent, 20);
  for (int32_t token : {30, 40}) {
    auto child = created->fork(*parent);
    ASSERT_TRUE(child) << child.status().message();
    children.emplace_back(*child, token);
  }
  for (auto [id, token] : children)
    ASSERT_TRUE(created->append(id, std::vector<int32_t>{token, token + 1},
                                LLM_ROLE_GENERATED, Logits::Last));
  auto last = drain(*created);
  for (auto [id, token] : children) {
    std::vector<int32_t> tokens = common;
    tokens.insert(tokens.end(), {token, token + 1});
    std::vector<llm_role> roles(6, LLM_ROLE_PROMPT);
    roles.insert(roles.end(), 2, LLM_ROLE_GENERATED);
    EXPECT_EQ(last[id], toyLogits(tokens, roles, 101)) << token;
  }
}

TEST_P(Forks, RollbackForgets) {
  ToyOptions toy;
  toy.pageSize = GetParam();
  auto created = session(toy, {});
  ASSERT_TRUE(created);
  auto id = created->add();
  ASSERT_TRUE(id);
  std::vector<int32_t> tokens{1, 2, 3, 4, 5, 6, 7};
  ASSERT_TRUE(created->append(*id, tokens, LLM_ROLE_PROMPT, Logits::None));
  drain(*created);
  EXPECT_FALSE(created->rollback(*id, 8));
  ASSERT_TRUE(created->rollback(*id, 3));
  ASSERT_TRUE(created->append(*id, std::vector<int32_t>{50, 60},
                              LLM_ROLE_PROMPT, Logits::Last));
  EXPECT_EQ(drain(*created)[*id],
            toyLogits({1, 2, 3, 50, 60},
                      std::vector<llm_role>(5, LLM_ROLE_PROMPT), 101));
}

INSTANTIATE_TEST_SUITE_P(PageSizes, Forks, testing::Values(1, 3, 4, 16));

TEST(Session, AStepNeverMixesRolesOfASequence) {
  auto created = session({}, {});
  ASSERT_TRUE(created);
  auto id = created->add();
  ASSERT_TRUE(id);
  ASSERT_TRUE(created->append(*id, std::vector<int32_t>{1, 2}, LLM_ROLE_PROMPT,
                              Logits::All));
  ASSERT_TRUE(created->append(*id, std::vector<int32_t>{3, 4},
                              LLM_ROLE_GENERATED, Logits::All));
  std::vector<size_t> rows;
  while (!created->idle()) {
    rows.push_back(0);
    ASSERT_TRUE(
        created->step([&](Session::SequenceId, int64_t, const LogitRow &) {
          ++rows.back();
          return Status::success();
        }));
  }
  // One row of logits fits in this session's step.
  EXPECT_EQ(rows, (std::vector<size_t>{1, 1, 1, 1}));
}

TEST(Generation, StopsAtAnEndId) {
  auto created = session({}, {});
  ASSERT_TRUE(created);
  GenerationRequest request;
  request.prompt = {1, 2, 3};
  request.maxTokens = 20;
  std::vector<int32_t> expected = toyGenerate(request.prompt, 20, 101);
  request.eosIds = {expected[6]};
  auto first = std::find(expected.begin(), expected.end(), expected[6]);
  GenerationResult result;
  GenerationCallbacks callbacks;
  callbacks.onFinish = [&](size_t, const GenerationResult &finished) {
    result = finished;
    return Status::success();
  };
  ASSERT_TRUE(generate(*created, nullptr, {&request, 1}, callbacks));
  EXPECT_EQ(result.finishReason, "stop");
  EXPECT_EQ(result.tokens, std::vector<int32_t>(expected.begin(), first + 1));
  EXPECT_EQ(result.promptTokens, 3);
}

TEST(Generation, EndsWhereTheContextDoes) {
  SessionOptions options;
  options.context = 10;
  auto created = session({}, options);
  ASSERT_TRUE(created);
  GenerationRequest request;
  request.prompt = {1, 2, 3, 4};
  request.maxTokens = 100;
  GenerationResult result;
  GenerationCallbacks callbacks;
  callbacks.onFinish = [&](size_t, const GenerationResult &finished) {
    result = finished;
    return Status::success();
  };
  ASSERT_TRUE(generate(*created, nullptr, {&request, 1}, callbacks));
  EXPECT_EQ(result.finishReason, "length");
  EXPECT_EQ(result.tokens, toyGenerate(request.prompt, 7, 101));
}

TEST(Generation, SamplesTheSameInABatch) {
  std::vector<GenerationRequest> requests(4);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = {static_cast<int32_t>(i), 50};
    requests[i].maxTokens = 12;
    requests[i].sampling.temperature = 0.9f;
    requests[i].sampling.top_k = 20;
    requests[i].sampling.repetition_penalty = 1.2f;
    requests[i].sampling.seed = i + 1;
  }
  auto run = [&](std::span<const GenerationRequest> list) {
    SessionOptions options;
    options.maxSequences = static_cast<int64_t>(list.size());
    auto created = session({}, options);
    std::vector<std::vector<int32_t>> tokens(list.size());
    GenerationCallbacks callbacks;
    callbacks.onFinish = [&](size_t index, const GenerationResult &finished) {
      tokens[index] = finished.tokens;
      return Status::success();
    };
    Status status = generate(*created, nullptr, list, callbacks);
    EXPECT_TRUE(status) << status.message();
    return tokens;
  };
  std::vector<std::vector<int32_t>> together = run(requests);
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(run({&requests[i], 1})[0], together[i]);
  EXPECT_NE(together[0], together[1]);
}

TEST(Generation, CancelsBetweenSteps) {
  auto created = session({}, {});
  ASSERT_TRUE(created);
  GenerationRequest request;
  request.prompt = {1};
  request.maxTokens = 100;
  int asked = 0;
  GenerationResult result;
  GenerationCallbacks callbacks;
  callbacks.cancelled = [&] { return ++asked > 5; };
  callbacks.onFinish = [&](size_t, const GenerationResult &finished) {
    result = finished;
    return Status::success();
  };
  ASSERT_TRUE(generate(*created, nullptr, {&request, 1}, callbacks));
  EXPECT_EQ(result.finishReason, "cancelled");
  EXPECT_EQ(result.tokens, toyGenerate({1}, 5, 101));
  // The session is free for the next request.
  EXPECT_TRUE(created->add());
}

TEST(Scoring, SumsTheLikelihoodsOfTheDefinition) {
  std::vector<std::vector<int32_t>> windows{
      {1, 2, 3, 4, 5}, {7}, {}, {9, 8, 7}, {1, 1, 1, 1}};
  double expected = 0;
  int64_t count = 0;
  for (const std::vector<int32_t> &window : windows)
    for (size_t i = 1; i < window.size(); ++i, ++count) {
      std::vector<float> logits = toyLogits(
          {window.begin(), window.begin() + static_cast<ptrdiff_t>(i)},
          std::vector<llm_role>(i, LLM_ROLE_GENERATED), 101);
      double total = 0;
      for (float logit : logits)
        total += std::exp(double(logit));
      expected -= std::log(
          std::exp(double(logits[static_cast<size_t>(window[i])])) / total);
    }
  ScoringOptions options;
  options.role = LLM_ROLE_GENERATED;
  std::vector<double> sums;
  for (int64_t batch : {1, 2, 5})
    for (int64_t chunk : {1, 3, 100}) {
      SessionOptions sessionOptions;
      sessionOptions.maxSequences = batch;
      sessionOptions.chunk = chunk;
      sessionOptions.maxLogitRows = chunk;
      sessionOptions.fair = true;
      auto created = session({}, sessionOptions);
      auto result = score(*created, windows, batch, options);
      ASSERT_TRUE(result) << result.status().message();
      EXPECT_EQ(result->scored, count);
      EXPECT_NEAR(result->nll, expected, 1e-9);
      sums.push_back(result->nll);
    }
  for (double sum : sums)
    EXPECT_EQ(sum, sums[0]);
}

HostTensor floats(std::vector<int64_t> dims, const std::vector<float> &values) {
  HostTensor tensor;
  tensor.type = artifact::F32;
  tensor.dims = std::move(dims);
  tensor.data.resize(values.size() * sizeof(float));
  if (!values.empty())
    std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

TEST(HostFunction, RunsAndChecksShapes) {
  ToyOptions toy;
  toy.hostFunction = true;
  auto function = HostFunction::load(open(toy), 0, 0);
  ASSERT_TRUE(function) << function.status().message();
  std::vector<HostTensor> inputs{floats({2, 3}, {1, 2, 3, 4, 5, 6})};
  auto outputs = (*function)->run(inputs);
  ASSERT_TRUE(outputs) << outputs.status().message();
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_EQ((*outputs)[0].describe(), "f32[2, 3]");
  std::vector<float> values(6);
  std::memcpy(values.data(), (*outputs)[0].data.data(), 24);
  EXPECT_EQ(values, (std::vector<float>{2.5f, 5, 7.5f, 10, 12.5f, 15}));

  inputs = {floats({0, 3}, {})};
  outputs = (*function)->run(inputs);
  ASSERT_TRUE(outputs) << outputs.status().message();
  EXPECT_EQ((*outputs)[0].describe(), "f32[0, 3]");

  auto message = [&](HostTensor input) {
    auto result = (*function)->run({&input, 1});
    EXPECT_FALSE(result);
    return result.status().message();
  };
  EXPECT_NE(message(floats({2, 4}, std::vector<float>(8))).find("must be 3"),
            std::string::npos);
  EXPECT_NE(message(floats({6}, std::vector<float>(6))).find("dimensions"),
            std::string::npos);
  HostTensor integers = floats({1, 3}, {0, 0, 0});
  integers.type = artifact::I32;
  EXPECT_NE(message(integers).find("input 'x'"), std::string::npos);
  EXPECT_EQ(message(floats({1, 3}, {1, -1, 1})), "a value is negative");
  EXPECT_FALSE((*function)->run({}));
}

TEST(HostFunction, HonoursTheMemoryLimit) {
  ToyOptions toy;
  toy.hostFunction = true;
  auto artifact = open(toy);
  uint64_t payloads = 0;
  for (const artifact::Payload &payload : artifact->manifest().payloads())
    payloads += payload.size();
  auto function = HostFunction::load(artifact, 0, payloads + 1000);
  ASSERT_TRUE(function) << function.status().message();
  std::vector<HostTensor> small{floats({30, 3}, std::vector<float>(90))};
  EXPECT_TRUE((*function)->run(small));
  std::vector<HostTensor> large{floats({60, 3}, std::vector<float>(180))};
  auto refused = (*function)->run(large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), StatusCode::Resource);
  EXPECT_FALSE(HostFunction::load(artifact, 0, 10));
}

TEST(TensorFile, RoundTripsEveryType) {
  std::string directory = testing::TempDir();
  for (int type = 1; type <= artifact::U2; ++type) {
    HostTensor tensor;
    tensor.type = static_cast<artifact::ElementType>(type);
    for (const std::vector<int64_t> &dims :
         {std::vector<int64_t>{}, {0}, {5}, {2, 3, 4}}) {
      tensor.dims = dims;
      int64_t count = 1;
      for (int64_t size : dims)
        count *= size;
      int bits = 0;
      for (auto [t, b] : {std::pair{artifact::F32, 32},
                          {artifact::F16, 16},
                          {artifact::BF16, 16},
                          {artifact::F64, 64},
                          {artifact::I16, 16},
                          {artifact::U16, 16},
                          {artifact::I32, 32},
                          {artifact::U32, 32},
                          {artifact::I64, 64},
                          {artifact::U64, 64},
                          {artifact::I4, 4},
                          {artifact::U4, 4},
                          {artifact::F4E2M1FN, 4},
                          {artifact::I2, 2},
                          {artifact::U2, 2}})
        if (t == tensor.type)
          bits = b;
      bits = bits ? bits : 8;
      tensor.data.resize(static_cast<size_t>((count * bits + 7) / 8));
      for (size_t i = 0; i < tensor.data.size(); ++i)
        tensor.data[i] = std::byte(i * 37 + 1);
      ASSERT_TRUE(
          writeTensor(directory, "a/b:" + std::to_string(type), tensor));
      std::string path = directory + "/" +
                         tensorFileStem("a/b:" + std::to_string(type)) +
                         (hasNpyType(tensor.type) ? ".npy" : ".pb");
      auto back = readTensor(path);
      ASSERT_TRUE(back) << back.status().message();
      EXPECT_EQ(back->type, tensor.type);
      EXPECT_EQ(back->dims, tensor.dims);
      EXPECT_EQ(back->data, tensor.data);
      std::filesystem::remove(path);
    }
  }
}

TEST(TensorFile, RefusesDamage) {
  std::vector<int64_t> shape{2, 3};
  std::string good = npyHeader(artifact::F32, shape) + std::string(24, 'x');
  auto message = [](const std::string &bytes, const char *suffix = ".npy") {
    TemporaryFile file(bytes, suffix);
    auto tensor = readTensor(file.path());
    return tensor ? std::string() : tensor.status().message();
  };
  EXPECT_EQ(message(good), "");
  EXPECT_EQ(npyHeader(artifact::F32, shape).size() % 64, 0u);
  for (size_t length :
       {size_t(0), size_t(5), size_t(9), size_t(40), good.size() - 1})
    EXPECT_NE(message(good.substr(0, length)), "") << length;
  EXPECT_NE(message(good + "y"), "");
  auto replaced = [&](const std::string &from, const std::string &to) {
    std::string bytes = good;
    bytes.replace(bytes.find(from), from.size(), to);
    return bytes;
  };
  EXPECT_NE(message(replaced("<f4", ">f4")).find(">f4"), std::string::npos);
  EXPECT_NE(message(replaced("False", "True ")).find("Fortran"),
            std::string::npos);
  EXPECT_NE(message(replaced("2, 3", "-2,3")), "");
  EXPECT_NE(message(replaced("(2, 3)", "9999999999999999999")), "");
  EXPECT_NE(message(good, ".txt"), "");
  EXPECT_NE(message("\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x10\x01", ".pb"), "");
}

// onnx.TensorProto as other writers spell it: typed fields in place of bytes.
TEST(TensorFile, ReadsTypedFields) {
  // dims [2] unpacked, data_type FLOAT, float_data packed {1, -2}.
  std::string bytes("\x08\x02\x10\x01\x22\x08\x00\x00\x80\x3f\x00\x00\x00\xc0",
                    14);
  TemporaryFile file(bytes, ".pb");
  auto tensor = readTensor(file.path());
  ASSERT_TRUE(tensor) << tensor.status().message();
  EXPECT_EQ(tensor->describe(), "f32[2]");
  float values[2];
  std::memcpy(values, tensor->data.data(), 8);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], -2.0f);
  // data_type BOOL, int32_data {1, 0}.
  TemporaryFile flags(std::string("\x08\x02\x10\x09\x2a\x02\x01\x00", 8),
                      ".pb");
  tensor = readTensor(flags.path());
  ASSERT_TRUE(tensor) << tensor.status().message();
  EXPECT_EQ(tensor->describe(), "bool[2]");
  EXPECT_EQ(tensor->data[0], std::byte(1));
}

} // namespace
