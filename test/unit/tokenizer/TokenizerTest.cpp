//===- TokenizerTest.cpp - tokenizers alone -------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/Tokenizer.h"
#include "TestData.h"
#include "runtime/tokenizer/Regex.h"
#include "runtime/tokenizer/Unicode.h"

#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

using namespace llm::runtime;
using nlohmann::json;

namespace {

//===----------------------------------------------------------------------===//
// tokenizer.bin
//===----------------------------------------------------------------------===//

struct Piece {
  std::string text;
  float score;
};

/// The special tokens, the bytes, and then `extra`.
std::vector<Piece> piecesWith(std::vector<Piece> extra) {
  std::vector<Piece> pieces = {{"<unk>", 0}, {"\n<s>\n", 0}, {"\n</s>\n", 0}};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    pieces.push_back({text, 0});
  }
  pieces.insert(pieces.end(), extra.begin(), extra.end());
  return pieces;
}

std::string binFile(const std::vector<Piece> &pieces) {
  std::string file;
  auto put = [&](auto value) {
    file.append(reinterpret_cast<const char *>(&value), sizeof(value));
  };
  int32_t longest = 0;
  for (const Piece &piece : pieces)
    longest = std::max(longest, static_cast<int32_t>(piece.text.size()));
  put(longest);
  for (const Piece &piece : pieces) {
    put(piece.score);
    put(static_cast<int32_t>(piece.text.size()));
    file += piece.text;
  }
  return file;
}

std::unique_ptr<Tokenizer> llama2c(const std::vector<Piece> &pieces,
                                   const TokenizerConfig &config = {}) {
  auto tokenizer = test::load(TokenizerKind::Llama2c, binFile(pieces), config);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().toString();
  return *std::move(tokenizer);
}

/// Merges as llama2.c does: looks through all pairs for the best, again and
/// again.
std::vector<int32_t> mergeSlowly(const std::vector<Piece> &pieces,
                                 std::vector<int32_t> ids) {
  for (;;) {
    float best = -1e10F;
    size_t at = ids.size();
    int32_t result = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      std::string joined = pieces[static_cast<size_t>(ids[i])].text +
                           pieces[static_cast<size_t>(ids[i + 1])].text;
      for (size_t id = 0; id < pieces.size(); ++id) {
        if (pieces[id].text != joined || !(pieces[id].score > best))
          continue;
        best = pieces[id].score;
        at = i;
        result = static_cast<int32_t>(id);
      }
    }
    if (at == ids.size())
      return ids;
    ids[at] = result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(Llama2c, MergesLikeTheExhaustiveSearch) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    std::vector<Piece> extra = {{" ", -1}, {"a", -2}, {"b", -3}, {"c", -4}};
    for (int i = 0; i < 25; ++i) {
      std::string text;
      for (size_t n = 2 + random() % 3; n > 0; --n)
        text += " abc"[random() % 4];
      bool known = false;
      for (const Piece &piece : extra)
        known |= piece.text == text;
      // Few different scores, so that ties are common.
      if (!known)
        extra.push_back({text, -static_cast<float>(random() % 5)});
    }
    std::vector<Piece> pieces = piecesWith(extra);
    auto tokenizer = llama2c(pieces);
    std::string text;
    std::vector<int32_t> ids = {259};
    for (int i = 0; i < 40; ++i) {
      text += " abc"[random() % 4];
      ids.push_back(*tokenizer->id(text.substr(text.size() - 1)));
    }
    EXPECT_EQ(*tokenizer->encode(text, {false, false}),
              mergeSlowly(pieces, ids))
        << text;
  }
}

TEST(Llama2c, BytesAndSpecialTokens) {
  auto tokenizer = llama2c(piecesWith({{" ", -1}, {"é", -2}, {" é", -3}}));
  EXPECT_EQ(*tokenizer->encode("é\xFF"), (std::vector<int32_t>{1, 261, 258}));
  EXPECT_EQ(*tokenizer->encode(""), (std::vector<int32_t>{1}));
  EXPECT_EQ(*tokenizer->encode("", {false, false}), (std::vector<int32_t>{}));
  // Spelling a special token does not give one.
  for (int32_t id : *tokenizer->encode("\n<s>\n", {false, true}))
    EXPECT_FALSE(tokenizer->isSpecial(id));
  EXPECT_EQ(tokenizer->eosIds(), (std::vector<int32_t>{1, 2}));

  // The leading space goes at the start of a text, and only there.
  std::vector<int32_t> ids = {1, 261, 261};
  EXPECT_EQ(*tokenizer->decode(ids), "é é");
  EXPECT_EQ(*tokenizer->decode(std::vector<int32_t>{261}), "é");
  EXPECT_EQ(*tokenizer->decode(std::vector<int32_t>{261}, {true, true}), " é");
  // A lone byte of a character, then one that completes nothing.
  EXPECT_EQ(*tokenizer->decode(std::vector<int32_t>{3 + 0xC3, 3 + 'x'}),
            "\xEF\xBF\xBDx");
  EXPECT_EQ(*tokenizer->decode(std::vector<int32_t>{-1, 9999, 3 + 'x'}), "x");
}

TEST(Llama2c, StreamsNeverSplitACharacter) {
  auto tokenizer = llama2c(piecesWith({{" ", -1}}));
  DecodeStream stream(*tokenizer, {true, true});
  std::vector<std::string> parts;
  for (unsigned char byte : std::string("\xF0\x9F\x99\x82\xC3\xA9\xE6"))
    parts.push_back(stream.push(3 + byte).value());
  EXPECT_EQ(parts, (std::vector<std::string>{"", "", "", "🙂", "", "é", ""}));
  EXPECT_EQ(stream.flush().value(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.flush().value(), "");
}

TEST(Llama2c, RefusesDamagedFiles) {
  std::string file = binFile(piecesWith({{" ", -1}, {"ab", -2}}));
  // Without the number of pieces a file may end after any of them.
  TokenizerConfig counted;
  counted.vocabSize = 261;
  EXPECT_TRUE(test::load(TokenizerKind::Llama2c, file, counted).ok());
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(
        test::load(TokenizerKind::Llama2c, file.substr(0, size), counted).ok())
        << size;
  auto status = [](std::string bytes, const TokenizerConfig &config = {}) {
    return test::load(TokenizerKind::Llama2c, bytes, config).status().message();
  };
  std::string longer = file;
  int32_t huge = 0x7FFFFFFF;
  std::memcpy(longer.data() + 8, &huge, 4);
  EXPECT_NE(status(longer).find("piece 0: a length of 2147483647 bytes"),
            std::string::npos);
  std::string score = file;
  std::memset(score.data() + 4, 0xFF, 4);
  EXPECT_NE(status(score).find("its score is not a number"), std::string::npos);
  TokenizerConfig config;
  config.vocabSize = 260;
  EXPECT_NE(status(file, config).find("it goes on after 260 pieces"),
            std::string::npos);
  config.vocabSize = 2000000000;
  EXPECT_NE(status(file, config).find("the file ends"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// tokenizer.json
//===----------------------------------------------------------------------===//

json smallTokenizer() {
  return json::parse(R"({
    "added_tokens": [{"id": 5, "content": "<e>", "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null,
    "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "aa": 3,
              "aaaa": 4}, "merges": ["a b", ["a", "a"], "aa aa"]}})");
}

std::string failure(const json &document) {
  return test::load(TokenizerKind::HuggingFace, document.dump())
      .status()
      .toString();
}

TEST(HuggingFace, NamesWhatItDoesNotSupport) {
  auto with = [&](const char *key, const char *type) {
    json document = smallTokenizer();
    document[key] = {{"type", type}};
    return failure(document);
  };
  EXPECT_EQ(with("normalizer", "Precompiled"),
            "unsupported: tokenizer.json: normalizer: normalizer "
            "'Precompiled'");
  EXPECT_EQ(with("pre_tokenizer", "UnicodeScripts"),
            "unsupported: tokenizer.json: pre_tokenizer: pre-tokenizer "
            "'UnicodeScripts'");
  EXPECT_EQ(with("post_processor", "X"),
            "unsupported: tokenizer.json: post_processor: post-processor 'X'");
  EXPECT_EQ(with("decoder", "CTC"),
            "unsupported: tokenizer.json: decoder: decoder 'CTC'");
  EXPECT_EQ(with("model", "Unigram"),
            "unsupported: tokenizer.json: model 'Unigram'");
}

TEST(HuggingFace, RefusesDamagedFiles) {
  std::string text = smallTokenizer().dump();
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(
        test::load(TokenizerKind::HuggingFace, text.substr(0, size)).ok());
  EXPECT_FALSE(
      test::load(TokenizerKind::HuggingFace, std::string(1 << 20, '[')).ok());
  json document = smallTokenizer();
  document["model"]["merges"] = {"a z"};
  EXPECT_NE(failure(document).find("merges[0] ('a', 'z') has a piece that the "
                                   "vocabulary lacks"),
            std::string::npos);
  document = smallTokenizer();
  document["model"]["vocab"]["a"] = 4294967296;
  EXPECT_NE(failure(document).find("the id of 'a' is not a token id"),
            std::string::npos);
  document = smallTokenizer();
  document["model"]["unk_token"] = "?";
  EXPECT_NE(failure(document).find("unk_token '?' is not in the vocabulary"),
            std::string::npos);
}

/// `count` times `component` as the sequence that the member `key` of
/// smallTokenizer() becomes.
json withSequence(const char *key, const char *parts, int count,
                  const json &component) {
  json document = smallTokenizer();
  document[key] = {{"type", "Sequence"}, {parts, json::array()}};
  for (int i = 0; i < count; ++i)
    document[key][parts].push_back(component);
  return document;
}

TEST(HuggingFace, BoundsWhatAFileAsksFor) {
  const json doubles = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  // Each stage of a decoder calls the next one.
  for (auto [key, parts] : {std::pair{"normalizer", "normalizers"},
                            {"pre_tokenizer", "pretokenizers"},
                            {"decoder", "decoders"}})
    EXPECT_NE(failure(withSequence(key, parts, 100000, {{"type", "ByteLevel"}}))
                  .find("more than 64 components"),
              std::string::npos);
  EXPECT_NE(failure(withSequence("decoder", "decoders", 45, doubles))
                .find("times as long"),
            std::string::npos);
  EXPECT_NE(failure(withSequence("decoder", "decoders", 45,
                                 {{"type", "Replace"},
                                  {"pattern", {{"Regex", "b*"}}},
                                  {"content", "a"}}))
                .find("times as long"),
            std::string::npos);

  auto refuses = [](const json &document, std::string text) {
    auto tokenizer = test::load(TokenizerKind::HuggingFace, document.dump());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().toString();
    auto ids = (*tokenizer)->encode(text);
    ASSERT_FALSE(ids.ok());
    EXPECT_NE(ids.status().message().find("bytes of a text of"),
              std::string::npos);
  };
  refuses(withSequence("normalizer", "normalizers", 45, doubles), "a");
  refuses(
      withSequence("normalizer", "normalizers", 60, {{"type", "ByteLevel"}}),
      "é");
  refuses(withSequence("pre_tokenizer", "pretokenizers", 45,
                       {{"type", "Metaspace"},
                        {"replacement", "  "},
                        {"prepend_scheme", "always"},
                        {"split", false}}),
          "a b");
  json wide = withSequence("normalizer", "normalizers", 1, doubles);
  wide["normalizer"]["normalizers"][0]["content"] = std::string(1 << 20, 'b');
  refuses(wide, std::string(1 << 20, 'a'));
  // What real ones do stays.
  auto four =
      test::load(TokenizerKind::HuggingFace,
                 withSequence("normalizer", "normalizers", 2, doubles).dump());
  ASSERT_TRUE(four.ok());
  EXPECT_EQ(*(*four)->encode("a"), (std::vector<int32_t>{4}));
}

TEST(HuggingFace, SpecialTokensNeedTrust) {
  auto tokenizer =
      test::load(TokenizerKind::HuggingFace, smallTokenizer().dump());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().toString();
  EXPECT_EQ(*(*tokenizer)->encode("ab<e>", {true, true}),
            (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(*(*tokenizer)->encode("ab<e>"), (std::vector<int32_t>{2}));
  // Spans are one text: pairs merge across them, tokens do not form.
  std::vector<TextSpan> spans = {
      {"a", false}, {"b<", true}, {"e>", false}, {"<e>", true}};
  EXPECT_EQ(*(*tokenizer)->encode(spans, false), (std::vector<int32_t>{2, 5}));
}

TEST(HuggingFace, LongWordsTakeNoSquareTime) {
  auto tokenizer =
      test::load(TokenizerKind::HuggingFace, smallTokenizer().dump());
  ASSERT_TRUE(tokenizer.ok());
  size_t length = size_t{1} << 20;
  auto start = std::chrono::steady_clock::now();
  auto ids = (*tokenizer)->encode(std::string(length, 'a'));
  std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, std::vector<int32_t>(length / 4, 4));
  // A square of it would be hours.
  EXPECT_LT(spent.count(), 60);
}

//===----------------------------------------------------------------------===//
// Regular expressions and Unicode
//===----------------------------------------------------------------------===//

TEST(Regex, HostilePatternsEnd) {
  std::string text(200000, 'a');
  for (const char *pattern :
       {"(a+)+b", "(?:a|a)*b", "(a|aa)+$b", "a*a*a*a*a*b", "(?=(a+))\\1b"}) {
    auto regex = Regex::compile(pattern);
    ASSERT_TRUE(regex.ok()) << regex.status().toString();
    auto matches = regex->findAll(text);
    if (!matches.ok())
      EXPECT_EQ(matches.status().code(), StatusCode::Resource) << pattern;
    else
      EXPECT_TRUE(matches->empty()) << pattern;
  }
  EXPECT_FALSE(Regex::compile("(?:a{9999}){9999}").ok());
  EXPECT_FALSE(Regex::compile(std::string(1 << 20, '(')).ok());
  EXPECT_EQ(Regex::compile("(?~a)").status().code(), StatusCode::Unsupported);
}

TEST(Regex, LongMatches) {
  std::string text(size_t{1} << 20, 'a');
  auto regex = Regex::compile(R"(\p{L}+|\s+(?!\S)|\s+)");
  ASSERT_TRUE(regex.ok());
  auto matches = regex->findAll(text);
  ASSERT_TRUE(matches.ok()) << matches.status().toString();
  ASSERT_EQ(matches->size(), 1u);
  EXPECT_EQ(matches->front().end, text.size());
}

TEST(Unicode, InvalidBytesByMaximalSubpart) {
  // The examples of Unicode 15, tables 3-8 to 3-11.
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(unicode::toValid("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(unicode::toValid("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(unicode::toValid("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(unicode::toValid("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"),
            r + r + r + r + "A");
}

TEST(Unicode, NormalisesLongRunsOfMarks) {
  // Marks in descending order of class: an insertion sort would take hours.
  std::string text = "a";
  for (int i = 0; i < 200000; ++i)
    text += "\xCC\x81"; // U+0301, class 230
  for (int i = 0; i < 200000; ++i)
    text += "\xCC\xA3"; // U+0323, class 220
  std::string normal = unicode::normalize(text, unicode::Form::NFD);
  EXPECT_EQ(normal.size(), text.size());
  EXPECT_EQ(normal.substr(0, 5), "a\xCC\xA3\xCC\xA3");
  EXPECT_TRUE(normal.ends_with("\xCC\x81\xCC\x81"));
}

} // namespace
