//===- CPUFeatures.cpp - What this processor can do --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/CPUFeatures.h"

#include <algorithm>
#include <array>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace llm::runtime {

#if defined(__x86_64__)
namespace {

enum Register { EAX, EBX, ECX, EDX };

/// What the system must save for a feature to be usable.
enum State { None, YMM, ZMM, Tiles };

struct Feature {
  std::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  Register reg;
  int bit;
  State state;
};

constexpr std::array features = std::to_array<Feature>({
    {"cx8", 1, 0, EDX, 8, None},
    {"cmov", 1, 0, EDX, 15, None},
    {"mmx", 1, 0, EDX, 23, None},
    {"fxsr", 1, 0, EDX, 24, None},
    {"sse", 1, 0, EDX, 25, None},
    {"sse2", 1, 0, EDX, 26, None},
    {"sse3", 1, 0, ECX, 0, None},
    {"pclmul", 1, 0, ECX, 1, None},
    {"ssse3", 1, 0, ECX, 9, None},
    {"fma", 1, 0, ECX, 12, YMM},
    {"cx16", 1, 0, ECX, 13, None},
    {"sse4.1", 1, 0, ECX, 19, None},
    {"sse4.2", 1, 0, ECX, 20, None},
    {"crc32", 1, 0, ECX, 20, None},
    {"movbe", 1, 0, ECX, 22, None},
    {"popcnt", 1, 0, ECX, 23, None},
    {"aes", 1, 0, ECX, 25, None},
    {"xsave", 1, 0, ECX, 26, None},
    {"avx", 1, 0, ECX, 28, YMM},
    {"f16c", 1, 0, ECX, 29, YMM},
    {"bmi", 7, 0, EBX, 3, None},
    {"avx2", 7, 0, EBX, 5, YMM},
    {"bmi2", 7, 0, EBX, 8, None},
    {"avx512f", 7, 0, EBX, 16, ZMM},
    {"avx512dq", 7, 0, EBX, 17, ZMM},
    {"adx", 7, 0, EBX, 19, None},
    {"avx512ifma", 7, 0, EBX, 21, ZMM},
    {"avx512cd", 7, 0, EBX, 28, ZMM},
    {"avx512bw", 7, 0, EBX, 30, ZMM},
    {"avx512vl", 7, 0, EBX, 31, ZMM},
    {"avx512vbmi", 7, 0, ECX, 1, ZMM},
    {"avx512vbmi2", 7, 0, ECX, 6, ZMM},
    {"gfni", 7, 0, ECX, 8, None},
    {"vaes", 7, 0, ECX, 9, YMM},
    {"vpclmulqdq", 7, 0, ECX, 10, YMM},
    {"avx512vnni", 7, 0, ECX, 11, ZMM},
    {"avx512bitalg", 7, 0, ECX, 12, ZMM},
    {"avx512vpopcntdq", 7, 0, ECX, 14, ZMM},
    {"amx-bf16", 7, 0, EDX, 22, Tiles},
    {"avx512fp16", 7, 0, EDX, 23, ZMM},
    {"amx-tile", 7, 0, EDX, 24, Tiles},
    {"amx-int8", 7, 0, EDX, 25, Tiles},
    {"avxvnni", 7, 1, EAX, 4, YMM},
    {"avx512bf16", 7, 1, EAX, 5, ZMM},
    {"avxifma", 7, 1, EAX, 23, YMM},
    {"avxvnniint8", 7, 1, EDX, 4, YMM},
    {"avxneconvert", 7, 1, EDX, 5, YMM},
    {"avxvnniint16", 7, 1, EDX, 10, YMM},
    {"sahf", 0x80000001, 0, ECX, 0, None},
    {"lzcnt", 0x80000001, 0, ECX, 5, None},
    {"prfchw", 0x80000001, 0, ECX, 8, None},
    {"64bit", 0x80000001, 0, EDX, 29, None},
});

/// XCR0, or 0 where the system does not use XSAVE.
uint64_t savedState() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27)))
    return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}

/// Asks the system for the state of AMX's tiles, which it gives only to those
/// who ask: the whole process, so this one's threads, too. Source: Linux,
/// Documentation/arch/x86/xstate.rst.
bool tilesGranted() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool stateSaved(State state) {
  static const uint64_t saved = savedState();
  uint64_t needed = 0;
  switch (state) {
  case None:
    break;
  case YMM:
    needed = 0x6;
    break;
  case ZMM:
    needed = 0xe6;
    break;
  case Tiles:
    needed = 0x60000;
    break;
  }
  if ((saved & needed) != needed)
    return false;
  if (state != Tiles)
    return true;
  static const bool granted = tilesGranted();
  return granted;
}

} // namespace

/// What the processor says at a leaf; zeros where it has none. In a virtual
/// machine each question leaves the machine: they are asked once.
static std::array<uint32_t, 4> registersAt(uint32_t leaf, uint32_t subleaf) {
  struct Leaf {
    uint32_t leaf, subleaf;
    std::array<uint32_t, 4> registers;
  };
  static const std::array leaves = [] {
    auto all = std::to_array<Leaf>(
        {{1, 0, {}}, {7, 0, {}}, {7, 1, {}}, {0x80000001, 0, {}}});
    for (Leaf &each : all) {
      std::array<uint32_t, 4> &r = each.registers;
      // Leaf 7 says itself how many subleaves it has.
      if (each.subleaf > all[1].registers[EAX] ||
          !__get_cpuid_count(each.leaf, each.subleaf, &r[EAX], &r[EBX], &r[ECX],
                             &r[EDX]))
        r = {};
    }
    return all;
  }();
  for (const Leaf &each : leaves)
    if (each.leaf == leaf && each.subleaf == subleaf)
      return each.registers;
  return {};
}

bool cpuHasFeature(std::string_view name) {
  if (!name.empty() && name.front() == '+')
    name.remove_prefix(1);
  auto found = std::find_if(
      features.begin(), features.end(),
      [&](const Feature &feature) { return feature.name == name; });
  if (found == features.end() || !stateSaved(found->state))
    return false;
  std::array<uint32_t, 4> registers = registersAt(found->leaf, found->subleaf);
  return (registers[found->reg] >> found->bit) & 1;
}
#else
bool cpuHasFeature(std::string_view) { return false; }
#endif

} // namespace llm::runtime
