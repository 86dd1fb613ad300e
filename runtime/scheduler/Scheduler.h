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
#include "runtime/kvcache/PrefixCache.h"
#include "runtime/scheduler/Step.h"

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

namespace llm::runtime {

struct SchedulerOptions {
  /// Tokens of a step at most, except that every sequence which generates gets
  /// its one token and its drafts: a step has at most
  /// max(chunk, sequences x (1 + maxDraft)) tokens.
  int64_t chunk = 512;
  /// Sequences that are resident at once: others wait.
  int64_t maxSequences = 1;
  /// Rows of logits in a step at most, maxSequences x (1 + maxDraft) or more.
  int64_t maxLogitRows = 1;
  /// Tokens that are drafted for a sequence at most.
  int64_t maxDraft = 0;
  int32_t context = 0;
  /// Shares the chunk evenly among the sequences that have a backlog, instead
  /// of first come, first served (which answers the first one soonest).
  bool fair = false;
  /// Sequences take what earlier ones computed for the same beginning, where
  /// the cache can share (Cache::shareable).
  bool prefixCache = false;
};

enum class Logits {
  None,
  Last, ///< of the last of the given tokens
  All,
};

/// Keeps the sequences and builds steps: every sequence contributes a run of
/// its waiting tokens that have one role; prompt sequences come first.
///
/// A sequence is resident while it has pages. Sequences become resident in the
/// order of their arrival, as soon as there are pages for all their tokens, and
/// for what the residents before them still have to compute. Where pages run
/// out nevertheless, the one that arrived last gives its pages up and waits at
/// the front; its tokens are computed again later, with the roles they had. So
/// the oldest one always goes on, and which steps a sequence was in never shows
/// in its logits (docs/rationale/row-invariance.md).
class Scheduler {
public:
  using SequenceId = int64_t;

  /// `cache` and `arrays` outlive the scheduler; `arrays` has room for the
  /// options' largest step.
  Scheduler(const SchedulerOptions &options, Cache &cache, StepArrays &arrays);
  Scheduler(const Scheduler &) = delete;
  Scheduler &operator=(const Scheduler &) = delete;
  ~Scheduler();

  /// A new empty sequence, which will have `most` tokens at most (0: the
  /// context). Resource when there are maxKept.
  Expected<SequenceId> add(int64_t most = 0);
  /// A sequence that continues from where `parent` is, and is scheduled beside
  /// it; `parent` must have no waiting tokens. Pages are shared until written.
  Expected<SequenceId> fork(SequenceId parent);
  void remove(SequenceId id);

  /// Queues tokens. InvalidInput when the sequence would exceed the context,
  /// or has drafts, Resource when it would exceed the cache.
  Status append(SequenceId id, std::span<const int32_t> tokens, llm_role role,
                Logits logits);
  /// Queues maxDraft tokens at most, of generated role and with logits of all,
  /// that may yet be dropped: they are drafts, and nobody else is given what
  /// they computed, until keep() says that they are right or rollback() drops
  /// them. Refused as append() is.
  Status draft(SequenceId id, std::span<const int32_t> tokens);
  /// The tokens before `length`, at most length(), are no drafts any more.
  void keep(SequenceId id, int64_t length);
  /// Drops the tokens from `length` on, waiting or not. Of a sequence with
  /// drafts this leaves, in cache and tables, what there would be if the
  /// dropped ones had never been drafted.
  Status rollback(SequenceId id, int64_t length);

  /// Tokens of the sequence, waiting ones included.
  int64_t length(SequenceId id) const;
  bool idle() const { return numActive == 0; }
  /// Sequences with waiting tokens that are not resident.
  int64_t numWaiting() const { return static_cast<int64_t>(waiting.size()); }
  int64_t numResident() const { return static_cast<int64_t>(resident.size()); }

  /// What a sequence has met.
  struct History {
    int64_t reused = 0;      ///< tokens that the prefix cache had
    int64_t preemptions = 0; ///< times that it gave its pages up
  };
  const History &history(SequenceId id) const {
    return sequences.at(id).history;
  }

  /// A row of logits: what follows the token at `position` of `sequence`.
  struct Row {
    SequenceId sequence;
    int64_t position;
  };
  /// Whether a row of the last step is of a token that is still there.
  bool isCurrent(const Row &row) const;
  struct Step {
    Symbols symbols;
    std::vector<Row> rows;
  };
  /// Fills the arrays for the next step. No tokens (T = 0) when nothing waits.
  /// Resource when the oldest sequence alone has more tokens than the cache
  /// has slots; nothing is lost then.
  Expected<Step> next();
  /// To be called when the step has been run: what it wrote may be shared.
  void commit();

  /// Of a sequence's slots [0, table.length()) in a group: for tests.
  const BlockTable &table(SequenceId id, int group) const {
    return sequences.at(id).tables[static_cast<size_t>(group)];
  }
  /// Null where it is off: for tests and statistics.
  const PrefixCache *prefixCache() const { return prefixes.get(); }

  /// Sequences at most, resident or not.
  static constexpr size_t maxKept = size_t(1) << 20;

private:
  static constexpr int32_t noAdapter = -1;

  struct Token {
    int32_t id;
    uint8_t role;
    bool wantsLogits;
  };
  struct Sequence {
    SequenceId id;
    /// What the order goes by: the id, but a fork has its parent's.
    SequenceId arrival;
    int64_t most;
    std::vector<Token> tokens;
    /// Tokens that are in the cache; 0 unless resident.
    size_t done = 0;
    /// Tokens that have been computed once: those from here on wait.
    size_t computed = 0;
    /// Tokens at the end that are drafts.
    size_t drafts = 0;
    int32_t stateSlot = -1; ///< -1: not resident
    std::vector<BlockTable> tables;
    /// What of `tables` is in the prefix cache, from the beginning.
    std::vector<PrefixCache::Block> blocks;
    History history;

    bool isResident() const { return stateSlot >= 0; }
    bool isActive() const { return computed < tokens.size(); }
    /// Tokens that will not be dropped.
    size_t kept() const { return tokens.size() - drafts; }
  };
  struct Earlier {
    bool operator()(const Sequence *a, const Sequence *b) const {
      return a->arrival != b->arrival ? a->arrival < b->arrival : a->id < b->id;
    }
  };
  using Ordered = std::set<Sequence *, Earlier>;
  struct Entry {
    Sequence *sequence;
    size_t count;

    int64_t rows() const;
    size_t drafts() const;
  };

  // Which sequences have pages: Residency.cpp.
  void admit();
  bool hasRoomFor(const Sequence &sequence) const;
  void makeResident(Sequence &sequence);
  void park(Sequence &sequence);
  bool preempt();
  bool grow(Sequence &sequence, int group, int32_t count);
  void spell(const Sequence &sequence, size_t begin,
             std::vector<uint32_t> &text) const;
  PrefixCache::Block nextBlock(const Sequence &sequence, size_t begin,
                               PrefixCache::Block parent,
                               std::vector<uint32_t> &text) const;
  void reuse(Sequence &sequence);
  void share(Sequence &sequence);
  void releaseBlocks(Sequence &sequence, size_t length);

  Status verifyLength(const Sequence &sequence, size_t more) const;
  void updateActive(Sequence &sequence, bool before);
  size_t runLength(const Sequence &sequence) const;
  int64_t chunkOf(const Entry &entry, int64_t most, bool first) const;
  std::vector<Entry> choose() const;
  bool reserve(std::span<const Entry> entries);
  void fill(std::span<const Entry> entries, Step &step);

  SchedulerOptions options;
  Cache &cache;
  StepArrays &arrays;
  /// Null: no sharing.
  std::unique_ptr<PrefixCache> prefixes;
  std::unordered_map<SequenceId, Sequence> sequences;
  Ordered resident;
  Ordered waiting; ///< active, not resident
  int64_t numActive = 0;
  std::vector<Sequence *> stepped; ///< in the step that next() built
  std::vector<uint32_t> scratch;
  std::vector<int32_t> freeStateSlots;
  int32_t usedStateSlots = 0;
  SequenceId nextId = 0;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_SCHEDULER_SCHEDULER_H
