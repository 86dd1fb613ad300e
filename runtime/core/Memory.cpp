//===- Memory.cpp - Mapped memory and files ----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Memory.h"

#include "runtime/core/Limits.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llm::runtime {

/// Anonymous memory of `bytes` at a multiple of `alignment`, which is one of
/// the page; MAP_FAILED where the system refuses.
static void *mapAligned(uint64_t bytes, uint64_t alignment, int protection) {
  // mmap promises the alignment of small pages only.
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t slack = alignment > page ? alignment : 0;
  void *memory = mmap(nullptr, bytes + slack, protection,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || !slack)
    return memory;
  auto *base = static_cast<std::byte *>(memory);
  uint64_t length = (bytes + page - 1) & -page;
  uint64_t head = -reinterpret_cast<uintptr_t>(base) & (alignment - 1);
  uint64_t whole = (bytes + slack + page - 1) & -page;
  if (head)
    munmap(base, head);
  if (uint64_t tail = whole - head - length)
    munmap(base + head + length, tail);
  return base + head;
}

Expected<Allocation> Allocation::create(uint64_t bytes) {
  Allocation result;
  if (bytes == 0)
    return result;
  if (bytes > (uint64_t(1) << 46))
    return Status::resource("cannot allocate " + formatSize(bytes));
  void *memory = mapAligned(bytes, bytes >= hugePage ? hugePage : 1,
                            PROT_READ | PROT_WRITE);
  if (memory == MAP_FAILED)
    return Status::resource("cannot allocate " + formatSize(bytes) + ": " +
                            std::strerror(errno));
  if (bytes >= hugePage)
    madvise(memory, bytes, MADV_HUGEPAGE);
  result.base = static_cast<std::byte *>(memory);
  result.length = bytes;
  return result;
}

bool grantsHugePages() {
  // The chosen mode is in brackets.
  int descriptor = ::open("/sys/kernel/mm/transparent_hugepage/enabled",
                          O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return false;
  char text[64] = {};
  ssize_t size = read(descriptor, text, sizeof(text) - 1);
  close(descriptor);
  return size > 0 && !std::strstr(text, "[never]");
}

Allocation::~Allocation() {
  if (base)
    munmap(base, length);
}

Expected<MappedFile> MappedFile::open(const std::string &path) {
  // Opening a pipe would wait for its other end.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return Status::invalidInput(path +
                                ": cannot open: " + std::strerror(errno));
  struct stat info;
  MappedFile result;
  Status status;
  if (fstat(descriptor, &info) != 0) {
    status = Status::invalidInput(path + ": " + std::strerror(errno));
  } else if (!S_ISREG(info.st_mode)) {
    status = Status::invalidInput(path + ": not a regular file");
  } else if (info.st_size > 0) {
    auto size = static_cast<size_t>(info.st_size);
    void *place = mapAligned(size, hugePage, PROT_NONE);
    void *memory = place == MAP_FAILED
                       ? MAP_FAILED
                       : mmap(place, size, PROT_READ, MAP_PRIVATE | MAP_FIXED,
                              descriptor, 0);
    if (memory == MAP_FAILED) {
      status = Status::resource(path + ": cannot map: " + std::strerror(errno));
      if (place != MAP_FAILED)
        munmap(place, size);
    } else {
      // Some file systems then read what is not in memory yet by huge pages.
      madvise(memory, size, MADV_HUGEPAGE);
      result.base = static_cast<const std::byte *>(memory);
      result.length = size;
    }
  }
  close(descriptor);
  if (!status)
    return status;
  return result;
}

void MappedFile::prefault(std::span<const std::byte> part) const {
#ifdef MADV_POPULATE_READ
  constexpr int advice = MADV_POPULATE_READ;
#else
  constexpr int advice = MADV_WILLNEED;
#endif
  // The whole pages that `part` touches. Advice may be refused.
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<uintptr_t>(part.data());
  uintptr_t first = begin / page * page;
  madvise(reinterpret_cast<void *>(first), begin + part.size() - first, advice);
}

uint64_t MappedFile::hugePageBytes() const {
  // Mappings, each a line with its range and then lines of figures.
  std::FILE *maps = std::fopen("/proc/self/smaps", "re");
  if (!maps)
    return 0;
  auto begin = reinterpret_cast<uintptr_t>(base);
  uint64_t total = 0;
  bool inside = false;
  char line[512];
  constexpr std::string_view key = "FilePmdMapped:";
  while (std::fgets(line, sizeof(line), maps)) {
    char *end;
    uint64_t first = std::strtoull(line, &end, 16);
    if (*end == '-')
      inside = first >= begin && first < begin + length;
    else if (inside && std::string_view(line).starts_with(key))
      total += std::strtoull(line + key.size(), nullptr, 10) << 10; // from kB
  }
  std::fclose(maps);
  return total;
}

bool MappedFile::copyInPlace(std::span<const std::byte> part) const {
  Expected<Allocation> copy = Allocation::create(part.size());
  if (!copy || !copy->data())
    return false;
  std::memcpy(copy->data(), part.data(), part.size());
  // Moves the pages, not the bytes. Who reads at the old place meanwhile waits:
  // the system replaces a mapping under the lock that faults take.
  if (mprotect(copy->data(), part.size(), PROT_READ) != 0 ||
      mremap(copy->data(), part.size(), part.size(),
             MREMAP_MAYMOVE | MREMAP_FIXED,
             const_cast<std::byte *>(part.data())) == MAP_FAILED)
    return false;
  // It now is a part of this mapping.
  copy->base = nullptr;
  copy->length = 0;
  return true;
}

MappedFile::~MappedFile() {
  if (base)
    munmap(const_cast<std::byte *>(base), length);
}

} // namespace llm::runtime
