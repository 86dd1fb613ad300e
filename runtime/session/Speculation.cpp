//===- Speculation.cpp - What is drafted, and when ------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Speculation.h"

#include "llm/ABI/step.h"

#include <algorithm>

namespace llm::runtime {

Speculation::Speculation(const artifact::Draft &draft)
    : lookup(static_cast<int32_t>(draft.lookup())),
      tokens(static_cast<int32_t>(draft.tokens())),
      costs(draft.costs().begin(), draft.costs().end()) {}

std::vector<int32_t> lookUp(std::span<const int32_t> history, int32_t lookup,
                            int32_t most) {
  auto length = static_cast<size_t>(lookup);
  if (most <= 0 || history.size() <= length)
    return {};
  std::span<const int32_t> end = history.last(length);
  // Backwards: the last token of a place first, since it differs most often.
  size_t after = history.size() - 1;
  while (
      after >= length &&
      !(history[after - 1] == end.back() &&
        std::equal(end.begin(), end.end(),
                   history.begin() + static_cast<ptrdiff_t>(after - length))))
    --after;
  if (after < length)
    return {};
  std::vector<int32_t> drafts;
  for (size_t i = 0; i < static_cast<size_t>(most); ++i) {
    size_t from = after + i;
    drafts.push_back(from < history.size() ? history[from]
                                           : drafts[from - history.size()]);
  }
  return drafts;
}

namespace {
constexpr int64_t unit = LLM_DRAFT_COST_UNIT;
constexpr int64_t begins = unit;
constexpr int64_t earns = unit / 100;
constexpr int64_t keepsAtMost = 2 * unit;
} // namespace

DraftAccount::DraftAccount() : balance(begins) {}

int32_t DraftAccount::affordable(int32_t count,
                                 std::span<const int64_t> costs) const {
  // Where all of them are wrong, the step has cost more by this.
  while (count > 0 && costs[static_cast<size_t>(count)] - unit > balance)
    --count;
  return count;
}

void DraftAccount::settle(int32_t drafted, int32_t accepted,
                          std::span<const int64_t> costs) {
  balance += unit * (1 + accepted) - costs[static_cast<size_t>(drafted)];
  balance = std::min(balance + earns, keepsAtMost);
}

} // namespace llm::runtime
