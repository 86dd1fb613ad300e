//===- EngineTest.cpp - Requests that come and go ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Engine.h"
#include "ToyModel.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace llm;
using namespace llm::runtime;
using namespace llm::test;

namespace {

using Key = std::pair<Engine::RequestId, int32_t>;

/// A session on the toy model, and an engine that collects results.
class Engines : public testing::Test {
protected:
  void open(SessionOptions options, uint32_t pageSize = 4) {
    ToyOptions toy;
    toy.pageSize = pageSize;
    TemporaryFile file(toyArtifact(toy));
    auto artifact = Artifact::open(file.path());
    ASSERT_TRUE(artifact) << artifact.status().message();
    auto created = Session::create(*artifact, options);
    ASSERT_TRUE(created) << created.status().message();
    session = *std::move(created);
    Engine::Events events;
    events.onFinish = [this](Engine::RequestId id,
                             const GenerationResult &result) {
      EXPECT_TRUE(results.emplace(Key{id, result.choice}, result).second)
          << "request " << id << " finished twice";
      finished.push_back(id);
      if (onFinish)
        onFinish(id);
    };
    engine = std::make_unique<Engine>(*session, nullptr, std::move(events));
  }
  ~Engines() override { engine.reset(); }

  static GenerationRequest request(std::vector<int32_t> prompt,
                                   int64_t maxTokens) {
    GenerationRequest result;
    result.prompt = std::move(prompt);
    result.maxTokens = maxTokens;
    result.cutToFit = false;
    return result;
  }
  Engine::RequestId submit(GenerationRequest request) {
    auto id =
        engine->submit(std::make_shared<GenerationRequest>(std::move(request)));
    EXPECT_TRUE(id) << id.status().message();
    return id ? *id : 0;
  }
  Engine::RequestId submit(std::vector<int32_t> prompt, int64_t maxTokens) {
    return submit(request(std::move(prompt), maxTokens));
  }
  Status refusal(GenerationRequest request) {
    auto id =
        engine->submit(std::make_shared<GenerationRequest>(std::move(request)));
    EXPECT_FALSE(id);
    return id.takeStatus();
  }
  void drain() {
    for (int i = 0; !engine->idle(); ++i) {
      ASSERT_LT(i, 100000) << "no progress";
      Status status = engine->step();
      ASSERT_TRUE(status) << status.message();
    }
  }
  const GenerationResult &result(Engine::RequestId id, int32_t choice = 0) {
    EXPECT_TRUE(results.count({id, choice})) << id << "." << choice;
    return results[{id, choice}];
  }

  std::unique_ptr<Session> session;
  std::unique_ptr<Engine> engine;
  std::map<Key, GenerationResult> results;
  std::vector<Engine::RequestId> finished;
  std::function<void(Engine::RequestId)> onFinish;
};

std::vector<int32_t> prompt(int seed, size_t length) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < length; ++i)
    ids.push_back(static_cast<int32_t>(
        (i * 37 + 11u * static_cast<size_t>(seed) + i * i) % 101));
  return ids;
}

SessionOptions sized(int64_t sequences, int64_t slots, bool prefixCache) {
  SessionOptions options;
  options.maxSequences = sequences;
  // One imagined sequence: the cache's size.
  options.lengths = {slots};
  options.context = 0;
  options.prefixCache = prefixCache;
  return options;
}

TEST_F(Engines, RequestsJoinAndLeaveBetweenSteps) {
  open(sized(2, 200, false));
  Engine::RequestId first = submit({1, 2, 3}, 30);
  ASSERT_TRUE(engine->step());
  ASSERT_TRUE(engine->step());
  Engine::RequestId second = submit({4, 5}, 3);
  Engine::RequestId third = submit({6}, 3);
  ASSERT_TRUE(engine->step());
  EXPECT_EQ(session->numResident(), 2);
  ASSERT_TRUE(engine->step());
  ASSERT_TRUE(engine->step());
  // The second has its three tokens; the third takes its place.
  EXPECT_TRUE(results.count({second, 0}));
  ASSERT_TRUE(engine->step());
  EXPECT_EQ(session->numResident(), 2);
  drain();
  EXPECT_TRUE(engine->idle());
  EXPECT_EQ(result(first).tokens, toyGenerate({1, 2, 3}, 30, 101));
  EXPECT_EQ(result(second).tokens, toyGenerate({4, 5}, 3, 101));
  EXPECT_EQ(result(third).tokens, toyGenerate({6}, 3, 101));
  EXPECT_EQ(session->numResident(), 0);
}

// What cannot be needed is not asked for: a cache of exactly the requests'
// lengths has room for all of them.
TEST_F(Engines, AllFitWhereTheirLengthsDo) {
  for (uint32_t pageSize : {4u, 16u, 0u}) {
    engine.reset();
    results.clear();
    SessionOptions options;
    options.maxSequences = 8;
    options.lengths.assign(8, 40);
    options.context = 40;
    open(options, pageSize);
    for (int i = 0; i < 8; ++i)
      submit(prompt(i, 21), 20);
    ASSERT_TRUE(engine->step());
    EXPECT_EQ(session->numResident(), 8) << pageSize;
    drain();
    for (int i = 0; i < 8; ++i) {
      const GenerationResult &answer = result(static_cast<uint64_t>(i));
      EXPECT_EQ(answer.tokens, toyGenerate(prompt(i, 21), 20, 101));
      EXPECT_EQ(answer.preemptions, 0);
    }
  }
}

TEST_F(Engines, CallbacksSubmitAndCancel) {
  open(sized(2, 200, false));
  Engine::RequestId long1 = submit({1}, 100), long2 = 0;
  Engine::RequestId brief = submit({2}, 3);
  onFinish = [&](Engine::RequestId id) {
    if (id != brief)
      return;
    EXPECT_TRUE(engine->cancel(long1));
    EXPECT_FALSE(engine->cancel(long1));
    EXPECT_FALSE(engine->cancel(brief));
    long2 = submit({3}, 5);
  };
  drain();
  EXPECT_EQ(result(long1).finishReason, "cancelled");
  // Whether it had its third token in that step depends on the order in it.
  EXPECT_GE(result(long1).tokens.size(), 2u);
  EXPECT_LE(result(long1).tokens.size(), 3u);
  EXPECT_EQ(result(long2).tokens, toyGenerate({3}, 5, 101));
}

// What a cancelled answer was about to compute is no part of the next one.
TEST_F(Engines, GoesOnWhereAnAnswerWasCancelled) {
  open(sized(2, 200, false));
  auto kept = session->add(100);
  ASSERT_TRUE(kept);
  GenerationRequest first = request({1, 2, 3}, 30), second = request({7, 8}, 5);
  first.sequence = second.sequence = *kept;
  Engine::RequestId cut = submit(std::move(first));
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(engine->step());
  EXPECT_TRUE(engine->cancel(cut));
  std::vector<int32_t> tokens = {1, 2, 3};
  tokens.insert(tokens.end(), result(cut).tokens.begin(),
                result(cut).tokens.end());
  ASSERT_EQ(tokens.size(), 6u);
  ASSERT_EQ(session->length(*kept), 6);
  tokens.insert(tokens.end(), {7, 8});
  std::vector<llm_role> roles(8, LLM_ROLE_PROMPT);
  std::fill_n(roles.begin() + 3, 3, LLM_ROLE_GENERATED);
  Engine::RequestId next = submit(std::move(second));
  drain();
  for (int i = 0; i < 5; ++i) {
    std::vector<float> logits = toyLogits(tokens, roles, 101);
    auto best = std::max_element(logits.begin(), logits.end());
    tokens.push_back(static_cast<int32_t>(best - logits.begin()));
    roles.push_back(LLM_ROLE_GENERATED);
  }
  EXPECT_EQ(result(next).tokens,
            std::vector<int32_t>(tokens.end() - 5, tokens.end()));
}

TEST_F(Engines, RefusesAtOnceWhatNeverFits) {
  open(sized(2, 100, true));
  Status status = refusal(request(prompt(1, 20), 300));
  EXPECT_EQ(status.code(), StatusCode::InvalidInput);
  EXPECT_EQ(status.message(),
            "a prompt of 20 tokens and 300 more do not fit in "
            "the context of 256");
  status = refusal(request(prompt(1, 20), 82));
  EXPECT_EQ(status.code(), StatusCode::Resource);
  EXPECT_EQ(status.message(), "a prompt of 20 tokens and 82 more do not fit in "
                              "the cache of 100 tokens");
  EXPECT_FALSE(refusal(request({}, 1)));
  EXPECT_FALSE(refusal(request({101}, 1)));
  EXPECT_FALSE(refusal(request({-1}, 1)));
  EXPECT_FALSE(refusal(request({1}, -1)));
  EXPECT_FALSE(refusal(request({1}, INT64_MAX)));
  for (int32_t n : {0, -1, maxChoices + 1}) {
    GenerationRequest many = request({1}, 1);
    many.n = n;
    EXPECT_FALSE(refusal(many));
  }
  GenerationRequest stop = request({1}, 1);
  stop.stop = {"a"};
  EXPECT_FALSE(refusal(stop));
  // The last token is not fed back: this fills the cache to its end.
  Engine::RequestId id = submit(prompt(1, 20), 81);
  GenerationRequest cut = request(prompt(2, 20), 1000);
  cut.cutToFit = true;
  Engine::RequestId other = submit(cut);
  drain();
  EXPECT_EQ(result(id).tokens, toyGenerate(prompt(1, 20), 81, 101));
  EXPECT_EQ(result(other).tokens, toyGenerate(prompt(2, 20), 81, 101));
}

// Pages run out: later requests make way, are computed again, and answer what
// they answer alone. Roles are part of the toy model's logits.
TEST_F(Engines, PreemptsTheLatest) {
  for (bool prefixCache : {false, true})
    for (int64_t chunk : {1, 5, 100}) {
      results.clear();
      engine.reset();
      SessionOptions options = sized(8, 64, prefixCache);
      options.chunk = chunk;
      open(options);
      constexpr int count = 12;
      for (int i = 0; i < count; ++i)
        submit(prompt(i, 1 + static_cast<size_t>(i) % 5), 30 + i);
      drain();
      int64_t preemptions = 0;
      for (int i = 0; i < count; ++i) {
        const GenerationResult &answer =
            result(static_cast<Engine::RequestId>(i));
        EXPECT_EQ(answer.tokens,
                  toyGenerate(prompt(i, 1 + static_cast<size_t>(i) % 5),
                              static_cast<size_t>(30 + i), 101));
        preemptions += answer.preemptions;
      }
      EXPECT_GT(preemptions, 0);
      EXPECT_EQ(result(0).preemptions, 0);
    }
}

TEST_F(Engines, ReusesTheBeginningsOfPrompts) {
  open(sized(2, 200, true));
  std::vector<int32_t> common = prompt(1, 22), first = common, second = common;
  first.insert(first.end(), {1, 2, 3});
  second.insert(second.end(), {7, 7});
  Engine::RequestId a = submit(first, 6);
  drain();
  Engine::RequestId b = submit(second, 6);
  // All of its prompt is there, but its last token has to be computed.
  Engine::RequestId c = submit(prompt(1, 20), 6);
  drain();
  EXPECT_EQ(result(a).cachedTokens, 0);
  EXPECT_EQ(result(b).cachedTokens, 20);
  EXPECT_EQ(result(c).cachedTokens, 16);
  EXPECT_EQ(result(a).tokens, toyGenerate(first, 6, 101));
  EXPECT_EQ(result(b).tokens, toyGenerate(second, 6, 101));
  EXPECT_EQ(result(c).tokens, toyGenerate(prompt(1, 20), 6, 101));
  // An answer sent back is a prompt, and its roles are others.
  std::vector<int32_t> talk = first;
  talk.insert(talk.end(), result(a).tokens.begin(), result(a).tokens.end());
  talk.push_back(9);
  Engine::RequestId d = submit(talk, 4);
  drain();
  EXPECT_EQ(result(d).cachedTokens, 24);
  EXPECT_EQ(result(d).tokens, toyGenerate(talk, 4, 101));
}

TEST_F(Engines, ReusesWhatRunsBesideIt) {
  SessionOptions options = sized(4, 200, true);
  options.chunk = 8;
  open(options);
  for (int i = 0; i < 4; ++i)
    submit(prompt(1, 40), 4);
  drain();
  EXPECT_EQ(result(0).cachedTokens, 0);
  for (Engine::RequestId id : {1u, 2u, 3u}) {
    EXPECT_GE(result(id).cachedTokens, 32);
    EXPECT_EQ(result(id).tokens, toyGenerate(prompt(1, 40), 4, 101));
  }
}

// A prompt that begins beside an equal one, in the rest of its chunk, joins it
// at the end of a page.
TEST_F(Engines, JoinsAtTheEndOfAPage) {
  SessionOptions options = sized(2, 200, true);
  options.chunk = 70;
  open(options);
  submit(prompt(1, 60), 3);
  submit(prompt(1, 61), 3);
  drain();
  // 8 of 10 tokens were left for it, as pages have 4.
  EXPECT_EQ(result(1).cachedTokens, 60 - 8);
  EXPECT_EQ(result(1).tokens, toyGenerate(prompt(1, 61), 3, 101));
  // The rest is less than a page: it waits for the next step.
  engine.reset();
  results.clear();
  options.chunk = 63;
  open(options);
  submit(prompt(1, 60), 3);
  submit(prompt(1, 61), 3);
  drain();
  EXPECT_EQ(result(1).cachedTokens, 60);
}

// A chunk smaller than a page, full of sequences that generate.
TEST_F(Engines, PromptsGoOnBesideAnswers) {
  SessionOptions options = sized(3, 400, true);
  options.chunk = 2;
  open(options, 16);
  for (int i = 0; i < 2; ++i)
    submit(prompt(i, 1), 90);
  Engine::RequestId late = submit(prompt(7, 40), 3);
  drain();
  EXPECT_EQ(result(late).tokens, toyGenerate(prompt(7, 40), 3, 101));
  // It was done before them.
  EXPECT_EQ(finished.front(), late);
}

TEST_F(Engines, DoesNotReuseUnasked) {
  for (uint32_t pageSize : {4u, 0u}) {
    engine.reset();
    results.clear();
    SessionOptions options = sized(1, 256, pageSize == 0);
    open(options, pageSize);
    submit(prompt(1, 20), 3);
    submit(prompt(1, 20), 3);
    drain();
    for (Engine::RequestId id : {0u, 1u}) {
      EXPECT_EQ(result(id).cachedTokens, 0);
      EXPECT_EQ(result(id).tokens, toyGenerate(prompt(1, 20), 3, 101));
    }
  }
}

// Pages of earlier requests go when memory is needed, the oldest first.
TEST_F(Engines, ForgetsWhatIsOldest) {
  open(sized(1, 64, true));
  for (int i = 0; i < 3; ++i)
    submit(prompt(i, 20), 1);
  drain();
  Engine::RequestId full = submit(prompt(9, 30), 1);
  drain();
  Engine::RequestId recent = submit(prompt(2, 20), 1);
  Engine::RequestId oldest = submit(prompt(0, 20), 1);
  drain();
  EXPECT_EQ(result(full).cachedTokens, 0);
  EXPECT_EQ(result(recent).cachedTokens, 16);
  EXPECT_EQ(result(oldest).cachedTokens, 0);
}

TEST_F(Engines, ContinuationsShareThePrompt) {
  for (uint32_t pageSize : {4u, 16u, 0u})
    for (int64_t sequences : {1, 3, 8}) {
      engine.reset();
      results.clear();
      open(sized(sequences, pageSize ? 256 : sequences * 256, false), pageSize);
      GenerationRequest many = request(prompt(3, 21), 10);
      many.n = 5;
      many.sampling.temperature = 1.0f;
      many.sampling.seed = UINT64_MAX - 1;
      Engine::RequestId id = submit(many);
      std::vector<Engine::RequestId> alone;
      for (int32_t choice = 0; choice < many.n; ++choice) {
        GenerationRequest one = many;
        one.n = 1;
        one.sampling.seed += static_cast<uint64_t>(choice);
        alone.push_back(submit(one));
      }
      ASSERT_TRUE(engine->step());
      if (sequences == 8 && pageSize == 4)
        // 21 tokens of the prompt in 6 pages, and 5 times the last page's copy
        // less one; other requests have not begun.
        EXPECT_EQ(session->numResident(), 8);
      drain();
      for (int32_t choice = 0; choice < many.n; ++choice) {
        EXPECT_EQ(result(id, choice).tokens,
                  result(alone[static_cast<size_t>(choice)]).tokens);
        EXPECT_EQ(result(id, choice).seed,
                  choiceSeed(many.sampling.seed, choice));
      }
      EXPECT_NE(result(id, 0).tokens, result(id, 1).tokens);
      EXPECT_EQ(results.size(), 10u);
    }
}

TEST_F(Engines, CancelsInEveryState) {
  SessionOptions options = sized(1, 64, true);
  options.chunk = 4;
  open(options);
  GenerationRequest many = request(prompt(1, 20), 20);
  many.n = 3;
  many.sampling.temperature = 1;
  Engine::RequestId running = submit(many);
  Engine::RequestId queued = submit(many);
  Engine::RequestId last = submit(prompt(5, 3), 2);
  // In its prompt, before its continuations exist.
  ASSERT_TRUE(engine->step());
  EXPECT_TRUE(engine->cancel(running));
  EXPECT_FALSE(engine->cancel(running));
  // Not begun.
  EXPECT_TRUE(engine->cancel(queued));
  for (Engine::RequestId id : {running, queued})
    for (int32_t choice = 0; choice < 3; ++choice) {
      EXPECT_EQ(result(id, choice).finishReason, "cancelled");
      EXPECT_TRUE(result(id, choice).tokens.empty());
    }
  // Branched, two continuations waiting for the one sequence.
  Engine::RequestId branched = submit(many);
  while (engine->numRunning() < 3)
    ASSERT_TRUE(engine->step());
  EXPECT_TRUE(engine->cancel(branched));
  EXPECT_EQ(result(branched, 2).tokens.size(), 1u);
  drain();
  EXPECT_EQ(result(last).tokens, toyGenerate(prompt(5, 3), 2, 101));
  // Preempted.
  engine.reset();
  results.clear();
  open(sized(4, 64, false));
  for (int i = 0; i < 4; ++i)
    submit(prompt(i, 4), 50);
  while (session->numWaiting() == 0)
    ASSERT_TRUE(engine->step());
  EXPECT_TRUE(engine->cancel(3));
  EXPECT_EQ(result(3).preemptions, 1);
  drain();
  for (Engine::RequestId id : {0u, 1u, 2u})
    EXPECT_EQ(result(id).tokens,
              toyGenerate(prompt(static_cast<int>(id), 4), 50, 101));
  // Finished, and never known.
  EXPECT_FALSE(engine->cancel(0));
  EXPECT_FALSE(engine->cancel(1000));
}

TEST_F(Engines, NothingAskedForIsNothingComputed) {
  open(sized(1, 64, true));
  GenerationRequest none = request({1, 2}, 0);
  none.n = 2;
  Engine::RequestId id = submit(none);
  drain();
  for (int32_t choice : {0, 1}) {
    EXPECT_EQ(result(id, choice).finishReason, "length");
    EXPECT_EQ(result(id, choice).promptTokens, 2);
  }
}

// Random arrivals, lengths, continuations and cancellations in little memory:
// everything finishes, once, with what it gets alone.
TEST_F(Engines, RandomLoads) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    std::mt19937 random(seed);
    engine.reset();
    results.clear();
    SessionOptions options = sized(1 + random() % 6, 80, seed % 2 == 0);
    options.chunk = 1 + random() % 20;
    open(options, std::array{1u, 4u, 8u}[seed % 3]);
    std::map<Key, std::vector<int32_t>> expected;
    std::vector<Engine::RequestId> ids;
    for (int i = 0; i < 3000 || !engine->idle(); ++i) {
      ASSERT_LT(i, 100000);
      if (i < 3000 && random() % 5 == 0) {
        std::vector<int32_t> text =
            prompt(static_cast<int>(random() % 3), random() % 40 + 1);
        if (random() % 2)
          text.back() = static_cast<int32_t>(random() % 101);
        GenerationRequest one =
            request(text, static_cast<int64_t>(random() % 40));
        one.n = random() % 4 == 0 ? 3 : 1;
        Engine::RequestId id = submit(one);
        for (int32_t choice = 0; choice < one.n; ++choice)
          expected[{id, choice}] =
              toyGenerate(text, static_cast<size_t>(one.maxTokens), 101);
        ids.push_back(id);
      }
      if (i < 3000 && !ids.empty() && random() % 40 == 0)
        engine->cancel(ids[random() % ids.size()]);
      Status status = engine->step();
      ASSERT_TRUE(status) << status.message();
    }
    ASSERT_EQ(results.size(), expected.size());
    size_t cancelled = 0;
    int64_t cached = 0;
    for (const auto &[key, tokens] : expected) {
      const GenerationResult &found = results.at(key);
      cached += found.cachedTokens;
      cancelled += found.finishReason == "cancelled";
      if (found.finishReason != "cancelled")
        ASSERT_EQ(found.tokens, tokens) << "seed " << seed;
      else
        ASSERT_TRUE(std::equal(found.tokens.begin(), found.tokens.end(),
                               tokens.begin()));
    }
    EXPECT_LT(cancelled, expected.size() / 2);
    EXPECT_EQ(cached > 0, seed % 2 == 0);
    EXPECT_EQ(session->numResident(), 0);
  }
}

} // namespace
