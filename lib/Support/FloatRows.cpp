//===- FloatRows.cpp - Rows of floats, widened and narrowed ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain integer arithmetic on every lane, so that the loops become vector code
// on any x86-64: models have billions of elements.
//
//===----------------------------------------------------------------------===//
#include "lib/Support/FloatRows.h"

#include <bit>
#include <cstring>

namespace llm {

static uint16_t toBF16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  // A NaN with low bits only would round to an infinity.
  uint32_t quiet = (bits >> 16) | 0x40;
  bool isNaN = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>(isNaN ? quiet : rounded);
}

static uint16_t toF16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  // Normal numbers: the exponent's bias goes from 127 to 15, 13 bits go.
  uint32_t normal =
      (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Below 2^-14 the last place is 2^-24: adding 0.5, whose last place that is,
  // makes the adder round.
  uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
      std::bit_cast<uint32_t>(0.5f);
  uint32_t result = magnitude < (113u << 23) ? small : normal;
  result = result > 0x7c00 ? 0x7c00 : result;
  result = magnitude >= (143u << 23) ? 0x7c00 : result;
  result = magnitude > 0x7f800000 ? 0x7e00 : result;
  return static_cast<uint16_t>(sign | result);
}

static float fromF16(uint16_t half) {
  uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  uint32_t normal = (magnitude << 13) + (112u << 23);
  // Subnormals count units of 2^-24; the conversion is exact.
  auto small = std::bit_cast<uint32_t>(
      static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  uint32_t result = magnitude < 0x400 ? small : normal;
  result = magnitude >= 0x7c00 ? (magnitude << 13) + (224u << 23) : result;
  return std::bit_cast<float>(sign | result);
}

template <typename T> static T load(const char *from, int64_t i) {
  T value;
  std::memcpy(&value, from + i * sizeof(T), sizeof(T));
  return value;
}

void widenRow(FloatKind kind, const char *from, int64_t count, float *to) {
  switch (kind) {
  case FloatKind::F64:
    for (int64_t i = 0; i < count; ++i)
      to[i] = static_cast<float>(load<double>(from, i));
    return;
  case FloatKind::F32:
    std::memcpy(to, from, count * 4);
    return;
  case FloatKind::F16:
    for (int64_t i = 0; i < count; ++i)
      to[i] = fromF16(load<uint16_t>(from, i));
    return;
  case FloatKind::BF16:
    for (int64_t i = 0; i < count; ++i)
      to[i] = std::bit_cast<float>(
          static_cast<uint32_t>(load<uint16_t>(from, i)) << 16);
    return;
  }
}

template <typename T>
static void storeEach(const float *from, int64_t count, char *to,
                      T (*convert)(float)) {
  for (int64_t i = 0; i < count; ++i) {
    T value = convert(from[i]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

void narrowRow(FloatKind kind, const float *from, int64_t count, char *to) {
  switch (kind) {
  case FloatKind::F64:
    return storeEach<double>(from, count, to,
                             [](float v) -> double { return v; });
  case FloatKind::F32:
    std::memcpy(to, from, count * 4);
    return;
  case FloatKind::F16:
    return storeEach<uint16_t>(from, count, to, toF16);
  case FloatKind::BF16:
    return storeEach<uint16_t>(from, count, to, toBF16);
  }
}

void roundRowToF16(float *values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    values[i] = fromF16(toF16(values[i]));
}

} // namespace llm
