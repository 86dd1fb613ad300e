//===- PrefixCache.h - Pages that later requests can start from -*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_KVCACHE_PREFIXCACHE_H
#define LLM_RUNTIME_KVCACHE_PREFIXCACHE_H

#include "llm/ABI/step.h"
#include "runtime/kvcache/PageTable.h"

#include <cstdint>
#include <limits>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace llm::runtime {

/// Full pages by what was computed into them. A block is a run of tokens that
/// fills whole pages in every cache group; it is found by the hash of its
/// tokens, their roles and the adapter, chained over all blocks before it, and
/// compared with the tokens themselves: a collision costs time and nothing
/// else. The blocks form a forest, in which a block's parent is the one before
/// it.
///
/// The cache holds each block's pages, and counts the sequences that use the
/// block. Blocks without users stay, until evict() takes the one that was let
/// go first. A user of a block uses all blocks before it, and lets go of the
/// last ones first: so a block goes before its parent.
class PrefixCache {
public:
  using Block = int32_t;
  static constexpr Block none = -1;

  /// A token and its role, in one word.
  static uint32_t word(int32_t token, int role) {
    return static_cast<uint32_t>(token) << 1 | (role == LLM_ROLE_GENERATED);
  }

  /// A cache group: its pages, and how many of them a block fills.
  struct Group {
    PageAllocator *allocator; ///< outlives this
    int32_t pagesPerBlock;
  };
  /// Blocks of `unit` tokens. Of a hash only the bits of `hashMask` count, so
  /// that tests can make collisions.
  PrefixCache(std::vector<Group> groups, int32_t unit,
              uint64_t hashMask = std::numeric_limits<uint64_t>::max());
  PrefixCache(const PrefixCache &) = delete;
  PrefixCache &operator=(const PrefixCache &) = delete;
  ~PrefixCache();

  int32_t unit() const { return blockTokens; }
  int64_t numBlocks() const { return count; }
  /// Blocks that nobody uses.
  int64_t numIdle() const { return static_cast<int64_t>(idle.size()); }
  bool isIdle(Block block) const { return get(block).users == 0; }

  /// The block after `parent` (none: a first one) with these words [unit], or
  /// none. `adapter` is the sequence's, -1 without.
  Block find(Block parent, std::span<const uint32_t> words,
             int32_t adapter) const;

  /// As find(), with the caller as a user of the result. Where there is none,
  /// the block is made of `pages`, which have been written: those of the first
  /// group, then of the next. The caller uses `parent`.
  Block insert(Block parent, std::span<const uint32_t> words, int32_t adapter,
               std::span<const int32_t> pages);

  /// A block's pages in `group`.
  std::span<const int32_t> pages(Block block, int group) const;

  void acquire(Block block);
  void release(Block block);

  /// Forgets the block that nobody has used for longest, and lets go of its
  /// pages. False when there is none.
  bool evict();

  /// Memory of the tables when `blocks` are kept, at most.
  static uint64_t bytes(int64_t blocks, int32_t unit, int64_t pagesPerBlock);

private:
  struct Entry {
    uint64_t hash = 0;
    Block parent = none;
    int32_t adapter = -1;
    int32_t users = 0;
    std::vector<uint32_t> words;
    std::vector<int32_t> pages;
    std::list<Block>::iterator place; ///< in `idle`, where users is 0
  };
  const Entry &get(Block block) const {
    return entries[static_cast<size_t>(block)];
  }
  Entry &get(Block block) { return entries[static_cast<size_t>(block)]; }
  uint64_t hashOf(Block parent, std::span<const uint32_t> words,
                  int32_t adapter) const;
  Block lookUp(uint64_t hash, Block parent, std::span<const uint32_t> words,
               int32_t adapter) const;
  void forget(Block block);

  std::vector<Group> groups;
  std::vector<int32_t> firstPage; ///< of each group in an entry's pages
  int32_t blockTokens;
  uint64_t mask;
  int64_t count = 0;
  std::vector<Entry> entries;
  std::vector<Block> unused;
  std::unordered_multimap<uint64_t, Block> byHash;
  /// Front: let go first.
  std::list<Block> idle;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_KVCACHE_PREFIXCACHE_H
