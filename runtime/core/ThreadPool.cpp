//===- ThreadPool.cpp - Persistent threads for short parallel loops
//--------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/ThreadPool.h"

#include "runtime/core/Limits.h"

#include <algorithm>
#include <climits>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <system_error>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace llm::runtime {

namespace {

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

int64_t nowNanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t(1000000000) + time.tv_nsec;
}

constexpr int64_t spinNanoseconds = 50000;
/// Ranges are counted in 16 bits.
constexpr int maxThreads = 4096;
/// Enough to even out threads of unequal speed; more would cost claims, and
/// breaks the streams that the processor fetches ahead.
constexpr int rangesPerThread = 4;

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

/// Spins until done() or the time is over. The clock is read every 64 rounds,
/// it costs as much as some of them.
template <typename Done> bool spinUntil(Done done) {
  int64_t deadline = nowNanoseconds() + spinNanoseconds;
  while (true) {
    for (int i = 0; i < 64; ++i) {
      if (done())
        return true;
      pause();
    }
    if (nowNanoseconds() > deadline)
      return done();
  }
}

std::vector<int> affinitySet() {
  std::vector<int> processors;
  // Machines with more processors than cpu_set_t has bits need a larger set.
  for (int limit = CPU_SETSIZE; limit <= (1 << 16); limit *= 2) {
    cpu_set_t *set = CPU_ALLOC(limit);
    if (!set)
      return processors;
    size_t size = CPU_ALLOC_SIZE(limit);
    bool read = sched_getaffinity(0, size, set) == 0;
    if (read)
      for (int i = 0; i < limit; ++i)
        if (CPU_ISSET_S(i, size, set))
          processors.push_back(i);
    CPU_FREE(set);
    if (read)
      break;
  }
  return processors;
}

} // namespace

int availableThreads() {
  int count = std::max<int>(1, static_cast<int>(affinitySet().size()));
  return std::min(count, cgroupProcessorLimit());
}

ThreadPool::ThreadPool(int threads) {
  threads = std::clamp(threads, 1, maxThreads);
  workers.reserve(static_cast<size_t>(threads) - 1);
  for (int i = 1; i < threads; ++i) {
    try {
      workers.emplace_back([this] { work(); });
    } catch (const std::system_error &) {
      break;
    }
  }
  pin();
}

ThreadPool::~ThreadPool() {
  stopping.store(true, std::memory_order_seq_cst);
  epoch.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(epoch);
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::pin() {
  std::vector<int> processors = affinitySet();
  // The caller's thread belongs to the application, so it is not pinned; it is
  // left the first processor.
  if (processors.size() < workers.size() + 1)
    return;
  for (size_t i = 0; i < workers.size(); ++i) {
    int processor = processors[i + 1];
    if (processor >= CPU_SETSIZE)
      return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    pthread_setaffinity_np(workers[i].native_handle(), sizeof(set), &set);
  }
}

namespace {
int64_t rangeBegin(int64_t count, uint32_t index, uint32_t parts) {
  int64_t quotient = count / parts, remainder = count % parts;
  return quotient * index + std::min<int64_t>(index, remainder);
}
uint32_t rangesOf(uint64_t ticket) { return ticket >> 16 & 0xffff; }
uint32_t takenOf(uint64_t ticket) { return ticket & 0xffff; }
bool hasRange(uint64_t ticket) { return takenOf(ticket) < rangesOf(ticket); }
} // namespace

void ThreadPool::run(int64_t items, Function body, void *bodyContext) {
  auto ranges = static_cast<uint32_t>(
      std::min<int64_t>(items, int64_t(size()) * rangesPerThread));
  function = body;
  context = bodyContext;
  count = items;
  done.store(0, std::memory_order_relaxed);
  uint32_t number = epoch.load(std::memory_order_relaxed) + 1;
  ticket.store(uint64_t(number) << 32 | uint64_t(ranges) << 16,
               std::memory_order_seq_cst);
  // Sequentially consistent with `parked`: either the worker sees the new
  // ticket before it parks, or we see that it is parked.
  epoch.store(number, std::memory_order_seq_cst);
  if (parked.load(std::memory_order_seq_cst) != 0)
    futexWakeAll(epoch);

  while (takeRange()) {
  }
  auto finished = [&] {
    return done.load(std::memory_order_acquire) == ranges;
  };
  if (spinUntil(finished))
    return;
  callerParked.store(1, std::memory_order_seq_cst);
  for (uint32_t seen; (seen = done.load(std::memory_order_seq_cst)) != ranges;)
    futexWait(done, seen);
  callerParked.store(0, std::memory_order_relaxed);
}

/// Claims the next range of the current loop and runs it. False if there is
/// none.
bool ThreadPool::takeRange() {
  uint64_t seen = ticket.load(std::memory_order_acquire);
  do {
    if (!hasRange(seen))
      return false;
  } while (!ticket.compare_exchange_weak(
      seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire));
  uint32_t index = takenOf(seen), ranges = rangesOf(seen);
  function(context, rangeBegin(count, index, ranges),
           rangeBegin(count, index + 1, ranges));
  if (done.fetch_add(1, std::memory_order_seq_cst) + 1 == ranges &&
      callerParked.load(std::memory_order_seq_cst))
    futexWakeAll(done);
  return true;
}

void ThreadPool::work() {
  auto available = [this] {
    return hasRange(ticket.load(std::memory_order_acquire)) ||
           stopping.load(std::memory_order_relaxed);
  };
  while (true) {
    if (!spinUntil(available)) {
      parked.fetch_add(1, std::memory_order_seq_cst);
      while (true) {
        uint32_t seen = epoch.load(std::memory_order_seq_cst);
        if (hasRange(ticket.load(std::memory_order_seq_cst)) ||
            stopping.load(std::memory_order_seq_cst))
          break;
        futexWait(epoch, seen);
      }
      parked.fetch_sub(1, std::memory_order_relaxed);
    }
    while (takeRange()) {
    }
    if (stopping.load(std::memory_order_seq_cst))
      return;
  }
}

} // namespace llm::runtime
