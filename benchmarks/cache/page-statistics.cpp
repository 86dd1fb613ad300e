//===- page-statistics.cpp - How much of its memory a cache uses ------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   page-statistics [PAGE_SIZE [CONTEXT [SEED]]]     (16, 4096, 1)
//
// Sequences come and go, 64 at a time, each with one more token a step. Their
// lengths are log-normal, with a median of 200 tokens and sigma 1.1, cut to
// the context. Counts the slots that are allocated and hold no token, over all
// steps, by the runtime's own block tables; and beside it those of a cache
// that reserves the context for each sequence. One JSON object.
//
//===----------------------------------------------------------------------===//
#include "runtime/kvcache/PageTable.h"
#include "runtime/session/Sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

using namespace llm::runtime;

namespace {

constexpr int64_t numSequences = 20000;
constexpr size_t atOnce = 64;
constexpr double median = 200, sigma = 1.1;

/// A length by the method of Box and Muller ("A Note on the Generation of
/// Random Normal Deviates", 1958).
int32_t lengthOf(uint64_t seed, int64_t sequence, int32_t context) {
  auto draw = [&](int64_t index) {
    return uniform(seed, static_cast<uint64_t>(index), RandomStream::Sample);
  };
  double normal = std::sqrt(-2 * std::log(1 - draw(2 * sequence))) *
                  std::cos(2 * std::numbers::pi * draw(2 * sequence + 1));
  double length = std::round(median * std::exp(sigma * normal));
  return static_cast<int32_t>(std::clamp(length, 1.0, double(context)));
}

struct Sequence {
  BlockTable table;
  int32_t length;
};

} // namespace

int main(int argc, char **argv) {
  auto argument = [&](int index, int64_t otherwise, int64_t most) {
    char *end = nullptr;
    int64_t value =
        argc > index ? std::strtoll(argv[index], &end, 10) : otherwise;
    if (argc > 4 || (end && *end) || value < 1 || value > most) {
      std::fprintf(stderr,
                   "usage: page-statistics [PAGE_SIZE [CONTEXT [SEED]]]\n");
      std::exit(2);
    }
    return value;
  };
  auto context = static_cast<int32_t>(argument(2, 4096, 1 << 20));
  auto pageSize = static_cast<int32_t>(argument(1, 16, context));
  auto seed = static_cast<uint64_t>(argument(3, 1, INT64_MAX));

  auto perSequence = (context + pageSize - 1) / pageSize;
  PageAllocator pages(static_cast<int32_t>(atOnce) * perSequence);
  std::vector<Sequence> running;
  std::vector<BlockTable::Copy> copies;
  int64_t next = 0, tokens = 0;
  double used = 0, paged = 0, reserved = 0;
  while (next < numSequences || !running.empty()) {
    while (next < numSequences && running.size() < atOnce)
      running.push_back(
          {BlockTable(pages, pageSize), lengthOf(seed, next++, context)});
    for (Sequence &sequence : running) {
      if (!sequence.table.grow(1, copies)) {
        std::fprintf(stderr, "no page is left\n");
        return 1;
      }
      ++tokens;
      used += sequence.table.length();
    }
    paged += double(pages.numPages() - pages.numFree()) * pageSize;
    reserved += double(running.size()) * context;
    std::erase_if(running, [](const Sequence &sequence) {
      return sequence.table.length() >= sequence.length;
    });
  }
  if (pages.numFree() != pages.numPages()) {
    std::fprintf(stderr, "pages leak\n");
    return 1;
  }
  std::printf("{\"page_size\":%d,\"context\":%d,\"sequences\":%lld,"
              "\"mean_length\":%.1f,\"unused_percent\":%.2f,"
              "\"unused_percent_reserving_the_context\":%.2f}\n",
              pageSize, context, static_cast<long long>(numSequences),
              double(tokens) / double(numSequences), 100 * (1 - used / paged),
              100 * (1 - used / reserved));
  return 0;
}
