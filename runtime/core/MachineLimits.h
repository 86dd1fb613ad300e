//===- MachineLimits.h - What this machine can do at most -------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_CORE_MACHINELIMITS_H
#define LLM_RUNTIME_CORE_MACHINELIMITS_H

#include <functional>

namespace llm::runtime {

/// Seconds of one round: the median and the best of many.
struct Times {
  double median, best;
};

/// Runs `work(thread, round)` on `threads` threads at once, round after round,
/// for at least `seconds`. A round takes as long as the processor time of its
/// slowest thread: other processes on the cores do not count.
Times measure(int threads, double seconds,
              const std::function<void(int, int)> &work);

/// Limits of the machine with `threads` threads, 0 where they are not known:
/// operations count two a multiply-add.
struct MachineLimits {
  double readBytes = 0; ///< a second, from memory
  double f32 = 0;       ///< fused multiply-adds
  double int8 = 0;      ///< vpdpbusd, or vpmaddubsw and vpaddw
  double bf16 = 0;      ///< vdpbf16ps, or as f32
};
MachineLimits measureLimits(int threads);

} // namespace llm::runtime

#endif // LLM_RUNTIME_CORE_MACHINELIMITS_H
