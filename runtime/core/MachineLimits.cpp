//===- MachineLimits.cpp - What this machine can do at most ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/MachineLimits.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace llm::runtime {

static double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

/// The `index`-th processor of the affinity set for the calling thread.
static void pin(int index) {
  cpu_set_t all, one;
  if (sched_getaffinity(0, sizeof(all), &all))
    return;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all) && index-- == 0)
      CPU_SET(cpu, &one);
  pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

Times measure(int threads, double seconds,
              const std::function<void(int, int)> &work) {
  std::vector<double> rounds;
  std::vector<double> spent(threads);
  std::atomic<int> arrived{0}, round{0};
  std::atomic<bool> stop{false};
  double total = 0;
  std::atomic<bool> begun{false};
  auto run = [&](int thread) {
    while (!begun)
      std::this_thread::yield();
    pin(thread);
    for (int i = 0; !stop; ++i) {
      double begin = cpuSeconds();
      work(thread, i);
      spent[thread] = cpuSeconds() - begin;
      if (++arrived == threads) {
        double slowest = *std::max_element(spent.begin(), spent.end());
        if (i > 0) // the first one warms up
          rounds.push_back(slowest);
        total += slowest;
        stop = rounds.size() >= 4 && total > seconds;
        arrived = 0;
        ++round;
      } else {
        while (round == i)
          std::this_thread::yield();
      }
    }
  };
  std::vector<std::thread> pool;
  try {
    for (int thread = 0; thread < threads; ++thread)
      pool.emplace_back(run, thread);
  } catch (const std::system_error &) {
    stop = true;
  }
  begun = true;
  for (std::thread &thread : pool)
    thread.join();
  if (rounds.empty())
    return {};
  std::sort(rounds.begin(), rounds.end());
  return {rounds[rounds.size() / 2], rounds.front()};
}

//===----------------------------------------------------------------------===//
// Peaks
//===----------------------------------------------------------------------===//

#if defined(__x86_64__)
// Sixteen chains hide the latency; assembly, so that none is folded away.
#define LLM_SIXTEEN(X)                                                         \
  X(0)                                                                         \
  X(1)                                                                         \
  X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LLM_EIGHT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

static constexpr int64_t kSteps = 100000;

#define LLM_WIDE(instruction)                                                  \
  __m512i a = _mm512_set1_epi32(0x01010101), b = a;                            \
  LLM_SIXTEEN(LLM_DECLARE)                                                     \
  for (int64_t i = 0; i < kSteps; ++i) {                                       \
    LLM_SIXTEEN(instruction)                                                   \
  }
#define LLM_DECLARE(i) __m512i r##i = _mm512_setzero_si512();

__attribute__((target("avx512f"))) static void runFMA512() {
#define LLM_FMA(i)                                                             \
  asm volatile("vfmadd231ps %1, %2, %0" : "+v"(r##i) : "v"(a), "v"(b));
  LLM_WIDE(LLM_FMA)
}

__attribute__((target("avx512f"))) static void runVNNI() {
#define LLM_VNNI(i)                                                            \
  asm volatile("vpdpbusd %1, %2, %0" : "+v"(r##i) : "v"(a), "v"(b));
  LLM_WIDE(LLM_VNNI)
}

__attribute__((target("avx512f"))) static void runBF16() {
#define LLM_BF16(i)                                                            \
  asm volatile("vdpbf16ps %1, %2, %0" : "+v"(r##i) : "v"(a), "v"(b));
  LLM_WIDE(LLM_BF16)
}

__attribute__((target("avx2,fma"))) static void runFMA256() {
#define LLM_DECLARE256(i) __m256 s##i = _mm256_setzero_ps();
#define LLM_FMA256(i)                                                          \
  asm volatile("vfmadd231ps %1, %2, %0" : "+x"(s##i) : "x"(a), "x"(b));
  __m256 a = _mm256_set1_ps(0.5f), b = a;
  LLM_EIGHT(LLM_DECLARE256)
  for (int64_t i = 0; i < kSteps; ++i) {
    LLM_EIGHT(LLM_FMA256) LLM_EIGHT(LLM_FMA256)
  }
}

// Without VNNI: pairs of bytes multiplied and summed in 16 bits, then added,
// which is as fast as products of bytes can be.
__attribute__((target("avx2"))) static void runPairs256() {
#define LLM_DECLARE_PAIRS(i) __m256i r##i = a, t##i = a;
#define LLM_PAIRS(i)                                                           \
  asm volatile("vpmaddubsw %2, %3, %0\n\tvpaddw %0, %1, %1"                    \
               : "=&x"(t##i), "+x"(r##i)                                       \
               : "x"(a), "x"(b));
  __m256i a = _mm256_set1_epi32(0x01010101), b = a;
  LLM_EIGHT(LLM_DECLARE_PAIRS)
  for (int64_t i = 0; i < kSteps; ++i) {
    LLM_EIGHT(LLM_PAIRS) LLM_EIGHT(LLM_PAIRS)
  }
}

__attribute__((target("avxvnni"))) static void runAVXVNNI() {
#define LLM_DECLARE_VNNI(i) __m256i r##i = a;
#define LLM_AVXVNNI(i)                                                         \
  asm volatile("%{vex%} vpdpbusd %1, %2, %0" : "+x"(r##i) : "x"(a), "x"(b));
  __m256i a = _mm256_set1_epi32(0x01010101), b = a;
  LLM_EIGHT(LLM_DECLARE_VNNI)
  for (int64_t i = 0; i < kSteps; ++i) {
    LLM_EIGHT(LLM_AVXVNNI) LLM_EIGHT(LLM_AVXVNNI)
  }
}

#endif

/// The sum of `count` words, which nobody wants.
static uint64_t readWords(const uint64_t *words, size_t count) {
  uint64_t sums[32] = {};
  for (size_t i = 0; i + 32 <= count; i += 32)
    for (size_t j = 0; j < 32; ++j)
      sums[j] += words[i + j];
  uint64_t total = 0;
  for (uint64_t sum : sums)
    total += sum;
  return total;
}

static double measureRead(int threads) {
  size_t each = size_t(256) << 20;
  void *memory = mmap(nullptr, each * threads, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return 0;
  madvise(memory, each * threads, MADV_HUGEPAGE);
  auto *words = static_cast<uint64_t *>(memory);
  size_t count = each / sizeof(uint64_t);
  for (size_t i = 0; i < count * threads; i += 512)
    words[i] = i;
  std::atomic<uint64_t> sink{0};
  Times times = measure(threads, 0.5, [&](int thread, int) {
    sink += readWords(words + thread * count, count);
  });
  munmap(memory, each * threads);
  return times.median > 0 ? static_cast<double>(each) * threads / times.median
                          : 0;
}

#if defined(__x86_64__)
static double measureOps(int threads, void (*loop)(), double opsPerStep) {
  Times times = measure(threads, 0.2, [&](int, int) { loop(); });
  if (times.median <= 0)
    return 0;
  return threads * static_cast<double>(kSteps) * 16 * opsPerStep / times.median;
}

#endif

MachineLimits measureLimits(int threads) {
  MachineLimits limits;
  limits.readBytes = measureRead(threads);
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f"))
    limits.f32 = measureOps(threads, runFMA512, 32);
  else if (__builtin_cpu_supports("fma"))
    limits.f32 = measureOps(threads, runFMA256, 16);
  if (__builtin_cpu_supports("avx512vnni"))
    limits.int8 = measureOps(threads, runVNNI, 128);
  else if (__builtin_cpu_supports("avxvnni"))
    limits.int8 = measureOps(threads, runAVXVNNI, 64);
  else if (__builtin_cpu_supports("avx2"))
    limits.int8 = measureOps(threads, runPairs256, 64);
  limits.bf16 = limits.f32; // widened
  if (__builtin_cpu_supports("avx512bf16"))
    limits.bf16 = std::max(limits.bf16, measureOps(threads, runBF16, 64));
#endif
  return limits;
}

} // namespace llm::runtime
