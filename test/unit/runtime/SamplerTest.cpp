//===- SamplerTest.cpp - Sampling against a plain reference ----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Sampler.h"
#include "runtime/session/StopStrings.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <numeric>
#include <random>

using namespace llm::runtime;

namespace {

// Known answers of the Random123 distribution for philox4x32-10.
TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, LooksUniformAndDependsOnEachPart) {
  double sum = 0;
  std::array<int, 16> buckets{};
  constexpr int count = 16000;
  for (int i = 0; i < count; ++i) {
    double u = uniform(3, static_cast<uint64_t>(i), RandomStream::Sample);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    ++buckets[static_cast<size_t>(u * 16)];
  }
  EXPECT_NEAR(sum / count, 0.5, 0.01);
  for (int bucket : buckets)
    EXPECT_NEAR(bucket, 1000, 150);
  double base = uniform(1, 2, RandomStream::Sample);
  EXPECT_NE(base, uniform(uint64_t(1) << 32 | 1, 2, RandomStream::Sample));
  EXPECT_NE(base, uniform(1, uint64_t(1) << 32 | 2, RandomStream::Sample));
  EXPECT_NE(base, uniform(1, 2, static_cast<RandomStream>(1)));
}

TEST(Sampler, GreedyTakesTheLowestIdAmongEquals) {
  Sampler sampler;
  std::vector<float> logits{1, 5, 3, 5};
  EXPECT_EQ(*sampler.sample({logits}, {}, 0, greedySampling()), 1);
  logits[0] = std::numeric_limits<float>::quiet_NaN();
  logits[2] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(*sampler.sample({logits}, {}, 0, greedySampling()), 1);
  std::vector<float> nothing(3, std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(sampler.sample({nothing}, {}, 0, greedySampling()));
}

/// With the maxima of blocks, of few values and so of many equal ones, with
/// logits that are none: the same tokens.
TEST(Sampler, MaximaChangeNothing) {
  Sampler plain, blocked;
  uint32_t state = 1;
  auto draw = [&] { return (state = state * 1664525 + 1013904223) >> 16; };
  for (size_t size : {1, 31, 32, 33, 1000, 4099}) {
    std::vector<float> logits(size),
        maxima((size - 1) / LLM_LOGITS_BLOCK + 1, -INFINITY);
    for (int round = 0; round < 50; ++round) {
      std::fill(maxima.begin(), maxima.end(), -INFINITY);
      for (size_t i = 0; i < size; ++i) {
        uint32_t kind = draw() % 100;
        logits[i] = kind == 0   ? NAN
                    : kind == 1 ? INFINITY
                    : kind == 2 ? -INFINITY
                                : static_cast<float>(draw() % 40) - 20;
        if (std::isfinite(logits[i]))
          maxima[i / LLM_LOGITS_BLOCK] =
              std::max(maxima[i / LLM_LOGITS_BLOCK], logits[i]);
      }
      std::vector<int32_t> history{0, 3};
      for (int topK : {0, 1, 5, 40, 200})
        for (float temperature : {0.0f, 1.5f})
          for (float penalty : {1.0f, 1.3f}) {
            llm_sampling s = greedySampling();
            s.seed = round;
            s.top_k = topK;
            s.temperature = temperature;
            s.repetition_penalty = penalty;
            s.top_p = topK == 5 ? 0.9f : 1;
            Expected<int32_t> want = plain.sample({logits}, history, 7, s);
            Expected<int32_t> got =
                blocked.sample({logits, maxima}, history, 7, s);
            ASSERT_EQ(bool(want), bool(got));
            if (want) {
              ASSERT_EQ(*want, *got) << size << " top-k " << topK;
            }
          }
    }
  }
}

TEST(Sampler, PenaltyCountsATokenOnce) {
  Sampler sampler;
  llm_sampling sampling = greedySampling();
  sampling.repetition_penalty = 2;
  // 8 / 2 = 4 < 5; with the penalty twice, 2 would lose against 3 as well.
  std::vector<float> logits{8, 5, 3};
  std::vector<int32_t> history{0, 0, 99, -1};
  EXPECT_EQ(*sampler.sample({logits}, history, 0, sampling), 1);
  logits = {8, 3.5f, 3};
  EXPECT_EQ(*sampler.sample({logits}, history, 0, sampling), 0);
  // Negative logits get smaller.
  logits = {-1, -1.5f};
  EXPECT_EQ(*sampler.sample({logits}, {{0}}, 0, sampling), 1);
}

/// The distribution as the documentation states it, by elimination, in the
/// order of the steps.
std::map<int32_t, double> reference(std::vector<double> logits,
                                    const std::vector<int32_t> &history,
                                    const llm_sampling &s) {
  std::vector<bool> penalised(logits.size(), false);
  for (int32_t id : history)
    penalised[static_cast<size_t>(id)] = true;
  for (size_t i = 0; i < logits.size(); ++i)
    if (penalised[i])
      logits[i] = logits[i] > 0 ? logits[i] / double(s.repetition_penalty)
                                : logits[i] * double(s.repetition_penalty);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    double x = logits[static_cast<size_t>(a)];
    double y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  if (s.top_k > 0 && static_cast<size_t>(s.top_k) < order.size())
    order.resize(static_cast<size_t>(s.top_k));
  auto probabilities = [&] {
    std::vector<double> p;
    for (int32_t id : order)
      p.push_back(
          std::exp(logits[static_cast<size_t>(id)] / double(s.temperature)));
    double total = std::accumulate(p.begin(), p.end(), 0.0);
    for (double &value : p)
      value /= total;
    return p;
  };
  std::vector<double> p = probabilities();
  double mass = 0;
  size_t keep = 0;
  while (keep < p.size() && mass < double(s.top_p))
    mass += p[keep++];
  if (s.top_p < 1)
    order.resize(keep);
  p = probabilities();
  size_t left = 0;
  while (left < p.size() && p[left] >= double(s.min_p) * p[0])
    ++left;
  order.resize(left);
  p = probabilities();
  std::map<int32_t, double> result;
  for (size_t i = 0; i < order.size(); ++i)
    result[order[i]] = p[i];
  return result;
}

TEST(Sampler, DrawsFromTheStatedDistribution) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(40);
  for (float &logit : logits)
    logit = normal(random);
  std::vector<int32_t> history{3, 4, 5, 6, 7};
  std::vector<llm_sampling> cases;
  for (float temperature : {0.5f, 1.0f, 2.0f})
    for (int32_t topK : {0, 1, 7})
      for (float topP : {1.0f, 0.8f, 0.3f})
        for (float minP : {0.0f, 0.1f})
          for (float penalty : {1.0f, 1.3f}) {
            llm_sampling s = greedySampling();
            s.temperature = temperature;
            s.top_k = topK;
            s.top_p = topP;
            s.min_p = minP;
            s.repetition_penalty = penalty;
            s.seed = cases.size();
            cases.push_back(s);
          }
  Sampler sampler;
  constexpr int draws = 4000;
  for (const llm_sampling &s : cases) {
    std::map<int32_t, double> expected = reference(
        std::vector<double>(logits.begin(), logits.end()), history, s);
    std::map<int32_t, int> counts;
    for (int i = 0; i < draws; ++i)
      ++counts[*sampler.sample({logits}, history, i, s)];
    for (auto [id, count] : counts)
      ASSERT_TRUE(expected.count(id)) << "token " << id << " was eliminated";
    for (auto [id, p] : expected) {
      double deviation = std::sqrt(p * (1 - p) / draws);
      EXPECT_NEAR(counts[id] / double(draws), p, 5 * deviation + 1e-3)
          << "token " << id << ", temperature " << s.temperature << ", top-k "
          << s.top_k << ", top-p " << s.top_p << ", min-p " << s.min_p;
    }
  }
}

TEST(Sampler, ADrawDependsOnItsKeyOnly) {
  std::vector<float> logits(1000);
  std::mt19937 random(6);
  for (float &logit : logits)
    logit = static_cast<float>(random() % 1000) / 200;
  llm_sampling s = greedySampling();
  s.temperature = 1;
  s.seed = 42;
  std::vector<int32_t> forward, backward;
  Sampler one, two;
  for (int i = 0; i < 50; ++i)
    forward.push_back(*one.sample({logits}, {}, i, s));
  for (int i = 49; i >= 0; --i)
    backward.push_back(*two.sample({logits}, {}, i, s));
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  s.seed = 43;
  std::vector<int32_t> other;
  for (int i = 0; i < 50; ++i)
    other.push_back(*one.sample({logits}, {}, i, s));
  EXPECT_NE(forward, other);
}

TEST(Sampler, RefusesMeaninglessParameters) {
  auto with = [](auto change) {
    llm_sampling s = greedySampling();
    change(s);
    return verifySampling(s).ok();
  };
  EXPECT_TRUE(with([](llm_sampling &) {}));
  EXPECT_FALSE(with([](llm_sampling &s) { s.temperature = -1; }));
  EXPECT_FALSE(with([](llm_sampling &s) { s.temperature = NAN; }));
  EXPECT_FALSE(with([](llm_sampling &s) { s.top_k = -1; }));
  EXPECT_FALSE(with([](llm_sampling &s) { s.top_p = 0; }));
  EXPECT_FALSE(with([](llm_sampling &s) { s.top_p = 1.5f; }));
  EXPECT_FALSE(with([](llm_sampling &s) { s.min_p = 2; }));
  EXPECT_FALSE(with([](llm_sampling &s) { s.repetition_penalty = 0; }));
}

TEST(StopStrings, CutsBeforeTheFirstHoweverItArrives) {
  const std::string text = "one stop two STOP three";
  const std::vector<std::string> strings{"STOP", "", "stopp"};
  for (size_t part = 1; part <= text.size(); ++part) {
    StopStrings stops(strings);
    std::string shown;
    for (size_t i = 0; i < text.size(); i += part) {
      shown += stops.push(text.substr(i, part));
      // Nothing of a stop string is ever shown.
      EXPECT_EQ(shown.find("ST"), std::string::npos);
    }
    EXPECT_TRUE(stops.stopped());
    EXPECT_EQ(shown, "one stop two ");
    EXPECT_EQ(stops.push("more"), "");
  }
}

TEST(StopStrings, FlushGivesWhatOnlyLookedLikeOne) {
  const std::vector<std::string> strings{"aab"};
  StopStrings stops(strings);
  std::string shown = stops.push("xaa");
  EXPECT_EQ(shown, "x");
  shown += stops.push("a");
  EXPECT_EQ(shown, "xa");
  EXPECT_FALSE(stops.stopped());
  EXPECT_EQ(shown + stops.flush(), "xaaa");
}

TEST(StopStrings, TheEarliestOfSeveralWins) {
  const std::vector<std::string> strings{"world", "lo w"};
  StopStrings stops(strings);
  EXPECT_EQ(stops.push("hello world"), "hel");
  EXPECT_TRUE(stops.stopped());
}

} // namespace
