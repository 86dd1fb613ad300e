//===- GenerationTest.cpp - Whole requests on the toy model -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Generation.h"
#include "ToyModel.h"

#include <gtest/gtest.h>
#include <map>

using namespace llm;
using namespace llm::runtime;
using namespace llm::test;

namespace {

std::shared_ptr<const Artifact> openToy(const TemporaryFile &file) {
  auto artifact = Artifact::open(file.path());
  EXPECT_TRUE(artifact) << artifact.status().message();
  return artifact ? *artifact : nullptr;
}

std::vector<GenerationResult>
runAll(Session &session, const std::vector<GenerationRequest> &requests) {
  std::vector<GenerationResult> results(requests.size());
  GenerationCallbacks callbacks;
  callbacks.onFinish = [&](size_t index, const GenerationResult &result) {
    results[index] = result;
    return Status::success();
  };
  Status status = generate(session, nullptr, requests, callbacks);
  EXPECT_TRUE(status) << status.message();
  return results;
}

std::vector<int32_t> somePrompt(int seed, size_t length) {
  std::vector<int32_t> prompt;
  for (size_t i = 0; i < length; ++i)
    prompt.push_back(static_cast<int32_t>(
        (i * 37 + 11u * static_cast<size_t>(seed) + i * i) % 101));
  return prompt;
}

struct Shape {
  uint32_t pageSize;
  int64_t chunk;
  int threads;
};

class Invariance : public testing::TestWithParam<Shape> {};

// Prefill whole or in chunks, alone or with others, any page size, any number
// of threads: every request gets what it gets alone by the definition.
TEST_P(Invariance, BatchesGiveTheDefinedTokens) {
  ToyOptions toy;
  toy.pageSize = GetParam().pageSize;
  TemporaryFile file(toyArtifact(toy));
  auto artifact = openToy(file);
  ASSERT_TRUE(artifact);
  for (size_t batch : {1u, 2u, 5u, 9u}) {
    SessionOptions options;
    options.chunk = GetParam().chunk;
    options.threads = GetParam().threads;
    options.maxSequences = static_cast<int64_t>(batch);
    std::vector<GenerationRequest> requests(batch);
    for (size_t i = 0; i < batch; ++i) {
      requests[i].prompt = somePrompt(static_cast<int>(i), 1 + (i * 29) % 71);
      requests[i].maxTokens = static_cast<int64_t>(5 + i * 3);
      options.lengths.push_back(
          static_cast<int64_t>(requests[i].prompt.size()) +
          requests[i].maxTokens);
    }
    auto session = Session::create(artifact, options);
    ASSERT_TRUE(session) << session.status().message();
    std::vector<GenerationResult> results = runAll(**session, requests);
    for (size_t i = 0; i < batch; ++i) {
      EXPECT_EQ(results[i].tokens,
                toyGenerate(requests[i].prompt,
                            static_cast<size_t>(requests[i].maxTokens), 101))
          << "request " << i << " of " << batch;
      EXPECT_EQ(results[i].finishReason, "length");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Invariance,
                         testing::Values(Shape{16, 512, 1}, Shape{16, 1, 1},
                                         Shape{16, 7, 2}, Shape{64, 64, 2},
                                         Shape{0, 512, 2}, Shape{0, 7, 1},
                                         Shape{1, 7, 3}, Shape{3, 5, 4}));

} // namespace
