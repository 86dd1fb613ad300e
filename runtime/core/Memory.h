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

/// Zeroed anonymous memory, page aligned, resident only where touched. Large
/// ones ask for huge pages.
class Allocation {
public:
  Allocation() = default;
  /// Resource when the system refuses. Zero bytes give an empty allocation.
  static Expected<Allocation> create(uint64_t bytes);
  /// Whether create(bytes) asks for huge pages and the system grants any.
  static bool inHugePages(uint64_t bytes);
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
  std::byte *base = nullptr;
  uint64_t length = 0;
};

/// A file mapped read-only and private.
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

  /// Hints for a part of bytes() that is about to be read once, and for one
  /// that will not be read again: it leaves this process's memory.
  void prefault(std::span<const std::byte> part) const;
  void letGo(std::span<const std::byte> part) const;

private:
  const std::byte *base = nullptr;
  size_t length = 0;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_CORE_MEMORY_H
