//===- Scheduler.cpp - Which tokens run in the next step ------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/scheduler/Scheduler.h"

#include <algorithm>
#include <cassert>

namespace llm::runtime {

Expected<Scheduler::SequenceId> Scheduler::add() {
  if (static_cast<int64_t>(sequences.size()) >= options.maxSequences)
    return Status::resource("the session has room for " +
                            std::to_string(options.maxSequences) +
                            " sequences");
  Sequence sequence;
  if (freeStateSlots.empty()) {
    sequence.stateSlot = usedStateSlots++;
  } else {
    sequence.stateSlot = freeStateSlots.back();
    freeStateSlots.pop_back();
  }
  for (int group = 0; group < cache.numGroups(); ++group)
    sequence.tables.push_back(cache.newTable(group));
  SequenceId id = nextId++;
  sequences.emplace(id, std::move(sequence));
  return id;
}

Expected<Scheduler::SequenceId> Scheduler::fork(SequenceId parent) {
  const Sequence &from = sequences.at(parent);
  if (from.done != from.tokens.size())
    return Status::invalidInput("a sequence with waiting tokens is forked");
  LLM_ASSIGN_OR_RETURN(SequenceId id, add());
  Sequence &to = sequences.at(id);
  to.tokens = from.tokens;
  to.done = from.done;
  for (size_t group = 0; group < from.tables.size(); ++group)
    to.tables[group] = from.tables[group].fork();
  return id;
}

void Scheduler::remove(SequenceId id) {
  auto found = sequences.find(id);
  if (found == sequences.end())
    return;
  freeStateSlots.push_back(found->second.stateSlot);
  sequences.erase(found);
}

Status Scheduler::append(SequenceId id, std::span<const int32_t> tokens,
                         llm_role role, Logits logits) {
  Sequence &sequence = sequences.at(id);
  if (sequence.tokens.size() + tokens.size() >
      static_cast<size_t>(options.context))
    return Status::invalidInput(
        "a sequence of " +
        std::to_string(sequence.tokens.size() + tokens.size()) +
        " tokens does not fit in the context of " +
        std::to_string(options.context));
  for (size_t i = 0; i < tokens.size(); ++i) {
    bool wanted = logits == Logits::All ||
                  (logits == Logits::Last && i + 1 == tokens.size());
    sequence.tokens.push_back({tokens[i], static_cast<uint8_t>(role), wanted});
  }
  return Status::success();
}

Status Scheduler::rollback(SequenceId id, int64_t length) {
  Sequence &sequence = sequences.at(id);
  if (length < 0 || length > static_cast<int64_t>(sequence.tokens.size()))
    return Status::invalidInput(
        "a sequence of " + std::to_string(sequence.tokens.size()) +
        " tokens cannot be cut to " + std::to_string(length));
  sequence.tokens.resize(static_cast<size_t>(length));
  if (static_cast<size_t>(length) < sequence.done) {
    sequence.done = static_cast<size_t>(length);
    for (BlockTable &table : sequence.tables)
      table.rollback(static_cast<int32_t>(length));
  }
  return Status::success();
}

int64_t Scheduler::length(SequenceId id) const {
  return static_cast<int64_t>(sequences.at(id).tokens.size());
}

bool Scheduler::idle() const {
  return std::all_of(sequences.begin(), sequences.end(), [](const auto &each) {
    return each.second.done == each.second.tokens.size();
  });
}

/// Waiting tokens up to the first change of role.
size_t Scheduler::runLength(const Sequence &sequence) const {
  size_t end = sequence.done;
  while (end < sequence.tokens.size() &&
         sequence.tokens[end].role == sequence.tokens[sequence.done].role)
    ++end;
  return end - sequence.done;
}

std::vector<Scheduler::Entry> Scheduler::choose() {
  std::vector<Entry> entries, backlog;
  for (auto &[id, sequence] : sequences) {
    size_t run = runLength(sequence);
    if (run == 0)
      continue;
    bool decodes =
        run == 1 && sequence.tokens[sequence.done].role == LLM_ROLE_GENERATED;
    (decodes ? entries : backlog).push_back({id, &sequence, run});
  }
  // One token at least, or a batch that decodes would hold new prompts off.
  int64_t budget = std::max<int64_t>(
      options.chunk - static_cast<int64_t>(entries.size()), 1);
  int64_t rows = options.maxLogitRows - static_cast<int64_t>(entries.size());
  for (size_t i = 0; i < backlog.size() && budget > 0; ++i) {
    Entry entry = backlog[i];
    int64_t share = budget;
    if (options.fair) {
      auto rest = static_cast<int64_t>(backlog.size() - i);
      share = (budget + rest - 1) / rest;
    }
    int64_t limit = std::min<int64_t>(share, static_cast<int64_t>(entry.count));
    const Token *tokens = entry.sequence->tokens.data() + entry.sequence->done;
    int64_t count = 0;
    while (count < limit && rows >= tokens[count].wantsLogits)
      rows -= tokens[count++].wantsLogits;
    if (count == 0)
      continue;
    entry.count = static_cast<size_t>(count);
    budget -= count;
    entries.push_back(entry);
  }
  std::vector<Entry> ordered;
  for (int role : {LLM_ROLE_PROMPT, LLM_ROLE_GENERATED})
    for (const Entry &entry : entries)
      if (entry.sequence->tokens[entry.sequence->done].role == role)
        ordered.push_back(entry);
  return ordered;
}

Status Scheduler::reserve(std::span<const Entry> entries) {
  std::vector<BlockTable::Copy> copies;
  for (size_t i = 0; i < entries.size(); ++i) {
    std::vector<BlockTable> &tables = entries[i].sequence->tables;
    for (size_t group = 0; group < tables.size(); ++group) {
      copies.clear();
      if (tables[group].grow(static_cast<int32_t>(entries[i].count), copies)) {
        for (BlockTable::Copy copy : copies)
          cache.copyPage(static_cast<int>(group), copy);
        continue;
      }
      for (size_t j = 0; j <= i; ++j)
        for (BlockTable &table : entries[j].sequence->tables)
          table.rollback(static_cast<int32_t>(entries[j].sequence->done));
      return Status::resource("the cache has no free page left");
    }
  }
  return Status::success();
}

void Scheduler::fill(std::span<const Entry> entries, Step &step) {
  int32_t t = 0, prompt = 0;
  for (size_t s = 0; s < entries.size(); ++s) {
    const Entry &entry = entries[s];
    Sequence &sequence = *entry.sequence;
    auto first = static_cast<int32_t>(sequence.done);
    arrays.get(StepArrays::QBegin)[s] = t;
    arrays.get(StepArrays::StateSlot)[s] = sequence.stateSlot;
    arrays.get(StepArrays::Adapter)[s] = -1;
    for (size_t i = 0; i < entry.count; ++i) {
      const Token &token = sequence.tokens[sequence.done + i];
      int32_t position = first + static_cast<int32_t>(i);
      int32_t row = t + static_cast<int32_t>(i);
      arrays.get(StepArrays::Token)[row] = token.id;
      arrays.get(StepArrays::Position)[row] = position;
      arrays.get(StepArrays::Seq)[row] = static_cast<int32_t>(s);
      arrays.get(StepArrays::Role)[row] = token.role;
      prompt += token.role == LLM_ROLE_PROMPT;
      if (token.wantsLogits) {
        arrays.get(StepArrays::LogitRow)[step.rows.size()] = row;
        step.rows.push_back({entry.id, position});
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
    sequence.done += entry.count;
  }
  arrays.get(StepArrays::QBegin)[entries.size()] = t;
  step.symbols[Symbols::T] = t;
  step.symbols[Symbols::S] = static_cast<int64_t>(entries.size());
  step.symbols[Symbols::R] = static_cast<int64_t>(step.rows.size());
  step.symbols[Symbols::P] = prompt;
  step.symbols[Symbols::B] = cache.tableWidth();
}

Expected<Scheduler::Step> Scheduler::next() {
  Step step;
  std::vector<Entry> entries = choose();
  LLM_RETURN_IF_ERROR(reserve(entries));
  fill(entries, step);
  return step;
}

} // namespace llm::runtime
