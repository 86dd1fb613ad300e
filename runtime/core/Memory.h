//===- Memory.h - Mapped memory and files -----------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_CORE_MEMORY_H
#define LLM_RUNTIME_CORE_MEMORY_H

#include "runtime/core/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace llm::runtime {

/// What transparent huge pages have on the processors this runs on.
inline constexpr uint64_t hugePage = 2u << 20;

/// Whether the system grants transparent huge pages.
bool grantsHugePages();

/// Zeroed anonymous memory, page aligned, resident only where touched. Large
/// ones ask for huge pages.
class Allocation {
public:
  Allocation() = default;
  /// Resource when the system refuses. Zero bytes give an empty allocation.
  static Expected<Allocation> create(uint64_t bytes);
  Allocation(Allocation &&other) noexcept
      : base(std::exchange(other.base, nullptr)),
        length(std::exchange(other.length, 0)) {}
  Allocation &operator=(Allocation &&other) noexcept {
    std::swap(base, other.base);
    std::swap(length, other.length);
    return *this;
  }
  ~Allocation();

  std::byte *data() const { return base; }
  uint64_t size() const { return length; }

private:
  friend class MappedFile;
  std::byte *base = nullptr;
  uint64_t length = 0;
};

/// A file mapped read-only and private, at a multiple of the huge page.
class MappedFile {
public:
  MappedFile() = default;
  /// Maps a regular file. InvalidInput names the path and the system's reason.
  static Expected<MappedFile> open(const std::string &path);
  MappedFile(MappedFile &&other) noexcept
      : base(std::exchange(other.base, nullptr)),
        length(std::exchange(other.length, 0)) {}
  MappedFile &operator=(MappedFile &&other) noexcept {
    std::swap(base, other.base);
    std::swap(length, other.length);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {base, length}; }

  /// A hint: `part` of bytes() is about to be read.
  void prefault(std::span<const std::byte> part) const;

  /// How much of it the system has mapped by huge pages; 0 where it does not
  /// say. Takes as long as looking at all pages does.
  uint64_t hugePageBytes() const;

  /// Puts a copy of `part`, whose begin and length are multiples of hugePage,
  /// in its place, in huge pages where the system has some: the processor then
  /// finds its way without a page walk every 4 KiB. Addresses and bytes stay
  /// the same, also for threads that read them meanwhile; the file's pages are
  /// let go. False, with nothing changed, where the system refuses.
  bool copyInPlace(std::span<const std::byte> part) const;

private:
  const std::byte *base = nullptr;
  size_t length = 0;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_CORE_MEMORY_H
