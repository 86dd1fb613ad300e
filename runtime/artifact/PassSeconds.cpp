//===- PassSeconds.cpp - How long the passes took ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/PassSeconds.h"

#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>

namespace llm::runtime {

static std::string checksumDigits(uint64_t checksum) {
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, checksum);
  return digits;
}

std::string formatPassSeconds(uint64_t manifestChecksum,
                              const std::vector<double> &seconds) {
  std::string text = checksumDigits(manifestChecksum);
  for (double value : seconds) {
    char number[32];
    std::snprintf(number, sizeof(number), ",%.6f", value);
    text += number;
  }
  return text;
}

std::vector<double> parsePassSeconds(std::string_view text,
                                     uint64_t manifestChecksum, size_t count) {
  std::string checksum = checksumDigits(manifestChecksum);
  if (text.substr(0, checksum.size()) != checksum)
    return {};
  text.remove_prefix(checksum.size());
  std::vector<double> seconds;
  while (!text.empty()) {
    double value = 0;
    const char *end = text.data() + text.size();
    if (text[0] != ',')
      return {};
    auto [next, error] = std::from_chars(text.data() + 1, end, value);
    if (error != std::errc() || !std::isfinite(value) || value < 0)
      return {};
    seconds.push_back(value);
    text.remove_prefix(static_cast<size_t>(next - text.data()));
  }
  return seconds.size() == count ? seconds : std::vector<double>();
}

} // namespace llm::runtime
