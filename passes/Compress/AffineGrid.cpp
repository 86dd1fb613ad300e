//===- AffineGrid.cpp - The codes of a group of weights -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops over groups are written in vectors of four: a model has billions of
// elements, and sums and maxima of floats stay scalar otherwise. Rows are
// padded with zeros to whole groups; a zero changes neither a range nor a sum.
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/AffineGrid.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Support/FloatRows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace mlir::llm {

namespace {
using Floats = float __attribute__((vector_size(16)));
using Words = int32_t __attribute__((vector_size(16)));
} // namespace

static Floats load(const float *from) {
  Floats value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

static Floats splat(float value) { return Floats{value, value, value, value}; }

/// x / scale clamped and rounded to integers, ties to even.
static Floats roundToGrid(Floats x, const AffineGrid &grid) {
  // In [2^23, 2^24) the last place is 1: the adder rounds.
  constexpr float kRound = 0x1.8p23f;
  Floats value = x / splat(grid.scale);
  Floats low = splat(grid.low), high = splat(grid.high);
  value = value < low ? low : value;
  value = value > high ? high : value;
  return (value + splat(kRound)) - splat(kRound);
}

/// The element of largest magnitude; of two, the negative one.
static float findExtreme(const float *x, int64_t count) {
  // Turned left by one, the bits of a float are ordered by magnitude, then
  // sign; less 2^31 they are so as signed integers.
  constexpr int32_t kLeast = INT32_MIN;
  Words most = {kLeast, kLeast, kLeast, kLeast};
  for (int64_t i = 0; i < count; i += 4) {
    Words bits;
    std::memcpy(&bits, x + i, sizeof bits);
    Words key = ((bits << 1) | ((bits >> 31) & 1)) ^ kLeast;
    most = key > most ? key : most;
  }
  int32_t key = std::max({most[0], most[1], most[2], most[3]}) ^ kLeast;
  return std::bit_cast<float>(std::rotr(static_cast<uint32_t>(key), 1));
}

/// The scale near extreme / low whose codes, fitted by least squares, leave the
/// least squared error; |x|^2 - (x.q)^2 / q.q, so that the second term decides.
static float searchScale(const float *x, int64_t count, float extreme,
                         AffineGrid grid, unsigned search) {
  double best = -1;
  float bestScale = 0;
  auto steps = static_cast<int64_t>(search);
  for (int64_t i = -steps; i <= steps; ++i) {
    grid.scale = extreme / (grid.low - static_cast<float>(i) /
                                           static_cast<float>(steps + 1));
    Floats products = splat(0), squares = splat(0);
    for (int64_t k = 0; k < count; k += 4) {
      Floats value = load(x + k), code = roundToGrid(value, grid);
      products += value * code;
      squares += code * code;
    }
    auto sum = [](Floats v) -> double {
      return static_cast<double>(v[0]) + v[1] + v[2] + v[3];
    };
    double xq = sum(products), qq = sum(squares);
    if (qq > 0 && xq * xq / qq > best) {
      best = xq * xq / qq;
      bestScale = static_cast<float>(xq / qq);
    }
  }
  return best > 0 && std::isfinite(bestScale) ? bestScale : extreme / grid.low;
}

AffineGrid chooseGrid(const float *x, int64_t count,
                      const QuantizationRequest &request) {
  auto levels = static_cast<float>((1 << request.bits) - 1);
  AffineGrid grid;
  if (request.symmetric) {
    grid.low = -static_cast<float>(1 << (request.bits - 1));
    grid.high = levels + grid.low;
    float extreme = findExtreme(x, count);
    if (extreme != 0)
      grid.scale = request.search
                       ? searchScale(x, count, extreme, grid, request.search)
                       : extreme / grid.low;
    return grid;
  }
  Floats least = splat(0), most = splat(0);
  for (int64_t i = 0; i < count; i += 4) {
    Floats value = load(x + i);
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  float low = std::min({least[0], least[1], least[2], least[3]});
  float high = std::max({most[0], most[1], most[2], most[3]});
  // The range may exceed the largest float.
  grid.scale = static_cast<float>((static_cast<double>(high) - low) / levels);
  grid.high = levels;
  if (grid.scale > 0) {
    float zero = std::clamp(std::nearbyint(-low / grid.scale), 0.0f, levels);
    grid.low = -zero;
    grid.high = levels - zero;
  }
  return grid;
}

void encode(const float *x, int64_t count, const AffineGrid &grid,
            uint8_t *out) {
  if (grid.scale == 0) {
    std::fill_n(out, count, grid.zeroPoint());
    return;
  }
  for (int64_t i = 0; i < count; i += 4) {
    // Again a sum whose last place is 1; its low byte is the code.
    Floats sum =
        roundToGrid(load(x + i), grid) - splat(grid.low) + splat(0x1.8p23f);
    Words bits = std::bit_cast<Words>(sum);
    for (int lane = 0; lane < 4; ++lane)
      out[i + lane] = static_cast<uint8_t>(bits[lane]);
  }
}

/// Codes of `bits` bits, low bits first.
static void pack(const uint8_t *codes, int64_t count, unsigned bits,
                 char *out) {
  if (bits == 8) {
    std::memcpy(out, codes, count);
  } else if (bits == 4) {
    for (int64_t i = 0; i < count / 2; ++i)
      out[i] = static_cast<char>(codes[2 * i] | codes[2 * i + 1] << 4);
  } else {
    for (int64_t i = 0; i < count / 4; ++i)
      out[i] = static_cast<char>(codes[4 * i] | codes[4 * i + 1] << 2 |
                                 codes[4 * i + 2] << 4 | codes[4 * i + 3] << 6);
  }
}

AffineRow::AffineRow(const QuantizationRequest &request, QuantizedMatrix &out,
                     int64_t row)
    : request(request), out(out), row(row), codes(request.paddedColumns()) {}

/// Scales beside factors have 6 bits behind the first one, from 2^-30 on.
static constexpr uint32_t kUnitStep = 1u << 17;
static constexpr float kLeastUnit = 0x1p-30f, kMostUnit = 0x1p32f;

/// The multiples of `unit` next to `scales`, where these are not 0.
static Floats nearestFactors(Floats scales, float unit) {
  constexpr float kMostFactor = AffineGroupsFormatAttr::kMaxFactor;
  AffineGrid multiples = {unit, 1, kMostFactor};
  Floats factors = roundToGrid(scales, multiples);
  return scales == splat(0) ? splat(0) : factors;
}

/// The scale of a group of whose multiples the parts' `scales`, positive and of
/// `most` at most, differ least, in squares.
static float chooseUnit(Floats scales, float most) {
  constexpr float kMostFactor = AffineGroupsFormatAttr::kMaxFactor;
  float first = std::max(most / (kMostFactor + 0.5f), kLeastUnit);
  uint32_t bits = std::bit_cast<uint32_t>(first) & ~(kUnitStep - 1);
  float best = 0, least = 0;
  // With less than half of the factors' range they get coarser only.
  do {
    auto unit = std::bit_cast<float>(bits);
    Floats error = scales - nearestFactors(scales, unit) * splat(unit);
    error *= error;
    float sum = (error[0] + error[1]) + (error[2] + error[3]);
    if (best == 0 || sum < least) {
      best = unit;
      least = sum;
    }
    bits += kUnitStep;
  } while (std::bit_cast<float>(bits) * (kMostFactor / 2) < most);
  return best;
}

void AffineRow::chooseFactors(int64_t group, const float *x,
                              ::llvm::MutableArrayRef<AffineGrid> grids) {
  static_assert(AffineGroupsFormatAttr::kMaxFactors <= 4);
  int64_t size = request.partSize();
  Floats scales = splat(0);
  float most = 0;
  for (auto [part, grid] : ::llvm::enumerate(grids)) {
    grid = chooseGrid(x + static_cast<int64_t>(part) * size, size, request);
    scales[part] = std::abs(grid.scale);
    most = std::max(most, scales[part]);
  }
  if (most == 0)
    return;
  largest = std::max(largest, most);
  float exact = most / AffineGroupsFormatAttr::kMaxFactor;
  // The largest element, where there may be no unit as small as it.
  if (exact < kLeastUnit)
    moved = std::max(moved, most * static_cast<float>(1 << (request.bits - 1)));
  if (exact > kMostUnit) {
    moved = std::numeric_limits<float>::infinity();
    return;
  }
  float unit = chooseUnit(scales, most);
  Floats factors = nearestFactors(scales, unit);
  out.scales[row * request.groups() + group] = unit;
  char *stored = out.factors.data() + row * request.parts() +
                 group * request.partsOfGroup();
  for (auto [part, grid] : ::llvm::enumerate(grids)) {
    float factor = std::copysign(factors[part], grid.scale);
    grid.scale = factor * unit;
    stored[part] = static_cast<char>(static_cast<int>(factor));
  }
}

void AffineRow::choose(int64_t group, const float *x,
                       MutableArrayRef<AffineGrid> grids) {
  if (request.factorGroup)
    chooseFactors(group, x, grids);
  else
    grids.front() = chooseOne(group, x);
  // What no element fills has the value 0.
  std::fill_n(codes.data() + group * request.groupSize, request.groupSize,
              grids.front().zeroPoint());
}

AffineGrid AffineRow::chooseOne(int64_t group, const float *x) {
  AffineGrid grid = chooseGrid(x, request.groupSize, request);
  float exact = grid.scale;
  if (request.halfScales) {
    ::llm::roundRowToF16(&grid.scale, 1);
    largest = std::max(largest, std::abs(exact));
    moved =
        std::max(moved, (grid.high - grid.low) * std::abs(grid.scale - exact));
  }
  out.scales[row * request.groups() + group] = grid.scale;
  if (!request.symmetric) {
    int64_t bit = group * request.bits;
    char &byte = out.zeros[row * request.zeroRowBytes() + bit / 8];
    byte = static_cast<char>(byte | static_cast<int>(-grid.low) << bit % 8);
  }
  return grid;
}

void AffineRow::store() {
  pack(codes.data(), request.paddedColumns(), request.bits,
       out.codes.data() + row * request.codeRowBytes());
}

void allocate(const QuantizationRequest &request, QuantizedMatrix &out) {
  out.codes.assign(request.rows * request.codeRowBytes(), 0);
  out.scales.assign(request.rows * request.groups(), 0);
  out.zeros.assign(
      request.symmetric ? 0 : request.rows * request.zeroRowBytes(), 0);
  out.factors.assign(request.factorGroup ? request.rows * request.parts() : 0,
                     0);
}

} // namespace mlir::llm
