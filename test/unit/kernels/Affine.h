//===- Affine.h - A weight in affine groups, for tests ----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TEST_UNIT_KERNELS_AFFINE_H
#define LLM_TEST_UNIT_KERNELS_AFFINE_H

#include "test/unit/kernels/Harness.h"

#include <cmath>

namespace llm::test {

inline std::string entry(const char *name, int64_t value) {
  return std::string(name) + " = " + std::to_string(value) + " : i64, ";
}

/// A weight in affine groups, kept as its definition has it.
struct Affine {
  int n, k, bits, groupSize;
  const char *scaleType;
  enum Zeros { None, Codes, Floats } zeros;
  int onlyCode = -1;    ///< of all weights, where not negative
  int factorGroup = 0;  ///< inputs that share a factor; scaleType is then f32
  bool extreme = false; ///< all codes and factors are the ends of their ranges

  int groups() const { return (k + groupSize - 1) / groupSize; }
  int factorCount() const { return groups() * groupSize / factorGroup; }
  int sumGroup() const { return factorGroup ? factorGroup : groupSize; }
  int factor(int row, int part) const {
    if (!factorGroup)
      return 1;
    if (extreme)
      return row & 2 ? 15 : -15;
    return (row * 11 + part * 17) % 31 - 15;
  }
  int code(int row, int i) const {
    if (onlyCode >= 0)
      return onlyCode;
    if (extreme)
      return row & 1 ? (1 << bits) - 1 : 0;
    return static_cast<int>((row * 7919u + i * 104729u + (row ^ i) * 31u) >>
                            3) &
           ((1 << bits) - 1);
  }
  float scale(int row, int g) const {
    if (factorGroup) {
      // Six bits behind the first one; from the smallest ones on, and a zero.
      int number = row * 13 + g * 7;
      return number % 29 == 5
                 ? 0
                 : std::ldexp(1 + static_cast<float>(number % 64) / 64,
                              -(number * 5 % 31));
    }
    float value = 0.01f + 0.001f * static_cast<float>((row * 13 + g * 7) % 50);
    return std::string(scaleType) == "f16" ? float(_Float16(value)) : value;
  }
  float zero(int row, int g) const {
    switch (zeros) {
    case None:
      return static_cast<float>(1 << (bits - 1));
    case Codes:
      return static_cast<float>((row * 5 + g * 3) & ((1 << bits) - 1));
    case Floats:
      return static_cast<float>(
          _Float16(0.3f * static_cast<float>((row + g) % 10)));
    }
    return 0;
  }
  float value(int row, int i) const {
    int g = i / groupSize;
    float whole =
        scale(row, g) * static_cast<float>(factor(row, i / sumGroup()));
    return (static_cast<float>(code(row, i)) - zero(row, g)) * whole;
  }
  /// The llm.weight of it, with inline components.
  std::string weight() const;
  /// The layout's entries but its kind.
  std::string layout() const;
};

inline std::string hex(const std::vector<uint8_t> &bytes) {
  static const char digits[] = "0123456789ABCDEF";
  std::string result = "\"0x";
  for (uint8_t byte : bytes) {
    result += digits[byte >> 4];
    result += digits[byte & 15];
  }
  return result + "\"";
}

inline std::string component(const char *name, const std::string &type,
                             const std::vector<uint8_t> &bytes) {
  return std::string("#llm.component<\"") + name + "\", " + type + ", dense<" +
         hex(bytes) + "> : " + type + ">";
}

inline void append(std::vector<uint8_t> &bytes, const std::string &type,
                   float value) {
  uint8_t raw[4];
  if (type == "f16") {
    auto half = static_cast<_Float16>(value);
    std::memcpy(raw, &half, 2);
  } else {
    std::memcpy(raw, &value, 4);
  }
  bytes.insert(bytes.end(), raw, raw + (type == "f16" ? 2 : 4));
}

inline std::string Affine::weight() const {
  int rowBytes = groups() * groupSize * bits / 8,
      zeroBytes = (groups() * bits + 7) / 8;
  std::vector<uint8_t> codes(n * rowBytes), scales, zeroData, factors;
  if (zeros == Codes)
    zeroData.resize(n * zeroBytes);
  for (int row = 0; row < n; ++row) {
    for (int i = 0; i < k; ++i)
      codes[row * rowBytes + i * bits / 8] |= code(row, i) << (i * bits % 8);
    for (int g = 0; g < groups(); ++g) {
      append(scales, scaleType, scale(row, g));
      if (zeros == Codes)
        zeroData[row * zeroBytes + g * bits / 8] |=
            static_cast<int>(zero(row, g)) << (g * bits % 8);
      if (zeros == Floats)
        append(zeroData, scaleType, zero(row, g));
    }
    for (int part = 0; factorGroup && part < factorCount(); ++part)
      factors.push_back(static_cast<uint8_t>(factor(row, part)));
  }
  auto shape = [&](int columns, const std::string &type) {
    return "tensor<" + std::to_string(n) + "x" + std::to_string(columns) + "x" +
           type + ">";
  };
  std::string text =
      "llm.weight @w : " + shape(k, "f32") +
      " = #llm.affine<bits = " + std::to_string(bits) +
      ", group_size = " + std::to_string(groupSize) +
      ", data = " + component("data", shape(rowBytes, "ui8"), codes) +
      ", scales = " + component("scales", shape(groups(), scaleType), scales);
  if (zeros != None)
    text +=
        ", zeros = " + component("zeros",
                                 zeros == Codes ? shape(zeroBytes, "ui8")
                                                : shape(groups(), scaleType),
                                 zeroData);
  if (factorGroup)
    text += ", factor_group = " + std::to_string(factorGroup) + ", factors = " +
            component("factors", shape(factorCount(), "i8"), factors);
  return text + ">";
}

inline std::string Affine::layout() const {
  std::string text = entry("n", n) + entry("k", k) + entry("bits", bits) +
                     entry("group_size", groupSize) +
                     (factorGroup ? entry("factor_group", factorGroup) : "") +
                     "scale_type = " + scaleType;
  if (zeros != None)
    text +=
        std::string(", zero_type = ") + (zeros == Codes ? "ui8" : scaleType);
  return text;
}

inline std::string describe(const Affine &w) {
  return std::to_string(w.n) + "x" + std::to_string(w.k) + " bits " +
         std::to_string(w.bits) + " group " + std::to_string(w.groupSize) +
         " factors of " + std::to_string(w.factorGroup);
}

/// Rows of `width` elements [t, t + 1) in storage of their own.
template <typename T> Buffer<T> rowOf(const Buffer<T> &rows, int t, int width) {
  Buffer<T> row(width);
  std::copy(rows.begin() + t * width, rows.begin() + (t + 1) * width,
            row.begin());
  return row;
}

} // namespace llm::test

#endif // LLM_TEST_UNIT_KERNELS_AFFINE_H
