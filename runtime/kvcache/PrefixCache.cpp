//===- PrefixCache.cpp - Pages that later requests can start from -----===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/kvcache/PrefixCache.h"

#include <algorithm>
#include <cassert>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llm::runtime {

PrefixCache::PrefixCache(std::vector<Group> list, int32_t unit,
                         uint64_t hashMask)
    : groups(std::move(list)), blockTokens(unit), mask(hashMask) {
  int32_t first = 0;
  for (const Group &group : groups) {
    firstPage.push_back(first);
    first += group.pagesPerBlock;
  }
  firstPage.push_back(first);
}

PrefixCache::~PrefixCache() {
  while (evict())
    ;
  assert(count == 0 && "a block still has users");
}

uint64_t PrefixCache::hashOf(Block parent, std::span<const uint32_t> words,
                             int32_t adapter) const {
  uint64_t seed =
      parent == none ? static_cast<uint64_t>(adapter) : get(parent).hash;
  return XXH3_64bits_withSeed(words.data(), words.size_bytes(), seed) & mask;
}

PrefixCache::Block PrefixCache::lookUp(uint64_t hash, Block parent,
                                       std::span<const uint32_t> words,
                                       int32_t adapter) const {
  auto [begin, end] = byHash.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Entry &entry = get(it->second);
    // Equal parents stand for equal tokens before: they were compared, too.
    if (entry.parent == parent && entry.adapter == adapter &&
        std::equal(words.begin(), words.end(), entry.words.begin(),
                   entry.words.end()))
      return it->second;
  }
  return none;
}

PrefixCache::Block PrefixCache::find(Block parent,
                                     std::span<const uint32_t> words,
                                     int32_t adapter) const {
  return lookUp(hashOf(parent, words, adapter), parent, words, adapter);
}

PrefixCache::Block PrefixCache::insert(Block parent,
                                       std::span<const uint32_t> words,
                                       int32_t adapter,
                                       std::span<const int32_t> pages) {
  assert(static_cast<int32_t>(words.size()) == blockTokens);
  assert(static_cast<int32_t>(pages.size()) == firstPage.back());
  assert((parent == none || get(parent).users > 0) &&
         "the blocks before have the same users");
  uint64_t hash = hashOf(parent, words, adapter);
  Block block = lookUp(hash, parent, words, adapter);
  if (block != none) {
    acquire(block);
    return block;
  }
  if (unused.empty()) {
    block = static_cast<Block>(entries.size());
    entries.emplace_back();
  } else {
    block = unused.back();
    unused.pop_back();
  }
  byHash.emplace(hash, block);
  Entry &entry = get(block);
  entry.hash = hash;
  entry.parent = parent;
  entry.adapter = adapter;
  entry.users = 1;
  entry.words.assign(words.begin(), words.end());
  entry.pages.assign(pages.begin(), pages.end());
  for (size_t group = 0; group < groups.size(); ++group)
    for (int32_t page : this->pages(block, static_cast<int>(group)))
      groups[group].allocator->retain(page);
  ++count;
  return block;
}

std::span<const int32_t> PrefixCache::pages(Block block, int group) const {
  auto index = static_cast<size_t>(group);
  return std::span(get(block).pages)
      .subspan(static_cast<size_t>(firstPage[index]),
               static_cast<size_t>(groups[index].pagesPerBlock));
}

void PrefixCache::acquire(Block block) {
  Entry &entry = get(block);
  if (entry.users++ == 0)
    idle.erase(entry.place);
}

void PrefixCache::release(Block block) {
  Entry &entry = get(block);
  assert(entry.users > 0 && "released more often than acquired");
  if (--entry.users == 0)
    entry.place = idle.insert(idle.end(), block);
}

bool PrefixCache::evict() {
  if (idle.empty())
    return false;
  forget(idle.front());
  return true;
}

void PrefixCache::forget(Block block) {
  Entry &entry = get(block);
  idle.erase(entry.place);
  auto [begin, end] = byHash.equal_range(entry.hash);
  byHash.erase(std::find_if(
      begin, end, [&](const auto &each) { return each.second == block; }));
  for (size_t group = 0; group < groups.size(); ++group)
    for (int32_t page : pages(block, static_cast<int>(group)))
      groups[group].allocator->release(page);
  entry = Entry();
  unused.push_back(block);
  --count;
}

uint64_t PrefixCache::bytes(int64_t blocks, int32_t unit,
                            int64_t pagesPerBlock) {
  // Entries grow by doubling; nodes of the list and of the map, its buckets,
  // and what the allocator adds to each piece.
  constexpr uint64_t perBlock = 2 * sizeof(Entry) + 160;
  return static_cast<uint64_t>(blocks) *
         (perBlock + sizeof(uint32_t) * static_cast<uint64_t>(unit) +
          sizeof(int32_t) * static_cast<uint64_t>(pagesPerBlock));
}

} // namespace llm::runtime
