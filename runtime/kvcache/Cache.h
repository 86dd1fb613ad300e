//===- Cache.h - The memory of a cache and its groups ---------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_KVCACHE_CACHE_H
#define LLM_RUNTIME_KVCACHE_CACHE_H

#include "llm/ABI/manifest.pb.h"
#include "runtime/core/Memory.h"
#include "runtime/kvcache/PageTable.h"

#include <deque>
#include <vector>

namespace llm::runtime {

/// How large a cache is.
struct CacheShape {
  /// Slots of a sequence at most.
  int32_t context = 0;
  /// Sequences at once: slots of the sequence planes.
  int32_t maxSequences = 0;
  /// Slots over all sequences (C): a multiple of every group's page size.
  int64_t slots = 0;
};

/// All planes of an artifact's cache groups, allocated for their maximum and
/// resident where touched, with a page allocator per group. A contiguous group
/// (page size 0) has one page of `context` slots per sequence, and its block
/// tables hold first slots in place of pages.
class Cache {
public:
  static Expected<Cache> create(const artifact::Manifest &manifest,
                                const CacheShape &shape);

  int numGroups() const { return static_cast<int>(groups.size()); }
  /// Slots of the cache over all sequences (C).
  int64_t numSlots() const { return slots; }
  /// The common multiple of the page sizes: tokens whose pages are full in
  /// every group at once.
  int32_t unit() const { return pageUnit; }
  /// Whether sequences can share what they have in common: all groups have
  /// pages, and nothing of a sequence lies outside them.
  bool shareable() const { return !hasContiguous && !hasSequencePlanes; }
  /// Whether a block table's fork has all of a sequence.
  bool forkable() const { return !hasSequencePlanes; }
  int32_t pageSize(int group) const {
    return groups[static_cast<size_t>(group)].pageSize;
  }
  /// Pages a sequence can own, over all groups (B).
  int32_t tableWidth() const { return width; }

  BlockTable newTable(int group);
  PageAllocator &allocator(int group) {
    return groups[static_cast<size_t>(group)].allocator;
  }
  /// What stands in the step's block table for physical page `page`.
  int32_t tableEntry(int group, int32_t page) const {
    const Group &g = groups[static_cast<size_t>(group)];
    return g.contiguous ? page * g.pageSize : page;
  }

  /// Memory of a plane of a layer.
  struct PlaneRef {
    std::byte *data;
    uint64_t bytes;
  };
  PlaneRef plane(uint32_t group, uint32_t layer, uint32_t plane) const;

  /// Copies a page of every token and page plane of a group.
  void copyPage(int group, BlockTable::Copy copy);

  /// The least common multiple of the page sizes, a contiguous group's being
  /// `context`. Unsupported when it exceeds int32.
  static Expected<int64_t> unitOf(const artifact::Manifest &manifest,
                                  int32_t context);

private:
  struct PlaneMemory {
    uint64_t unitBytes; ///< per slot, page or sequence
    artifact::Plane::Granularity granularity;
    std::vector<Allocation> layers;
  };
  struct Group {
    bool contiguous;
    int32_t pageSize;
    PageAllocator allocator;
    std::vector<PlaneMemory> planes;
  };
  /// A deque: block tables point to the allocators.
  std::deque<Group> groups;
  int32_t width = 1;
  int64_t slots = 0;
  int32_t pageUnit = 1;
  bool hasContiguous = false, hasSequencePlanes = false;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_KVCACHE_CACHE_H
