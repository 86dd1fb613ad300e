//===- Memory.cpp - Mapped memory and files ----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Memory.h"

#include "runtime/core/Limits.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llm::runtime {

namespace {
constexpr uint64_t hugePage = 2u << 20;
}

Expected<Allocation> Allocation::create(uint64_t bytes) {
  Allocation result;
  if (bytes == 0)
    return result;
  if (bytes > (uint64_t(1) << 46))
    return Status::resource("cannot allocate " + formatSize(bytes));
  // A huge page must be aligned, which mmap promises only for small ones.
  uint64_t slack = bytes >= hugePage ? hugePage : 0;
  void *memory = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return Status::resource("cannot allocate " + formatSize(bytes) + ": " +
                            std::strerror(errno));
  auto *base = static_cast<std::byte *>(memory);
  if (slack) {
    uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    uint64_t length = (bytes + page - 1) / page * page;
    uint64_t head = -reinterpret_cast<uintptr_t>(base) & (hugePage - 1);
    uint64_t tail = bytes + slack - head - length;
    if (head)
      munmap(base, head);
    if (tail)
      munmap(base + head + length, tail);
    base += head;
    madvise(base, bytes, MADV_HUGEPAGE);
  }
  result.base = base;
  result.length = bytes;
  return result;
}

bool Allocation::inHugePages(uint64_t bytes) {
  if (bytes < hugePage)
    return false;
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
    void *memory = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ,
                        MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED) {
      status = Status::resource(path + ": cannot map: " + std::strerror(errno));
    } else {
      result.base = static_cast<const std::byte *>(memory);
      result.length = static_cast<size_t>(info.st_size);
    }
  }
  close(descriptor);
  if (!status)
    return status;
  return result;
}

namespace {
/// Advises on the whole pages that `part` touches. Advice may be refused.
void advise(std::span<const std::byte> part, int advice) {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<uintptr_t>(part.data());
  uintptr_t first = begin / page * page;
  madvise(reinterpret_cast<void *>(first), begin + part.size() - first, advice);
}
} // namespace

void MappedFile::prefault(std::span<const std::byte> part) const {
#ifdef MADV_POPULATE_READ
  advise(part, MADV_POPULATE_READ);
#else
  advise(part, MADV_WILLNEED);
#endif
}

void MappedFile::letGo(std::span<const std::byte> part) const {
  advise(part, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (base)
    munmap(const_cast<std::byte *>(base), length);
}

} // namespace llm::runtime
