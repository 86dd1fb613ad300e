//===- Vocabulary.h - pieces and merges ------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The tables of a BPE model, in flat memory: pieces with their ids, and merges.

#ifndef LLM_RUNTIME_TOKENIZER_VOCABULARY_H
#define LLM_RUNTIME_TOKENIZER_VOCABULARY_H

#include "runtime/core/Status.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llm::runtime {

/// Pieces and their ids, both ways. Pieces are also numbered in the order in
/// which they were added.
class Vocabulary {
public:
  /// Makes room for `count` pieces of `bytes` in all.
  void reserve(size_t count, size_t bytes);
  /// Adds a piece whose id is not below that of the one before it. False, and
  /// nothing added, if the piece is already there. All pieces together are
  /// shorter than 2^32 bytes.
  bool add(std::string_view piece, int32_t id);

  std::optional<int32_t> find(std::string_view piece) const;
  /// The piece of `id`, the first where several have it.
  std::optional<std::string_view> piece(int32_t id) const;
  /// One past the largest id; 0 where empty.
  int32_t endId() const { return entries.empty() ? 0 : entries.back().id + 1; }
  size_t size() const { return entries.size(); }

  /// The number of a piece, or nothing.
  std::optional<uint32_t> number(std::string_view piece) const;
  int32_t idOf(uint32_t number) const { return entries[number].id; }
  std::string_view pieceOf(uint32_t number) const {
    uint32_t begin = number ? entries[number - 1].end : 0;
    return std::string_view(text).substr(begin, entries[number].end - begin);
  }

private:
  struct Entry {
    uint32_t end; ///< of the piece in `text`; it begins where the last one ends
    int32_t id;
  };
  /// Open addressing with linear probing, at most two thirds full.
  struct Slot {
    uint32_t hash;
    uint32_t entry; ///< its number + 1; 0: free
  };
  const Slot *lookUp(std::string_view piece, uint32_t hash) const;
  void rehash(size_t count);

  std::string text;
  std::vector<Entry> entries; ///< ids ascend
  std::vector<Slot> slots;    ///< a power of two, never full
};

/// Pairs of ids and what they become, by rank.
class MergeTable {
public:
  struct Merge {
    int32_t left, right;
    int32_t rank, result;
  };

  void reserve(size_t count);
  /// Sets the merge of a pair of ids; of a pair that is set twice the last
  /// counts. True if the pair is new.
  bool set(const Merge &merge);
  /// The merge of two ids, or null.
  const Merge *find(int32_t left, int32_t right) const {
    if (slots.empty())
      return nullptr;
    const Merge &slot = slots[slotOf(left, right)];
    return slot.left < 0 ? nullptr : &slot;
  }
  size_t size() const { return count; }
  /// All of them, lowest rank first.
  std::vector<Merge> sorted() const;

private:
  /// Where the pair is, or would be put.
  size_t slotOf(int32_t left, int32_t right) const;
  void rehash(size_t count);

  /// As Vocabulary's; a negative `left` marks a free one.
  std::vector<Merge> slots;
  size_t count = 0;
};

/// What is large in a BPE model. It comes from tokenizer.json, or from the
/// bytes that pack gives, which are read ten times as fast.
struct BPETables {
  Vocabulary vocabulary;
  MergeTable merges;

  /// Of the member "model" of tokenizer.json.
  static Expected<BPETables> parse(const nlohmann::json &model);

  /// Little endian, uint32 each unless said otherwise: the number of pieces,
  /// the number of merges; of each piece, ids ascending, its id, then of each
  /// the offset of its end; of each merge, lowest rank first, the ids of left,
  /// right and result; then the pieces' text, one after the other.
  std::vector<uint8_t> pack() const;
  /// The reverse. InvalidInput for anything that pack does not give.
  static Expected<BPETables> unpack(std::span<const uint8_t> bytes);
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_VOCABULARY_H
