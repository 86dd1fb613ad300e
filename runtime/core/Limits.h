//===- Limits.h - What the surroundings grant this process -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_CORE_LIMITS_H
#define LLM_RUNTIME_CORE_LIMITS_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace llm::runtime {

/// Processors that the CPU quota of the control group amounts to, rounded up;
/// INT_MAX without a quota.
int cgroupProcessorLimit();

/// Bytes of memory that the process may use: the least of the limits of its
/// control groups and the machine's memory.
uint64_t memoryLimit();

/// Peak resident set of this process so far (VmHWM), in bytes; 0 where the
/// system does not tell.
uint64_t peakResidentBytes();

/// Lets peakResidentBytes() start over. False where the system refuses it.
bool resetPeakResidentBytes();

/// Reads "123", "512KiB", "24GiB", "1.5GB" as bytes.
Expected<uint64_t> parseSize(std::string_view text);

/// "1.50 GiB", "12.0 KiB", "17 bytes".
std::string formatSize(uint64_t bytes);

} // namespace llm::runtime

#endif // LLM_RUNTIME_CORE_LIMITS_H
