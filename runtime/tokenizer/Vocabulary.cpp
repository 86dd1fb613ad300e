//===- Vocabulary.cpp - pieces and merges ---------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/Vocabulary.h"

#include "runtime/tokenizer/Json.h"
#include "runtime/tokenizer/Unicode.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <random>
#define XXH_INLINE_ALL
#include <xxhash.h>

static_assert(std::endian::native == std::endian::little,
              "tables are read as they lie");

namespace llm::runtime {

using json::Json;

/// Slots for `count` entries, such that a third stays free.
static size_t slotsFor(size_t count) {
  return std::bit_ceil(std::max<size_t>(count + count / 2 + 1, 16));
}

/// Another one in each process: a file cannot be made whose pieces all have
/// the same hash, and would take hours.
static uint64_t hashSeed() {
  static const uint64_t seed = [] {
    std::random_device random;
    return static_cast<uint64_t>(random()) << 32 | random();
  }();
  return seed;
}

//===----------------------------------------------------------------------===//
// Vocabulary
//===----------------------------------------------------------------------===//

static uint32_t hashOf(std::string_view piece) {
  return static_cast<uint32_t>(
      XXH3_64bits_withSeed(piece.data(), piece.size(), hashSeed()));
}

void Vocabulary::reserve(size_t count, size_t bytes) {
  text.reserve(bytes);
  entries.reserve(count);
  if (slotsFor(count) > slots.size())
    rehash(slotsFor(count));
}

void Vocabulary::rehash(size_t count) {
  std::vector<Slot> old(count);
  old.swap(slots);
  size_t mask = slots.size() - 1;
  for (const Slot &slot : old) {
    if (!slot.entry)
      continue;
    size_t at = slot.hash & mask;
    while (slots[at].entry)
      at = (at + 1) & mask;
    slots[at] = slot;
  }
}

/// The slot of `piece`, or the free one where it would be put.
const Vocabulary::Slot *Vocabulary::lookUp(std::string_view piece,
                                           uint32_t hash) const {
  size_t mask = slots.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot &slot = slots[at];
    if (!slot.entry || (slot.hash == hash && pieceOf(slot.entry - 1) == piece))
      return &slot;
  }
}

bool Vocabulary::add(std::string_view piece, int32_t id) {
  assert(id >= 0 && (entries.empty() || entries.back().id <= id));
  assert(piece.size() <= std::numeric_limits<uint32_t>::max() - text.size());
  if (slotsFor(entries.size() + 1) > slots.size())
    rehash(slotsFor(entries.size() + 1));
  uint32_t hash = hashOf(piece);
  const Slot *slot = lookUp(piece, hash);
  if (slot->entry)
    return false;
  text += piece;
  entries.push_back({static_cast<uint32_t>(text.size()), id});
  slots[static_cast<size_t>(slot - slots.data())] = {
      hash, static_cast<uint32_t>(entries.size())};
  return true;
}

std::optional<uint32_t> Vocabulary::number(std::string_view piece) const {
  if (slots.empty())
    return std::nullopt;
  const Slot *slot = lookUp(piece, hashOf(piece));
  if (!slot->entry)
    return std::nullopt;
  return slot->entry - 1;
}

std::optional<int32_t> Vocabulary::find(std::string_view piece) const {
  std::optional<uint32_t> found = number(piece);
  if (!found)
    return std::nullopt;
  return idOf(*found);
}

std::optional<std::string_view> Vocabulary::piece(int32_t id) const {
  if (id < 0)
    return std::nullopt;
  // Where no id is left out or used twice, the id is the number.
  auto guess = static_cast<uint32_t>(id);
  if (guess < entries.size() && entries[guess].id == id &&
      (guess == 0 || entries[guess - 1].id != id))
    return pieceOf(guess);
  auto it = std::lower_bound(
      entries.begin(), entries.end(), id,
      [](const Entry &entry, int32_t value) { return entry.id < value; });
  if (it == entries.end() || it->id != id)
    return std::nullopt;
  return pieceOf(static_cast<uint32_t>(it - entries.begin()));
}

//===----------------------------------------------------------------------===//
// MergeTable
//===----------------------------------------------------------------------===//

void MergeTable::reserve(size_t merges) {
  if (slotsFor(merges) > slots.size())
    rehash(slotsFor(merges));
}

size_t MergeTable::slotOf(int32_t left, int32_t right) const {
  const int32_t pair[] = {left, right};
  size_t mask = slots.size() - 1;
  for (size_t at = XXH3_64bits_withSeed(pair, sizeof pair, hashSeed()) & mask;;
       at = (at + 1) & mask) {
    const Merge &slot = slots[at];
    if (slot.left < 0 || (slot.left == left && slot.right == right))
      return at;
  }
}

void MergeTable::rehash(size_t size) {
  std::vector<Merge> old(size, Merge{-1, -1, 0, 0});
  old.swap(slots);
  for (const Merge &merge : old)
    if (merge.left >= 0)
      slots[slotOf(merge.left, merge.right)] = merge;
}

bool MergeTable::set(const Merge &merge) {
  assert(merge.left >= 0 && merge.right >= 0);
  reserve(count + 1);
  Merge &slot = slots[slotOf(merge.left, merge.right)];
  bool isNew = slot.left < 0;
  slot = merge;
  count += isNew;
  return isNew;
}

std::vector<MergeTable::Merge> MergeTable::sorted() const {
  std::vector<Merge> all;
  all.reserve(count);
  std::copy_if(slots.begin(), slots.end(), std::back_inserter(all),
               [](const Merge &merge) { return merge.left >= 0; });
  std::sort(all.begin(), all.end(),
            [](const Merge &a, const Merge &b) { return a.rank < b.rank; });
  return all;
}

//===----------------------------------------------------------------------===//
// From tokenizer.json
//===----------------------------------------------------------------------===//

static Status parseVocabulary(const Json &model, Vocabulary &vocabulary) {
  const Json *members = json::find(model, "vocab");
  if (!members || !members->is_object())
    return Status::invalidInput("'vocab' is missing or not an object");
  std::vector<std::pair<int32_t, const std::string *>> pieces;
  pieces.reserve(members->size());
  size_t bytes = 0;
  for (auto it = members->begin(); it != members->end(); ++it) {
    std::optional<int32_t> id = json::asTokenId(it.value());
    // The largest id is left out so that one past it is still an int32.
    if (!id || *id == std::numeric_limits<int32_t>::max())
      return Status::invalidInput("vocab: the id of '" + it.key() +
                                  "' is not a token id");
    pieces.emplace_back(*id, &it.key());
    bytes += it.key().size();
  }
  if (bytes > std::numeric_limits<uint32_t>::max())
    return Status::unsupported("vocab: more than 4 GiB of pieces");
  // Where two pieces share an id, decoding gives the first by its spelling.
  std::sort(pieces.begin(), pieces.end(), [](const auto &a, const auto &b) {
    return a.first != b.first ? a.first < b.first : *a.second < *b.second;
  });
  vocabulary.reserve(pieces.size(), bytes);
  for (auto [id, piece] : pieces)
    vocabulary.add(*piece, id);
  return Status::success();
}

static Status parseMerges(const Json &model, const Vocabulary &vocabulary,
                          MergeTable &merges) {
  LLM_ASSIGN_OR_RETURN(std::string prefix,
                       json::getString(model, "continuing_subword_prefix", ""));
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
    std::optional<int32_t> leftId = vocabulary.find(left),
                           rightId = vocabulary.find(right),
                           result = vocabulary.find(joined);
    if (!leftId || !rightId || !result)
      return invalid(" ('" + std::string(left) + "', '" + std::string(right) +
                     "') has a piece that the vocabulary lacks");
    merges.set({*leftId, *rightId, rank, *result});
    ++rank;
  }
  return Status::success();
}

Expected<BPETables> BPETables::parse(const Json &model) {
  BPETables tables;
  LLM_RETURN_IF_ERROR(parseVocabulary(model, tables.vocabulary));
  LLM_RETURN_IF_ERROR(parseMerges(model, tables.vocabulary, tables.merges));
  return tables;
}

//===----------------------------------------------------------------------===//
// Packed
//===----------------------------------------------------------------------===//

static constexpr size_t countsBytes = 2 * sizeof(uint32_t);
static constexpr size_t pieceBytes = 2 * sizeof(uint32_t);
static constexpr size_t mergeBytes = 3 * sizeof(uint32_t);

std::vector<uint8_t> BPETables::pack() const {
  std::vector<uint8_t> bytes;
  auto put = [&](uint32_t value) {
    const auto *from = reinterpret_cast<const uint8_t *>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(value));
  };
  auto pieces = static_cast<uint32_t>(vocabulary.size());
  put(pieces);
  put(static_cast<uint32_t>(merges.size()));
  for (uint32_t i = 0; i < pieces; ++i)
    put(static_cast<uint32_t>(vocabulary.idOf(i)));
  size_t end = 0;
  for (uint32_t i = 0; i < pieces; ++i)
    put(static_cast<uint32_t>(end += vocabulary.pieceOf(i).size()));
  for (const MergeTable::Merge &merge : merges.sorted())
    for (int32_t id : {merge.left, merge.right, merge.result})
      put(static_cast<uint32_t>(id));
  for (uint32_t i = 0; i < pieces; ++i) {
    std::string_view piece = vocabulary.pieceOf(i);
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  return bytes;
}

namespace {
/// Packed tables: spans of the bytes, whose lengths have been checked.
class PackedTables {
public:
  static Expected<PackedTables> split(std::span<const uint8_t> bytes) {
    PackedTables packed;
    if (bytes.size() < countsBytes)
      return Status::invalidInput("the tables are cut off");
    packed.bytes = bytes;
    packed.pieces = packed.word(0);
    packed.merges = packed.word(1);
    // 32-bit counts: no product overflows.
    uint64_t fixed = countsBytes + uint64_t(packed.pieces) * pieceBytes +
                     uint64_t(packed.merges) * mergeBytes;
    if (fixed > bytes.size())
      return Status::invalidInput(
          std::to_string(packed.pieces) + " pieces and " +
          std::to_string(packed.merges) + " merges do not lie in the " +
          std::to_string(bytes.size()) + " bytes of the tables");
    std::span<const uint8_t> rest = bytes.subspan(fixed);
    packed.text = {reinterpret_cast<const char *>(rest.data()), rest.size()};
    return packed;
  }

  uint32_t id(uint32_t piece) const { return word(2 + uint64_t(piece)); }
  uint32_t end(uint32_t piece) const {
    return word(2 + uint64_t(pieces) + piece);
  }
  uint32_t merge(uint32_t rank, uint32_t part) const {
    return word(2 + 2 * uint64_t(pieces) + 3 * uint64_t(rank) + part);
  }

  uint32_t pieces = 0, merges = 0;
  std::string_view text;

private:
  uint32_t word(uint64_t index) const {
    uint32_t value;
    std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
    return value;
  }
  std::span<const uint8_t> bytes;
};

Status unpackVocabulary(const PackedTables &packed, Vocabulary &vocabulary) {
  std::string_view text = packed.text;
  if (!unicode::isValid(text))
    return Status::invalidInput("the pieces are not UTF-8");
  vocabulary.reserve(packed.pieces, text.size());
  uint32_t begin = 0, last = 0;
  for (uint32_t i = 0; i < packed.pieces; ++i) {
    auto invalid = [&](const char *why) {
      return Status::invalidInput("piece " + std::to_string(i) + why);
    };
    uint32_t end = packed.end(i), id = packed.id(i);
    if (end < begin || end > text.size())
      return invalid(" does not lie in the text");
    if (end < text.size() && (text[end] & 0xC0) == 0x80)
      return invalid(" ends inside a character");
    if (id < last || id >= uint32_t(std::numeric_limits<int32_t>::max()))
      return invalid(": its id is out of order or no token id");
    if (!vocabulary.add(text.substr(begin, end - begin),
                        static_cast<int32_t>(id)))
      return invalid(" is there twice");
    begin = end;
    last = id;
  }
  if (begin != text.size())
    return Status::invalidInput("there is text after the last piece");
  return Status::success();
}

Status unpackMerges(const PackedTables &packed, const Vocabulary &vocabulary,
                    MergeTable &merges) {
  merges.reserve(packed.merges);
  for (uint32_t rank = 0; rank < packed.merges; ++rank) {
    int32_t ids[3];
    for (uint32_t part = 0; part < 3; ++part) {
      ids[part] = static_cast<int32_t>(packed.merge(rank, part));
      if (!vocabulary.piece(ids[part]))
        return Status::invalidInput("merge " + std::to_string(rank) +
                                    " has an id without a piece");
    }
    if (!merges.set({ids[0], ids[1], static_cast<int32_t>(rank), ids[2]}))
      return Status::invalidInput("merge " + std::to_string(rank) +
                                  " is there twice");
  }
  return Status::success();
}
} // namespace

Expected<BPETables> BPETables::unpack(std::span<const uint8_t> bytes) {
  LLM_ASSIGN_OR_RETURN(PackedTables packed, PackedTables::split(bytes));
  BPETables tables;
  LLM_RETURN_IF_ERROR(unpackVocabulary(packed, tables.vocabulary));
  LLM_RETURN_IF_ERROR(unpackMerges(packed, tables.vocabulary, tables.merges));
  return tables;
}

} // namespace llm::runtime
