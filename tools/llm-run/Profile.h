//===- Profile.h - Where the time of a run went --------------------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TOOLS_LLM_RUN_PROFILE_H
#define LLM_TOOLS_LLM_RUN_PROFILE_H

#include "runtime/session/Session.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace llm::run {

/// Sums the time of dispatches by phase and kernel family, and keeps each one
/// where a trace is wanted.
class Profile {
public:
  Profile(int64_t batch, bool keepEvents)
      : batch(batch), keepEvents(keepEvents) {}

  /// Adds the dispatches of a step of `phase`.
  void add(const char *phase, const runtime::Session::Profile &step);

  /// [{"phase", "family", "calls", "seconds"}], longest first.
  std::string json() const;
  /// The same as lines.
  std::string table() const;
  /// Complete events ("ph": "X") of the trace event format, separated by
  /// commas; a batch is a process, its dispatches follow one another.
  std::string traceEvents(bool continues) const;

private:
  struct Total {
    int64_t calls = 0;
    int64_t nanoseconds = 0;
  };
  std::vector<std::pair<std::pair<std::string, std::string>, Total>>
  sorted() const;

  int64_t batch;
  bool keepEvents;
  std::map<std::pair<std::string, std::string>, Total> totals;
  int64_t clock = 0;
  std::string events;
};

} // namespace llm::run

#endif // LLM_TOOLS_LLM_RUN_PROFILE_H
