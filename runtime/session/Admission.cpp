//===- Admission.cpp - How large a session may be ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Expr.h"
#include "runtime/core/Limits.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <functional>

namespace llm::runtime {

namespace {
constexpr int64_t defaultChunk = 512;
/// Bytes on the host for a slot: its token in the scheduler and in the
/// sampler's history, each in a vector that doubles, and as much for sequences
/// that wait.
constexpr int64_t tokenBytes = 2 * 2 * (8 + 4);
constexpr int64_t maxSlots = (int64_t(1) << 31) - 1;

/// Slots for the `count` longest of `lengths` (sorted so), each in whole units.
int64_t slotsOfLongest(std::span<const int64_t> lengths, int64_t count,
                       int64_t unit) {
  int64_t slots = 0;
  for (int64_t length :
       lengths.first(std::min(static_cast<size_t>(count), lengths.size())))
    // More than 31 bits is too much in any case.
    slots = std::min(slots + (length + unit - 1) / unit * unit,
                     maxSlots / unit * unit + unit);
  return slots;
}

/// The largest number in [low, high] of which `fits`, or `low`. `fits` holds up
/// to some number and fails from there on.
Expected<int64_t> largest(int64_t low, int64_t high,
                          const std::function<Expected<bool>(int64_t)> &fits) {
  while (low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    LLM_ASSIGN_OR_RETURN(bool fit, fits(middle));
    if (fit)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}
} // namespace

int64_t Session::chunkFor(const SessionOptions &options,
                          int64_t sequences) const {
  int64_t chunk = options.chunk ? options.chunk : defaultChunk;
  return std::min(chunk, int64_t(contextLength) * sequences);
}

/// Rows of logits in a step at most: each sequence that generates has one for
/// its token, and one for each draft.
int64_t Session::rowsFor(const SessionOptions &options,
                         int64_t sequences) const {
  return std::max(options.maxLogitRows, sequences * (1 + drafting.tokens));
}

/// What a session of so many sequences and slots of cache takes. Expressions
/// grow with every symbol, so the largest step is the bound.
Expected<Session::Sizes> Session::sizesFor(const SessionOptions &options,
                                           int64_t sequences,
                                           int64_t slots) const {
  const artifact::Manifest &m = manifest();
  Sizes result;
  StepArrays::Capacity &capacity = result.capacity;
  capacity.tokens =
      std::max(chunkFor(options, sequences), sequences * (1 + drafting.tokens));
  capacity.sequences = sequences;
  capacity.logitRows = std::min(rowsFor(options, sequences), capacity.tokens);
  capacity.groups = m.cache_groups_size();
  capacity.tableWidth = 1;
  int64_t pages = 0; // of all groups
  for (const artifact::CacheGroup &group : m.cache_groups())
    if (int64_t page = group.page_size()) {
      capacity.tableWidth =
          std::max(capacity.tableWidth, (contextLength + page - 1) / page);
      pages += slots / page;
    }
  Symbols &largest = result.largest;
  largest[Symbols::T] = capacity.tokens;
  largest[Symbols::S] = capacity.sequences;
  largest[Symbols::R] = capacity.logitRows;
  largest[Symbols::P] = capacity.tokens;
  largest[Symbols::B] = capacity.tableWidth;
  largest[Symbols::C] = slots;

  const artifact::Certificate &certificate = m.certificate();
  MemoryUse &use = result.use;
  for (const artifact::Payload &payload : m.payloads())
    if (payload.kind() == artifact::Payload::WEIGHTS)
      use.weights += payload.size();
  use.weights = std::max(use.weights, certificate.weights_bytes());
  LLM_ASSIGN_OR_RETURN(int64_t arenaBytes, program->arenaBytes(largest));
  use.activations = static_cast<uint64_t>(arenaBytes);
  if (certificate.arena_bytes().nodes_size() > 0) {
    LLM_ASSIGN_OR_RETURN(
        int64_t certified,
        evaluateExpr(certificate.arena_bytes(), largest.values));
    use.activations =
        std::max(use.activations, static_cast<uint64_t>(certified));
  }
  use.activations += StepArrays::bytes(capacity);
  use.activations += static_cast<uint64_t>(slots * tokenBytes);
  LLM_ASSIGN_OR_RETURN(uint64_t sideBytes, sides.bytes(largest));
  use.activations += sideBytes;
  LLM_ASSIGN_OR_RETURN(int64_t unit, Cache::unitOf(m, contextLength));
  if (options.prefixCache)
    use.activations +=
        PrefixCache::bytes(slots / unit, static_cast<int32_t>(unit),
                           slots ? pages * unit / slots : 0);
  if (__builtin_mul_overflow(certificate.kv_bytes_per_slot(),
                             static_cast<uint64_t>(slots), &use.cache))
    return Status::resource("the cache is too large");
  // The sampler's copy of a row is counted by the certificate, ours is exact.
  uint64_t row = (m.vocabulary_size() + static_cast<uint64_t>(logitBlocks())) *
                 sizeof(float);
  if (hasLogits)
    use.logits = static_cast<uint64_t>(capacity.logitRows) *
                 std::max(row, certificate.bytes_per_vocabulary_row());
  use.fixed = certificate.fixed_bytes() + options.held;
  return result;
}

/// The sizes that the options ask for, or, where they leave it open, the
/// largest that fit. Resource, with the terms of the certificate, where that
/// is too much.
Expected<Session::Sizes>
Session::chooseSizes(const SessionOptions &options) const {
  uint64_t limit = options.memory ? options.memory : memoryLimit();
  LLM_ASSIGN_OR_RETURN(int64_t unit, Cache::unitOf(manifest(), contextLength));
  int64_t most = options.maxSequences;
  if (most <= 0)
    most = options.lengths.empty()
               ? defaultMaxSequences
               : std::min(defaultMaxSequences,
                          static_cast<int64_t>(options.lengths.size()));
  auto sorted = [&](std::vector<int64_t> lengths) {
    if (lengths.empty())
      lengths.assign(static_cast<size_t>(most), contextLength);
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
    return lengths;
  };
  std::vector<int64_t> lengths = sorted(options.lengths);
  std::vector<int64_t> usual = sorted(
      options.usualLengths.empty() ? options.lengths : options.usualLengths);
  int64_t least = slotsOfLongest(lengths, 1, unit);
  auto fits = [&](int64_t sequences, int64_t slots) -> Expected<bool> {
    if (slots > maxSlots)
      return false;
    LLM_ASSIGN_OR_RETURN(Sizes sizes, sizesFor(options, sequences, slots));
    return sizes.use.total() <= limit;
  };

  int64_t sequences = most;
  if (options.maxSequences <= 0) {
    LLM_ASSIGN_OR_RETURN(
        sequences, largest(1, most, [&](int64_t count) {
          return fits(count,
                      std::max(least, slotsOfLongest(usual, count, unit)));
        }));
  }
  int64_t slots = slotsOfLongest(lengths, sequences, unit);
  if (options.fitCache) {
    LLM_ASSIGN_OR_RETURN(
        int64_t units, largest(least / unit, slots / unit, [&](int64_t count) {
          return fits(sequences, count * unit);
        }));
    slots = units * unit;
  }
  if (slots > maxSlots)
    return Status::resource("the cache would have more slots than fit in 31 "
                            "bits: use a smaller --context");
  LLM_ASSIGN_OR_RETURN(Sizes sizes, sizesFor(options, sequences, slots));
  const MemoryUse &use = sizes.use;
  if (use.total() <= limit)
    return sizes;
  return Status::resource(
      "not enough memory: this needs " + formatSize(use.total()) +
      " (weights " + formatSize(use.weights) + ", cache " +
      formatSize(use.cache) + " for " + std::to_string(slots) +
      " slots, activations " + formatSize(use.activations) + ", logits " +
      formatSize(use.logits) + ", fixed " + formatSize(use.fixed) + "), " +
      formatSize(limit) +
      (options.memory ? " are allowed (--memory)" : " are available") +
      "; a smaller context, batch or chunk needs less");
}

} // namespace llm::runtime
