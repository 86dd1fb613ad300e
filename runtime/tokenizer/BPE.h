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
#include "runtime/tokenizer/Vocabulary.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace llm::runtime {

/// The ids of the 256 pieces "<0x00>" to "<0xFF>", where a vocabulary has them.
std::vector<std::optional<int32_t>> bytePieces(const Vocabulary &vocabulary);

/// The model "BPE" of tokenizer.json. Source: Sennrich et al., "Neural Machine
/// Translation of Rare Words with Subword Units"; the field meanings are those
/// of the `tokenizers` library.
class BPEModel {
public:
  /// `model` is the member of tokenizer.json; of its vocabulary and merges
  /// `tables` count, whatever it has.
  static Expected<BPEModel> create(const nlohmann::json &model,
                                   BPETables tables);

  BPEModel(BPEModel &&) = default;
  BPEModel &operator=(BPEModel &&) = default;

  const Vocabulary &vocabulary() const { return tables.vocabulary; }
  std::optional<int32_t> unkId() const { return unk; }

  /// Ids that `ignore_merges` must not give a whole word: those of special
  /// tokens, which text that merely spells them does not get.
  void setReserved(std::unordered_set<int32_t> ids) {
    reserved = std::move(ids);
  }

  /// Memory that encoding one word after the other uses again.
  struct Workspace {
    std::vector<int32_t> symbols;
    std::vector<const MergeTable::Merge *> merges;
    std::string decorated;
  };
  /// Appends the ids of `word` (well-formed UTF-8, shorter than 2^31 bytes).
  /// O(n log n).
  void encode(std::string_view word, std::vector<int32_t> &ids,
              Workspace &space) const;

private:
  BPEModel() = default;

  /// What is known of a piece: whether, as a word, it becomes itself.
  enum Whole : uint8_t { Unknown, Yes, No };

  void initialSymbols(std::string_view word, Workspace &space) const;
  void mergeFew(Workspace &space) const;
  void mergeMany(std::vector<int32_t> &symbols) const;

  BPETables tables;
  /// By the piece's number. Most words of a text are pieces, and merging gives
  /// the same each time; threads that find it out at once find the same.
  std::unique_ptr<std::atomic<Whole>[]> wholes;
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
