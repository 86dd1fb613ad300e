//===- Scheduler.h - Which tokens run in the next step ----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SCHEDULER_SCHEDULER_H
#define LLM_RUNTIME_SCHEDULER_SCHEDULER_H

#include "llm/ABI/step.h"
#include "runtime/kvcache/Cache.h"
#include "runtime/scheduler/Step.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace llm::runtime {

struct SchedulerOptions {
  /// Tokens of a step at most, except that every sequence which generates gets
  /// its one token: a step has at most max(chunk, sequences) tokens.
  int64_t chunk = 512;
  int64_t maxSequences = 1;
  /// Rows of logits in a step at most.
  int64_t maxLogitRows = 1;
  int32_t context = 0;
  /// Shares the chunk evenly among the sequences that have a backlog, instead
  /// of first come, first served (which answers the first one soonest).
  bool fair = false;
};

enum class Logits {
  None,
  Last, ///< of the last of the given tokens
  All,
};

/// Keeps the sequences and builds steps: every sequence contributes a run of
/// its waiting tokens that have one role; prompt sequences come first.
class Scheduler {
public:
  using SequenceId = int32_t;

  /// `cache` and `arrays` outlive the scheduler; `arrays` has room for the
  /// options' largest step.
  Scheduler(const SchedulerOptions &options, Cache &cache, StepArrays &arrays)
      : options(options), cache(cache), arrays(arrays) {}

  /// A new empty sequence. Resource when there are maxSequences.
  Expected<SequenceId> add();
  /// A sequence that continues from where `parent` is; `parent` must have no
  /// waiting tokens. Pages are shared until written.
  Expected<SequenceId> fork(SequenceId parent);
  void remove(SequenceId id);

  /// Queues tokens. InvalidInput when the sequence would exceed the context.
  Status append(SequenceId id, std::span<const int32_t> tokens, llm_role role,
                Logits logits);
  /// Drops the tokens from `length` on, waiting or not.
  Status rollback(SequenceId id, int64_t length);

  /// Tokens of the sequence, waiting ones included.
  int64_t length(SequenceId id) const;
  bool idle() const;

  /// A row of logits: what follows the token at `position` of `sequence`.
  struct Row {
    SequenceId sequence;
    int64_t position;
  };
  struct Step {
    Symbols symbols;
    std::vector<Row> rows;
  };
  /// Fills the arrays for the next step. No tokens (T = 0) when nothing waits.
  /// Resource when the pages do not suffice; nothing is lost then.
  Expected<Step> next();

private:
  struct Token {
    int32_t id;
    uint8_t role;
    bool wantsLogits;
  };
  struct Sequence {
    std::vector<Token> tokens;
    size_t done = 0;
    int32_t stateSlot = 0;
    std::vector<BlockTable> tables;
  };
  struct Entry {
    SequenceId id;
    Sequence *sequence;
    size_t count;
  };

  size_t runLength(const Sequence &sequence) const;
  std::vector<Entry> choose();
  Status reserve(std::span<const Entry> entries);
  void fill(std::span<const Entry> entries, Step &step);

  SchedulerOptions options;
  Cache &cache;
  StepArrays &arrays;
  /// Ordered: the order of arrival.
  std::map<SequenceId, Sequence> sequences;
  std::vector<int32_t> freeStateSlots;
  int32_t usedStateSlots = 0;
  SequenceId nextId = 0;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_SCHEDULER_SCHEDULER_H
