//===- PrefixCacheTest.cpp - Pages by what is in them ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/kvcache/PrefixCache.h"

#include <gtest/gtest.h>

using namespace llm::runtime;

namespace {

using Words = std::vector<uint32_t>;

class Prefixes : public testing::TestWithParam<uint64_t> {
protected:
  Prefixes() : prefixes({{&pages, 1}, {&small, 2}}, 4, GetParam()) {}

  /// A block made of new pages, which the maker then lets go of.
  PrefixCache::Block make(PrefixCache::Block parent, const Words &words,
                          int32_t adapter = -1) {
    std::vector<int32_t> own{*pages.allocate(), *small.allocate(),
                             *small.allocate()};
    PrefixCache::Block block = prefixes.insert(parent, words, adapter, own);
    pages.release(own[0]);
    small.release(own[1]);
    small.release(own[2]);
    return block;
  }

  PageAllocator pages{8}, small{16};
  PrefixCache prefixes;
};

TEST_P(Prefixes, FindsWhatIsEqualFromTheBeginning) {
  Words a{2, 4, 6, 8}, b{2, 4, 6, 9};
  PrefixCache::Block first = make(PrefixCache::none, a);
  PrefixCache::Block second = make(first, b);
  EXPECT_EQ(prefixes.find(PrefixCache::none, a, -1), first);
  EXPECT_EQ(prefixes.find(first, b, -1), second);
  EXPECT_EQ(prefixes.find(PrefixCache::none, b, -1), PrefixCache::none);
  EXPECT_EQ(prefixes.find(second, b, -1), PrefixCache::none);
  EXPECT_EQ(prefixes.find(first, a, -1), PrefixCache::none);
  EXPECT_EQ(prefixes.find(PrefixCache::none, a, 0), PrefixCache::none);
  EXPECT_EQ(make(PrefixCache::none, a), first);
  EXPECT_NE(make(PrefixCache::none, a, 3), first);
  EXPECT_EQ(prefixes.numBlocks(), 3);
  EXPECT_EQ(pages.numFree(), 5);
  EXPECT_EQ(small.numFree(), 10);
  EXPECT_EQ(prefixes.pages(second, 1).size(), 2u);
  prefixes.release(second);
  prefixes.release(first);
  prefixes.release(first);
  prefixes.release(prefixes.find(PrefixCache::none, a, 3));
}

TEST_P(Prefixes, EvictsWhatWasLetGoFirst) {
  Words a{1, 1, 1, 1}, b{2, 2, 2, 2}, c{3, 3, 3, 3};
  PrefixCache::Block first = make(PrefixCache::none, a);
  PrefixCache::Block child = make(first, c);
  PrefixCache::Block other = make(PrefixCache::none, b);
  EXPECT_FALSE(prefixes.evict());
  prefixes.release(child);
  prefixes.release(first);
  prefixes.release(other);
  EXPECT_EQ(prefixes.numIdle(), 3);
  // Used again: the newest now.
  prefixes.acquire(first);
  prefixes.acquire(child);
  prefixes.release(child);
  prefixes.release(first);
  EXPECT_TRUE(prefixes.evict());
  EXPECT_EQ(prefixes.find(PrefixCache::none, b, -1), PrefixCache::none);
  EXPECT_EQ(prefixes.find(first, c, -1), child);
  EXPECT_TRUE(prefixes.evict());
  EXPECT_EQ(prefixes.find(PrefixCache::none, a, -1), first);
  EXPECT_TRUE(prefixes.evict());
  EXPECT_FALSE(prefixes.evict());
  EXPECT_EQ(prefixes.numBlocks(), 0);
  EXPECT_EQ(pages.numFree(), 8);
  EXPECT_EQ(small.numFree(), 16);
}

// With all bits of the hash, with one, and with none: then everything collides.
INSTANTIATE_TEST_SUITE_P(Hashes, Prefixes, testing::Values(~uint64_t(0), 1, 0));

TEST(PrefixCache, AWordHasTokenAndRole) {
  EXPECT_NE(PrefixCache::word(5, LLM_ROLE_PROMPT),
            PrefixCache::word(5, LLM_ROLE_GENERATED));
  EXPECT_NE(PrefixCache::word(INT32_MAX, LLM_ROLE_PROMPT),
            PrefixCache::word(INT32_MAX - 1, LLM_ROLE_PROMPT));
}

} // namespace
