//===- Limits.cpp - What the surroundings grant this process -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Limits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <unistd.h>
#include <vector>

namespace llm::runtime {

namespace {

std::optional<std::string> readLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line))
    return std::nullopt;
  return line;
}

/// The directories of `controller` from the process's own group up to the
/// root: a limit of any of them holds.
std::vector<std::string> cgroupDirectories(const std::string &controller) {
  std::vector<std::string> directories;
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    std::string mount;
    if (controllers.empty())
      mount = "/sys/fs/cgroup";
    else if (("," + controllers + ",").find("," + controller + ",") !=
             std::string::npos)
      mount = "/sys/fs/cgroup/" + controller;
    else
      continue;
    while (true) {
      directories.push_back(mount + (path == "/" ? "" : path));
      if (path.empty() || path == "/")
        break;
      size_t slash = path.rfind('/');
      path = slash == std::string::npos ? "" : path.substr(0, slash);
    }
  }
  return directories;
}

std::optional<double> parseNumber(const std::string &text) {
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data())
    return std::nullopt;
  return value;
}

uint64_t statusField(const char *name) {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(name, 0) != 0)
      continue;
    std::istringstream fields(line.substr(std::string(name).size()));
    uint64_t kib = 0;
    fields >> kib;
    return kib * 1024;
  }
  return 0;
}

} // namespace

int cgroupProcessorLimit() {
  double limit = INT_MAX;
  for (const std::string &directory : cgroupDirectories("cpu")) {
    std::optional<double> quota, period;
    if (std::optional<std::string> line = readLine(directory + "/cpu.max")) {
      std::istringstream fields(*line);
      std::string first, second;
      fields >> first >> second;
      quota = parseNumber(first);
      period = parseNumber(second);
    } else {
      std::optional<std::string> first =
          readLine(directory + "/cpu.cfs_quota_us");
      std::optional<std::string> second =
          readLine(directory + "/cpu.cfs_period_us");
      if (first && second) {
        quota = parseNumber(*first);
        period = parseNumber(*second);
      }
    }
    if (quota && period && *quota > 0 && *period > 0)
      limit = std::min(limit, std::ceil(*quota / *period));
  }
  return std::max(1, static_cast<int>(limit));
}

uint64_t memoryLimit() {
  uint64_t limit = UINT64_MAX;
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0)
    limit = static_cast<uint64_t>(pages) * static_cast<uint64_t>(size);
  for (const std::string &directory : cgroupDirectories("memory")) {
    for (const char *name : {"/memory.max", "/memory.limit_in_bytes"}) {
      std::optional<std::string> line = readLine(directory + name);
      std::optional<double> value =
          line ? parseNumber(*line) : std::optional<double>();
      if (value && *value > 0 && *value < 9e18)
        limit = std::min(limit, static_cast<uint64_t>(*value));
    }
  }
  return limit;
}

uint64_t peakResidentBytes() { return statusField("VmHWM:"); }

bool resetPeakResidentBytes() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

Expected<uint64_t> parseSize(std::string_view text) {
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, text.data() + text.size() - end);
  struct Unit {
    std::string_view name;
    double factor;
  };
  static constexpr std::array<Unit, 12> units{{{"", 1},
                                               {"B", 1},
                                               {"K", 0x1p10},
                                               {"KiB", 0x1p10},
                                               {"M", 0x1p20},
                                               {"MiB", 0x1p20},
                                               {"G", 0x1p30},
                                               {"GiB", 0x1p30},
                                               {"TiB", 0x1p40},
                                               {"kB", 1e3},
                                               {"MB", 1e6},
                                               {"GB", 1e9}}};
  auto found = std::find_if(units.begin(), units.end(),
                            [&](const Unit &u) { return u.name == unit; });
  if (error != std::errc() || found == units.end() || !(value >= 0) ||
      value * found->factor > 9e18)
    return Status::invalidInput("'" + std::string(text) +
                                "' is not a size: expected a number and "
                                "optionally KiB, MiB, GiB, TiB, kB, MB or GB");
  return static_cast<uint64_t>(value * found->factor);
}

std::string formatSize(uint64_t bytes) {
  char text[64];
  if (bytes < 1024)
    std::snprintf(text, sizeof(text), "%u bytes", static_cast<unsigned>(bytes));
  else if (bytes < (1u << 20))
    std::snprintf(text, sizeof(text), "%.1f KiB",
                  static_cast<double>(bytes) / 0x1p10);
  else if (bytes < (1u << 30))
    std::snprintf(text, sizeof(text), "%.1f MiB",
                  static_cast<double>(bytes) / 0x1p20);
  else
    std::snprintf(text, sizeof(text), "%.2f GiB",
                  static_cast<double>(bytes) / 0x1p30);
  return text;
}

} // namespace llm::runtime
