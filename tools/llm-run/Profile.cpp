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

void Profile::Total::add(const Total &other) {
  calls += other.calls;
  nanoseconds += other.nanoseconds;
  bytes += other.bytes;
  operations += other.operations;
}

void Profile::add(const char *phase, const runtime::Session::Profile &step,
                  const artifact::Manifest &manifest) {
  std::span<const runtime::DispatchCall> calls = step.plan->calls();
  for (size_t i = 0; i < calls.size(); ++i) {
    const runtime::DispatchCall &call = calls[i];
    const std::string &family = call.kernel->family();
    DispatchCost cost = costOf(step, i, manifest);
    auto [place, isNew] =
        places.try_emplace({phase, call.dispatch}, totals.size());
    if (isNew) {
      Total &total = totals.emplace_back();
      total.phase = phase;
      total.kernel = call.kernel->name();
      total.family = family;
      total.node = call.dispatch->location();
      total.limit = cost.limit;
    }
    Total one;
    one.calls = 1;
    one.nanoseconds = step.nanoseconds[i];
    one.bytes = cost.bytes;
    one.operations = cost.operations;
    totals[place->second].add(one);
    if (keepEvents) {
      Json event;
      event["name"] = call.kernel->name();
      event["cat"] = phase;
      event["ph"] = "X";
      event["ts"] = static_cast<double>(clock) / 1e3;
      event["dur"] = static_cast<double>(step.nanoseconds[i]) / 1e3;
      event["pid"] = batch;
      event["tid"] = 0;
      event["args"] = {
          {"family", family},    {"node", call.dispatch->location()},
          {"grid", call.grid},   {"entry", call.variant->entry()},
          {"bytes", cost.bytes}, {"operations", cost.operations}};
      events += (events.empty() ? "\n" : ",\n") +
                event.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    clock += step.nanoseconds[i];
  }
}

static void sortByTime(auto &list) {
  std::sort(list.begin(), list.end(), [](const auto &a, const auto &b) {
    return a.nanoseconds > b.nanoseconds;
  });
}

nlohmann::ordered_json Profile::json() const {
  std::vector<Total> list = totals;
  sortByTime(list);
  Json result = Json::array();
  for (const Total &total : list)
    result.push_back({{"phase", total.phase},
                      {"kernel", total.kernel},
                      {"family", total.family},
                      {"node", total.node},
                      {"calls", total.calls},
                      {"seconds", static_cast<double>(total.nanoseconds) / 1e9},
                      {"bytes", total.bytes},
                      {"operations", total.operations}});
  return result;
}

std::string Profile::line(const Total &total, double all) const {
  auto nanoseconds =
      static_cast<double>(std::max<int64_t>(total.nanoseconds, 1));
  char text[256];
  std::snprintf(text, sizeof(text),
                "  %-7s %-18s %7lld calls %10.3f ms %5.1f%% %7.1f GB/s",
                total.phase, total.kernel.c_str(),
                static_cast<long long>(total.calls), nanoseconds / 1e6,
                100 * nanoseconds / all, total.bytes / nanoseconds);
  std::string result = text;
  auto part = [&](double rate, double limit) {
    if (limits && limit > 0) {
      std::snprintf(text, sizeof(text), " %5.1f%%", 100 * rate / limit);
      result += text;
    } else {
      result += "      -";
    }
  };
  part(1e9 * total.bytes / nanoseconds, limits ? limits->readBytes : 0);
  std::snprintf(text, sizeof(text), " %7.1f GOP/s",
                total.operations / nanoseconds);
  result += text;
  bool computes = limits && total.limit && total.operations > 0;
  part(1e9 * total.operations / nanoseconds,
       computes ? (*limits).*total.limit : 0);
  result += "  " + total.node;
  if (total.dispatches > 1)
    result += " and " + std::to_string(total.dispatches - 1) + " more";
  return result + "\n";
}

std::string Profile::table() const {
  std::vector<Total> list;
  double all = 1;
  for (const Total &total : totals) {
    all += static_cast<double>(total.nanoseconds);
    auto same = std::find_if(list.begin(), list.end(), [&](const Total &line) {
      return std::string_view(total.phase) == line.phase &&
             total.kernel == line.kernel;
    });
    if (same == list.end()) {
      list.push_back(total);
    } else {
      same->add(total);
      ++same->dispatches;
    }
  }
  sortByTime(list);
  std::string text;
  if (limits) {
    char line[200];
    std::snprintf(line, sizeof(line),
                  "  limits measured now: read %.1f GB/s, f32 %.0f, int8 %.0f, "
                  "bf16 %.0f GOP/s\n",
                  limits->readBytes / 1e9, limits->f32 / 1e9,
                  limits->int8 / 1e9, limits->bf16 / 1e9);
    text = line;
  }
  for (const Total &total : list)
    text += line(total, all);
  return text;
}

std::string Profile::traceEvents(bool continues) const {
  return (continues && !events.empty() ? "," : "") + events;
}

} // namespace llm::run
