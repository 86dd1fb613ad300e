//===- AcceptanceTest.cpp - Drafts leave the distribution as it is --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Acceptance.h"
#include "runtime/session/Sampler.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace llm::runtime;

namespace {

using Distribution = std::vector<double>;
/// verdictOn, or something wrong in its place.
using Rule = std::function<Verdict(int32_t draft, std::span<const double> p,
                                   std::span<const double> q, double acceptDraw,
                                   double residualDraw)>;

/// The largest u in [0, 1] up to which `holds`, which holds up to some number
/// and fails from there on; to 2^-50.
double boundary(const std::function<bool(double)> &holds) {
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    double middle = (low + high) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return holds(0) ? low : 0;
}

/// The distribution of the tokens that come out where drafts are drawn from q,
/// over all drafts and all uniform numbers: a draft is accepted for the small
/// ones, and what takes its place ascends with them.
Distribution outcome(const Rule &rule, const Distribution &p,
                     const Distribution &q) {
  Distribution out(p.size(), 0.0);
  for (size_t x = 0; x < q.size(); ++x) {
    if (q[x] == 0)
      continue;
    auto draft = static_cast<int32_t>(x);
    double accepted =
        boundary([&](double u) { return rule(draft, p, q, u, 0.5).accepted; });
    out[x] += q[x] * accepted;
    // Never refused, so that nothing takes its place.
    if (accepted > 1 - 1e-12)
      continue;
    double before = 0;
    for (size_t t = 0; t < p.size(); ++t) {
      double upTo = boundary([&](double u) {
        Verdict verdict = rule(draft, p, q, std::nextafter(1.0, 0.0), u);
        EXPECT_FALSE(verdict.accepted);
        return verdict.token <= static_cast<int32_t>(t);
      });
      if (upTo > 1 - 1e-12)
        upTo = 1;
      out[t] += q[x] * (1 - accepted) * (upTo - before);
      before = upTo;
    }
  }
  return out;
}

double distance(const Distribution &a, const Distribution &b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// Pearson's statistic of `draws` tokens with drafts from q, beside p.
double chiSquare(const Rule &rule, const Distribution &p, const Distribution &q,
                 int draws) {
  std::vector<int> counts(p.size(), 0);
  for (int i = 0; i < draws; ++i) {
    auto position = static_cast<uint64_t>(i);
    int32_t draft = pick(q, uniform(99, position, RandomStream::Sample));
    Verdict verdict =
        rule(draft, p, q, uniform(99, position, static_cast<RandomStream>(1)),
             uniform(99, position, static_cast<RandomStream>(2)));
    ++counts[static_cast<size_t>(verdict.token)];
  }
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    double expected = p[i] * draws;
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0) << i;
      continue;
    }
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

/// Of 7 degrees of freedom, alpha = 0.001.
constexpr double critical = 24.322;
constexpr int draws = 100000;

Distribution randomDistribution(std::mt19937 &random, size_t size,
                                bool hasZeros) {
  std::exponential_distribution<double> weight;
  Distribution result(size);
  for (double &each : result)
    each = hasZeros && random() % 3 == 0 ? 0 : weight(random);
  result[random() % size] += 0.1;
  double total = std::accumulate(result.begin(), result.end(), 0.0);
  for (double &each : result)
    each /= total;
  return result;
}

const Distribution target{0.30, 0.05, 0.20, 0.02, 0.13, 0.10, 0.08, 0.12};
const Distribution drafter{0.10, 0.25, 0.20, 0.08, 0.03, 0.30, 0.02, 0.02};

TEST(Acceptance, LeavesEveryDistribution) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    size_t size = 1 + random() % 8;
    Distribution p = randomDistribution(random, size, round % 2);
    Distribution q = randomDistribution(random, size, round % 4 > 1);
    ASSERT_LT(distance(outcome(verdictOn, p, q), p), 1e-6) << round;
    // And where both are one, and where the draft is certain.
    ASSERT_LT(distance(outcome(verdictOn, p, p), p), 1e-6) << round;
    for (size_t x = 0; x < size; ++x) {
      Distribution certain(size, 0.0);
      certain[x] = 1;
      ASSERT_LT(distance(outcome(verdictOn, p, certain), p), 1e-6) << round;
      ASSERT_LT(distance(outcome(verdictOn, certain, p), certain), 1e-6);
    }
  }
}

TEST(Acceptance, DrawsAreNotRejected) {
  EXPECT_LT(chiSquare(verdictOn, target, drafter, draws), critical);
  EXPECT_LT(chiSquare(verdictOn, drafter, target, draws), critical);
}

// Rules that look right, each wrong in another way.
TEST(Acceptance, WrongRulesAreFound) {
  Rule acceptsByP = [](int32_t draft, auto p, auto q, double u, double v) {
    // As if q were 1.
    if (u < p[static_cast<size_t>(draft)])
      return Verdict{true, draft};
    std::vector<double> rest;
    residual(p, q, rest);
    return Verdict{false, pick(rest, v)};
  };
  Rule drawsAgainFromP = [](int32_t draft, auto p, auto q, double u, double v) {
    Verdict verdict = verdictOn(draft, p, q, u, v);
    return verdict.accepted ? verdict : Verdict{false, pick(p, v)};
  };
  Rule ratioUpsideDown = [](int32_t draft, auto p, auto q, double u, double v) {
    auto x = static_cast<size_t>(draft);
    if (u * p[x] < q[x])
      return Verdict{true, draft};
    std::vector<double> rest;
    residual(p, q, rest);
    return Verdict{false, pick(rest, v)};
  };
  Rule keepsNegativeParts = [](int32_t draft, auto p, auto q, double u,
                               double v) {
    Verdict verdict = verdictOn(draft, p, q, u, v);
    if (verdict.accepted)
      return verdict;
    std::vector<double> rest(p.size());
    for (size_t i = 0; i < p.size(); ++i)
      rest[i] = std::abs(p[i] - q[i]);
    return Verdict{false, pick(rest, v)};
  };
  for (const Rule &rule :
       {acceptsByP, drawsAgainFromP, ratioUpsideDown, keepsNegativeParts}) {
    EXPECT_GT(distance(outcome(rule, target, drafter), target), 1e-3);
    EXPECT_GT(chiSquare(rule, target, drafter, draws), critical);
  }
}

/// What comes out where the draft is certain: the sampler's draws, over all
/// uniform numbers on a grid.
TEST(Acceptance, CertainDraftsLeaveTheSamplersDistribution) {
  for (int32_t draft = 0; draft < 8; ++draft) {
    double accepted = 0;
    Distribution out(8, 0.0), refused(8, 0.0);
    constexpr int steps = 1 << 22;
    for (int i = 0; i < steps; ++i) {
      Verdict verdict =
          verdictOnCertain(draft, pick(target, (i + 0.5) / steps));
      out[static_cast<size_t>(verdict.token)] += 1.0 / steps;
      accepted += verdict.accepted ? 1.0 / steps : 0;
      if (!verdict.accepted)
        refused[static_cast<size_t>(verdict.token)] += 1.0 / steps;
    }
    EXPECT_LT(distance(out, target), 1e-6);
    // It is the rule: min(1, p / q), and the positive part of p - q.
    EXPECT_NEAR(accepted, target[static_cast<size_t>(draft)], 1e-6);
    Distribution certain(8, 0.0), rest;
    certain[static_cast<size_t>(draft)] = 1;
    residual(target, certain, rest);
    for (double &each : refused)
      each /= 1 - accepted;
    EXPECT_LT(distance(refused, rest), 1e-5);
  }
}

TEST(Acceptance, PickNeverTakesWhatHasNoWeight) {
  Distribution weights{0, 0.3, 0, 0.7, 0};
  EXPECT_EQ(pick(weights, 0), 1);
  EXPECT_EQ(pick(weights, 0.2999), 1);
  EXPECT_EQ(pick(weights, 0.3001), 3);
  EXPECT_EQ(pick(weights, std::nextafter(1.0, 0.0)), 3);
}

} // namespace
