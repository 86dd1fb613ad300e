//===- BPE.cpp - byte-pair encoding ---------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/BPE.h"

#include "runtime/tokenizer/Json.h"
#include "runtime/tokenizer/Unicode.h"

#include <algorithm>
#include <cassert>
#include <queue>

namespace llm::runtime {

using json::Json;

std::vector<std::optional<int32_t>> bytePieces(const Vocabulary &vocabulary) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::vector<std::optional<int32_t>> ids;
  for (size_t byte = 0; byte < 256; ++byte)
    ids.push_back(vocabulary.find(std::string("<0x") + digits[byte / 16] +
                                  digits[byte % 16] + ">"));
  return ids;
}

//===----------------------------------------------------------------------===//
// BPEModel
//===----------------------------------------------------------------------===//

Expected<BPEModel> BPEModel::create(const Json &model, BPETables tables) {
  BPEModel bpe;
  bpe.tables = std::move(tables);
  bpe.wholes = std::make_unique<std::atomic<Whole>[]>(bpe.vocabulary().size());
  LLM_ASSIGN_OR_RETURN(bpe.prefix,
                       json::getString(model, "continuing_subword_prefix", ""));
  LLM_ASSIGN_OR_RETURN(bpe.suffix,
                       json::getString(model, "end_of_word_suffix", ""));
  LLM_ASSIGN_OR_RETURN(bpe.fuseUnk, json::getBool(model, "fuse_unk", false));
  LLM_ASSIGN_OR_RETURN(bpe.byteFallback,
                       json::getBool(model, "byte_fallback", false));
  LLM_ASSIGN_OR_RETURN(bpe.ignoreMerges,
                       json::getBool(model, "ignore_merges", false));
  // "dropout" is for training: text is encoded without it.
  LLM_ASSIGN_OR_RETURN(std::string unkToken,
                       json::getString(model, "unk_token", ""));
  if (!unkToken.empty()) {
    bpe.unk = bpe.vocabulary().find(unkToken);
    if (!bpe.unk)
      return Status::invalidInput("unk_token '" + unkToken +
                                  "' is not in the vocabulary");
  }
  if (bpe.byteFallback)
    bpe.bytes = bytePieces(bpe.vocabulary());
  return bpe;
}

/// The ids of the word's characters.
void BPEModel::initialSymbols(std::string_view word, Workspace &space) const {
  std::vector<int32_t> &symbols = space.symbols;
  std::string &decorated = space.decorated;
  symbols.clear();
  auto push = [&](int32_t id) { symbols.push_back(id); };
  // An unknown character waits until the next known one, so that neighbours
  // can be fused. Byte pieces do not flush it, as in the reference library.
  bool unkWaits = false;
  for (size_t i = 0; i < word.size();) {
    size_t length = unicode::decodeAt(word, i).length;
    std::string_view character = word.substr(i, length);
    bool isFirst = i == 0, isLast = i + length == word.size();
    i += length;
    std::string_view spelled = character;
    if ((!isFirst && !prefix.empty()) || (isLast && !suffix.empty())) {
      decorated = isFirst ? "" : prefix;
      decorated += character;
      if (isLast)
        decorated += suffix;
      spelled = decorated;
    }
    if (std::optional<int32_t> id = vocabulary().find(spelled)) {
      if (unkWaits)
        push(*unk);
      unkWaits = false;
      push(*id);
      continue;
    }
    if (byteFallback &&
        std::all_of(spelled.begin(), spelled.end(), [&](char c) {
          return bytes[static_cast<unsigned char>(c)].has_value();
        })) {
      for (char c : spelled)
        push(*bytes[static_cast<unsigned char>(c)]);
      continue;
    }
    if (!unk)
      continue;
    if (unkWaits && !fuseUnk)
      push(*unk);
    unkWaits = true;
  }
  if (unkWaits)
    push(*unk);
}

/// mergeMany of a few: looking through them costs less than a heap.
void BPEModel::mergeFew(Workspace &space) const {
  std::vector<int32_t> &symbols = space.symbols;
  // Of each symbol and the next one.
  std::vector<const MergeTable::Merge *> &merges = space.merges;
  merges.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    merges.push_back(tables.merges.find(symbols[i], symbols[i + 1]));
  while (true) {
    // The lowest rank, then leftmost.
    size_t best = merges.size();
    for (size_t i = 0; i < merges.size(); ++i)
      if (merges[i] &&
          (best == merges.size() || merges[i]->rank < merges[best]->rank))
        best = i;
    if (best == merges.size())
      return;
    symbols[best] = merges[best]->result;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    merges.erase(merges.begin() + static_cast<ptrdiff_t>(best));
    if (best > 0)
      merges[best - 1] = tables.merges.find(symbols[best - 1], symbols[best]);
    if (best < merges.size())
      merges[best] = tables.merges.find(symbols[best], symbols[best + 1]);
  }
}

/// Of all neighbours that merge, those of the lowest rank first, then the
/// leftmost, until none is left.
void BPEModel::mergeMany(std::vector<int32_t> &ids) const {
  struct Symbol {
    int32_t id;
    int32_t previous;
    int32_t next;
  };
  struct Candidate {
    int32_t rank;
    int32_t position;
    int32_t result;
    /// Lowest rank on top, then leftmost.
    bool operator<(const Candidate &other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  std::vector<Symbol> symbols;
  symbols.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    auto index = static_cast<int32_t>(i);
    symbols.push_back({ids[i], index - 1, i + 1 < ids.size() ? index + 1 : -1});
  }
  std::vector<Candidate> heap;
  heap.reserve(symbols.size());
  auto consider = [&](int32_t left, bool toHeap) {
    int32_t right = symbols[static_cast<size_t>(left)].next;
    if (right < 0)
      return;
    const MergeTable::Merge *merge =
        tables.merges.find(symbols[static_cast<size_t>(left)].id,
                           symbols[static_cast<size_t>(right)].id);
    if (!merge)
      return;
    heap.push_back({merge->rank, left, merge->result});
    if (toHeap)
      std::push_heap(heap.begin(), heap.end());
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    consider(static_cast<int32_t>(i), /*toHeap=*/false);
  std::make_heap(heap.begin(), heap.end());

  while (!heap.empty()) {
    Candidate top = heap.front();
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
    Symbol &left = symbols[static_cast<size_t>(top.position)];
    if (left.id < 0 || left.next < 0)
      continue;
    Symbol &right = symbols[static_cast<size_t>(left.next)];
    // One of the two may have become another symbol since.
    const MergeTable::Merge *merge = tables.merges.find(left.id, right.id);
    if (!merge || merge->result != top.result)
      continue;
    left.id = top.result;
    left.next = right.next;
    right.id = -1; // dead
    if (left.next >= 0)
      symbols[static_cast<size_t>(left.next)].previous = top.position;
    if (left.previous >= 0)
      consider(left.previous, /*toHeap=*/true);
    consider(top.position, /*toHeap=*/true);
  }
  ids.clear();
  for (const Symbol &symbol : symbols)
    if (symbol.id >= 0)
      ids.push_back(symbol.id);
}

void BPEModel::encode(std::string_view word, std::vector<int32_t> &ids,
                      Workspace &space) const {
  if (word.empty())
    return;
  std::optional<uint32_t> piece = vocabulary().number(word);
  int32_t id = piece ? vocabulary().idOf(*piece) : -1;
  Whole whole = Unknown;
  if (piece)
    whole = wholes[*piece].load(std::memory_order_relaxed);
  if (whole == Yes || (piece && ignoreMerges && !reserved.contains(id))) {
    ids.push_back(id);
    return;
  }
  constexpr size_t few = 32;
  initialSymbols(word, space);
  if (space.symbols.size() <= few)
    mergeFew(space);
  else
    mergeMany(space.symbols);
  ids.insert(ids.end(), space.symbols.begin(), space.symbols.end());
  if (piece && whole == Unknown) {
    bool itself = space.symbols.size() == 1 && space.symbols.front() == id;
    wholes[*piece].store(itself ? Yes : No, std::memory_order_relaxed);
  }
}

//===----------------------------------------------------------------------===//
// ScoreMerger
//===----------------------------------------------------------------------===//

ScoreMerger::ScoreMerger(const std::vector<std::string> &pieces,
                         const Vocabulary &vocabulary,
                         const std::vector<float> &scores,
                         int32_t firstMergeable, float leastScore)
    : pieces(pieces), vocab(vocabulary), scores(scores),
      firstMergeable(firstMergeable), leastScore(leastScore) {
  for (const std::string &piece : pieces)
    longest = std::max(longest, piece.size());
}

void ScoreMerger::merge(std::vector<int32_t> &ids) const {
  struct Symbol {
    int32_t id;
    int32_t previous;
    int32_t next;
  };
  struct Candidate {
    float score;
    int32_t position;
    int32_t leftId, rightId;
    int32_t result;
    /// Highest score on top, then leftmost.
    bool operator<(const Candidate &other) const {
      return score != other.score ? score < other.score
                                  : position > other.position;
    }
  };
  std::vector<Symbol> symbols;
  symbols.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    auto index = static_cast<int32_t>(i);
    symbols.push_back({ids[i], index - 1, i + 1 < ids.size() ? index + 1 : -1});
  }
  std::priority_queue<Candidate> heap;
  std::string joined;
  auto consider = [&](int32_t position) {
    const Symbol &left = symbols[static_cast<size_t>(position)];
    if (left.next < 0)
      return;
    const Symbol &right = symbols[static_cast<size_t>(left.next)];
    const std::string &leftPiece = pieces[static_cast<size_t>(left.id)];
    const std::string &rightPiece = pieces[static_cast<size_t>(right.id)];
    if (leftPiece.size() + rightPiece.size() > longest)
      return;
    joined.assign(leftPiece);
    joined += rightPiece;
    std::optional<int32_t> result = vocab.find(joined);
    if (!result || *result < firstMergeable ||
        !(scores[static_cast<size_t>(*result)] > leastScore))
      return;
    heap.push({scores[static_cast<size_t>(*result)], position, left.id,
               right.id, *result});
  };
  for (size_t i = 0; i < symbols.size(); ++i)
    consider(static_cast<int32_t>(i));

  while (!heap.empty()) {
    Candidate top = heap.top();
    heap.pop();
    Symbol &left = symbols[static_cast<size_t>(top.position)];
    if (left.id != top.leftId || left.next < 0)
      continue;
    Symbol &right = symbols[static_cast<size_t>(left.next)];
    if (right.id != top.rightId)
      continue;
    left.id = top.result;
    left.next = right.next;
    right.id = -1; // dead
    if (left.next >= 0)
      symbols[static_cast<size_t>(left.next)].previous = top.position;
    if (left.previous >= 0)
      consider(left.previous);
    consider(top.position);
  }
  ids.clear();
  for (const Symbol &symbol : symbols)
    if (symbol.id >= 0)
      ids.push_back(symbol.id);
}

} // namespace llm::runtime
