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

//===----------------------------------------------------------------------===//
// Vocabulary
//===----------------------------------------------------------------------===//

void Vocabulary::reserve(size_t count) {
  ids.reserve(count);
  pieces.reserve(count);
}

bool Vocabulary::add(std::string piece, int32_t id) {
  auto [entry, inserted] = ids.try_emplace(std::move(piece), id);
  if (!inserted)
    return entry->second == id;
  // Where two pieces share an id, decoding gives the first.
  pieces.try_emplace(id, &entry->first);
  end = std::max(end, id + 1);
  return true;
}

std::optional<int32_t> Vocabulary::find(std::string_view piece) const {
  auto it = ids.find(piece);
  if (it == ids.end())
    return std::nullopt;
  return it->second;
}

const std::string *Vocabulary::piece(int32_t id) const {
  auto it = pieces.find(id);
  return it == pieces.end() ? nullptr : it->second;
}

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

static uint64_t pairKey(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) |
         static_cast<uint32_t>(right);
}

Expected<BPEModel> BPEModel::parse(const Json &model) {
  BPEModel bpe;
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
  LLM_RETURN_IF_ERROR(bpe.readVocabulary(model));
  LLM_RETURN_IF_ERROR(bpe.readMerges(model));
  LLM_ASSIGN_OR_RETURN(std::string unkToken,
                       json::getString(model, "unk_token", ""));
  if (!unkToken.empty()) {
    bpe.unk = bpe.vocab.find(unkToken);
    if (!bpe.unk)
      return Status::invalidInput("unk_token '" + unkToken +
                                  "' is not in the vocabulary");
  }
  if (bpe.byteFallback)
    bpe.bytes = bytePieces(bpe.vocab);
  return bpe;
}

Status BPEModel::readVocabulary(const Json &model) {
  const Json *entries = json::find(model, "vocab");
  if (!entries || !entries->is_object())
    return Status::invalidInput("'vocab' is missing or not an object");
  vocab.reserve(entries->size());
  for (const auto &[piece, value] : entries->items()) {
    std::optional<int32_t> id = json::asTokenId(value);
    // The largest id is left out so that one past it is still an int32.
    if (!id || *id == std::numeric_limits<int32_t>::max())
      return Status::invalidInput("vocab: the id of '" + piece +
                                  "' is not a token id");
    vocab.add(piece, *id);
  }
  return Status::success();
}

Status BPEModel::readMerges(const Json &model) {
  const Json *entries = json::find(model, "merges");
  if (!entries || !entries->is_array())
    return Status::invalidInput("'merges' is missing or not an array");
  merges.reserve(entries->size());
  int32_t rank = 0;
  auto invalid = [&](const std::string &why) {
    return Status::invalidInput("merges[" + std::to_string(rank) + "]" + why);
  };
  auto text = [](const Json &piece) -> std::string_view {
    return piece.get_ref<const std::string &>();
  };
  std::string joined;
  for (const Json &entry : *entries) {
    std::string_view left, right;
    if (entry.is_string()) {
      // "a b"; neither part can have a space in this older spelling.
      std::string_view both = text(entry);
      size_t space = both.find(' ');
      if (space == std::string_view::npos ||
          both.find(' ', space + 1) != std::string_view::npos)
        return invalid(" is not two pieces");
      left = both.substr(0, space);
      right = both.substr(space + 1);
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
               entry[1].is_string()) {
      left = text(entry[0]);
      right = text(entry[1]);
    } else {
      return invalid(" is not two pieces");
    }
    if (right.size() < prefix.size())
      return invalid(" lacks the continuation prefix");
    joined = left;
    joined += right.substr(prefix.size());
    std::optional<int32_t> leftId = vocab.find(left),
                           rightId = vocab.find(right),
                           result = vocab.find(joined);
    if (!leftId || !rightId || !result)
      return invalid(" ('" + std::string(left) + "', '" + std::string(right) +
                     "') has a piece that the vocabulary lacks");
    // A pair that is listed twice has the rank of its last mention.
    merges[pairKey(*leftId, *rightId)] = {rank, *result};
    ++rank;
  }
  return Status::success();
}

const BPEModel::Merge *BPEModel::findMerge(int32_t left, int32_t right) const {
  auto it = merges.find(pairKey(left, right));
  return it == merges.end() ? nullptr : &it->second;
}

std::vector<BPEModel::Symbol>
BPEModel::initialSymbols(std::string_view word) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  auto push = [&](int32_t id) {
    auto index = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, index - 1, index + 1});
  };
  // An unknown character waits until the next known one, so that neighbours
  // can be fused. Byte pieces do not flush it, as in the reference library.
  bool unkWaits = false;
  std::string decorated;
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
    if (std::optional<int32_t> id = vocab.find(spelled)) {
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
  if (!symbols.empty())
    symbols.back().next = -1;
  return symbols;
}

void BPEModel::mergeAll(std::vector<Symbol> &symbols) const {
  struct Candidate {
    int32_t rank;
    int32_t position;
    int32_t result;
    /// Lowest rank on top, then leftmost.
    bool operator<(const Candidate &other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  std::vector<Candidate> heap;
  heap.reserve(symbols.size());
  auto consider = [&](int32_t left, bool toHeap) {
    int32_t right = symbols[static_cast<size_t>(left)].next;
    if (right < 0)
      return;
    const Merge *merge = findMerge(symbols[static_cast<size_t>(left)].id,
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
    const Merge *merge = findMerge(left.id, right.id);
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
}

void BPEModel::encode(std::string_view word, std::vector<int32_t> &ids) const {
  if (word.empty())
    return;
  if (ignoreMerges) {
    std::optional<int32_t> whole = vocab.find(word);
    if (whole && !reserved.contains(*whole)) {
      ids.push_back(*whole);
      return;
    }
  }
  std::vector<Symbol> symbols = initialSymbols(word);
  mergeAll(symbols);
  for (const Symbol &symbol : symbols)
    if (symbol.id >= 0)
      ids.push_back(symbol.id);
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
