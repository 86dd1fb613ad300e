//===- SchedulerDraftsTest.cpp - Drafts that are dropped leave nothing ----===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ToyModel.h"
#include "runtime/scheduler/Scheduler.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace llm;
using namespace llm::runtime;

namespace {

constexpr int32_t context = 64, sequences = 6;
constexpr int64_t slots = 1 << 15, draftTokens = 9;
constexpr int numGroups = 2;
using Triple = std::array<int32_t, 3>;

/// A scheduler over groups with the given page sizes, and a model that writes
/// each token's slot.
class Machine {
public:
  Machine(std::array<uint32_t, numGroups> pageSizes, bool prefixCache) {
    std::vector<std::string> contents;
    artifact::Manifest manifest = test::toyManifest({}, contents);
    *manifest.add_cache_groups() = manifest.cache_groups(0);
    for (int group = 0; group < numGroups; ++group)
      manifest.mutable_cache_groups(group)->set_page_size(
          pageSizes[static_cast<size_t>(group)]);
    auto created = Cache::create(manifest, {context, sequences, slots});
    EXPECT_TRUE(created);
    cache = std::make_unique<Cache>(*std::move(created));
    constexpr int64_t most = sequences * context;
    StepArrays::Capacity capacity{most, sequences, most, cache->tableWidth(),
                                  numGroups};
    auto step = StepArrays::create(capacity);
    EXPECT_TRUE(step);
    arrays = std::make_unique<StepArrays>(*std::move(step));
    SchedulerOptions options;
    options.chunk = options.maxLogitRows = most;
    options.maxSequences = sequences;
    options.context = context;
    options.prefixCache = prefixCache;
    options.maxDraft = draftTokens;
    scheduler = std::make_unique<Scheduler>(options, *cache, *arrays);
  }

  /// Runs a step and returns its rows.
  std::vector<Scheduler::Row> step() {
    auto next = scheduler->next();
    EXPECT_TRUE(next) << next.status().message();
    for (int64_t t = 0; t < next->symbols[Symbols::T]; ++t)
      for (int group = 0; group < numGroups; ++group) {
        Triple value{arrays->get(StepArrays::Token)[t],
                     arrays->get(StepArrays::Position)[t],
                     arrays->get(StepArrays::Role)[t]};
        std::memcpy(memory(group, arrays->get(StepArrays::Slot, group)[t]),
                    value.data(), sizeof(value));
      }
    scheduler->commit();
    return next->rows;
  }

  std::byte *memory(int group, int32_t slot) const {
    return cache->plane(static_cast<uint32_t>(group), 0, 0).data +
           static_cast<size_t>(slot) * sizeof(Triple);
  }

  std::unique_ptr<Cache> cache;
  std::unique_ptr<StepArrays> arrays;
  std::unique_ptr<Scheduler> scheduler;
};

/// Pages, their holders, what lies in the slots, and what others may share.
void expectSame(const Machine &drafted, const Machine &plain,
                const std::vector<Scheduler::SequenceId> &ids) {
  for (int group = 0; group < numGroups; ++group) {
    for (Scheduler::SequenceId id : ids) {
      ASSERT_EQ(drafted.scheduler->length(id), plain.scheduler->length(id));
      const BlockTable &a = drafted.scheduler->table(id, group);
      const BlockTable &b = plain.scheduler->table(id, group);
      ASSERT_EQ(a.length(), b.length());
      ASSERT_EQ(std::vector(a.pages().begin(), a.pages().end()),
                std::vector(b.pages().begin(), b.pages().end()));
      for (int32_t slot = 0; slot < a.length(); ++slot)
        ASSERT_EQ(std::memcmp(drafted.memory(group, a.physicalSlot(slot)),
                              plain.memory(group, b.physicalSlot(slot)),
                              sizeof(Triple)),
                  0);
    }
    const PageAllocator &a = drafted.cache->allocator(group);
    const PageAllocator &b = plain.cache->allocator(group);
    ASSERT_EQ(a.numFree(), b.numFree());
    for (int32_t page = 0; page < a.numPages(); ++page)
      ASSERT_EQ(a.references(page), b.references(page)) << "page " << page;
  }
  if (const PrefixCache *a = drafted.scheduler->prefixCache()) {
    const PrefixCache *b = plain.scheduler->prefixCache();
    ASSERT_EQ(a->numBlocks(), b->numBlocks());
    ASSERT_EQ(a->numIdle(), b->numIdle());
  }
}

struct Setting {
  std::array<uint32_t, numGroups> pageSizes;
  bool prefixCache;
};
class Drafts : public testing::TestWithParam<Setting> {};

// Two schedulers live the same history, one with drafts that are all dropped.
TEST_P(Drafts, LeaveNothingBehindWhenDropped) {
  std::mt19937 random(7);
  auto below = [&](size_t limit) { return random() % limit; };
  Machine drafted(GetParam().pageSizes, GetParam().prefixCache);
  Machine plain(GetParam().pageSizes, GetParam().prefixCache);
  std::array both{&drafted, &plain};
  std::vector<Scheduler::SequenceId> ids;
  int64_t drafts = 0, acrossPages = 0, forks = 0, shared = 0, verified = 0;
  for (int round = 0; round < 4000; ++round) {
    size_t action = below(8);
    if (ids.empty() || (action == 0 && ids.size() < sequences)) {
      ids.push_back(*plain.scheduler->add());
      ASSERT_EQ(*drafted.scheduler->add(), ids.back());
      // A beginning that others have, too.
      std::vector<int32_t> prompt(1 + below(30));
      for (size_t i = 0; i < prompt.size(); ++i)
        prompt[i] = static_cast<int32_t>(i);
      for (Machine *each : both)
        ASSERT_TRUE(each->scheduler->append(ids.back(), prompt, LLM_ROLE_PROMPT,
                                            Logits::Last));
    } else if (action == 1 && ids.size() < sequences) {
      auto parent = ids[below(ids.size())];
      auto child = plain.scheduler->fork(parent);
      auto other = drafted.scheduler->fork(parent);
      ASSERT_EQ(child.ok(), other.ok());
      if (!child)
        continue;
      ASSERT_EQ(*child, *other);
      ids.push_back(*child);
      ++forks;
    } else if (action == 2) {
      size_t index = below(ids.size());
      for (Machine *each : both)
        each->scheduler->remove(ids[index]);
      ids.erase(ids.begin() + static_cast<ptrdiff_t>(index));
    } else {
      // Some go on by a token, and draft after it.
      std::vector<std::pair<Scheduler::SequenceId, int64_t>> kept;
      for (Scheduler::SequenceId id : ids) {
        int64_t length = plain.scheduler->length(id);
        if (below(3) == 0 || length + 1 > context)
          continue;
        int32_t token = static_cast<int32_t>(below(3));
        for (Machine *each : both)
          ASSERT_TRUE(each->scheduler->append(id, {{token}}, LLM_ROLE_GENERATED,
                                              Logits::Last));
        std::vector<int32_t> proposed(std::min<size_t>(
            below(draftTokens + 1), static_cast<size_t>(context - length - 1)));
        for (int32_t &each : proposed)
          each = static_cast<int32_t>(below(3));
        if (proposed.empty())
          continue;
        ASSERT_TRUE(drafted.scheduler->draft(id, proposed));
        EXPECT_FALSE(drafted.scheduler->append(id, {{1}}, LLM_ROLE_GENERATED,
                                               Logits::Last));
        EXPECT_FALSE(drafted.scheduler->fork(id));
        kept.emplace_back(id, length + 1);
        drafts += static_cast<int64_t>(proposed.size());
      }
      drafted.step();
      plain.step();
      for (auto [id, length] : kept) {
        acrossPages += drafted.scheduler->table(id, 0).pages().size() >
                       plain.scheduler->table(id, 0).pages().size();
        // Where tokens of another role come first, it is not their turn yet.
        bool computed = drafted.scheduler->table(id, 0).length() ==
                        drafted.scheduler->length(id);
        Scheduler::Row last{id, drafted.scheduler->length(id) - 1};
        EXPECT_EQ(drafted.scheduler->isCurrent(last), computed);
        ASSERT_TRUE(drafted.scheduler->rollback(id, length));
        EXPECT_FALSE(drafted.scheduler->isCurrent(last));
        EXPECT_EQ(drafted.scheduler->isCurrent({id, length - 1}), computed);
        verified += computed;
      }
      for (Scheduler::SequenceId id : ids)
        shared += plain.scheduler->history(id).reused > 0;
    }
    expectSame(drafted, plain, ids);
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(drafts, 10000);
  EXPECT_EQ(acrossPages > 0, GetParam().pageSizes[0] != 0);
  EXPECT_GT(verified, 3000);
  EXPECT_GT(forks, 100);
  EXPECT_EQ(shared > 0, GetParam().prefixCache);
}
INSTANTIATE_TEST_SUITE_P(Scheduler, Drafts,
                         testing::Values(Setting{{4, 8}, true},
                                         Setting{{1, 2}, true},
                                         Setting{{4, 8}, false},
                                         Setting{{16, 16}, true},
                                         Setting{{0, 4}, false}));

// What is kept is as if it had come token by token.
TEST_P(Drafts, AreTokensLikeOthersWhenKept) {
  std::mt19937 random(8);
  Machine drafted(GetParam().pageSizes, GetParam().prefixCache);
  Machine plain(GetParam().pageSizes, GetParam().prefixCache);
  auto id = drafted.scheduler->add();
  ASSERT_TRUE(id && plain.scheduler->add());
  for (Machine *each : {&drafted, &plain}) {
    ASSERT_TRUE(each->scheduler->append(*id, {{1, 2, 3}}, LLM_ROLE_PROMPT,
                                        Logits::Last));
    each->step();
  }
  while (drafted.scheduler->length(*id) + 8 < context) {
    int64_t length = drafted.scheduler->length(*id);
    std::vector<int32_t> proposed(random() % 7);
    for (int32_t &each : proposed)
      each = static_cast<int32_t>(random() % 100);
    int64_t right =
        proposed.empty()
            ? 0
            : static_cast<int64_t>(random() % (proposed.size() + 1));
    ASSERT_TRUE(drafted.scheduler->append(*id, {{7}}, LLM_ROLE_GENERATED,
                                          Logits::Last));
    ASSERT_TRUE(drafted.scheduler->draft(*id, proposed));
    EXPECT_EQ(drafted.step().size(), 1 + proposed.size());
    for (int64_t i = 1; i <= right; ++i)
      drafted.scheduler->keep(*id, length + 1 + i);
    ASSERT_TRUE(drafted.scheduler->rollback(*id, length + 1 + right));
    for (int64_t i = 0; i <= right; ++i) {
      int32_t token = i == 0 ? 7 : proposed[static_cast<size_t>(i - 1)];
      ASSERT_TRUE(plain.scheduler->append(*id, {{token}}, LLM_ROLE_GENERATED,
                                          Logits::Last));
      plain.step();
    }
    expectSame(drafted, plain, {*id});
  }
}

TEST(SchedulerDrafts, RefusesMoreThanThereIsRoomFor) {
  Machine machine({4, 8}, false);
  auto id = machine.scheduler->add();
  ASSERT_TRUE(id);
  std::vector<int32_t> many(draftTokens + 1, 1);
  Status status = machine.scheduler->draft(*id, many);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.message(), "a draft of 10 tokens, where 9 are the most");
  many.assign(context - 1, 1);
  ASSERT_TRUE(
      machine.scheduler->append(*id, many, LLM_ROLE_PROMPT, Logits::Last));
  EXPECT_FALSE(machine.scheduler->draft(*id, {{1, 2}}));
  EXPECT_TRUE(machine.scheduler->draft(*id, {{1}}));
}

} // namespace
