//===- Harness.h - Generate, compile, load and call one kernel --*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TEST_UNIT_KERNELS_HARNESS_H
#define LLM_TEST_UNIT_KERNELS_HARNESS_H

#include "llm/ABI/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace llm::test {

/// A kernel of the rt dialect, compiled for `mcpu` and loaded.
class CompiledKernel {
public:
  /// `params` is the text of the params dictionary. Ends the test program with
  /// a message where anything fails.
  CompiledKernel(const std::string &family, const std::string &params,
                 const std::string &mcpu);
  ~CompiledKernel();

  /// Runs the items [begin, end) of the variant that holds for `rows` rows.
  void call(int64_t rows, const std::vector<const void *> &buffers,
            const std::vector<int64_t> &sizes, int64_t begin,
            int64_t end) const;
  /// The same with the variant chosen by index.
  void callVariant(size_t variant, const std::vector<const void *> &buffers,
                   const std::vector<int64_t> &sizes, int64_t begin,
                   int64_t end) const;
  size_t numVariants() const { return variants.size(); }
  /// Whether variant `index` may run `rows` rows.
  bool accepts(size_t index, int64_t rows) const;

private:
  struct Variant {
    llm_kernel_fn function;
    int64_t low, high;
  };
  std::vector<Variant> variants;
  void *library = nullptr;
  int fd = -1;
};

/// Processors to test, as far as their code differs and runs here: "native",
/// x86-64-v3 and x86-64; only the first one where LLM_TEST_CPUS is "native";
/// znver4 and the other levels, too, where it is "all".
std::vector<std::string> testedCPUs();

/// Whether `cpu` has an LLVM feature.
bool hasFeature(const std::string &cpu, const std::string &feature);

/// a * b + c as `cpu` computes it: without FMA rounded twice.
class MultiplyAdd {
public:
  explicit MultiplyAdd(const std::string &cpu)
      : isFused(hasFeature(cpu, "fma")) {}
  float operator()(float a, float b, float c) const {
    if (isFused)
      return std::fmaf(a, b, c);
    float product = a * b;
    return product + c;
  }

private:
  bool isFused;
};

/// The shapes to test for `cpu`: all on the host's own, every other one on
/// others, every fourth where they are below AVX2, which differ little.
template <typename T, size_t N>
std::vector<T> shapesFor(const std::string &cpu, const T (&shapes)[N]) {
  size_t step = cpu == "native" ? 1 : hasFeature(cpu, "avx2") ? 2 : 4;
  // Not the same ones with and without SSSE3.
  size_t first = cpu == "x86-64" ? std::min<size_t>(3, N - 1) : 0;
  std::vector<T> result;
  for (size_t i = first; i < N; i += step)
    result.push_back(shapes[i]);
  return result;
}

/// Memory between two pages that nobody may touch, its end at the second one.
class GuardedMemory {
public:
  explicit GuardedMemory(size_t bytes);
  GuardedMemory(const GuardedMemory &other);
  GuardedMemory(GuardedMemory &&other) noexcept { swap(other); }
  GuardedMemory &operator=(GuardedMemory other) noexcept {
    swap(other);
    return *this;
  }
  ~GuardedMemory();
  unsigned char *data() const { return start; }

private:
  void swap(GuardedMemory &other) noexcept {
    std::swap(start, other.start);
    std::swap(bytes, other.bytes);
    std::swap(mapping, other.mapping);
    std::swap(mapped, other.mapped);
  }
  unsigned char *start = nullptr;
  size_t bytes = 0;
  void *mapping = nullptr;
  size_t mapped = 0;
};

/// 64-byte aligned storage. Behind it are less than 64 guard bytes, which
/// `intact` checks, then a page that traps.
template <typename T> class Buffer {
public:
  explicit Buffer(size_t count, T fill = T())
      : storage((count * sizeof(T) + 63) / 64 * 64), count(count) {
    std::fill(begin(), end(), fill);
    std::fill(guard(), guardEnd(), static_cast<unsigned char>(0xa5));
  }
  T *data() { return reinterpret_cast<T *>(storage.data()); }
  const T *data() const { return reinterpret_cast<const T *>(storage.data()); }
  T *begin() { return data(); }
  T *end() { return data() + count; }
  const T *begin() const { return data(); }
  const T *end() const { return data() + count; }
  T &operator[](size_t i) { return data()[i]; }
  const T &operator[](size_t i) const { return data()[i]; }
  size_t size() const { return count; }
  /// Whether nothing was written past the end.
  bool intact() const {
    return std::all_of(guard(), guardEnd(),
                       [](unsigned char byte) { return byte == 0xa5; });
  }
  bool operator==(const Buffer &other) const {
    return std::memcmp(data(), other.data(), count * sizeof(T)) == 0;
  }

private:
  unsigned char *guard() const { return storage.data() + count * sizeof(T); }
  unsigned char *guardEnd() const {
    return storage.data() + (count * sizeof(T) + 63) / 64 * 64;
  }
  GuardedMemory storage;
  size_t count;
};

/// Bytes that a packed weight of `layout` (a dictionary) takes.
int64_t layoutBytes(const std::string &layout);

/// The llm.weight @w of `weight` (text), packed as the dictionary `layout`.
Buffer<uint8_t> pack(const std::string &weight, const std::string &layout);
/// None where the packer refuses the weight.
std::optional<Buffer<uint8_t>> tryPack(const std::string &weight,
                                       const std::string &layout);

/// A 16-bit float stored as bits; LLVM's APFloat does the rounding.
uint16_t roundToBF16(float value);
/// The code of f8E4M3FN or f8E5M2 (`type`) for `value`; too large magnitudes
/// become the largest.
uint8_t roundToF8(const std::string &type, float value);
float fromF8(const std::string &type, uint8_t code);
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) : bits(roundToBF16(value)) {}
  operator float() const {
    uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
};

/// `count` numbers of a normal distribution, the same on every run.
inline Buffer<float> randomFloats(size_t count, unsigned seed,
                                  float scale = 1) {
  Buffer<float> result(count);
  std::mt19937 engine(seed);
  std::normal_distribution<float> draw(0, scale);
  for (float &value : result)
    value = draw(engine);
  return result;
}

} // namespace llm::test

#endif // LLM_TEST_UNIT_KERNELS_HARNESS_H
