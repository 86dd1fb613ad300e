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
  workers.reserve(static_cast<size_t>(std::max(threads, 1)) - 1);
  for (int i = 1; i < threads; ++i) {
    try {
      workers.emplace_back([this, i] { work(i); });
    } catch (const std::system_error &) {
      break;
    }
  }
  // The workers read size(), which is final only now; the first loop's release
  // of `epoch` publishes it.
  pin();
}

ThreadPool::~ThreadPool() {
  stopping = true;
  epoch.fetch_add(1, std::memory_order_release);
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
int64_t rangeBegin(int64_t count, int index, int parts) {
  int64_t quotient = count / parts, remainder = count % parts;
  return quotient * index + std::min<int64_t>(index, remainder);
}
} // namespace

void ThreadPool::run(int64_t items, Function body, void *bodyContext) {
  function = body;
  context = bodyContext;
  count = items;
  pending.store(static_cast<uint32_t>(workers.size()),
                std::memory_order_relaxed);
  // Sequentially consistent with `parked`: either the worker sees the new
  // epoch before it parks, or we see that it is parked.
  epoch.fetch_add(1, std::memory_order_seq_cst);
  if (parked.load(std::memory_order_seq_cst) != 0)
    futexWakeAll(epoch);

  int64_t end = rangeBegin(items, 1, size());
  if (end > 0)
    body(bodyContext, 0, end);

  auto done = [this] { return pending.load(std::memory_order_acquire) == 0; };
  if (spinUntil(done))
    return;
  callerParked.store(1, std::memory_order_seq_cst);
  while (uint32_t left = pending.load(std::memory_order_seq_cst))
    futexWait(pending, left);
  callerParked.store(0, std::memory_order_relaxed);
}

void ThreadPool::work(int index) {
  uint32_t seen = 0;
  while (true) {
    auto changed = [&] {
      return epoch.load(std::memory_order_acquire) != seen;
    };
    if (!spinUntil(changed)) {
      parked.fetch_add(1, std::memory_order_seq_cst);
      while (epoch.load(std::memory_order_seq_cst) == seen)
        futexWait(epoch, seen);
      parked.fetch_sub(1, std::memory_order_relaxed);
    }
    ++seen;
    if (stopping)
      return;
    int64_t begin = rangeBegin(count, index, size());
    int64_t end = rangeBegin(count, index + 1, size());
    if (begin < end)
      function(context, begin, end);
    if (pending.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
        callerParked.load(std::memory_order_seq_cst))
      futexWakeAll(pending);
  }
}

} // namespace llm::runtime
