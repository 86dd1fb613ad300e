//===- Profile.cpp - Where the time of a run went --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/llm-run/Profile.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace llm::run {

using Json = nlohmann::ordered_json;

void Profile::add(const char *phase, const runtime::Session::Profile &step) {
  std::span<const runtime::DispatchCall> calls = step.plan->calls();
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string &family = calls[i].kernel->family();
    Total &total = totals[{phase, family}];
    ++total.calls;
    total.nanoseconds += step.nanoseconds[i];
    if (keepEvents) {
      Json event;
      event["name"] = calls[i].kernel->name();
      event["cat"] = phase;
      event["ph"] = "X";
      event["ts"] = static_cast<double>(clock) / 1e3;
      event["dur"] = static_cast<double>(step.nanoseconds[i]) / 1e3;
      event["pid"] = batch;
      event["tid"] = 0;
      event["args"] = {{"family", family},
                       {"node", calls[i].dispatch->location()},
                       {"grid", calls[i].grid},
                       {"entry", calls[i].variant->entry()}};
      events += (events.empty() ? "\n" : ",\n") +
                event.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    clock += step.nanoseconds[i];
  }
}

std::vector<std::pair<std::pair<std::string, std::string>, Profile::Total>>
Profile::sorted() const {
  std::vector<std::pair<std::pair<std::string, std::string>, Total>> list(
      totals.begin(), totals.end());
  std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) {
    return a.second.nanoseconds > b.second.nanoseconds;
  });
  return list;
}

std::string Profile::json() const {
  Json list = Json::array();
  for (const auto &[key, total] : sorted())
    list.push_back({{"phase", key.first},
                    {"family", key.second},
                    {"calls", total.calls},
                    {"seconds", static_cast<double>(total.nanoseconds) / 1e9}});
  return list.dump();
}

std::string Profile::table() const {
  std::string text;
  for (const auto &[key, total] : sorted()) {
    char line[160];
    std::snprintf(line, sizeof(line), "  %-8s %-16s %8lld calls %10.3f ms\n",
                  key.first.c_str(), key.second.c_str(),
                  static_cast<long long>(total.calls),
                  static_cast<double>(total.nanoseconds) / 1e6);
    text += line;
  }
  return text;
}

std::string Profile::traceEvents(bool continues) const {
  return (continues && !events.empty() ? "," : "") + events;
}

} // namespace llm::run
