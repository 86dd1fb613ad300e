//===- WarpOperations.cpp - What lanes of a warp do together --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/emulator/Launch.h"

#include <bit>
#include <cstring>

namespace llm::runtime {

using State = EmulatorThread::State;

void Launch::performInWarp(EmulatorThread &thread,
                           const WarpOperation &operation) {
  thread.operation = operation;
  thread.site = operation.site;
  thread.state = State::InWarp;
  thread.fiber.suspend();
}

/// The lanes that take part in the operation of `thread`, once all are there.
/// Lanes that have ended do not take part. `waiting` says that some are still
/// to come; nothing is returned after a finding, too.
std::optional<uint32_t> Launch::participants(size_t first,
                                             const EmulatorThread &thread,
                                             bool &waiting) {
  const WarpOperation &operation = thread.operation;
  if (!(operation.mask >> (thread.index % warpSize) & 1)) {
    report(Finding::Kind::Divergence, thread, operation.site,
           "its lane is not in the mask of the operation");
    return std::nullopt;
  }
  uint32_t lanes = 0;
  for (size_t lane = 0; lane < warpSize && first + lane < threads.size();
       ++lane) {
    if (!(operation.mask >> lane & 1))
      continue;
    const EmulatorThread &other = threads[first + lane];
    if (other.state == State::Done)
      continue;
    if (other.state != State::InWarp) {
      waiting = true;
      return std::nullopt;
    }
    if (other.operation.kind != operation.kind ||
        other.operation.variant != operation.variant ||
        other.operation.mask != operation.mask) {
      report(Finding::Kind::Divergence, thread, thread.site,
             "its warp is to act together, but lane " + std::to_string(lane) +
                 " is at '" + siteOf(other.site).location +
                 "', another operation or mask");
      return std::nullopt;
    }
    lanes |= uint32_t(1) << lane;
  }
  return lanes;
}

bool Launch::resolveWarp(size_t first) {
  bool progress = false;
  for (size_t i = first; i < first + warpSize && i < threads.size(); ++i) {
    if (threads[i].state != State::InWarp)
      continue;
    bool waiting = false;
    std::optional<uint32_t> lanes = participants(first, threads[i], waiting);
    if (finding)
      return false;
    if (!lanes)
      continue;
    execute(first, *lanes);
    if (finding)
      return false;
    for (size_t lane = 0; lane < warpSize; ++lane)
      if (*lanes >> lane & 1)
        threads[first + lane].state = State::Ready;
    progress = true;
  }
  return progress;
}

void Launch::execute(size_t first, uint32_t lanes) {
  const WarpOperation &any =
      threads[first + static_cast<size_t>(std::countr_zero(lanes))].operation;
  switch (any.kind) {
  case WarpOperation::Sync: {
    // Orders the warp's accesses if nobody of it is left out.
    bool all = true;
    for (size_t lane = 0; lane < warpSize && first + lane < threads.size();
         ++lane)
      all &= (lanes >> lane & 1) || threads[first + lane].state == State::Done;
    if (all)
      ++warpEpochs[first / warpSize];
    break;
  }
  case WarpOperation::Shuffle:
    executeShuffle(first, lanes);
    break;
  case WarpOperation::Reduce:
    executeReduce(first, lanes);
    break;
  case WarpOperation::Vote:
    executeVote(first, lanes);
    break;
  case WarpOperation::LoadMatrix:
    executeLoadMatrix(first, lanes);
    break;
  case WarpOperation::Multiply:
    executeMultiply(first, lanes);
    break;
  }
}

/// PTX ISA, shfl.sync: `clamp` holds the last lane of a segment in its low and
/// the mask of segments in its high byte.
bool Launch::executeShuffle(size_t first, uint32_t lanes) {
  uint32_t values[warpSize] = {};
  for (size_t lane = 0; lane < warpSize; ++lane)
    if (lanes >> lane & 1)
      values[lane] = threads[first + lane].operation.value;
  for (uint32_t lane = 0; lane < warpSize; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    EmulatorThread &thread = threads[first + lane];
    WarpOperation &operation = thread.operation;
    uint32_t segment = operation.clamp >> 8 & 31, last = operation.clamp & 31;
    uint32_t limit = (lane & segment) | (last & ~segment);
    uint32_t distance = operation.lane & 31;
    uint32_t source = lane;
    bool valid = false;
    switch (operation.variant) {
    case LLM_EMULATOR_SHUFFLE_XOR:
      source = lane ^ distance;
      valid = source <= limit;
      break;
    case LLM_EMULATOR_SHUFFLE_UP:
      source = lane - distance;
      valid = static_cast<int32_t>(source) >= static_cast<int32_t>(limit);
      break;
    case LLM_EMULATOR_SHUFFLE_DOWN:
      source = lane + distance;
      valid = source <= limit;
      break;
    default:
      source = (lane & segment) | (distance & ~segment);
      valid = source <= limit;
      break;
    }
    if (!valid)
      source = lane;
    if (!(lanes >> source & 1)) {
      report(Finding::Kind::Divergence, thread, thread.site,
             "it reads lane " + std::to_string(source) +
                 ", which does not take part");
      return false;
    }
    operation.value = values[source];
    operation.valid = valid;
  }
  return true;
}

void Launch::executeReduce(size_t first, uint32_t lanes) {
  bool started = false;
  uint32_t result = 0;
  for (size_t lane = 0; lane < warpSize; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    const WarpOperation &operation = threads[first + lane].operation;
    uint32_t value = operation.value;
    auto asSigned = [](uint32_t bits) { return static_cast<int32_t>(bits); };
    if (!started) {
      result = value;
      started = true;
      continue;
    }
    switch (operation.variant) {
    case LLM_EMULATOR_REDUCE_ADD:
      result += value;
      break;
    case LLM_EMULATOR_REDUCE_AND:
      result &= value;
      break;
    case LLM_EMULATOR_REDUCE_MAX:
      result = asSigned(value) > asSigned(result) ? value : result;
      break;
    case LLM_EMULATOR_REDUCE_MIN:
      result = asSigned(value) < asSigned(result) ? value : result;
      break;
    case LLM_EMULATOR_REDUCE_OR:
      result |= value;
      break;
    case LLM_EMULATOR_REDUCE_UMAX:
      result = std::max(result, value);
      break;
    case LLM_EMULATOR_REDUCE_UMIN:
      result = std::min(result, value);
      break;
    default:
      result ^= value;
      break;
    }
  }
  for (size_t lane = 0; lane < warpSize; ++lane)
    if (lanes >> lane & 1)
      threads[first + lane].operation.value = result;
}

void Launch::executeVote(size_t first, uint32_t lanes) {
  uint32_t ballot = 0;
  int32_t variant = 0;
  for (size_t lane = 0; lane < warpSize; ++lane)
    if (lanes >> lane & 1) {
      const WarpOperation &operation = threads[first + lane].operation;
      ballot |= static_cast<uint32_t>(operation.value != 0) << lane;
      variant = operation.variant;
    }
  uint32_t result = ballot;
  if (variant == LLM_EMULATOR_VOTE_ANY)
    result = ballot != 0;
  else if (variant == LLM_EMULATOR_VOTE_ALL)
    result = ballot == lanes;
  else if (variant == LLM_EMULATOR_VOTE_UNI)
    result = ballot == 0 || ballot == lanes;
  for (size_t lane = 0; lane < warpSize; ++lane)
    if (lanes >> lane & 1)
      threads[first + lane].operation.value = result;
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// PTX ISA, ldmatrix: lane 8 i + r holds the address of row r of matrix i; lane
/// l gets elements (l / 4, 2 (l % 4)) and the next of each matrix.
bool Launch::executeLoadMatrix(size_t first, uint32_t lanes) {
  if (lanes != ~uint32_t(0)) {
    EmulatorThread &thread =
        threads[first + static_cast<size_t>(std::countr_zero(lanes))];
    report(Finding::Kind::Divergence, thread, thread.site,
           "not all lanes of its warp load the matrix");
    return false;
  }
  int32_t count = threads[first].operation.variant >> 1;
  bool transposed = threads[first].operation.variant & 1;
  for (size_t lane = 0; lane < static_cast<size_t>(count) * 8; ++lane) {
    EmulatorThread &thread = threads[first + lane];
    if (!check(thread, thread.site, LLM_EMULATOR_SHARED, LLM_EMULATOR_READ,
               static_cast<const char *>(thread.operation.row), 16, 16))
      return false;
  }
  for (size_t lane = 0; lane < warpSize; ++lane)
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      uint16_t pair[2];
      for (size_t e = 0; e < 2; ++e) {
        size_t row = lane / 4, column = lane % 4 * 2 + e;
        if (transposed)
          std::swap(row, column);
        const auto *source = static_cast<const char *>(
            threads[first + i * 8 + row].operation.row);
        std::memcpy(&pair[e], source + 2 * column, 2);
      }
      std::memcpy(&threads[first + lane].operation.words[i], pair, 4);
    }
  return true;
}

static float halfToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) {
    auto value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

/// PTX ISA, fragments of mma.m16n8k16 with 16-bit elements.
bool Launch::executeMultiply(size_t first, uint32_t lanes) {
  if (lanes != ~uint32_t(0)) {
    EmulatorThread &thread =
        threads[first + static_cast<size_t>(std::countr_zero(lanes))];
    report(Finding::Kind::Divergence, thread, thread.site,
           "not all lanes of its warp multiply the matrix");
    return false;
  }
  bool half = threads[first].operation.variant == LLM_EMULATOR_MATRIX_F16;
  auto element = [&](uint32_t word, size_t i) {
    auto bits = static_cast<uint16_t>(word >> (16 * i));
    return half ? halfToFloat(bits)
                : std::bit_cast<float>(uint32_t(bits) << 16);
  };
  float a[16][16], b[16][8];
  for (size_t lane = 0; lane < warpSize; ++lane) {
    const WarpOperation &operation = threads[first + lane].operation;
    size_t group = lane / 4, pair = lane % 4 * 2;
    for (size_t e = 0; e < 2; ++e) {
      for (size_t i = 0; i < 4; ++i)
        a[group + i % 2 * 8][pair + e + i / 2 * 8] = element(operation.a[i], e);
      for (size_t i = 0; i < 2; ++i)
        b[pair + e + i * 8][group] = element(operation.b[i], e);
    }
  }
  for (size_t lane = 0; lane < warpSize; ++lane) {
    WarpOperation &operation = threads[first + lane].operation;
    for (size_t i = 0; i < 4; ++i) {
      size_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      float sum = operation.c[i];
      for (size_t k = 0; k < 16; ++k)
        sum += a[row][k] * b[k][column];
      operation.c[i] = sum;
    }
  }
  return true;
}

} // namespace llm::runtime
