//===- Cache.cpp - The memory of a cache and its groups ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/kvcache/Cache.h"

#include "runtime/artifact/ElementTypes.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>

namespace llm::runtime {

namespace {
int32_t effectivePageSize(const artifact::CacheGroup &group, int32_t context) {
  return group.page_size() ? static_cast<int32_t>(group.page_size()) : context;
}
constexpr int64_t maxSlots = (int64_t(1) << 31) - 1;
} // namespace

Expected<int64_t> Cache::unitOf(const artifact::Manifest &manifest,
                                int32_t context) {
  int64_t unit = 1;
  for (const artifact::CacheGroup &group : manifest.cache_groups()) {
    unit = std::lcm(unit, int64_t(effectivePageSize(group, context)));
    if (unit > maxSlots)
      return Status::unsupported("the page sizes of the cache groups have no "
                                 "common multiple that fits");
  }
  return unit;
}

Expected<Cache> Cache::create(const artifact::Manifest &manifest,
                              const CacheShape &shape) {
  Cache cache;
  LLM_ASSIGN_OR_RETURN(int64_t unit, unitOf(manifest, shape.context));
  cache.pageUnit = static_cast<int32_t>(unit);
  cache.slots = shape.slots;
  for (const artifact::CacheGroup &description : manifest.cache_groups()) {
    int32_t pageSize = effectivePageSize(description, shape.context);
    assert(shape.slots % pageSize == 0);
    auto numPages = static_cast<int32_t>(shape.slots / pageSize);
    Group &group = cache.groups.emplace_back(Group{
        description.page_size() == 0, pageSize, PageAllocator(numPages), {}});
    cache.width = std::max(
        cache.width, static_cast<int32_t>(
                         (int64_t(shape.context) + pageSize - 1) / pageSize));
    cache.hasContiguous |= description.page_size() == 0;
    for (const artifact::Plane &plane : description.planes()) {
      cache.hasSequencePlanes |=
          plane.granularity() == artifact::Plane::SEQUENCE;
      int64_t elements = 1;
      for (int64_t size : plane.shape())
        elements *= size;
      // Verified: at most 2^32 elements of known size.
      PlaneMemory memory{*elementBytes(plane.element_type(), elements),
                         plane.granularity(),
                         {}};
      int64_t units = plane.granularity() == artifact::Plane::TOKEN
                          ? shape.slots
                      : plane.granularity() == artifact::Plane::PAGE
                          ? int64_t(numPages)
                          : int64_t(shape.maxSequences);
      uint64_t bytes;
      if (__builtin_mul_overflow(memory.unitBytes, static_cast<uint64_t>(units),
                                 &bytes))
        return Status::resource("the cache is too large");
      for (uint32_t layer = 0; layer < description.num_layers(); ++layer) {
        LLM_ASSIGN_OR_RETURN(Allocation allocation, Allocation::create(bytes));
        memory.layers.push_back(std::move(allocation));
      }
      group.planes.push_back(std::move(memory));
    }
  }
  return cache;
}

BlockTable Cache::newTable(int group) {
  Group &g = groups[static_cast<size_t>(group)];
  return BlockTable(g.allocator, g.pageSize);
}

Cache::PlaneRef Cache::plane(uint32_t group, uint32_t layer,
                             uint32_t plane) const {
  const Allocation &memory = groups[group].planes[plane].layers[layer];
  return {memory.data(), memory.size()};
}

void Cache::copyPage(int group, BlockTable::Copy copy) {
  Group &g = groups[static_cast<size_t>(group)];
  for (PlaneMemory &plane : g.planes) {
    if (plane.granularity == artifact::Plane::SEQUENCE)
      continue;
    uint64_t bytes = plane.unitBytes;
    if (plane.granularity == artifact::Plane::TOKEN)
      bytes *= static_cast<uint64_t>(g.pageSize);
    for (Allocation &layer : plane.layers)
      std::memcpy(layer.data() + static_cast<uint64_t>(copy.to) * bytes,
                  layer.data() + static_cast<uint64_t>(copy.from) * bytes,
                  bytes);
  }
}

} // namespace llm::runtime
