//===- AdmissionTest.cpp - How large a session may be -----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ToyModel.h"
#include "runtime/session/Session.h"

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

TEST(Admission, AdmitsByTheCertificate) {
  SessionOptions options;
  options.maxSequences = 4;
  auto created = session({}, options);
  ASSERT_TRUE(created);
  MemoryUse use = created->memory();
  EXPECT_EQ(use.cache, 4 * 256 * 12u);
  // 101 logits and the maxima of 4 blocks of them.
  EXPECT_EQ(use.logits, 4 * (101 + 4) * 4u);
  EXPECT_EQ(use.fixed, 16u << 20);
  options.memory = use.total();
  EXPECT_TRUE(Session::create(open({}), options));
  options.memory = use.total() - 1;
  auto refused = Session::create(open({}), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), StatusCode::Resource);
  EXPECT_NE(refused.status().message().find("--memory"), std::string::npos);
}

// The cache gets what memory leaves, and the number of sequences, where nobody
// says it, what their usual lengths allow.
TEST(Admission, FitsTheCacheIntoMemory) {
  SessionOptions options;
  options.maxSequences = 4;
  options.fitCache = true;
  auto whole = session({}, options);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->cacheSlots(), 4 * 256);
  // 12 bytes in the cache, 48 in tables on the host.
  constexpr int64_t slot = 12 + 48;
  for (int64_t missing : {int64_t(1), 16 * slot, 16 * slot + 1, 700 * slot}) {
    options.memory = whole->memory().total() - static_cast<uint64_t>(missing);
    auto smaller = session({}, options);
    ASSERT_TRUE(smaller);
    int64_t pages = (missing + 16 * slot - 1) / (16 * slot);
    EXPECT_EQ(smaller->cacheSlots(), 4 * 256 - 16 * pages);
    EXPECT_LE(smaller->memory().total(), options.memory);
  }
  // One sequence has to fit.
  options.memory = whole->memory().total() - 3 * 256 * slot;
  EXPECT_TRUE(Session::create(open({}), options));
  options.memory -= 1;
  auto refused = Session::create(open({}), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().code(), StatusCode::Resource);

  options.memory = 0;
  options.maxSequences = 0;
  options.lengths = {100, 256, 30};
  EXPECT_EQ(session({}, options)->maxSequences(), 3);
  EXPECT_EQ(session({}, options)->cacheSlots(), 112 + 256 + 32);
  options.lengths.assign(1000, 200);
  EXPECT_EQ(session({}, options)->maxSequences(), defaultMaxSequences);
  options.usualLengths.assign(1000, 100);
  uint64_t all = session({}, options)->memory().total();
  options.memory = all - 64 * 96 * slot;
  EXPECT_EQ(session({}, options)->maxSequences(), defaultMaxSequences);
  options.memory = all - 64 * 96 * slot - 1;
  EXPECT_EQ(session({}, options)->maxSequences(), defaultMaxSequences - 1);
  // What the caller has counts, too.
  options.memory = 0;
  options.held = 1000;
  EXPECT_EQ(session({}, options)->memory().total(), all + 1000);
}

} // namespace
