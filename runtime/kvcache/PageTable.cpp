//===- PageTable.cpp - Pages, and who holds them ----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/kvcache/PageTable.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace llm::runtime {

PageAllocator::PageAllocator(int32_t numPages)
    : holders(static_cast<size_t>(numPages), 0), freeCount(numPages) {}

std::optional<int32_t> PageAllocator::allocate() {
  int32_t page;
  if (!recycled.empty()) {
    std::pop_heap(recycled.begin(), recycled.end(), std::greater<>());
    page = recycled.back();
    recycled.pop_back();
  } else if (fresh < numPages()) {
    page = fresh++;
  } else {
    return std::nullopt;
  }
  holders[static_cast<size_t>(page)] = 1;
  --freeCount;
  return page;
}

void PageAllocator::retain(int32_t page) {
  assert(references(page) > 0 && "a free page has no holder to join");
  ++holders[static_cast<size_t>(page)];
}

void PageAllocator::release(int32_t page) {
  assert(references(page) > 0 && "released more often than held");
  if (--holders[static_cast<size_t>(page)] > 0)
    return;
  recycled.push_back(page);
  std::push_heap(recycled.begin(), recycled.end(), std::greater<>());
  ++freeCount;
}

bool BlockTable::grow(int32_t count, std::vector<Copy> &copies) {
  assert(count >= 0);
  int64_t needed = (int64_t(slots) + count + pageSize - 1) / pageSize;
  // The first new slot lies in a page that is held already.
  bool startsInside = count > 0 && slots % pageSize != 0;
  bool copy = startsInside && allocator->references(held.back()) > 1;
  int64_t fresh = needed - static_cast<int64_t>(held.size()) + copy;
  if (fresh > allocator->numFree())
    return false;
  if (copy) {
    std::optional<int32_t> page = allocator->allocate();
    if (!page)
      return false;
    copies.push_back({held.back(), *page});
    allocator->release(held.back());
    held.back() = *page;
  }
  while (static_cast<int64_t>(held.size()) < needed)
    held.push_back(*allocator->allocate());
  slots += count;
  return true;
}

void BlockTable::rollback(int32_t length) {
  assert(length >= 0 && length <= slots);
  slots = length;
  size_t needed =
      static_cast<size_t>((int64_t(length) + pageSize - 1) / pageSize);
  while (held.size() > needed) {
    allocator->release(held.back());
    held.pop_back();
  }
}

BlockTable BlockTable::fork() const {
  BlockTable child(*allocator, pageSize);
  child.held = held;
  child.slots = slots;
  for (int32_t page : held)
    allocator->retain(page);
  return child;
}

void BlockTable::adopt(std::span<const int32_t> shared) {
  assert(static_cast<size_t>(slots) ==
         held.size() * static_cast<size_t>(pageSize));
  for (int32_t page : shared) {
    allocator->retain(page);
    held.push_back(page);
    slots += pageSize;
  }
}

void BlockTable::substitute(size_t index, std::span<const int32_t> equal) {
  assert(index + equal.size() <= held.size());
  for (size_t i = 0; i < equal.size(); ++i) {
    allocator->retain(equal[i]);
    allocator->release(std::exchange(held[index + i], equal[i]));
  }
}

} // namespace llm::runtime
