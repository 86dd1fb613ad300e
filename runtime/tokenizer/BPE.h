//===- BPE.h - byte-pair encoding ------------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Byte-pair encoding: the model of tokenizer.json, and the merging by score of
// SentencePiece's vocabularies.

#ifndef LLM_RUNTIME_TOKENIZER_BPE_H
#define LLM_RUNTIME_TOKENIZER_BPE_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace llm::runtime {

/// Pieces and their ids, both ways.
class Vocabulary {
public:
  Vocabulary() = default;
  Vocabulary(Vocabulary &&) = default;
  Vocabulary &operator=(Vocabulary &&) = default;

  /// Makes room for `count` pieces.
  void reserve(size_t count);
  /// Adds a piece. False if the piece is already there with another id.
  bool add(std::string piece, int32_t id);
  std::optional<int32_t> find(std::string_view piece) const;
  /// The piece of `id`, or null.
  const std::string *piece(int32_t id) const;
  /// One past the largest id; 0 where empty.
  int32_t endId() const { return end; }
  size_t size() const { return ids.size(); }

private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids;
  /// Points to the keys of `ids`, which do not move. A table by id would be as
  /// large as the largest id a file claims.
  std::unordered_map<int32_t, const std::string *> pieces;
  int32_t end = 0;
};

/// The ids of the 256 pieces "<0x00>" to "<0xFF>", where a vocabulary has them.
std::vector<std::optional<int32_t>> bytePieces(const Vocabulary &vocabulary);

/// The model "BPE" of tokenizer.json. Source: Sennrich et al., "Neural Machine
/// Translation of Rare Words with Subword Units"; the field meanings are those
/// of the `tokenizers` library.
class BPEModel {
public:
  static Expected<BPEModel> parse(const nlohmann::json &model);

  BPEModel(BPEModel &&) = default;
  BPEModel &operator=(BPEModel &&) = default;

  const Vocabulary &vocabulary() const { return vocab; }
  std::optional<int32_t> unkId() const { return unk; }

  /// Ids that `ignore_merges` must not give a whole word: those of special
  /// tokens, which text that merely spells them does not get.
  void setReserved(std::unordered_set<int32_t> ids) {
    reserved = std::move(ids);
  }

  /// Appends the ids of `word` (well-formed UTF-8, shorter than 2^31 bytes).
  /// O(n log n).
  void encode(std::string_view word, std::vector<int32_t> &ids) const;

private:
  BPEModel() = default;

  struct Merge {
    int32_t rank;
    int32_t result;
  };
  struct Symbol {
    int32_t id;
    int32_t previous;
    int32_t next;
  };

  Status readVocabulary(const nlohmann::json &model);
  Status readMerges(const nlohmann::json &model);
  std::vector<Symbol> initialSymbols(std::string_view word) const;
  void mergeAll(std::vector<Symbol> &symbols) const;
  const Merge *findMerge(int32_t left, int32_t right) const;

  Vocabulary vocab;
  std::unordered_map<uint64_t, Merge> merges;
  std::vector<std::optional<int32_t>> bytes;
  std::optional<int32_t> unk;
  std::string prefix, suffix;
  bool fuseUnk = false, byteFallback = false, ignoreMerges = false;
  std::unordered_set<int32_t> reserved;
};

/// Merging as SentencePiece and llama2.c do it: of all adjacent pairs whose
/// concatenation is a piece, the one with the highest score first, among equals
/// the leftmost, until none is left.
class ScoreMerger {
public:
  /// `pieces` and `scores` are indexed by id; `vocabulary` finds the pieces.
  /// All three outlive the merger. No merge results in an id below
  /// `firstMergeable` or in a piece whose score is not above `leastScore`.
  ScoreMerger(const std::vector<std::string> &pieces,
              const Vocabulary &vocabulary, const std::vector<float> &scores,
              int32_t firstMergeable, float leastScore);
  /// Merges `ids` in place. O(n log n) for pieces of bounded length.
  void merge(std::vector<int32_t> &ids) const;

private:
  const std::vector<std::string> &pieces;
  const Vocabulary &vocab;
  const std::vector<float> &scores;
  int32_t firstMergeable;
  float leastScore;
  size_t longest = 0;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_BPE_H
