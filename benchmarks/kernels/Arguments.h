//===- Arguments.h - Numbers on a benchmark's command line ------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_BENCHMARKS_KERNELS_ARGUMENTS_H
#define LLM_BENCHMARKS_KERNELS_ARGUMENTS_H

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

} // namespace llm::bench

#endif // LLM_BENCHMARKS_KERNELS_ARGUMENTS_H
