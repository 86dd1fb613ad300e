//===- Step.cpp - The arrays of a step ------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/scheduler/Step.h"

#include <algorithm>
#include <charconv>

namespace llm::runtime {

namespace {
constexpr std::array<std::string_view, StepArrays::count> names{
    "token",  "position",   "seq",     "role",      "slot",       "q_begin",
    "kv_len", "state_slot", "adapter", "logit_row", "block_table"};

bool perGroup(size_t array) {
  return array == StepArrays::Slot || array == StepArrays::KVLength ||
         array == StepArrays::BlockTables;
}

uint64_t paddedBytes(const StepArrays::Capacity &capacity, size_t array) {
  int64_t elements = 0;
  switch (array) {
  case StepArrays::QBegin:
    elements = capacity.sequences + 1;
    break;
  case StepArrays::KVLength:
  case StepArrays::StateSlot:
  case StepArrays::Adapter:
    elements = capacity.sequences;
    break;
  case StepArrays::LogitRow:
    elements = capacity.logitRows;
    break;
  case StepArrays::BlockTables:
    elements = capacity.sequences * capacity.tableWidth;
    break;
  default:
    elements = capacity.tokens;
    break;
  }
  return (static_cast<uint64_t>(elements) * sizeof(int32_t) + 63) / 64 * 64;
}

int copies(const StepArrays::Capacity &capacity, size_t array) {
  // An artifact without a cache may still name group 0.
  return perGroup(array) ? std::max(capacity.groups, 1) : 1;
}
} // namespace

uint64_t StepArrays::bytes(const Capacity &capacity) {
  uint64_t total = 0;
  for (size_t array = 0; array < count; ++array)
    total += paddedBytes(capacity, array) *
             static_cast<uint64_t>(copies(capacity, array));
  return total;
}

Expected<StepArrays> StepArrays::create(const Capacity &capacity) {
  StepArrays result;
  LLM_ASSIGN_OR_RETURN(result.memory, Allocation::create(bytes(capacity)));
  std::byte *next = result.memory.data();
  for (size_t array = 0; array < count; ++array) {
    result.arrayBytes[array] = paddedBytes(capacity, array);
    for (int i = 0; i < copies(capacity, array); ++i) {
      result.pointers[array].push_back(reinterpret_cast<int32_t *>(next));
      next += result.arrayBytes[array];
    }
  }
  return result;
}

std::optional<BufferRef> StepArrays::find(std::string_view name) const {
  size_t dot = name.find('.');
  std::string_view stem = name.substr(0, dot);
  auto found = std::find(names.begin(), names.end(), stem);
  if (found == names.end())
    return std::nullopt;
  auto array = static_cast<size_t>(found - names.begin());
  size_t group = 0;
  if ((dot != std::string_view::npos) != perGroup(array))
    return std::nullopt;
  if (perGroup(array)) {
    const char *end = name.data() + name.size();
    auto [rest, error] = std::from_chars(name.data() + dot + 1, end, group);
    if (error != std::errc() || rest != end || group >= pointers[array].size())
      return std::nullopt;
  }
  return BufferRef{pointers[array][group], arrayBytes[array]};
}

} // namespace llm::runtime
