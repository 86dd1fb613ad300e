//===- Profile.h - Where the time of a run went -----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TOOLS_LLM_RUN_PROFILE_H
#define LLM_TOOLS_LLM_RUN_PROFILE_H

#include "tools/llm-run/DispatchCost.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llm::run {

/// Sums time, bytes and operations of dispatches by phase, and keeps each one
/// where a trace is wanted.
class Profile {
public:
  /// `limits`: of the machine, where the device is this machine's processor.
  Profile(int64_t batch, bool keepEvents,
          std::optional<runtime::MachineLimits> limits)
      : batch(batch), keepEvents(keepEvents), limits(limits) {}

  /// Adds the dispatches of a step of `phase`.
  void add(const char *phase, const runtime::Session::Profile &step,
           const artifact::Manifest &manifest);

  const std::optional<runtime::MachineLimits> &machineLimits() const {
    return limits;
  }

  /// One entry per phase and dispatch of the program, longest first:
  /// [{"phase", "kernel", "family", "node", "calls", "seconds", "bytes",
  /// "operations"}].
  nlohmann::ordered_json json() const;
  /// One line per phase and kernel, longest first, with rates against the
  /// limits.
  std::string table() const;
  /// Complete events ("ph": "X") of the trace event format, separated by
  /// commas; a batch is a process, its dispatches follow one another.
  std::string traceEvents(bool continues) const;

private:
  struct Total {
    const char *phase = nullptr;
    std::string kernel, family, node;
    int64_t dispatches = 1, calls = 0, nanoseconds = 0;
    double bytes = 0, operations = 0;
    double runtime::MachineLimits::*limit = nullptr;

    void add(const Total &other);
  };
  std::string line(const Total &total, double all) const;

  int64_t batch;
  bool keepEvents;
  std::optional<runtime::MachineLimits> limits;
  /// In the order in which they first ran; where, by phase and dispatch.
  std::vector<Total> totals;
  std::map<std::pair<std::string, const artifact::Dispatch *>, size_t> places;
  int64_t clock = 0;
  std::string events;
};

} // namespace llm::run

#endif // LLM_TOOLS_LLM_RUN_PROFILE_H
