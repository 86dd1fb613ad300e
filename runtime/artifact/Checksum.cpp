//===- Checksum.cpp - The sum of a payload --------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Checksum.h"

#include "llm/ABI/artifact.h"

#include <algorithm>
#include <bit>
#include <vector>
#define XXH_INLINE_ALL
#include <xxhash.h>

static_assert(std::endian::native == std::endian::little,
              "the blocks' sums are summed as they lie");

namespace llm::runtime {

uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t combineChecksums(std::span<const uint64_t> blocks) {
  return checksum(std::as_bytes(blocks));
}

uint64_t payloadChecksum(std::span<const std::byte> bytes) {
  PayloadChecksum sum;
  sum.add(bytes);
  return sum.get();
}

struct PayloadChecksum::State {
  std::vector<uint64_t> blocks;
  /// Of the block that is not complete.
  XXH3_state_t block;
  uint64_t filled = 0;
};

PayloadChecksum::PayloadChecksum() : state(std::make_unique<State>()) {
  XXH3_64bits_reset(&state->block);
}
PayloadChecksum::~PayloadChecksum() = default;

void PayloadChecksum::add(std::span<const std::byte> part) {
  while (!part.empty()) {
    uint64_t size =
        std::min<uint64_t>(part.size(), LLM_CHECKSUM_BLOCK - state->filled);
    XXH3_64bits_update(&state->block, part.data(), size);
    part = part.subspan(size);
    state->filled += size;
    if (state->filled == LLM_CHECKSUM_BLOCK) {
      state->blocks.push_back(XXH3_64bits_digest(&state->block));
      XXH3_64bits_reset(&state->block);
      state->filled = 0;
    }
  }
}

uint64_t PayloadChecksum::get() const {
  std::vector<uint64_t> blocks = state->blocks;
  if (state->filled)
    blocks.push_back(XXH3_64bits_digest(&state->block));
  return combineChecksums(blocks);
}

} // namespace llm::runtime
