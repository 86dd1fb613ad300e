//===- Residency.cpp - Which sequences have pages -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/scheduler/Scheduler.h"

#include <algorithm>
#include <cassert>

namespace llm::runtime {

/// Makes sequences resident that wait, in their order.
void Scheduler::admit() {
  while (!waiting.empty()) {
    bool anyRuns = numActive > numWaiting();
    if (numResident() >= options.maxSequences) {
      if (anyRuns)
        return;
      // Sequences that have nothing to do make way.
      park(**resident.rbegin());
      continue;
    }
    Sequence &first = **waiting.begin();
    if (anyRuns && !hasRoomFor(first))
      return;
    makeResident(first);
  }
}

/// Whether there are pages for all tokens that `sequence` and the resident ones
/// have, and one more, or as many as the next drafts take, for each that may
/// yet need it: without it, the next token could make the newcomer leave again.
bool Scheduler::hasRoomFor(const Sequence &sequence) const {
  int64_t reused = 0, reusedIdle = 0;
  if (prefixes) {
    PrefixCache::Block block = PrefixCache::none;
    size_t begin = 0;
    std::vector<uint32_t> text;
    while ((block = nextBlock(sequence, begin, block, text)) !=
           PrefixCache::none) {
      ++reused;
      reusedIdle += prefixes->isIdle(block);
      begin += static_cast<size_t>(prefixes->unit());
    }
  }
  for (int group = 0; group < cache.numGroups(); ++group) {
    int64_t pageSize = cache.pageSize(group);
    auto pagesFor = [&](const Sequence &each) {
      auto tokens = static_cast<int64_t>(each.tokens.size());
      int64_t pages = (tokens + pageSize - 1) / pageSize;
      int64_t next = std::min(tokens + 1 + options.maxDraft, each.most);
      return std::max(pages + (each.most > pages * pageSize),
                      (next + pageSize - 1) / pageSize);
    };
    int64_t perBlock = cache.unit() / pageSize;
    int64_t needed = pagesFor(sequence) - reused * perBlock;
    for (const Sequence *each : resident) {
      auto held = static_cast<int64_t>(
          each->tables[static_cast<size_t>(group)].pages().size());
      needed += pagesFor(*each) - held;
    }
    int64_t available = cache.allocator(group).numFree();
    if (prefixes)
      available += (prefixes->numIdle() - reusedIdle) * perBlock;
    if (needed > available)
      return false;
  }
  return true;
}

void Scheduler::makeResident(Sequence &sequence) {
  waiting.erase(&sequence);
  if (freeStateSlots.empty()) {
    sequence.stateSlot = usedStateSlots++;
  } else {
    sequence.stateSlot = freeStateSlots.back();
    freeStateSlots.pop_back();
  }
  resident.insert(&sequence);
}

/// Takes a sequence's pages away. Its tokens stay.
void Scheduler::park(Sequence &sequence) {
  releaseBlocks(sequence, 0);
  for (BlockTable &table : sequence.tables)
    table.clear();
  sequence.done = 0;
  freeStateSlots.push_back(sequence.stateSlot);
  sequence.stateSlot = -1;
  resident.erase(&sequence);
  if (sequence.isActive())
    waiting.insert(&sequence);
}

/// Takes the pages of the resident sequence that can best do without: one with
/// nothing to do, else the last one. False where that is the only one.
bool Scheduler::preempt() {
  for (auto it = resident.rbegin(); it != resident.rend(); ++it)
    if (!(*it)->isActive()) {
      park(**it);
      return true;
    }
  if (resident.size() < 2)
    return false;
  Sequence &last = **resident.rbegin();
  ++last.history.preemptions;
  park(last);
  return true;
}

/// Room for `count` more tokens in a group. Pages that nobody uses are given
/// up for it; false when that does not suffice.
bool Scheduler::grow(Sequence &sequence, int group, int32_t count) {
  std::vector<BlockTable::Copy> copies;
  BlockTable &table = sequence.tables[static_cast<size_t>(group)];
  while (!table.grow(count, copies))
    if (!prefixes || !prefixes->evict())
      return false;
  for (BlockTable::Copy copy : copies)
    cache.copyPage(group, copy);
  return true;
}

/// Writes the words of the block of `sequence` that begins at token `begin`.
void Scheduler::spell(const Sequence &sequence, size_t begin,
                      std::vector<uint32_t> &text) const {
  text.clear();
  for (size_t i = 0; i < static_cast<size_t>(prefixes->unit()); ++i) {
    const Token &token = sequence.tokens[begin + i];
    text.push_back(PrefixCache::word(token.id, token.role));
  }
}

/// The block that has what `sequence` would compute from token `begin` on,
/// where the blocks before it end with `parent`. None also where logits are
/// wanted of one of the tokens: they have to be computed.
PrefixCache::Block Scheduler::nextBlock(const Sequence &sequence, size_t begin,
                                        PrefixCache::Block parent,
                                        std::vector<uint32_t> &text) const {
  size_t end = begin + static_cast<size_t>(prefixes->unit());
  if (end > sequence.tokens.size())
    return PrefixCache::none;
  for (size_t i = begin; i < end; ++i)
    if (sequence.tokens[i].wantsLogits)
      return PrefixCache::none;
  spell(sequence, begin, text);
  return prefixes->find(parent, text, noAdapter);
}

/// Takes from the prefix cache what a resident sequence would compute next.
void Scheduler::reuse(Sequence &sequence) {
  if (!prefixes)
    return;
  bool before = sequence.isActive();
  auto unit = static_cast<size_t>(prefixes->unit());
  while (sequence.done == sequence.blocks.size() * unit) {
    PrefixCache::Block block = nextBlock(
        sequence, sequence.done,
        sequence.blocks.empty() ? PrefixCache::none : sequence.blocks.back(),
        scratch);
    if (block == PrefixCache::none)
      break;
    prefixes->acquire(block);
    sequence.blocks.push_back(block);
    for (int group = 0; group < cache.numGroups(); ++group)
      sequence.tables[static_cast<size_t>(group)].adopt(
          prefixes->pages(block, group));
    sequence.done += unit;
    if (sequence.done > sequence.computed) {
      sequence.history.reused +=
          static_cast<int64_t>(sequence.done - sequence.computed);
      sequence.computed = sequence.done;
    }
  }
  updateActive(sequence, before);
}

/// Gives the blocks that a sequence has filled, with other tokens than drafts,
/// to the prefix cache. Where the cache has an equal one, which another
/// sequence computed, the two become one.
void Scheduler::share(Sequence &sequence) {
  auto unit = static_cast<size_t>(prefixes->unit());
  size_t filled = std::min(sequence.done, sequence.kept());
  while ((sequence.blocks.size() + 1) * unit <= filled) {
    size_t index = sequence.blocks.size();
    std::vector<int32_t> pages;
    auto own = [&](int group) {
      auto perBlock = unit / static_cast<size_t>(cache.pageSize(group));
      return sequence.tables[static_cast<size_t>(group)].pages().subspan(
          index * perBlock, perBlock);
    };
    for (int group = 0; group < cache.numGroups(); ++group)
      pages.insert(pages.end(), own(group).begin(), own(group).end());
    spell(sequence, index * unit, scratch);
    PrefixCache::Block block = prefixes->insert(
        index == 0 ? PrefixCache::none : sequence.blocks.back(), scratch,
        noAdapter, pages);
    sequence.blocks.push_back(block);
    for (int group = 0; group < cache.numGroups(); ++group) {
      std::span<const int32_t> kept = prefixes->pages(block, group);
      if (!std::equal(kept.begin(), kept.end(), own(group).begin()))
        sequence.tables[static_cast<size_t>(group)].substitute(
            index * kept.size(), kept);
    }
  }
}

/// Stops using the blocks that reach beyond token `length`, the last one first.
void Scheduler::releaseBlocks(Sequence &sequence, size_t length) {
  while (!sequence.blocks.empty() &&
         sequence.blocks.size() * static_cast<size_t>(prefixes->unit()) >
             length) {
    prefixes->release(sequence.blocks.back());
    sequence.blocks.pop_back();
  }
}

void Scheduler::commit() {
  if (prefixes)
    for (Sequence *sequence : stepped)
      share(*sequence);
  stepped.clear();
}

} // namespace llm::runtime
