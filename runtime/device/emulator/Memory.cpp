//===- Memory.cpp - Checks of the emulator's accesses ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/emulator/Launch.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace llm::runtime {

Moment Launch::momentOf(const EmulatorThread &thread, uint32_t site) const {
  return {blockNumber, thread.index, epoch,
          warpEpochs[static_cast<size_t>(thread.index / warpSize)], site};
}

void Launch::abandon(EmulatorThread &thread) {
  thread.fiber.suspend();
  __builtin_unreachable();
}

/// Runs `body` on the fiber of `thread` and leaves the fiber if it returns
/// false or runs out of memory. Exceptions cannot pass the kernel's frames.
template <typename Body>
void Launch::onFiber(EmulatorThread &thread, Body body) {
  bool good = false;
  try {
    good = body();
  } catch (const std::bad_alloc &) {
    outOfMemory = true;
  }
  if (!good)
    abandon(thread);
}

/// Finds what an access to `space` may touch and whether it does not stay in
/// it.
bool Launch::checkRange(EmulatorThread &thread, uint32_t site, int32_t space,
                        bool writes, const char *address, int64_t bytes,
                        bool &isShared) {
  auto value = reinterpret_cast<uintptr_t>(address);
  auto inside = [&](const void *begin, uint64_t size) {
    auto low = reinterpret_cast<uintptr_t>(begin);
    return value >= low && static_cast<uint64_t>(bytes) <= size &&
           value - low <= size - static_cast<uint64_t>(bytes);
  };
  auto outside = [&](const std::string &what, const void *begin,
                     uint64_t size) {
    auto offset =
        static_cast<int64_t>(value - reinterpret_cast<uintptr_t>(begin));
    report(Finding::Kind::OutOfBounds, thread, site,
           std::string("it ") + (writes ? "writes " : "reads ") +
               std::to_string(bytes) + " bytes at byte " +
               std::to_string(offset) + " of " + what + ", which has " +
               std::to_string(size));
    return false;
  };
  isShared = space == LLM_EMULATOR_SHARED;
  uint64_t sharedBytes = params.kernel->shared_bytes;
  if (isShared)
    return inside(shared, sharedBytes) ||
           outside("shared memory", shared, sharedBytes);
  auto readOnly = [&](size_t operand) {
    if (!writes || operand >= params.numReads)
      return true;
    report(Finding::Kind::ReadOnly, thread, site,
           "operand " + std::to_string(operand) +
               " is only read by the "
               "dispatch");
    return false;
  };
  if (space >= 0) {
    auto operand = static_cast<size_t>(space);
    if (!inside(params.buffers[operand], params.bytes[operand]))
      return outside("operand " + std::to_string(operand),
                     params.buffers[operand], params.bytes[operand]);
    return readOnly(operand);
  }
  if (inside(shared, sharedBytes)) {
    isShared = true;
    return true;
  }
  for (size_t i = 0; i < params.buffers.size(); ++i)
    if (inside(params.buffers[i], params.bytes[i]))
      return readOnly(i);
  report(Finding::Kind::OutOfBounds, thread, site,
         std::string("it ") + (writes ? "writes " : "reads ") +
             std::to_string(bytes) +
             " bytes that belong to no operand and not to shared memory");
  return false;
}

/// "byte 12 of operand 2".
std::string Launch::describeGlobal(const char *address) const {
  for (size_t i = params.numReads; i < params.buffers.size(); ++i) {
    const auto *low = static_cast<const char *>(params.buffers[i]);
    if (address >= low && address < low + params.bytes[i])
      return "byte " + std::to_string(address - low) + " of operand " +
             std::to_string(i);
  }
  return "memory";
}

bool Launch::check(EmulatorThread &thread, uint32_t site, int32_t space,
                   int32_t access, const char *address, int64_t bytes,
                   int64_t alignment) {
  bool writes = access & LLM_EMULATOR_WRITE;
  bool atomic = access & LLM_EMULATOR_ATOMIC;
  bool isShared = false;
  if (!checkRange(thread, site, space, writes, address, bytes, isShared))
    return false;
  if (reinterpret_cast<uintptr_t>(address) % static_cast<uint64_t>(alignment)) {
    report(Finding::Kind::Misaligned, thread, site,
           "its address is not a multiple of " + std::to_string(alignment));
    return false;
  }
  auto where = [&](int64_t i) {
    if (isShared)
      return "byte " + std::to_string(address + i - shared) +
             " of shared memory";
    return describeGlobal(address + i);
  };
  // Operands that the dispatch only reads cannot be raced for.
  if (!isShared) {
    bool writable = false;
    for (size_t i = params.numReads; i < params.buffers.size(); ++i) {
      auto low = static_cast<const char *>(params.buffers[i]);
      writable |= address < low + params.bytes[i] && address + bytes > low;
    }
    if (!writable)
      return true;
  }
  Moment now = momentOf(thread, site);
  for (int64_t i = 0; i < bytes; ++i) {
    ShadowByte &byte =
        isShared ? sharedShadow[static_cast<size_t>(address + i - shared)]
                 : globalShadow.at(address + i);
    bool reads = (access & LLM_EMULATOR_READ) && isShared;
    if (reads && !byte.wasWritten() && !suspicion)
      suspicion = makeFinding(Finding::Kind::Uninitialised, thread, site,
                              "it reads " + where(i) +
                                  ", which no thread of the block wrote");
    std::optional<Conflict> conflict =
        writes ? byte.write(now, atomic) : byte.read(now);
    if (!conflict)
      continue;
    reportConflict(thread, site, *conflict, writes, where(i));
    return false;
  }
  return true;
}

void Launch::access(EmulatorThread &thread, uint32_t site,
                    const void *address) {
  const llm_emulator_site &info = siteOf(site);
  onFiber(thread, [&] {
    return check(thread, site, info.space, info.access,
                 static_cast<const char *>(address), info.bytes,
                 info.alignment);
  });
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

void Launch::startCopy(EmulatorThread &thread, const AsyncCopy &copy) {
  onFiber(thread, [&] {
    // The source is read when the copy is waited for, but must be there now.
    int32_t bytes = std::min(copy.sourceBytes, copy.bytes);
    thread.openCopies.push_back(copy);
    return bytes <= 0 || check(thread, copy.site, siteOf(copy.site).space,
                               LLM_EMULATOR_READ, copy.from, bytes, copy.bytes);
  });
}

void Launch::commitCopies(EmulatorThread &thread) {
  onFiber(thread, [&] {
    thread.copyGroups.push_back(std::move(thread.openCopies));
    thread.openCopies.clear();
    return true;
  });
}

bool Launch::finishCopy(EmulatorThread &thread, const AsyncCopy &copy) {
  if (!check(thread, copy.site, LLM_EMULATOR_SHARED, LLM_EMULATOR_WRITE,
             copy.to, copy.bytes, copy.bytes))
    return false;
  int32_t bytes = std::clamp(copy.sourceBytes, 0, copy.bytes);
  std::memcpy(copy.to, copy.from, static_cast<size_t>(bytes));
  std::memset(copy.to + bytes, 0, static_cast<size_t>(copy.bytes - bytes));
  return true;
}

void Launch::waitForCopies(EmulatorThread &thread, size_t pending) {
  onFiber(thread, [&] {
    while (thread.copyGroups.size() > pending) {
      for (const AsyncCopy &copy : thread.copyGroups.front())
        if (!finishCopy(thread, copy))
          return false;
      thread.copyGroups.erase(thread.copyGroups.begin());
    }
    return true;
  });
}

} // namespace llm::runtime
