//===- PageTable.h - Pages, and who holds them ----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_KVCACHE_PAGETABLE_H
#define LLM_RUNTIME_KVCACHE_PAGETABLE_H

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace llm::runtime {

/// Hands out physical pages [0, numPages) and counts their holders. Pages are
/// taken lowest first, so that what was never used stays untouched memory.
class PageAllocator {
public:
  explicit PageAllocator(int32_t numPages);

  int32_t numPages() const { return static_cast<int32_t>(holders.size()); }
  int32_t numFree() const { return freeCount; }
  /// Holders of `page`, 0 if it is free.
  int32_t references(int32_t page) const {
    return holders[static_cast<size_t>(page)];
  }

  /// A page with one holder, or nothing when all are held.
  std::optional<int32_t> allocate();
  void retain(int32_t page);
  /// Frees the page when its last holder lets go.
  void release(int32_t page);

private:
  std::vector<int32_t> holders;
  /// Free pages below `fresh`, a min-heap; pages from `fresh` on were never
  /// used.
  std::vector<int32_t> recycled;
  int32_t fresh = 0;
  int32_t freeCount;
};

/// The block table of one sequence in one cache group: logical slot j lies in
/// physical slot pages[j / pageSize] * pageSize + j % pageSize. Pages may be
/// shared with other sequences until one of them writes.
class BlockTable {
public:
  /// `allocator` outlives the table.
  BlockTable(PageAllocator &allocator, int32_t pageSize)
      : allocator(&allocator), pageSize(pageSize) {}
  BlockTable(BlockTable &&other) noexcept
      : allocator(other.allocator), pageSize(other.pageSize),
        held(std::move(other.held)), slots(std::exchange(other.slots, 0)) {
    other.held.clear();
  }
  BlockTable &operator=(BlockTable &&other) noexcept {
    std::swap(allocator, other.allocator);
    std::swap(pageSize, other.pageSize);
    std::swap(held, other.held);
    std::swap(slots, other.slots);
    return *this;
  }
  ~BlockTable() { clear(); }

  /// Slots in use.
  int32_t length() const { return slots; }
  std::span<const int32_t> pages() const { return held; }
  int32_t physicalSlot(int32_t slot) const {
    return held[static_cast<size_t>(slot / pageSize)] * pageSize +
           slot % pageSize;
  }

  /// Copies to be made before the step that grow() prepared: contents of page
  /// `from` to page `to`.
  struct Copy {
    int32_t from;
    int32_t to;
  };
  /// Makes room for `count` more slots, which become writable: a shared page
  /// that they start in is replaced by a copy, appended to `copies`. False, and
  /// nothing changed, when there are not enough free pages.
  bool grow(int32_t count, std::vector<Copy> &copies);

  /// Drops the slots from `length` on, at most length().
  void rollback(int32_t length);
  void clear() { rollback(0); }

  /// A table with the same slots, which shares all pages.
  BlockTable fork() const;

  /// Appends full pages that others hold and have written; the table, whose
  /// slots fill its pages, becomes one more holder.
  void adopt(std::span<const int32_t> shared);
  /// Lets go of pages() from `index` on, as many as `equal` has, for pages that
  /// others hold and that have the same contents.
  void substitute(size_t index, std::span<const int32_t> equal);

private:
  PageAllocator *allocator;
  int32_t pageSize;
  std::vector<int32_t> held;
  int32_t slots = 0;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_KVCACHE_PAGETABLE_H
