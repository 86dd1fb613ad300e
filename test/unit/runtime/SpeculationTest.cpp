//===- SpeculationTest.cpp - Drafts change nothing but the speed ----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Speculation.h"
#include "ToyModel.h"
#include "runtime/session/Engine.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace llm;
using namespace llm::runtime;
using namespace llm::test;

namespace {

//===----------------------------------------------------------------------===//
// Looking up
//===----------------------------------------------------------------------===//

TEST(LookUp, ProposesWhatFollowedTheLastTime) {
  std::vector<int32_t> history{1, 2, 3, 4, 1, 2, 5, 6, 1, 2};
  EXPECT_EQ(lookUp(history, 2, 3), (std::vector<int32_t>{5, 6, 1}));
  EXPECT_EQ(lookUp(history, 2, 0), (std::vector<int32_t>{}));
  EXPECT_EQ(lookUp(history, 3, 3), (std::vector<int32_t>{}));
  EXPECT_EQ(lookUp({{7, 8, 9}}, 1, 3), (std::vector<int32_t>{}));
  EXPECT_EQ(lookUp({}, 1, 3), (std::vector<int32_t>{}));
  EXPECT_EQ(lookUp({{7}}, 1, 3), (std::vector<int32_t>{}));
}

TEST(LookUp, GoesOnRepeating) {
  EXPECT_EQ(lookUp({{7, 7}}, 1, 3), (std::vector<int32_t>{7, 7, 7}));
  EXPECT_EQ(lookUp({{9, 7, 8, 7, 8}}, 2, 5),
            (std::vector<int32_t>{7, 8, 7, 8, 7}));
}

// Beside a search that tries all places.
TEST(LookUp, FindsWhatAllPlacesGive) {
  std::mt19937 random(3);
  int found = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<int32_t> history(random() % 20);
    for (int32_t &token : history)
      token = static_cast<int32_t>(random() % 3);
    size_t lookup = 1 + random() % 4;
    std::vector<int32_t> text = history;
    for (size_t end = lookup; end < history.size(); ++end)
      if (std::equal(history.end() - static_cast<ptrdiff_t>(lookup),
                     history.end(),
                     history.begin() + static_cast<ptrdiff_t>(end - lookup))) {
        text = history;
        for (size_t i = 0; i < 6; ++i)
          text.push_back(text[end + i]);
      }
    std::vector<int32_t> expected(
        text.begin() + static_cast<ptrdiff_t>(history.size()), text.end());
    ASSERT_EQ(lookUp(history, static_cast<int32_t>(lookup), 6), expected);
    found += !expected.empty();
  }
  EXPECT_GT(found, 5000);
}

//===----------------------------------------------------------------------===//
// When it pays
//===----------------------------------------------------------------------===//

const std::vector<int64_t> costs{1000, 1100, 1200, 1300, 1400};

// Drafts that are never right: what they cost stays below a step and a
// hundredth, and they are tried again from time to time.
TEST(DraftAccount, BoundsWhatIsLost) {
  DraftAccount account;
  int64_t lost = 0, tried = 0, late = 0;
  for (int64_t token = 1; token <= 2000; ++token) {
    int32_t count = account.affordable(4, costs);
    lost += costs[static_cast<size_t>(count)] - 1000;
    tried += count > 0;
    late += count > 0 && token > 1000;
    account.settle(count, 0, costs);
    ASSERT_LE(lost, 1000 + 10 * token);
  }
  EXPECT_GT(tried, 10);
  EXPECT_GT(late, 5);
}

TEST(DraftAccount, GoesOnWhileItPays) {
  DraftAccount account;
  // One of four is right: 2 tokens for 1.4 steps.
  for (int step = 0; step < 1000; ++step) {
    ASSERT_EQ(account.affordable(4, costs), 4);
    account.settle(4, 1, costs);
  }
  // What it has gained before does not matter for long.
  int wrong = 0;
  while (account.affordable(4, costs) == 4 && wrong < 100) {
    account.settle(4, 0, costs);
    ++wrong;
  }
  EXPECT_LE(wrong, 6);
  // One success brings it back.
  for (int token = 0; account.affordable(1, costs) == 0; ++token) {
    ASSERT_LT(token, 10);
    account.settle(0, 0, costs);
  }
  account.settle(1, 1, costs);
  EXPECT_EQ(account.affordable(4, costs), 4);
}

TEST(DraftAccount, AffordsFewerWhereAllWouldLoseTooMuch) {
  DraftAccount account;
  std::vector<int64_t> steep{1000, 1900, 2100, 9000};
  EXPECT_EQ(account.affordable(3, steep), 1);
  EXPECT_EQ(account.affordable(0, steep), 0);
}

//===----------------------------------------------------------------------===//
// Engines
//===----------------------------------------------------------------------===//

std::unique_ptr<Session> open(ToyOptions toy, const SessionOptions &options) {
  TemporaryFile file(toyArtifact(toy));
  auto artifact = Artifact::open(file.path());
  EXPECT_TRUE(artifact) << artifact.status().message();
  auto created = Session::create(*artifact, options);
  EXPECT_TRUE(created) << created.status().message();
  return *std::move(created);
}

struct Answers {
  std::map<std::pair<uint64_t, int32_t>, GenerationResult> results;
  int64_t steps = 0, preemptions = 0, drafted = 0, accepted = 0, cached = 0;
};

Answers answer(Session &session, const std::vector<GenerationRequest> &list) {
  Answers answers;
  Engine::Events events;
  events.onFinish = [&](Engine::RequestId id, const GenerationResult &result) {
    answers.results[{id, result.choice}] = result;
    answers.preemptions += result.preemptions;
    answers.drafted += result.drafted;
    answers.accepted += result.accepted;
    answers.cached += result.cachedTokens;
  };
  Engine engine(session, nullptr, std::move(events));
  for (const GenerationRequest &request : list) {
    auto id = engine.submit(std::make_shared<GenerationRequest>(request));
    EXPECT_TRUE(id) << id.status().message();
  }
  while (!engine.idle()) {
    Status status = engine.step();
    EXPECT_TRUE(status) << status.message();
    if (!status || ++answers.steps > 100000)
      break;
  }
  return answers;
}

/// Prompts of few different tokens, so that much repeats; greedy and sampled.
std::vector<GenerationRequest> requests(unsigned seed, size_t count,
                                        uint32_t vocabulary) {
  std::mt19937 random(seed);
  std::vector<GenerationRequest> list;
  for (size_t i = 0; i < count; ++i) {
    GenerationRequest request;
    // Some begin as others do.
    if (i % 3 == 1)
      request.prompt = list.back().prompt;
    size_t length = request.prompt.size() + 1 + random() % 20;
    while (request.prompt.size() < length)
      request.prompt.push_back(static_cast<int32_t>(random() % vocabulary));
    request.maxTokens = static_cast<int64_t>(random() % 40);
    request.cutToFit = false;
    request.n = i % 4 == 2 ? 3 : 1;
    request.sampling.seed = random();
    request.sampling.temperature = i % 2 ? 0.0f : 0.7f;
    request.sampling.top_k = i % 3 == 0 ? 3 : 0;
    request.sampling.top_p = i % 5 == 0 ? 0.9f : 1.0f;
    request.sampling.repetition_penalty = i % 7 == 0 ? 1.2f : 1.0f;
    if (i % 8 == 5)
      request.eosIds = {1};
    list.push_back(request);
  }
  return list;
}

struct Setting {
  uint32_t pageSize;
  int64_t sequences, slots, chunk;
  bool prefixCache;
};

class SpeculativeEngines : public testing::TestWithParam<Setting> {};

// Every answer is the plain loop's, in batches, chunks and pages of any size,
// where pages run out, where prompts are shared and where requests branch.
TEST_P(SpeculativeEngines, AnswerAsThePlainLoop) {
  Setting setting = GetParam();
  int64_t accepted = 0, rejected = 0, preemptions = 0, cached = 0;
  for (uint32_t lookup : {1u, 2u, 3u})
    for (uint32_t tokens : {1u, 4u, 16u}) {
      ToyOptions toy;
      toy.vocabulary = 3;
      toy.pageSize = setting.pageSize;
      std::vector<GenerationRequest> list =
          requests(lookup * 100 + tokens, 24, toy.vocabulary);
      SessionOptions options;
      options.maxSequences = setting.sequences;
      options.lengths = {setting.slots};
      options.chunk = setting.chunk;
      options.prefixCache = setting.prefixCache;
      Answers plain = answer(*open(toy, options), list);
      toy.lookup = lookup;
      toy.draftTokens = tokens;
      std::unique_ptr<Session> session = open(toy, options);
      Answers fast = answer(*session, list);
      ASSERT_EQ(plain.results.size(), fast.results.size());
      for (const auto &[key, expected] : plain.results) {
        const GenerationResult &result = fast.results[key];
        ASSERT_EQ(result.tokens, expected.tokens)
            << key.first << "." << key.second << " lookup " << lookup;
        ASSERT_EQ(result.finishReason, expected.finishReason);
        ASSERT_LE(result.accepted, result.drafted);
        ASSERT_LE(result.accepted, int64_t(result.tokens.size()));
      }
      EXPECT_EQ(plain.drafted, 0);
      EXPECT_EQ(session->numResident(), 0);
      accepted += fast.accepted;
      rejected += fast.drafted - fast.accepted;
      preemptions += fast.preemptions;
      cached += fast.cached;
      // Nothing is drafted where a request forbids it.
      for (GenerationRequest &request : list)
        request.sampling.max_draft = 0;
      EXPECT_EQ(answer(*session, list).drafted, 0);
    }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(rejected, 500);
  EXPECT_EQ(preemptions > 0, setting.slots < 100);
  EXPECT_EQ(cached > 0, setting.prefixCache);
}
INSTANTIATE_TEST_SUITE_P(Speculation, SpeculativeEngines,
                         testing::Values(Setting{16, 1, 200, 0, false},
                                         Setting{16, 8, 800, 0, false},
                                         Setting{1, 8, 80, 0, true},
                                         Setting{4, 8, 80, 3, true},
                                         Setting{4, 8, 84, 1, false},
                                         Setting{8, 5, 300, 7, true},
                                         Setting{0, 4, 1024, 5, false}));

TEST(SpeculativeEngine, TakesFewerStepsWhereTextRepeats) {
  ToyOptions toy;
  GenerationRequest request;
  request.prompt = {7, 7};
  // In favour of what has been said, so that it says 7 forever.
  request.sampling.repetition_penalty = 1e-6f;
  request.maxTokens = 100;
  int64_t plain = answer(*open(toy, {}), {request}).steps;
  toy.lookup = 1;
  Answers fast = answer(*open(toy, {}), {request});
  EXPECT_EQ(plain, 100);
  // One from the prompt, then 5 a step.
  EXPECT_EQ(fast.steps, 1 + 20);
  EXPECT_EQ(fast.drafted, 79);
  EXPECT_EQ(fast.accepted, 79);
}

// A sequence that stays has the prompt and the answer, and nothing drafted.
TEST(SpeculativeEngine, LeavesASequenceAsThePlainLoopDoes) {
  for (uint32_t pageSize : {4u, 0u})
    for (bool cancels : {false, true}) {
      std::vector<float> after[2];
      std::vector<int32_t> said[2];
      for (bool speculates : {false, true}) {
        ToyOptions toy;
        toy.vocabulary = 3;
        toy.pageSize = pageSize;
        toy.lookup = speculates ? 1 : 0;
        std::unique_ptr<Session> session = open(toy, {});
        auto id = session->add();
        ASSERT_TRUE(id);
        GenerationRequest request;
        request.prompt = {0, 1, 2, 0, 1, 2};
        request.maxTokens = 33;
        request.sequence = *id;
        int64_t drafted = 0;
        int turns = cancels ? 1 : 3;
        for (int turn = 0; turn < turns; ++turn) {
          request.history.clear();
          Engine::Events events;
          events.onFinish = [&](uint64_t, const GenerationResult &result) {
            said[speculates].insert(said[speculates].end(),
                                    result.tokens.begin(), result.tokens.end());
            drafted += result.drafted;
          };
          Engine engine(*session, nullptr, std::move(events));
          auto submitted =
              engine.submit(std::make_shared<GenerationRequest>(request));
          ASSERT_TRUE(submitted);
          if (cancels) {
            // Right after drafting, before anything is verified.
            ASSERT_TRUE(engine.step());
            engine.cancelAll();
          }
          while (!engine.idle())
            ASSERT_TRUE(engine.step());
        }
        EXPECT_EQ(drafted > 0, speculates);
        ASSERT_EQ(session->length(*id), int64_t(static_cast<size_t>(turns) * 6 +
                                                said[speculates].size()));
        ASSERT_TRUE(session->append(*id, {{1}}, LLM_ROLE_PROMPT, Logits::Last));
        while (!session->idle())
          ASSERT_TRUE(session->step(
              [&](Session::SequenceId, int64_t, const LogitRow &row) {
                after[speculates].assign(row.logits.begin(), row.logits.end());
                return Status::success();
              }));
      }
      EXPECT_EQ(said[0], said[1]);
      EXPECT_EQ(after[0], after[1]);
      EXPECT_FALSE(after[0].empty());
    }
}

TEST(SpeculativeEngine, RefusesANegativeLimit) {
  std::unique_ptr<Session> session = open({}, {});
  Engine engine(*session, nullptr, {});
  auto request = std::make_shared<GenerationRequest>();
  request->prompt = {1};
  request->sampling.max_draft = -1;
  auto id = engine.submit(request);
  ASSERT_FALSE(id);
  EXPECT_NE(id.status().message().find("max-draft"), std::string::npos);
}

} // namespace
