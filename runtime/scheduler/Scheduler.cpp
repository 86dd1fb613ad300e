//===- Scheduler.cpp - Which tokens run in the next step ------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/scheduler/Scheduler.h"

#include <algorithm>
#include <utility>

namespace llm::runtime {

Scheduler::Scheduler(const SchedulerOptions &options, Cache &cache,
                     StepArrays &arrays)
    : options(options), cache(cache), arrays(arrays) {
  if (!options.prefixCache || !cache.shareable() || cache.numGroups() == 0)
    return;
  std::vector<PrefixCache::Group> groups;
  for (int group = 0; group < cache.numGroups(); ++group)
    groups.push_back(
        {&cache.allocator(group), cache.unit() / cache.pageSize(group)});
  prefixes = std::make_unique<PrefixCache>(std::move(groups), cache.unit());
}

Scheduler::~Scheduler() {
  for (auto &[id, sequence] : sequences)
    releaseBlocks(sequence, 0);
}

Expected<Scheduler::SequenceId> Scheduler::add(int64_t most) {
  if (sequences.size() >= maxKept)
    return Status::resource("the session keeps " + std::to_string(maxKept) +
                            " sequences already");
  SequenceId id = nextId++;
  Sequence &sequence = sequences[id];
  sequence.id = sequence.arrival = id;
  sequence.most = most > 0 ? most : options.context;
  for (int group = 0; group < cache.numGroups(); ++group)
    sequence.tables.push_back(cache.newTable(group));
  return id;
}

Expected<Scheduler::SequenceId> Scheduler::fork(SequenceId parent) {
  const Sequence &from = sequences.at(parent);
  if (from.isActive() || from.drafts > 0)
    return Status::invalidInput("a sequence with waiting tokens is forked");
  LLM_ASSIGN_OR_RETURN(SequenceId id, add(from.most));
  Sequence &to = sequences.at(id);
  to.arrival = from.arrival;
  to.tokens = from.tokens;
  to.computed = from.computed;
  to.history.reused = from.history.reused;
  // Else it computes them again, when there is room.
  if (!from.isResident() || numResident() >= options.maxSequences ||
      !cache.forkable())
    return id;
  makeResident(to);
  to.done = from.done;
  for (size_t group = 0; group < from.tables.size(); ++group)
    to.tables[group] = from.tables[group].fork();
  to.blocks = from.blocks;
  for (PrefixCache::Block block : to.blocks)
    prefixes->acquire(block);
  return id;
}

void Scheduler::remove(SequenceId id) {
  auto found = sequences.find(id);
  if (found == sequences.end())
    return;
  Sequence &sequence = found->second;
  if (sequence.isResident())
    park(sequence);
  waiting.erase(&sequence);
  numActive -= sequence.isActive();
  std::erase(stepped, &sequence);
  sequences.erase(found);
}

/// To be called when the tokens of a sequence have changed, with whether it was
/// active before.
void Scheduler::updateActive(Sequence &sequence, bool before) {
  bool active = sequence.isActive();
  numActive += int(active) - int(before);
  if (sequence.isResident())
    return;
  if (active)
    waiting.insert(&sequence);
  else
    waiting.erase(&sequence);
}

/// Whether a sequence may have `more` tokens.
Status Scheduler::verifyLength(const Sequence &sequence, size_t more) const {
  size_t length = sequence.tokens.size() + more;
  if (length > static_cast<size_t>(options.context))
    return Status::invalidInput("a sequence of " + std::to_string(length) +
                                " tokens does not fit in the context of " +
                                std::to_string(options.context));
  if (length > static_cast<size_t>(cache.numSlots()) && cache.numGroups() > 0)
    return Status::resource("a sequence of " + std::to_string(length) +
                            " tokens does not fit in the cache, which has " +
                            std::to_string(cache.numSlots()) + " slots");
  return sequence.drafts == 0
             ? Status::success()
             : Status::invalidInput("a sequence with drafts is continued");
}

Status Scheduler::append(SequenceId id, std::span<const int32_t> tokens,
                         llm_role role, Logits logits) {
  Sequence &sequence = sequences.at(id);
  LLM_RETURN_IF_ERROR(verifyLength(sequence, tokens.size()));
  bool before = sequence.isActive();
  for (size_t i = 0; i < tokens.size(); ++i) {
    bool wanted = logits == Logits::All ||
                  (logits == Logits::Last && i + 1 == tokens.size());
    sequence.tokens.push_back({tokens[i], static_cast<uint8_t>(role), wanted});
  }
  updateActive(sequence, before);
  return Status::success();
}

Status Scheduler::draft(SequenceId id, std::span<const int32_t> tokens) {
  if (static_cast<int64_t>(tokens.size()) > options.maxDraft)
    return Status::invalidInput(
        "a draft of " + std::to_string(tokens.size()) + " tokens, where " +
        std::to_string(options.maxDraft) + " are the most");
  LLM_RETURN_IF_ERROR(append(id, tokens, LLM_ROLE_GENERATED, Logits::All));
  sequences.at(id).drafts = tokens.size();
  return Status::success();
}

void Scheduler::keep(SequenceId id, int64_t length) {
  Sequence &sequence = sequences.at(id);
  size_t undecided = sequence.tokens.size() - static_cast<size_t>(length);
  sequence.drafts = std::min(sequence.drafts, undecided);
  if (prefixes)
    share(sequence);
}

bool Scheduler::isCurrent(const Row &row) const {
  auto found = sequences.find(row.sequence);
  return found != sequences.end() &&
         row.position < static_cast<int64_t>(found->second.done);
}

Status Scheduler::rollback(SequenceId id, int64_t length) {
  Sequence &sequence = sequences.at(id);
  if (length < 0 || length > static_cast<int64_t>(sequence.tokens.size()))
    return Status::invalidInput(
        "a sequence of " + std::to_string(sequence.tokens.size()) +
        " tokens cannot be cut to " + std::to_string(length));
  bool before = sequence.isActive();
  auto kept = static_cast<size_t>(length);
  sequence.drafts -= std::min(sequence.drafts, sequence.tokens.size() - kept);
  sequence.tokens.resize(kept);
  sequence.computed = std::min(sequence.computed, kept);
  if (kept < sequence.done) {
    releaseBlocks(sequence, kept);
    sequence.done = kept;
    for (BlockTable &table : sequence.tables)
      table.rollback(static_cast<int32_t>(length));
  }
  updateActive(sequence, before);
  return Status::success();
}

int64_t Scheduler::length(SequenceId id) const {
  return static_cast<int64_t>(sequences.at(id).tokens.size());
}

/// Waiting tokens up to the first change of role.
size_t Scheduler::runLength(const Sequence &sequence) const {
  size_t end = sequence.done;
  while (end < sequence.tokens.size() &&
         sequence.tokens[end].role == sequence.tokens[sequence.done].role)
    ++end;
  return end - sequence.done;
}

/// How many of an entry's tokens to compute where there is room for `most`.
/// `first`: of those with a backlog, which always goes on.
int64_t Scheduler::chunkOf(const Entry &entry, int64_t most, bool first) const {
  auto count = static_cast<int64_t>(entry.count);
  if (count <= most)
    return count;
  if (!prefixes)
    return most;
  // To the end of a block: there it can go on with what others have computed.
  auto done = static_cast<int64_t>(entry.sequence->done);
  int64_t whole = (done + most) / prefixes->unit() * prefixes->unit() - done;
  return whole > 0 || !first ? std::max<int64_t>(whole, 0) : most;
}

/// Rows of logits that an entry's tokens want.
int64_t Scheduler::Entry::rows() const {
  auto first =
      sequence->tokens.begin() + static_cast<ptrdiff_t>(sequence->done);
  return std::count_if(first, first + static_cast<ptrdiff_t>(count),
                       [](const Token &token) { return token.wantsLogits; });
}

std::vector<Scheduler::Entry> Scheduler::choose() const {
  std::vector<Entry> entries, backlog;
  for (Sequence *sequence : resident) {
    if (!sequence->isActive())
      continue;
    size_t run = runLength(*sequence);
    // The next token, and what is drafted after it.
    bool decodes = run <= 1 + sequence->drafts &&
                   sequence->tokens[sequence->done].role == LLM_ROLE_GENERATED;
    (decodes ? entries : backlog).push_back({sequence, run});
  }
  int64_t budget = options.chunk, rows = options.maxLogitRows;
  for (const Entry &entry : entries) {
    budget -= static_cast<int64_t>(entry.count);
    rows -= entry.rows();
  }
  // One token at least, or a batch that decodes would hold new prompts off.
  budget = std::max<int64_t>(budget, 1);
  bool first = true;
  for (size_t i = 0; i < backlog.size() && budget > 0; ++i) {
    Entry entry = backlog[i];
    int64_t share = budget;
    if (options.fair) {
      auto rest = static_cast<int64_t>(backlog.size() - i);
      share = (budget + rest - 1) / rest;
    }
    int64_t limit = chunkOf(entry, share, first);
    const Token *tokens = entry.sequence->tokens.data() + entry.sequence->done;
    int64_t count = 0;
    while (count < limit && rows >= tokens[count].wantsLogits)
      rows -= tokens[count++].wantsLogits;
    if (count == 0)
      continue;
    entry.count = static_cast<size_t>(count);
    budget -= count;
    first = false;
    entries.push_back(entry);
  }
  std::vector<Entry> ordered;
  for (int role : {LLM_ROLE_PROMPT, LLM_ROLE_GENERATED})
    for (const Entry &entry : entries)
      if (entry.sequence->tokens[entry.sequence->done].role == role)
        ordered.push_back(entry);
  return ordered;
}

/// Drafts among an entry's tokens.
size_t Scheduler::Entry::drafts() const {
  size_t end = sequence->done + count;
  return std::min(count, end - std::min(end, sequence->kept()));
}

/// Room for the entries' tokens. False, with nothing changed, when there are
/// not enough pages.
bool Scheduler::reserve(std::span<const Entry> entries) {
  // Drafts come last: which pages the others get does not depend on them.
  for (bool drafts : {false, true})
    for (const Entry &entry : entries)
      for (int group = 0; group < cache.numGroups(); ++group) {
        size_t count = drafts ? entry.drafts() : entry.count - entry.drafts();
        if (grow(*entry.sequence, group, static_cast<int32_t>(count)))
          continue;
        for (const Entry &each : entries)
          for (BlockTable &table : each.sequence->tables)
            table.rollback(static_cast<int32_t>(each.sequence->done));
        return false;
      }
  return true;
}

void Scheduler::fill(std::span<const Entry> entries, Step &step) {
  int32_t t = 0, prompt = 0;
  for (size_t s = 0; s < entries.size(); ++s) {
    const Entry &entry = entries[s];
    Sequence &sequence = *entry.sequence;
    auto first = static_cast<int32_t>(sequence.done);
    arrays.get(StepArrays::QBegin)[s] = t;
    arrays.get(StepArrays::StateSlot)[s] = sequence.stateSlot;
    arrays.get(StepArrays::Adapter)[s] = noAdapter;
    for (size_t i = 0; i < entry.count; ++i) {
      Token &token = sequence.tokens[sequence.done + i];
      int32_t position = first + static_cast<int32_t>(i);
      int32_t row = t + static_cast<int32_t>(i);
      arrays.get(StepArrays::Token)[row] = token.id;
      arrays.get(StepArrays::Position)[row] = position;
      arrays.get(StepArrays::Seq)[row] = static_cast<int32_t>(s);
      arrays.get(StepArrays::Role)[row] = token.role;
      prompt += token.role == LLM_ROLE_PROMPT;
      // Once: they are not wanted again where the token is computed again.
      if (std::exchange(token.wantsLogits, false)) {
        arrays.get(StepArrays::LogitRow)[step.rows.size()] = row;
        step.rows.push_back({sequence.id, position});
      }
      for (int group = 0; group < cache.numGroups(); ++group)
        arrays.get(StepArrays::Slot, group)[row] =
            sequence.tables[static_cast<size_t>(group)].physicalSlot(position);
    }
    for (int group = 0; group < cache.numGroups(); ++group) {
      const BlockTable &table = sequence.tables[static_cast<size_t>(group)];
      arrays.get(StepArrays::KVLength, group)[s] = table.length();
      int32_t *row = arrays.get(StepArrays::BlockTables, group) +
                     static_cast<int64_t>(s) * cache.tableWidth();
      std::span<const int32_t> pages = table.pages();
      for (size_t page = 0; page < pages.size(); ++page)
        row[page] = cache.tableEntry(group, pages[page]);
      // Nothing reads past the pages; zeros keep a step's bytes independent of
      // the steps before it.
      std::fill(row + pages.size(), row + cache.tableWidth(), 0);
    }
    t += static_cast<int32_t>(entry.count);
    bool before = sequence.isActive();
    sequence.done += entry.count;
    sequence.computed = std::max(sequence.computed, sequence.done);
    updateActive(sequence, before);
    stepped.push_back(&sequence);
  }
  arrays.get(StepArrays::QBegin)[entries.size()] = t;
  step.symbols[Symbols::T] = t;
  step.symbols[Symbols::S] = static_cast<int64_t>(entries.size());
  step.symbols[Symbols::R] = static_cast<int64_t>(step.rows.size());
  step.symbols[Symbols::P] = prompt;
  step.symbols[Symbols::B] = cache.tableWidth();
}

Expected<Scheduler::Step> Scheduler::next() {
  stepped.clear();
  admit();
  for (Sequence *sequence : resident)
    if (sequence->isActive())
      reuse(*sequence);
  for (;;) {
    std::vector<Entry> entries = choose();
    if (reserve(entries)) {
      Step step;
      fill(entries, step);
      return step;
    }
    if (!preempt())
      return Status::resource("the cache of " +
                              std::to_string(cache.numSlots()) +
                              " slots has no free page left");
  }
}

} // namespace llm::runtime
