//===- PageTableTest.cpp - Pages and block tables -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/kvcache/PageTable.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

using namespace llm::runtime;

namespace {

TEST(PageAllocator, HandsOutTheLowestFreePage) {
  PageAllocator pages(3);
  EXPECT_EQ(pages.allocate(), 0);
  EXPECT_EQ(pages.allocate(), 1);
  pages.release(0);
  EXPECT_EQ(pages.numFree(), 2);
  EXPECT_EQ(pages.allocate(), 0);
  EXPECT_EQ(pages.allocate(), 2);
  EXPECT_EQ(pages.allocate(), std::nullopt);
}

TEST(PageAllocator, CountsHolders) {
  PageAllocator pages(1);
  int32_t page = *pages.allocate();
  pages.retain(page);
  EXPECT_EQ(pages.references(page), 2);
  pages.release(page);
  EXPECT_EQ(pages.numFree(), 0);
  pages.release(page);
  EXPECT_EQ(pages.numFree(), 1);
  EXPECT_EQ(pages.references(page), 0);
}

TEST(BlockTable, GrowsByPages) {
  PageAllocator pages(3);
  BlockTable table(pages, 4);
  std::vector<BlockTable::Copy> copies;
  ASSERT_TRUE(table.grow(3, copies));
  EXPECT_EQ(table.pages().size(), 1u);
  ASSERT_TRUE(table.grow(6, copies));
  EXPECT_EQ(table.pages().size(), 3u);
  EXPECT_EQ(table.physicalSlot(8), 2 * 4 + 0);
  EXPECT_FALSE(table.grow(4, copies));
  EXPECT_EQ(table.length(), 9);
  ASSERT_TRUE(table.grow(3, copies));
  EXPECT_EQ(pages.numFree(), 0);
  EXPECT_TRUE(copies.empty());
  table.rollback(4);
  EXPECT_EQ(pages.numFree(), 2);
  table.clear();
  EXPECT_EQ(pages.numFree(), 3);
}

TEST(BlockTable, ForkSharesUntilWritten) {
  PageAllocator pages(4);
  std::vector<BlockTable::Copy> copies;
  BlockTable parent(pages, 4);
  ASSERT_TRUE(parent.grow(6, copies));
  BlockTable child = parent.fork();
  EXPECT_EQ(pages.numFree(), 2);
  EXPECT_EQ(pages.references(0), 2);
  // The child writes into the second page, which is half full: it gets a copy.
  ASSERT_TRUE(child.grow(1, copies));
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, 1);
  EXPECT_EQ(copies[0].to, 2);
  EXPECT_EQ(child.pages()[0], 0);
  EXPECT_EQ(child.pages()[1], 2);
  // The parent is now the only holder of its page.
  copies.clear();
  ASSERT_TRUE(parent.grow(1, copies));
  EXPECT_TRUE(copies.empty());
  parent.clear();
  EXPECT_EQ(pages.references(0), 1);
  child.clear();
  EXPECT_EQ(pages.numFree(), 4);
}

TEST(BlockTable, ForkAtAPageBoundaryCopiesNothing) {
  PageAllocator pages(4);
  std::vector<BlockTable::Copy> copies;
  BlockTable parent(pages, 4);
  ASSERT_TRUE(parent.grow(4, copies));
  BlockTable child = parent.fork();
  ASSERT_TRUE(child.grow(1, copies));
  EXPECT_TRUE(copies.empty());
  EXPECT_EQ(pages.numFree(), 2);
}

TEST(BlockTable, CopyNeedsAFreePage) {
  PageAllocator pages(1);
  std::vector<BlockTable::Copy> copies;
  BlockTable parent(pages, 4);
  ASSERT_TRUE(parent.grow(2, copies));
  BlockTable child = parent.fork();
  EXPECT_FALSE(child.grow(1, copies));
  EXPECT_EQ(child.length(), 2);
  EXPECT_EQ(pages.references(0), 2);
}

// Random growth, forks, rollbacks and ends, against a model that stores what
// was written: contents are never shared after a write, and no page leaks.
TEST(BlockTable, RandomHistories) {
  std::mt19937 random(7);
  constexpr int32_t pageSize = 3, numPages = 40;
  PageAllocator pages(numPages);
  std::vector<int> memory(pageSize * numPages, -1);
  struct Sequence {
    BlockTable table;
    std::vector<int> contents;
  };
  std::vector<Sequence> sequences;
  int stamp = 0;
  for (int step = 0; step < 5000; ++step) {
    uint32_t action = random() % 10;
    if (sequences.empty() || action == 0) {
      sequences.push_back({BlockTable(pages, pageSize), {}});
      continue;
    }
    size_t index = random() % sequences.size();
    Sequence &sequence = sequences[index];
    if (action == 1) {
      Sequence child{sequence.table.fork(), sequence.contents};
      sequences.push_back(std::move(child));
    } else if (action == 2) {
      sequences.erase(sequences.begin() + static_cast<ptrdiff_t>(index));
    } else if (action == 3) {
      auto length =
          static_cast<int32_t>(random() % (sequence.contents.size() + 1));
      sequence.table.rollback(length);
      sequence.contents.resize(static_cast<size_t>(length));
    } else {
      auto count = static_cast<int32_t>(random() % 5);
      std::vector<BlockTable::Copy> copies;
      if (!sequence.table.grow(count, copies))
        continue;
      for (BlockTable::Copy copy : copies)
        std::copy_n(memory.begin() + copy.from * pageSize, pageSize,
                    memory.begin() + copy.to * pageSize);
      for (int32_t i = 0; i < count; ++i) {
        sequence.contents.push_back(++stamp);
        memory[static_cast<size_t>(sequence.table.physicalSlot(
            static_cast<int32_t>(sequence.contents.size()) - 1))] = stamp;
      }
    }
    std::map<int32_t, int32_t> holders;
    for (const Sequence &each : sequences) {
      ASSERT_EQ(each.table.length(),
                static_cast<int32_t>(each.contents.size()));
      for (int32_t page : each.table.pages())
        ++holders[page];
      for (int32_t slot = 0; slot < each.table.length(); ++slot)
        ASSERT_EQ(memory[static_cast<size_t>(each.table.physicalSlot(slot))],
                  each.contents[static_cast<size_t>(slot)]);
    }
    for (auto [page, count] : holders)
      ASSERT_EQ(pages.references(page), count);
    ASSERT_EQ(pages.numFree(), numPages - static_cast<int32_t>(holders.size()));
  }
}

} // namespace
