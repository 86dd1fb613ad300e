//===- StopStrings.h - Ending a text at given strings -------------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_STOPSTRINGS_H
#define LLM_RUNTIME_SESSION_STOPSTRINGS_H

#include <span>
#include <string>
#include <string_view>

namespace llm::runtime {

/// Passes text on, up to the first occurrence of a stop string. Text that may
/// be the beginning of one is held back, so a stop string that arrives in parts
/// is never shown in part.
class StopStrings {
public:
  /// `strings` outlive it; empty ones are ignored.
  explicit StopStrings(std::span<const std::string> strings)
      : strings(strings) {}

  /// Takes text, returns what is safe to show.
  std::string push(std::string_view text);
  /// The end of the text: what was held back.
  std::string flush();
  /// A stop string has been found; nothing more comes out.
  bool stopped() const { return found; }

private:
  std::span<const std::string> strings;
  std::string held;
  bool found = false;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_STOPSTRINGS_H
