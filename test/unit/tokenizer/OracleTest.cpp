//===- OracleTest.cpp - against other tokenizers --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Everything here is compared with what other implementations say.

#include "TestData.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace llm::runtime;
using nlohmann::json;

namespace {

std::string decodeByStream(const Tokenizer &tokenizer,
                           const std::vector<int32_t> &ids,
                           DecodeOptions options) {
  DecodeStream stream(tokenizer, options);
  std::string text;
  for (int32_t id : ids)
    text += stream.push(id).value();
  text += stream.flush().value();
  return text;
}

/// A run of byte pieces that is not UTF-8: the one place where a stream differs
/// from a complete text.
bool mayDiffer(std::string_view text) {
  return text.find("\xEF\xBF\xBD") != std::string_view::npos;
}

void checkCase(const Tokenizer &tokenizer, json entry) {
  // What is left out is as the earlier one.
  for (auto [key, other] :
       {std::pair("parsed", "ids"), std::pair("plain", "parsed"),
        std::pair("decode", "ids"), std::pair("skipped", "shown")})
    if (!entry.contains(key))
      entry[key] = entry[other];
  auto text = entry["text"].get<std::string>();
  auto ids = [&](const char *key) {
    return entry[key].get<std::vector<int32_t>>();
  };
  auto encoded = tokenizer.encode(text, {true, true});
  ASSERT_TRUE(encoded.ok()) << encoded.status().toString();
  EXPECT_EQ(*encoded, ids("ids")) << text;
  EXPECT_EQ(*tokenizer.encode(text, {false, true}), ids("parsed")) << text;
  EXPECT_EQ(*tokenizer.encode(text, {false, false}), ids("plain")) << text;
  for (bool skip : {false, true}) {
    auto shown = entry[skip ? "skipped" : "shown"].get<std::string>();
    DecodeOptions options{skip, false};
    EXPECT_EQ(*tokenizer.decode(ids("decode"), options), shown);
    if (!mayDiffer(shown))
      EXPECT_EQ(decodeByStream(tokenizer, ids("decode"), options), shown);
  }
}

void checkVectors(const std::string &path) {
  json document = json::parse(test::readFile(path));
  ASSERT_FALSE(document["entries"].empty());
  for (const json &entry : document["entries"]) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    std::string bytes;
    if (entry.contains("file")) {
      bytes = test::readFile(entry["file"].get<std::string>());
    } else {
      json tokenizer = entry["tokenizer"];
      tokenizer["model"] = document["models"][entry["model"].get<size_t>()];
      bytes = tokenizer.dump();
    }
    auto tokenizer = test::load(TokenizerKind::HuggingFace, bytes);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().toString();
    for (const json &one : entry["cases"])
      checkCase(**tokenizer, one);
    auto sealed = test::loadSealed(TokenizerKind::HuggingFace, bytes);
    ASSERT_TRUE(sealed.ok()) << sealed.status().toString();
    for (const json &one : entry["cases"])
      checkCase(**sealed, one);
  }
}

/// Made by make_vectors.py from the `tokenizers` library.
TEST(TokenizerOracle, Vectors) {
  checkVectors(test::sourcePath("vectors.json"));
}

TEST(TokenizerOracle, FurtherVectors) {
  const char *paths = std::getenv("LLM_TOKENIZER_VECTORS");
  if (!paths)
    GTEST_SKIP() << "LLM_TOKENIZER_VECTORS is not set";
  std::istringstream list(paths);
  for (std::string path; std::getline(list, path, ':');)
    checkVectors(path);
}

//===----------------------------------------------------------------------===//
// Published tokenizers, where the reference data are there
//===----------------------------------------------------------------------===//

class SharedData : public testing::Test {
protected:
  void SetUp() override {
    if (test::sharedData().empty())
      GTEST_SKIP() << "no reference data (LLM_SHARED_DATA)";
  }
  static std::string read(const std::string &name) {
    return test::readFile(test::sharedData() + "/" + name);
  }
  static std::unique_ptr<Tokenizer> load(TokenizerKind kind,
                                         const std::string &name) {
    auto tokenizer = test::load(kind, read(name));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().toString();
    return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
  }
};

std::vector<int32_t> parseIds(const std::string &line) {
  std::istringstream in(line);
  std::vector<int32_t> ids;
  for (int32_t id; in >> id;)
    ids.push_back(id);
  return ids;
}

/// llama.cpp's vocabulary tests: texts between marker lines, ids by line.
void checkLlamaCpp(const Tokenizer &tokenizer, const std::string &inputs,
                   const std::string &outputs) {
  const std::string marker = "\n__ggml_vocab_test__\n";
  std::istringstream lines(outputs);
  size_t from = 0, count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    size_t end = inputs.find(marker, from);
    ASSERT_NE(end, std::string::npos);
    std::string text = inputs.substr(from, end - from);
    EXPECT_EQ(*tokenizer.encode(text, {false, false}), parseIds(line)) << text;
    from = end + marker.size();
  }
  EXPECT_GT(count, 40u);
}

TEST_F(SharedData, LlamaCppGpt2) {
  auto tokenizer =
      load(TokenizerKind::HuggingFace, "tokenizers/rten-gpt2/tokenizer.json");
  ASSERT_TRUE(tokenizer);
  checkLlamaCpp(*tokenizer,
                read("tokenizers/llama.cpp/ggml-vocab-gpt-2.gguf.inp"),
                read("tokenizers/llama.cpp/ggml-vocab-gpt-2.gguf.out"));
}

TEST_F(SharedData, LlamaCppPhi3) {
  auto tokenizer =
      load(TokenizerKind::HuggingFace, "tokenizers/phi-3/tokenizer.json");
  ASSERT_TRUE(tokenizer);
  checkLlamaCpp(*tokenizer,
                read("tokenizers/llama.cpp/ggml-vocab-phi-3.gguf.inp"),
                read("tokenizers/llama.cpp/ggml-vocab-phi-3.gguf.out"));
}

TEST_F(SharedData, RtenGpt2) {
  auto tokenizer =
      load(TokenizerKind::HuggingFace, "tokenizers/rten-gpt2/tokenizer.json");
  ASSERT_TRUE(tokenizer);
  std::string text = read("tokenizers/rten-gpt2/monty-python-credits.txt");
  json reference =
      json::parse(read("tokenizers/rten-gpt2/monty-python-credits-gpt2.json"));
  auto expected = reference["token_ids"].get<std::vector<int32_t>>();
  auto ids = tokenizer->encode(text);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, expected);
  EXPECT_EQ(*tokenizer->decode(*ids), text);
}

/// Sealing changes nothing: pieces, ids, and the ids of real text.
TEST_F(SharedData, SealedAsTheFile) {
  for (auto [kind, name] :
       {std::pair(TokenizerKind::HuggingFace, "tokenizers/rten-gpt2/"
                                              "tokenizer.json"),
        std::pair(TokenizerKind::HuggingFace, "tokenizers/phi-3/"
                                              "tokenizer.json"),
        std::pair(TokenizerKind::Llama2c, "stories260K/tok512.bin")}) {
    SCOPED_TRACE(name);
    auto plain = load(kind, name);
    auto sealed = test::loadSealed(kind, read(name));
    ASSERT_TRUE(plain);
    ASSERT_TRUE(sealed.ok()) << sealed.status().toString();
    ASSERT_EQ((*sealed)->vocabSize(), plain->vocabSize());
    for (int32_t id = 0; id <= plain->vocabSize(); ++id) {
      std::optional<std::string> piece = plain->piece(id);
      ASSERT_EQ((*sealed)->piece(id), piece) << id;
      if (piece) {
        ASSERT_EQ((*sealed)->id(*piece), plain->id(*piece)) << id;
      }
    }
    for (const char *text : {"text/tinystories_sample.txt",
                             "tokenizers/llama.cpp/ggml-vocab-gpt-2.gguf.inp",
                             "tokenizers/rten-gpt2/monty-python-credits.txt"}) {
      auto ids = plain->encode(read(text));
      ASSERT_TRUE(ids.ok()) << ids.status().toString();
      EXPECT_EQ(*(*sealed)->encode(read(text)), *ids) << text;
    }
  }
}

std::string unescape(std::string text) {
  for (auto [from, to] : {std::pair("\\n", "\n"), std::pair("\\t", "\t")})
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, 2, to);
  return text;
}

/// Lines "TEXT<tab>IDS" written by llama2.c's own encoder.
void checkVectorLines(const Tokenizer &tokenizer, const std::string &lines,
                      bool addBos) {
  std::istringstream in(lines);
  size_t count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    std::string text = unescape(line.substr(0, tab));
    std::vector<int32_t> expected = parseIds(line.substr(tab + 1));
    if (!addBos)
      expected.erase(expected.begin());
    auto ids = tokenizer.encode(text);
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, expected) << text;
    EXPECT_EQ(*tokenizer.decode(*ids), text);
    EXPECT_EQ(decodeByStream(tokenizer, *ids, {}), text);
  }
  EXPECT_EQ(count, 20u);
}

TEST_F(SharedData, Llama2cVectors) {
  auto tokenizer = load(TokenizerKind::Llama2c, "stories260K/tok512.bin");
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->vocabSize(), 512);
  EXPECT_TRUE(tokenizer->addsBos());
  checkVectorLines(*tokenizer, read("golden/tok512_vectors.tsv"), true);
}

/// The text of Llama 2's vectors in its vocabulary, which phi-3 shares.
TEST_F(SharedData, Llama2Vectors) {
  auto tokenizer =
      load(TokenizerKind::HuggingFace, "tokenizers/phi-3/tokenizer.json");
  ASSERT_TRUE(tokenizer);
  EXPECT_FALSE(tokenizer->addsBos());
  checkVectorLines(*tokenizer, read("golden/llama2_tokenizer_vectors.tsv"),
                   false);
}

TEST_F(SharedData, TinyStories) {
  auto tokenizer = load(TokenizerKind::Llama2c, "stories260K/tok512.bin");
  ASSERT_TRUE(tokenizer);
  std::string text = read("text/tinystories_sample.txt");
  std::istringstream golden(read("golden/tinystories_sample.tok512.txt"));
  const std::string separator = "<|endoftext|>";
  size_t from = 0, count = 0;
  for (std::string line; std::getline(golden, line); ++count) {
    size_t end = std::min(text.find(separator, from), text.size());
    std::string story = text.substr(from, end - from);
    story.erase(0, story.find_first_not_of(" \n"));
    story.erase(story.find_last_not_of(" \n") + 1);
    from = std::min(end + separator.size(), text.size());
    auto ids = tokenizer->encode(story);
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, parseIds(line));
    EXPECT_EQ(*tokenizer->decode(*ids), story);
  }
  EXPECT_EQ(count, 5u);
}

} // namespace
