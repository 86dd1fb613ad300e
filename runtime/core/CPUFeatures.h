//===- CPUFeatures.h - What this processor can do ---------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_CORE_CPUFEATURES_H
#define LLM_RUNTIME_CORE_CPUFEATURES_H

#include <string>
#include <string_view>
#include <vector>

namespace llm::runtime {

/// Whether this processor and its system support `feature`, by LLVM's name for
/// it, with or without a leading "+" ("avx2", "avx512vnni"). False for a name
/// that is not known here. Source: Intel SDM volume 2, CPUID; volume 1,
/// chapter 13, for the state that the system must save (XCR0).
bool cpuHasFeature(std::string_view feature);

/// Those of `features` that are missing, in order.
template <typename Features>
std::vector<std::string> missingCpuFeatures(const Features &features) {
  std::vector<std::string> missing;
  for (const auto &feature : features)
    if (!cpuHasFeature(feature))
      missing.emplace_back(feature);
  return missing;
}

} // namespace llm::runtime

#endif // LLM_RUNTIME_CORE_CPUFEATURES_H
