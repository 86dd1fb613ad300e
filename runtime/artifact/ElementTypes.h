//===- ElementTypes.h - Sizes and names of element types --------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_ARTIFACT_ELEMENTTYPES_H
#define LLM_RUNTIME_ARTIFACT_ELEMENTTYPES_H

#include "llm/ABI/manifest.pb.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace llm::runtime {

/// Bits of an element; 0 for a type that is not known.
int elementBits(artifact::ElementType type);

/// Bytes of `elements` (>= 0) packed elements; nullopt on overflow of 63 bits
/// or an unknown type.
std::optional<uint64_t> elementBytes(artifact::ElementType type,
                                     int64_t elements);

/// "f32", "i4", ...; "unknown" for others.
std::string_view elementName(artifact::ElementType type);

} // namespace llm::runtime

#endif // LLM_RUNTIME_ARTIFACT_ELEMENTTYPES_H
