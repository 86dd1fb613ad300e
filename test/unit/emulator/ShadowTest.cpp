//===- ShadowTest.cpp - Who touched which byte ----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/emulator/Shadow.h"

#include <gtest/gtest.h>

using namespace llm::runtime;

namespace {
Moment at(int thread, uint32_t epoch = 1, uint32_t warpEpoch = 0,
          uint32_t block = 0) {
  return {block, thread, epoch, warpEpoch, static_cast<uint32_t>(thread)};
}
} // namespace

TEST(Shadow, OneThreadIsInOrder) {
  ShadowByte byte;
  EXPECT_FALSE(byte.wasWritten());
  EXPECT_FALSE(byte.write(at(1), false));
  EXPECT_TRUE(byte.wasWritten());
  EXPECT_FALSE(byte.read(at(1)));
  EXPECT_FALSE(byte.write(at(1), false));
}

TEST(Shadow, OtherThreadsNeedABarrier) {
  ShadowByte byte;
  EXPECT_FALSE(byte.write(at(1), false));
  auto conflict = byte.read(at(2));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->thread, 1);
  EXPECT_TRUE(conflict->wrote);
  EXPECT_TRUE(byte.write(at(40), false));
  EXPECT_FALSE(byte.read(at(2, 2)));
  conflict = byte.write(at(3, 2), false);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->thread, 2);
  EXPECT_FALSE(conflict->wrote);
  EXPECT_FALSE(byte.write(at(3, 3), false));
}

TEST(Shadow, AWarpOrdersItsOwnLanesOnly) {
  ShadowByte byte;
  EXPECT_FALSE(byte.write(at(1, 1, 0), false));
  EXPECT_TRUE(byte.read(at(2, 1, 0)));
  EXPECT_FALSE(byte.read(at(2, 1, 1)));
  EXPECT_TRUE(byte.read(at(40, 1, 5)));
  // All lanes read, then one writes.
  ShadowByte shared;
  EXPECT_FALSE(shared.read(at(1, 1, 0)));
  EXPECT_FALSE(shared.read(at(2, 1, 0)));
  EXPECT_TRUE(shared.write(at(2, 1, 0), false));
  EXPECT_FALSE(shared.write(at(2, 1, 1), false));
}

TEST(Shadow, SeveralReadersAreRemembered) {
  // The last reader writes: the other one is still in conflict.
  for (int other : {2, 40}) {
    ShadowByte byte;
    EXPECT_FALSE(byte.read(at(other)));
    EXPECT_FALSE(byte.read(at(1)));
    auto conflict = byte.write(at(1), false);
    ASSERT_TRUE(conflict);
    EXPECT_EQ(conflict->thread, other);
  }
  ShadowByte thrice;
  EXPECT_FALSE(thrice.read(at(1)));
  EXPECT_FALSE(thrice.read(at(40)));
  EXPECT_FALSE(thrice.read(at(1)));
  auto conflict = thrice.write(at(1), false);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->thread, 40);
  // Readers of an earlier epoch are not.
  ShadowByte byte;
  EXPECT_FALSE(byte.read(at(2, 1)));
  EXPECT_FALSE(byte.read(at(40, 1)));
  EXPECT_FALSE(byte.read(at(1, 2)));
  EXPECT_FALSE(byte.write(at(1, 2), false));
}

TEST(Shadow, BlocksAreNeverOrdered) {
  ShadowByte byte;
  EXPECT_FALSE(byte.write(at(1, 1, 0, 0), false));
  EXPECT_TRUE(byte.read(at(1, 7, 3, 1)));
  EXPECT_TRUE(byte.write(at(1, 7, 3, 1), false));
  ShadowByte read;
  EXPECT_FALSE(read.read(at(1, 1, 0, 0)));
  EXPECT_FALSE(read.read(at(1, 2, 0, 1)));
  auto conflict = read.write(at(1, 2, 0, 1), false);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->block, 0u);
  // Whatever else of its own block read in between.
  ShadowByte crowd;
  EXPECT_FALSE(crowd.read(at(1, 1, 0, 0)));
  for (int thread : {1, 2, 40, 1})
    EXPECT_FALSE(crowd.read(at(thread, 2, 0, 1)));
  EXPECT_TRUE(crowd.write(at(1, 3, 0, 1), false));
}

TEST(Shadow, AtomicsAreOrderedAmongThemselves) {
  ShadowByte byte;
  EXPECT_FALSE(byte.write(at(1), true));
  EXPECT_FALSE(byte.write(at(40), true));
  EXPECT_FALSE(byte.write(at(1, 9, 0, 3), true));
  EXPECT_TRUE(byte.read(at(2, 9, 0, 3)));
  EXPECT_TRUE(byte.write(at(2, 9, 0, 3), false));
  // The last of several is not the only one.
  ShadowByte counter;
  EXPECT_FALSE(counter.write(at(1), true));
  EXPECT_FALSE(counter.write(at(40), true));
  auto conflict = counter.write(at(40), false);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->thread, 1);
  EXPECT_FALSE(counter.read(at(40, 2)));
}
