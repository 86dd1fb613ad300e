//===- Speculation.h - What is drafted, and when ----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_SPECULATION_H
#define LLM_RUNTIME_SESSION_SPECULATION_H

#include "llm/ABI/manifest.pb.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llm::runtime {

/// How an artifact drafts, from an `rt.draft` that has been verified.
struct Speculation {
  /// Tokens at the end of a sequence that are looked up.
  int32_t lookup = 0;
  /// Tokens that are drafted for a sequence at most; 0: it does not.
  int32_t tokens = 0;
  /// [tokens + 1] what a step with so many drafts for a sequence takes, in
  /// 1 / LLM_DRAFT_COST_UNIT of one without.
  std::vector<int64_t> costs;

  Speculation() = default;
  explicit Speculation(const artifact::Draft &draft);
};

/// Where the last `lookup` tokens of `history` occur before, what followed them
/// the last time: `most` tokens, also where the history ends sooner, since what
/// repeats may go on repeating. Nothing where they do not occur. Takes time
/// proportional to the history, and no memory.
std::vector<int32_t> lookUp(std::span<const int32_t> history, int32_t lookup,
                            int32_t most);

/// What drafts have gained and lost a request, in 1 / LLM_DRAFT_COST_UNIT of a
/// step, by a table of costs. It may lose a step, and one step in a hundred
/// beside; what it gains it may lose again, up to two steps. So a request whose
/// drafts are never right takes little longer than without, and tries again
/// from time to time. Depends on the request's own tokens only.
class DraftAccount {
public:
  DraftAccount();

  /// How many of `count` drafts the request may have verified. `costs` has an
  /// entry for each count from 0 to `count`.
  int32_t affordable(int32_t count, std::span<const int64_t> costs) const;

  /// A step with `drafted` tokens (0: none), of which `accepted` were right.
  void settle(int32_t drafted, int32_t accepted,
              std::span<const int64_t> costs);

private:
  int64_t balance;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_SPECULATION_H
