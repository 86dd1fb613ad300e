//===- StopStrings.cpp - Ending a text at given strings ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/StopStrings.h"

#include <algorithm>

namespace llm::runtime {

std::string StopStrings::push(std::string_view text) {
  if (found)
    return "";
  held += text;
  size_t cut = std::string::npos;
  for (const std::string &stop : strings)
    if (!stop.empty())
      cut = std::min(cut, held.find(stop));
  if (cut != std::string::npos) {
    found = true;
    std::string shown = held.substr(0, cut);
    held.clear();
    return shown;
  }
  size_t keep = 0;
  for (const std::string &stop : strings) {
    size_t longest = std::min(stop.size(), held.size());
    for (size_t length = longest; length > keep; --length)
      if (held.compare(held.size() - length, length, stop, 0, length) == 0)
        keep = length;
  }
  std::string shown = held.substr(0, held.size() - keep);
  held.erase(0, held.size() - keep);
  return shown;
}

std::string StopStrings::flush() { return std::move(held); }

} // namespace llm::runtime
