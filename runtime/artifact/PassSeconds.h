//===- PassSeconds.h - How long the passes took ----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_ARTIFACT_PASSSECONDS_H
#define LLM_RUNTIME_ARTIFACT_PASSSECONDS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llm::runtime {

/// The extended attribute LLM_PASS_SECONDS_ATTRIBUTE of an artifact: 16 hex
/// digits of the manifest's checksum, which say what it is about, then a comma
/// and seconds for each pass.
std::string formatPassSeconds(uint64_t manifestChecksum,
                              const std::vector<double> &seconds);

/// The seconds in `text`; none where it is about another manifest, is not of
/// `count` passes, or is malformed.
std::vector<double> parsePassSeconds(std::string_view text,
                                     uint64_t manifestChecksum, size_t count);

} // namespace llm::runtime

#endif // LLM_RUNTIME_ARTIFACT_PASSSECONDS_H
