//===- Checksum.h - The sum of a payload ------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_ARTIFACT_CHECKSUM_H
#define LLM_RUNTIME_ARTIFACT_CHECKSUM_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace llm::runtime {

/// XXH3-64 of some bytes.
uint64_t checksum(std::span<const std::byte> bytes);

/// The checksum of a payload whose blocks (LLM_CHECKSUM_BLOCK bytes, the last
/// one possibly shorter) have these: so blocks can be summed by several
/// threads.
uint64_t combineChecksums(std::span<const uint64_t> blocks);

/// The checksum of a payload.
uint64_t payloadChecksum(std::span<const std::byte> bytes);

/// The checksum of a payload that comes in parts.
class PayloadChecksum {
public:
  PayloadChecksum();
  ~PayloadChecksum();

  void add(std::span<const std::byte> part);
  uint64_t get() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_ARTIFACT_CHECKSUM_H
