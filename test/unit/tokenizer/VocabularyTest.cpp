//===- VocabularyTest.cpp - pieces and merges -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/Vocabulary.h"

#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

using namespace llm::runtime;

namespace {

TEST(Vocabulary, FindsWhatItHolds) {
  Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.find("a"), std::nullopt);
  EXPECT_EQ(vocabulary.piece(0), std::nullopt);
  EXPECT_EQ(vocabulary.endId(), 0);
  // More than it has room for at first, with gaps and shared ids.
  std::vector<std::pair<std::string, int32_t>> pieces;
  for (int i = 0; i < 1000; ++i)
    pieces.emplace_back("piece " + std::to_string(i), i < 10 ? i : 2 * (i / 3));
  pieces[7].first = "";
  pieces[8].first = std::string("a\0b", 3);
  for (auto &[piece, id] : pieces)
    EXPECT_TRUE(vocabulary.add(piece, id));
  EXPECT_FALSE(vocabulary.add("piece 3", 5000));
  EXPECT_EQ(vocabulary.size(), 1000u);
  EXPECT_EQ(vocabulary.endId(), 667);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto &[piece, id] = pieces[i];
    EXPECT_EQ(vocabulary.find(piece), id);
    EXPECT_EQ(vocabulary.number(piece), i);
    EXPECT_EQ(vocabulary.pieceOf(static_cast<uint32_t>(i)), piece);
    auto first = std::find_if(pieces.begin(), pieces.end(),
                              [&](auto &entry) { return entry.second == id; });
    EXPECT_EQ(vocabulary.piece(id), first->first);
  }
  EXPECT_EQ(vocabulary.find("piece"), std::nullopt);
  EXPECT_EQ(vocabulary.find("piece 1000"), std::nullopt);
  for (int32_t id : {-1, 11, 665, 667, INT32_MAX})
    EXPECT_EQ(vocabulary.piece(id), std::nullopt) << id;
}

TEST(MergeTable, TheLastMentionCounts) {
  MergeTable merges;
  EXPECT_EQ(merges.find(1, 2), nullptr);
  for (int32_t i = 0; i < 500; ++i)
    EXPECT_TRUE(merges.set({i % 20, i / 20, i, 1000 + i}));
  EXPECT_FALSE(merges.set({3, 0, 500, 7}));
  EXPECT_EQ(merges.size(), 500u);
  ASSERT_NE(merges.find(3, 0), nullptr);
  EXPECT_EQ(merges.find(3, 0)->rank, 500);
  EXPECT_EQ(merges.find(3, 0)->result, 7);
  ASSERT_NE(merges.find(19, 24), nullptr);
  EXPECT_EQ(merges.find(19, 24)->result, 1499);
  EXPECT_EQ(merges.find(20, 0), nullptr);
  EXPECT_EQ(merges.find(0, 25), nullptr);
  auto sorted = merges.sorted();
  ASSERT_EQ(sorted.size(), 500u);
  EXPECT_EQ(sorted.back().left, 3);
  EXPECT_EQ(sorted[3].left, 4);
}

//===----------------------------------------------------------------------===//
// Packed tables
//===----------------------------------------------------------------------===//

BPETables example() {
  auto model = nlohmann::json::parse(R"({
      "vocab": {"b": 1, "a": 0, "ab": 2, "é": 5, "aé": 5},
      "merges": ["a b", ["a", "é"], "a b"]})");
  auto tables = BPETables::parse(model);
  EXPECT_TRUE(tables.ok()) << tables.status().toString();
  return *std::move(tables);
}

TEST(PackedTables, HoldWhatTheFileHas) {
  std::vector<uint8_t> bytes = example().pack();
  EXPECT_EQ(bytes, example().pack());
  auto tables = BPETables::unpack(bytes);
  ASSERT_TRUE(tables.ok()) << tables.status().toString();
  const Vocabulary &vocabulary = tables->vocabulary;
  EXPECT_EQ(vocabulary.size(), 5u);
  EXPECT_EQ(vocabulary.find("ab"), 2);
  EXPECT_EQ(vocabulary.piece(5), "aé");
  EXPECT_EQ(vocabulary.find("é"), 5);
  EXPECT_EQ(vocabulary.piece(3), std::nullopt);
  // "a b" is mentioned twice: its rank is the last.
  ASSERT_EQ(tables->merges.size(), 2u);
  EXPECT_EQ(tables->merges.find(0, 5)->rank, 0);
  EXPECT_EQ(tables->merges.find(0, 1)->rank, 1);
  EXPECT_EQ(tables->merges.find(0, 1)->result, 2);
  EXPECT_EQ(tables->pack(), bytes);

  std::vector<uint8_t> none(8);
  EXPECT_TRUE(BPETables::unpack(none).ok());
}

/// The words of `example().pack()`, in front of its text.
enum Word { Pieces, Merges, Id = 2, End = Id + 5, Merge = End + 5, Text = 18 };

std::string refusal(const std::vector<uint8_t> &bytes) {
  auto tables = BPETables::unpack(bytes);
  return tables.ok() ? "" : tables.status().message();
}

std::string refusal(size_t word, uint32_t value) {
  std::vector<uint8_t> bytes = example().pack();
  std::memcpy(bytes.data() + 4 * word, &value, 4);
  return refusal(bytes);
}

TEST(PackedTables, AreRefusedWhereDamaged) {
  std::vector<uint8_t> whole = example().pack();
  ASSERT_EQ(whole.size(), Text * 4 + 9u);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal({whole.begin(), whole.begin() + ptrdiff_t(size)}), "")
        << size;
  std::vector<uint8_t> longer = whole;
  longer.push_back('x');
  EXPECT_EQ(refusal(longer), "there is text after the last piece");

  // Counts that no file of this size can have are refused before anything is
  // made for them.
  for (uint32_t count : {6u, 0x10000u, 0x20000000u, 0x80000000u, 0xFFFFFFFFu}) {
    EXPECT_NE(refusal(Pieces, count), "") << count;
    EXPECT_NE(refusal(Merges, count), "") << count;
  }
  std::vector<uint8_t> most(8, 0xFF);
  EXPECT_NE(refusal(most).find("4294967295 pieces and 4294967295 merges do not "
                               "lie in the 8 bytes"),
            std::string::npos);

  EXPECT_EQ(refusal(Id + 1, 9), "piece 2: its id is out of order or no token "
                                "id");
  EXPECT_EQ(refusal(Id + 4, 0x7FFFFFFF),
            "piece 4: its id is out of order or no token id");
  EXPECT_EQ(refusal(Id + 4, 0xFFFFFFFF),
            "piece 4: its id is out of order or no token id");

  // Pieces overlap, lie outside, cut a character.
  EXPECT_EQ(refusal(End + 1, 0), "piece 1 does not lie in the text");
  EXPECT_EQ(refusal(End + 0, 3), "piece 1 does not lie in the text");
  EXPECT_EQ(refusal(End + 4, 10), "piece 4 does not lie in the text");
  EXPECT_EQ(refusal(End + 4, 0xFFFFFFFF), "piece 4 does not lie in the text");
  EXPECT_EQ(refusal(End + 3, 6), "piece 3 ends inside a character");
  EXPECT_EQ(refusal(End + 4, 7), "there is text after the last piece");
  std::vector<uint8_t> twice = whole;
  twice[Text * 4 + 1] = 'a';
  EXPECT_EQ(refusal(twice), "piece 1 is there twice");
  std::vector<uint8_t> broken = whole;
  broken.back() = 'x';
  EXPECT_EQ(refusal(broken), "the pieces are not UTF-8");

  for (size_t part = 0; part < 6; ++part)
    for (uint32_t id : {3u, 6u, 0x80000000u, 0xFFFFFFFFu})
      EXPECT_EQ(refusal(Merge + part, id), "merge " + std::to_string(part / 3) +
                                               " has an id without a piece");
  std::vector<uint8_t> repeated = whole;
  std::memcpy(repeated.data() + 4 * (Merge + 3), repeated.data() + 4 * Merge,
              12);
  EXPECT_EQ(refusal(repeated), "merge 1 is there twice");
}

TEST(PackedTables, AnyBytesEnd) {
  std::vector<uint8_t> whole = example().pack();
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bytes = whole;
    for (uint32_t changes = 1 + random() % 4; changes; --changes)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    auto tables = BPETables::unpack(bytes);
    if (tables.ok()) {
      EXPECT_EQ(tables->pack(), bytes);
    }
  }
}

} // namespace
