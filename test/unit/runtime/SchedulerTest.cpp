//===- SchedulerTest.cpp - Random histories of sequences --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/scheduler/Scheduler.h"
#include "ToyModel.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace llm;
using namespace llm::runtime;

namespace {

constexpr int32_t context = 64;
constexpr int64_t slots = 96;
constexpr int numGroups = 2;
constexpr uint32_t draftTokens = 3;

/// What a cache slot holds.
using Triple = std::array<int32_t, 3>;

/// A scheduler over two groups with pages of 4 and of 8, and a naive model of
/// it: every sequence is a list of tokens.
class Model {
public:
  explicit Model(bool prefixCache, unsigned seed) : random(seed) {
    std::vector<std::string> contents;
    test::ToyOptions toy;
    toy.pageSize = 4;
    artifact::Manifest manifest = test::toyManifest(toy, contents);
    *manifest.add_cache_groups() = manifest.cache_groups(0);
    manifest.mutable_cache_groups(1)->set_page_size(8);
    CacheShape shape{context, 4, slots};
    auto created = Cache::create(manifest, shape);
    EXPECT_TRUE(created);
    cache = std::make_unique<Cache>(*std::move(created));
    StepArrays::Capacity capacity{16, 4, 16, cache->tableWidth(), numGroups};
    auto step = StepArrays::create(capacity);
    EXPECT_TRUE(step);
    arrays = std::make_unique<StepArrays>(*std::move(step));
    SchedulerOptions options;
    options.chunk = 10;
    options.maxSequences = 4;
    options.maxLogitRows = 16;
    options.maxDraft = draftTokens;
    options.context = context;
    options.prefixCache = prefixCache;
    scheduler = std::make_unique<Scheduler>(options, *cache, *arrays);
  }

  void act() {
    uint32_t action = below(20);
    if (sequences.empty() || (action == 0 && sequences.size() < 12)) {
      sequences[*scheduler->add()];
      return;
    }
    auto picked = sequences.begin();
    std::advance(picked, below(static_cast<uint32_t>(sequences.size())));
    auto &[id, sequence] = *picked;
    if (action == 1)
      fork(id, sequence);
    else if (action <= 3)
      remove(id);
    else if (action == 4)
      rollback(id, sequence,
               below(static_cast<uint32_t>(sequence.tokens.size() + 1)));
    else if (action == 5)
      draft(id, sequence);
    else if (action <= 12)
      append(id, sequence);
    else
      step();
  }

  /// Every slot has what its sequence says, and every page its holders.
  void verify() const {
    bool anyWaits = false;
    for (const auto &[id, sequence] : sequences) {
      ASSERT_EQ(scheduler->length(id),
                static_cast<int64_t>(sequence.tokens.size()));
      anyWaits |= sequence.computed < sequence.tokens.size();
    }
    ASSERT_EQ(scheduler->idle(), !anyWaits);
    const PrefixCache *prefixes = scheduler->prefixCache();
    for (int group = 0; group < numGroups; ++group) {
      const PageAllocator &pages = cache->allocator(group);
      std::vector<int32_t> holders(static_cast<size_t>(pages.numPages()));
      for (const auto &[id, sequence] : sequences) {
        const BlockTable &table = scheduler->table(id, group);
        ASSERT_LE(table.length(), static_cast<int64_t>(sequence.computed));
        for (int32_t page : table.pages())
          ++holders[static_cast<size_t>(page)];
        for (int32_t slot = 0; slot < table.length(); ++slot) {
          const auto &[token, role] =
              sequence.tokens[static_cast<size_t>(slot)];
          ASSERT_EQ(memory(group, table.physicalSlot(slot)),
                    (Triple{token, slot, role}));
        }
      }
      int64_t cached = 0;
      int32_t unheld = 0;
      for (int32_t page = 0; page < pages.numPages(); ++page) {
        int32_t more =
            pages.references(page) - holders[static_cast<size_t>(page)];
        // Two blocks may share a page of the smaller size.
        ASSERT_GE(more, 0) << "page " << page;
        cached += more;
        unheld += pages.references(page) == 0;
      }
      int64_t perBlock = cache->unit() / cache->pageSize(group);
      ASSERT_EQ(cached, prefixes ? prefixes->numBlocks() * perBlock : 0);
      ASSERT_EQ(pages.numFree(), unheld);
    }
  }

  void finish() {
    while (!scheduler->idle())
      step();
    verify();
    int64_t reused = 0, preempted = 0;
    for (const auto &[id, sequence] : sequences) {
      reused += scheduler->history(id).reused;
      preempted += scheduler->history(id).preemptions;
      scheduler->remove(id);
    }
    sequences.clear();
    verify();
    totalReused += reused;
    totalPreempted += preempted;
    scheduler.reset();
    for (int group = 0; group < numGroups; ++group)
      EXPECT_EQ(cache->allocator(group).numFree(),
                cache->allocator(group).numPages());
  }

  int64_t totalReused = 0, totalPreempted = 0, totalParked = 0, totalDrafts = 0,
          steps = 0;

private:
  struct Sequence {
    std::vector<std::pair<int32_t, int32_t>> tokens; ///< id, role
    std::vector<bool> wanted;
    size_t computed = 0;
    size_t drafts = 0; ///< at the end
  };

  uint32_t below(uint32_t limit) {
    return static_cast<uint32_t>(random()) % limit;
  }

  Triple memory(int group, int32_t slot) const {
    Triple result;
    Cache::PlaneRef plane = cache->plane(static_cast<uint32_t>(group), 0, 0);
    std::memcpy(result.data(), plane.data + slot * sizeof(Triple),
                sizeof(Triple));
    return result;
  }

  void fork(Scheduler::SequenceId id, const Sequence &sequence) {
    auto child = scheduler->fork(id);
    ASSERT_EQ(child.ok(), sequence.computed == sequence.tokens.size() &&
                              sequence.drafts == 0);
    if (child)
      sequences[*child] = sequence;
  }

  void remove(Scheduler::SequenceId id) {
    totalReused += scheduler->history(id).reused;
    totalPreempted += scheduler->history(id).preemptions;
    scheduler->remove(id);
    sequences.erase(id);
  }

  void rollback(Scheduler::SequenceId id, Sequence &sequence, uint32_t length) {
    ASSERT_TRUE(scheduler->rollback(id, length));
    sequence.drafts -=
        std::min(sequence.drafts, sequence.tokens.size() - length);
    sequence.tokens.resize(length);
    sequence.wanted.resize(length);
    sequence.computed = std::min<size_t>(sequence.computed, length);
  }

  /// Drafts, or decides how many of the drafts are right.
  void draft(Scheduler::SequenceId id, Sequence &sequence) {
    if (sequence.drafts > 0) {
      auto first =
          static_cast<uint32_t>(sequence.tokens.size() - sequence.drafts);
      uint32_t kept = first + below(static_cast<uint32_t>(sequence.drafts) + 1);
      scheduler->keep(id, kept);
      sequence.drafts = sequence.tokens.size() - kept;
      return rollback(id, sequence, kept);
    }
    std::vector<int32_t> added(1 + below(draftTokens));
    for (size_t i = 0; i < added.size(); ++i)
      added[i] = static_cast<int32_t>(sequence.tokens.size() + i);
    bool fits = sequence.tokens.size() + added.size() <= context;
    ASSERT_EQ(scheduler->draft(id, added).ok(), fits);
    if (!fits)
      return;
    ++totalDrafts;
    sequence.drafts = added.size();
    for (int32_t token : added) {
      sequence.tokens.emplace_back(token, LLM_ROLE_GENERATED);
      sequence.wanted.push_back(true);
    }
  }

  /// Tokens that others have at the same place, mostly.
  void append(Scheduler::SequenceId id, Sequence &sequence) {
    std::vector<int32_t> added;
    uint32_t count = below(3) == 0 ? 1 + below(20) : 1 + below(3);
    for (uint32_t i = 0; i < count; ++i)
      added.push_back(static_cast<int32_t>(sequence.tokens.size() + i +
                                           (below(12) == 0 ? 100 : 0)));
    auto role = below(3) == 0 ? LLM_ROLE_GENERATED : LLM_ROLE_PROMPT;
    std::array kinds{Logits::None, Logits::Last, Logits::Last, Logits::All};
    Logits logits = kinds[below(4)];
    bool fits = sequence.tokens.size() + count <= context;
    ASSERT_EQ(scheduler->append(id, added, role, logits).ok(),
              fits && sequence.drafts == 0);
    if (sequence.drafts > 0)
      return draft(id, sequence);
    if (!fits)
      return rollback(id, sequence, below(8));
    for (uint32_t i = 0; i < count; ++i) {
      sequence.tokens.emplace_back(added[i], role);
      sequence.wanted.push_back(logits == Logits::All ||
                                (logits == Logits::Last && i + 1 == count));
    }
  }

  /// A step, run as a model would: it writes each token's slot, and nothing
  /// reads what is not written.
  void step() {
    std::map<Scheduler::SequenceId, bool> hadPages;
    for (const auto &[id, sequence] : sequences)
      hadPages[id] = scheduler->table(id, 0).length() > 0;
    auto next = scheduler->next();
    ASSERT_TRUE(next) << next.status().message();
    ++steps;
    int64_t tokens = next->symbols[Symbols::T];
    const int32_t *token = arrays->get(StepArrays::Token);
    const int32_t *position = arrays->get(StepArrays::Position);
    const int32_t *role = arrays->get(StepArrays::Role);
    for (int64_t t = 0; t < tokens; ++t)
      for (int group = 0; group < numGroups; ++group) {
        Triple value{token[t], position[t], role[t]};
        Cache::PlaneRef plane =
            cache->plane(static_cast<uint32_t>(group), 0, 0);
        std::memcpy(plane.data + arrays->get(StepArrays::Slot, group)[t] *
                                     sizeof(Triple),
                    value.data(), sizeof(Triple));
      }
    scheduler->commit();
    bool progress = tokens > 0;
    std::map<Scheduler::SequenceId, std::vector<int64_t>> rows;
    for (const Scheduler::Row &row : next->rows)
      rows[row.sequence].push_back(row.position);
    for (auto &[id, sequence] : sequences) {
      // Logits come once for each token that wants them, and in order.
      auto length = static_cast<size_t>(scheduler->table(id, 0).length());
      totalParked += hadPages[id] && length == 0;
      size_t computed = std::max(sequence.computed, length);
      progress |= computed > sequence.computed;
      std::vector<int64_t> expected;
      for (size_t i = sequence.computed; i < computed; ++i)
        if (sequence.wanted[i])
          expected.push_back(static_cast<int64_t>(i));
      ASSERT_EQ(rows[id], expected);
      sequence.computed = computed;
    }
    ASSERT_TRUE(progress || scheduler->idle());
  }

  std::mt19937 random;
  std::unique_ptr<Cache> cache;
  std::unique_ptr<StepArrays> arrays;
  std::unique_ptr<Scheduler> scheduler;
  std::map<Scheduler::SequenceId, Sequence> sequences;
};

class RandomHistories : public testing::TestWithParam<bool> {};

TEST_P(RandomHistories, LoseNothingAndLeakNothing) {
  int64_t reused = 0, preempted = 0, parked = 0, drafts = 0, steps = 0;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    Model model(GetParam(), seed);
    for (int i = 0; i < 20000; ++i) {
      model.act();
      model.verify();
      ASSERT_FALSE(testing::Test::HasFatalFailure())
          << "seed " << seed << ", operation " << i;
    }
    model.finish();
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    reused += model.totalReused;
    preempted += model.totalPreempted;
    parked += model.totalParked;
    drafts += model.totalDrafts;
    steps += model.steps;
  }
  // The histories are those that are meant.
  EXPECT_GT(steps, 30000);
  EXPECT_GT(parked, 1000);
  EXPECT_GT(drafts, 1000);
  EXPECT_GT(preempted, 20);
  EXPECT_EQ(reused > 1000, GetParam());
}

INSTANTIATE_TEST_SUITE_P(PrefixCache, RandomHistories, testing::Bool());

} // namespace
