//===- Measure.h - Timing of kernels, and what the machine can do -*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_BENCHMARKS_KERNELS_MEASURE_H
#define LLM_BENCHMARKS_KERNELS_MEASURE_H

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

namespace llm::bench {

/// A positive number from the command line; ends the program where `text` is
/// none.
inline int64_t parseCount(std::string_view text) {
  int64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    std::fprintf(stderr, "not a positive number: %s\n",
                 std::string(text).c_str());
    std::exit(2);
  }
  return value;
}

/// Seconds of one round: the median and the best of many.
struct Times {
  double median, best;
};

/// Runs `work(thread, round)` on `threads` threads at once, round after round,
/// for at least `seconds`. A round takes as long as the processor time of its
/// slowest thread: other processes on the cores do not count.
Times measure(int threads, double seconds,
              const std::function<void(int, int)> &work);

/// Limits of the machine with `threads` threads, 0 where it lacks the
/// instructions: operations count two a multiply-add.
struct Peaks {
  double readBytes = 0; ///< a second, from memory
  double f32 = 0;       ///< fused multiply-adds
  double int8 = 0;      ///< vpdpbusd
  double bf16 = 0;      ///< vdpbf16ps
};
Peaks measurePeaks(int threads);

} // namespace llm::bench

#endif // LLM_BENCHMARKS_KERNELS_MEASURE_H
