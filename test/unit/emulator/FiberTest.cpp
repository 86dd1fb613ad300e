//===- FiberTest.cpp - Stacks to switch between ---------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/emulator/Fiber.h"

#include <gtest/gtest.h>
#include <vector>

using namespace llm::runtime;

namespace {
struct Counter {
  Fiber fiber;
  std::vector<int> *log;
  int id, rounds;
};

void count(void *argument) {
  auto &counter = *static_cast<Counter *>(argument);
  // Values in registers and on the stack live across switches.
  double scale = counter.id * 0.5;
  for (int i = 0; i < counter.rounds; ++i) {
    counter.log->push_back(static_cast<int>(scale * 2) * 100 + i);
    counter.fiber.suspend();
  }
  counter.log->push_back(-counter.id);
  for (;;)
    counter.fiber.suspend();
}
} // namespace

TEST(Fiber, SwitchesKeepTheirState) {
  auto stacks = FiberStacks::create(3);
  ASSERT_TRUE(stacks);
  std::vector<int> log;
  std::vector<Counter> counters(3);
  for (int i = 0; i < 3; ++i) {
    counters[i].log = &log;
    counters[i].id = i + 1;
    counters[i].rounds = i + 1;
    counters[i].fiber.prepare(stacks->base(i), count, &counters[i]);
  }
  for (int round = 0; round < 4; ++round)
    for (int i = 0; i <= round && i < 3; ++i)
      counters[i].fiber.resume();
  EXPECT_EQ(log, (std::vector<int>{100, -1, 200, 201, 300, -2, 301}));
}

TEST(Fiber, StacksAreReused) {
  auto stacks = FiberStacks::create(1);
  ASSERT_TRUE(stacks);
  std::vector<int> log;
  for (int i = 1; i <= 1000; ++i) {
    Counter counter;
    counter.log = &log;
    counter.id = i;
    counter.rounds = 1;
    counter.fiber.prepare(stacks->base(0), count, &counter);
    counter.fiber.resume();
    EXPECT_EQ(log.back(), i * 100);
  }
}
