//===- Shadow.h - Who touched which byte ------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_DEVICE_EMULATOR_SHADOW_H
#define LLM_RUNTIME_DEVICE_EMULATOR_SHADOW_H

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace llm::runtime {

/// A thread at a moment of its run. Two accesses of a block are ordered if a
/// barrier of the block lies between them (their epochs differ), or if both are
/// of one warp and a synchronisation of that warp lies between them. Accesses
/// of different blocks of a launch are never ordered.
struct Moment {
  uint32_t block = 0; ///< number in the launch
  int32_t thread = 0; ///< number in the block
  uint32_t epoch = 0; ///< barriers so far; never repeats within a launch
  uint32_t warpEpoch = 0;
  uint32_t site = 0;

  int32_t warp() const { return thread / 32; }
};

/// The earlier of two accesses that are not ordered.
struct Conflict {
  uint32_t block = 0;
  int32_t thread = 0; ///< one of them where several threads read
  uint32_t site = 0;
  bool wrote = false;
};

/// The last accesses to one byte.
class ShadowByte {
public:
  /// Records a read, or returns the write that it is in conflict with.
  std::optional<Conflict> read(const Moment &now);
  /// Records a write, or returns the access that it is in conflict with.
  /// Atomic accesses are in conflict with those that are not.
  std::optional<Conflict> write(const Moment &now, bool atomic);
  bool wasWritten() const { return writes.crowd != None; }

private:
  /// The accesses that nothing has ordered since: none, those of one thread, of
  /// several threads of a warp, or of more.
  enum Crowd : uint8_t { None, One, Warp, Many };
  struct Accesses {
    /// One of them, the latest where they are of one warp, and its thread.
    Moment last;
    /// A thread among them that is another one; for Warp and Many.
    Moment other;
    Crowd crowd = None;

    void add(const Moment &now);
    /// Whether all of them come before `now`.
    bool orderedBefore(const Moment &now) const;
    Conflict conflict(const Moment &now, bool wrote) const;
  };

  Accesses writes; ///< more than one only where they are atomic
  Accesses reads;  ///< since the last write
  bool writeAtomic = false;
};

/// Shadow of a range of addresses that is made as it is touched.
class SparseShadow {
public:
  ShadowByte &at(const void *address) {
    auto value = reinterpret_cast<uintptr_t>(address);
    std::unique_ptr<ShadowByte[]> &page = pages[value / pageBytes];
    if (!page)
      page = std::make_unique<ShadowByte[]>(pageBytes);
    return page[value % pageBytes];
  }

private:
  static constexpr uintptr_t pageBytes = 4096;
  std::unordered_map<uintptr_t, std::unique_ptr<ShadowByte[]>> pages;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_DEVICE_EMULATOR_SHADOW_H
