//===- Fiber.h - Stacks to switch between -----------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_DEVICE_EMULATOR_FIBER_H
#define LLM_RUNTIME_DEVICE_EMULATOR_FIBER_H

#include <cstddef>
#include <memory>

namespace llm::runtime {

/// Stacks of equal size in one mapping, each above a page that faults.
class FiberStacks {
public:
  static constexpr size_t stackBytes = 64 << 10;

  /// Null if the system gives no memory.
  static std::unique_ptr<FiberStacks> create(size_t count);
  ~FiberStacks();
  FiberStacks(const FiberStacks &) = delete;
  FiberStacks &operator=(const FiberStacks &) = delete;

  size_t size() const { return count; }
  /// The lowest usable byte of stack `index`.
  char *base(size_t index) const;

private:
  FiberStacks(char *memory, size_t bytes, size_t count)
      : memory(memory), bytes(bytes), count(count) {}

  char *memory;
  size_t bytes;
  size_t count;
};

/// A function that runs on a stack of its own and can be left and continued.
/// All switches of a fiber happen on one thread of the system. A fiber that is
/// not continued is simply forgotten: nothing on its stack is destroyed.
class Fiber {
public:
  Fiber();
  ~Fiber();
  Fiber(Fiber &&);

  /// Makes resume() start `function(argument)` on `stack`, of
  /// FiberStacks::stackBytes. The function must not return.
  void prepare(char *stack, void (*function)(void *), void *argument);
  /// Runs the fiber until it suspends.
  void resume();
  /// Called on the fiber: returns to whoever resumed it.
  void suspend();

private:
  struct Context;
  std::unique_ptr<Context> context;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_DEVICE_EMULATOR_FIBER_H
