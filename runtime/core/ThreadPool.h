//===- ThreadPool.h - Persistent threads for short parallel loops -*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_CORE_THREADPOOL_H
#define LLM_RUNTIME_CORE_THREADPOOL_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace llm::runtime {

/// The processors this process may use: its affinity set, bounded by the CPU
/// quota of its control group; at least 1.
int availableThreads();

/// A fixed set of threads that run loops of tens of microseconds. A worker
/// spins for about 50 us after a loop, then parks on a futex: spinning makes a
/// barrier cost 0.1 us where a condition variable costs 35 to 50, and parking
/// leaves the processor to others while no step runs.
///
/// A loop is cut into a few ranges per thread, and whoever is running takes the
/// next: a thread that other processes keep from the processor, or whose items
/// are dear, leaves the rest to the others.
///
/// One caller at a time; the caller takes part.
class ThreadPool {
public:
  /// A pool of `threads` (>= 1) including the caller. Workers are created
  /// first, then pinned to distinct processors of the affinity set if there are
  /// enough; where pinning is refused they run unpinned. Fewer workers result
  /// if the system refuses more: see size().
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int size() const { return static_cast<int>(workers.size()) + 1; }

  /// Calls body(begin, end) on disjoint contiguous ranges that cover [0,
  /// count), in ascending order; returns when all are done. Writes of the
  /// bodies are visible to the caller, and to the bodies of the next call.
  /// `body` must not throw.
  template <typename Body> void parallelFor(int64_t count, Body &&body) {
    if (count <= 0)
      return;
    if (count == 1 || workers.empty()) {
      body(int64_t(0), count);
      return;
    }
    run(
        count,
        [](void *context, int64_t begin, int64_t end) {
          (*static_cast<std::remove_reference_t<Body> *>(context))(begin, end);
        },
        const_cast<void *>(static_cast<const void *>(&body)));
  }

private:
  using Function = void (*)(void *context, int64_t begin, int64_t end);
  void run(int64_t count, Function function, void *context);
  void work();
  bool takeRange();
  void pin();

  std::vector<std::thread> workers;

  /// The loop. Whoever has claimed a range of it may read these: they change
  /// only when all ranges are done.
  Function function = nullptr;
  void *context = nullptr;
  int64_t count = 0;
  /// Claims: the loop's number (32 bits), its ranges (16), those taken (16).
  alignas(64) std::atomic<uint64_t> ticket{0};
  /// Ranges of the loop that are done.
  alignas(64) std::atomic<uint32_t> done{0};
  /// Raised for each loop; what parked workers wait on.
  alignas(64) std::atomic<uint32_t> epoch{0};
  std::atomic<uint32_t> parked{0};
  std::atomic<uint32_t> callerParked{0};
  std::atomic<bool> stopping{false};
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_CORE_THREADPOOL_H
