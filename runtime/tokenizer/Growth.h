//===- Growth.h - Bounds on what a tokenizer asks for -----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_TOKENIZER_GROWTH_H
#define LLM_RUNTIME_TOKENIZER_GROWTH_H

#include "runtime/core/Status.h"

#include <cstddef>
#include <string>

namespace llm::runtime {

/// Components of one kind that a tokenizer can have: real ones have a dozen.
inline constexpr size_t maxComponents = 64;

/// Unsupported where one more than `count` components are too many.
inline Status checkComponents(size_t count) {
  if (count < maxComponents)
    return Status::success();
  return Status::unsupported("more than " + std::to_string(maxComponents) +
                             " components in a sequence");
}

/// Bytes that components may make of a text of `bytes`. A few that each double
/// it would ask for memory without end; real ones make a few times as many.
inline size_t maxGrown(size_t bytes) { return (bytes + 1024) * 256; }

inline Status checkGrowth(size_t before, size_t after) {
  if (after <= maxGrown(before))
    return Status::success();
  return Status::invalidInput("the tokenizer makes more than " +
                              std::to_string(maxGrown(before)) +
                              " bytes of a text of " + std::to_string(before));
}

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_GROWTH_H
