//===- Step.h - The arrays of a step ---------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SCHEDULER_STEP_H
#define LLM_RUNTIME_SCHEDULER_STEP_H

#include "runtime/core/Memory.h"
#include "runtime/device/Program.h"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace llm::runtime {

/// The arrays of include/llm/ABI/step.h, allocated once for the largest step,
/// each 64-byte aligned; those with a [group] dimension have an array per
/// group.
class StepArrays {
public:
  struct Capacity {
    int64_t tokens = 0;
    int64_t sequences = 0;
    int64_t logitRows = 0;
    int64_t tableWidth = 0;
    int groups = 0;
  };
  enum Array {
    Token,
    Position,
    Seq,
    Role,
    Slot,
    QBegin,
    KVLength,
    StateSlot,
    Adapter,
    LogitRow,
    BlockTables,
    count
  };

  static Expected<StepArrays> create(const Capacity &capacity);
  /// What create() allocates.
  static uint64_t bytes(const Capacity &capacity);

  int32_t *get(Array array, int group = 0) const {
    return pointers[array][static_cast<size_t>(group)];
  }
  /// The array that programs call `name`; where there is one per cache group,
  /// "slot.0", "kv_len.1", ...
  std::optional<BufferRef> find(std::string_view name) const;

private:
  Allocation memory;
  std::array<std::vector<int32_t *>, count> pointers;
  std::array<uint64_t, count> arrayBytes{};
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_SCHEDULER_STEP_H
