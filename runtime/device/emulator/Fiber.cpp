//===- Fiber.cpp - Stacks to switch between -------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/emulator/Fiber.h"

#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__)
#define LLM_EMULATOR_UCONTEXT
#endif
#ifdef LLM_EMULATOR_UCONTEXT
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LLM_FIBER_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define LLM_FIBER_ASAN
#endif
#ifdef LLM_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace llm::runtime {

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

static size_t pageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::unique_ptr<FiberStacks> FiberStacks::create(size_t count) {
  size_t stride = pageBytes() + stackBytes;
  size_t bytes = stride * count;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  auto *base = static_cast<char *>(memory);
  for (size_t i = 0; i < count; ++i)
    if (mprotect(base + i * stride, pageBytes(), PROT_NONE) != 0) {
      munmap(memory, bytes);
      return nullptr;
    }
  return std::unique_ptr<FiberStacks>(new FiberStacks(base, bytes, count));
}

FiberStacks::~FiberStacks() { munmap(memory, bytes); }

char *FiberStacks::base(size_t index) const {
  return memory + index * (pageBytes() + stackBytes) + pageBytes();
}

//===----------------------------------------------------------------------===//
// Switching
//===----------------------------------------------------------------------===//

struct Fiber::Context {
#ifdef LLM_EMULATOR_UCONTEXT
  ucontext_t own, caller;
#else
  void *own = nullptr, *caller = nullptr; ///< stack pointers
#endif
  char *stack = nullptr;
  void (*function)(void *) = nullptr;
  void *argument = nullptr;
#ifdef LLM_FIBER_ASAN
  void *ownFake = nullptr, *callerFake = nullptr;
  const void *callerStack = nullptr;
  size_t callerBytes = 0;
#endif

  void enter();
};

/// The fiber being started; its first code runs without an argument.
static thread_local void *starting;

void Fiber::Context::enter() {
#ifdef LLM_FIBER_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &callerStack, &callerBytes);
#endif
  function(argument);
  __builtin_trap();
}

#ifdef LLM_EMULATOR_UCONTEXT

static void switchContext(ucontext_t &from, ucontext_t &to) {
  swapcontext(&from, &to);
}

#else

// Saves what the System V ABI lets a function keep, swaps the stack pointers.
extern "C" void llm_emulator_switch(void **from, void *to);
asm(R"(
.text
.p2align 4
.globl llm_emulator_switch
.hidden llm_emulator_switch
.type llm_emulator_switch, @function
llm_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size llm_emulator_switch, .-llm_emulator_switch
)");

static void switchContext(void *&from, void *&to) {
  llm_emulator_switch(&from, to);
}

#endif

Fiber::Fiber() : context(std::make_unique<Context>()) {}
Fiber::~Fiber() = default;
Fiber::Fiber(Fiber &&) = default;

void Fiber::prepare(char *stack, void (*function)(void *), void *argument) {
  context->stack = stack;
  context->function = function;
  context->argument = argument;
  void (*start)() = [] { static_cast<Context *>(starting)->enter(); };
#ifdef LLM_EMULATOR_UCONTEXT
  getcontext(&context->own);
  context->own.uc_stack.ss_sp = stack;
  context->own.uc_stack.ss_size = FiberStacks::stackBytes;
  context->own.uc_link = nullptr;
  makecontext(&context->own, start, 0);
#else
  auto *top = reinterpret_cast<uint64_t *>(stack + FiberStacks::stackBytes);
  // As if `start` had been called: its return address, here none, lies 8 below
  // a multiple of 16. Under it what the switch pops: `start` and six registers.
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(start);
  for (int i = 0; i < 6; ++i)
    *--top = 0;
  context->own = top;
#endif
}

void Fiber::resume() {
  starting = context.get();
#ifdef LLM_FIBER_ASAN
  __sanitizer_start_switch_fiber(&context->callerFake, context->stack,
                                 FiberStacks::stackBytes);
#endif
  switchContext(context->caller, context->own);
#ifdef LLM_FIBER_ASAN
  __sanitizer_finish_switch_fiber(context->callerFake, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#ifdef LLM_FIBER_ASAN
  __sanitizer_start_switch_fiber(&context->ownFake, context->callerStack,
                                 context->callerBytes);
#endif
  switchContext(context->own, context->caller);
#ifdef LLM_FIBER_ASAN
  __sanitizer_finish_switch_fiber(context->ownFake, &context->callerStack,
                                  &context->callerBytes);
#endif
}

} // namespace llm::runtime
