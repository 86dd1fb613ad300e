//===- TokenizerSourceTest.cpp - files and sealing ------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/TokenizerSource.h"
#include "TestData.h"

#include <gtest/gtest.h>

using namespace llm::runtime;
namespace fs = std::filesystem;

namespace {

constexpr const char *tokenizerJson = R"({
  "version": "1.0", "truncation": null,
  "added_tokens": [
    {"id": 3, "content": "<s>", "special": true},
    {"id": 4, "content": "</s>", "special": true},
    {"id": 5, "content": "<|end|>", "special": true}],
  "normalizer": null, "pre_tokenizer": null, "decoder": {"type": "Fuse"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
            "merges": ["a b"]}})";

class TokenizerSourceTest : public testing::Test {
protected:
  void SetUp() override {
    const auto *info = testing::UnitTest::GetInstance()->current_test_info();
    root = fs::path(testing::TempDir()) /
           (std::string("llm-tokenizer-source-") + info->name());
    fs::remove_all(root);
    fs::create_directories(root / "onnx");
  }
  void TearDown() override { fs::remove_all(root); }

  void write(const std::string &name, std::string_view text) {
    std::ofstream(root / name, std::ios::binary) << text;
  }
  std::string path(const std::string &name) { return (root / name).string(); }

  fs::path root;
};

TEST_F(TokenizerSourceTest, NoneFound) {
  write("onnx/model.onnx", "");
  auto source = findTokenizer(path("onnx/model.onnx"));
  ASSERT_TRUE(source.ok()) << source.status().toString();
  EXPECT_FALSE(source->has_value());
  auto named = readTokenizer(path("onnx"));
  EXPECT_EQ(named.status().code(), StatusCode::InvalidInput);
  EXPECT_NE(named.status().message().find("neither tokenizer.json nor"),
            std::string::npos);
}

TEST_F(TokenizerSourceTest, BesideOrAboveTheModel) {
  write("tokenizer.json", tokenizerJson);
  for (std::string model : {"onnx/model.onnx", "model.onnx", "onnx", "onnx/"}) {
    auto source = findTokenizer(path(model));
    ASSERT_TRUE(source.ok()) << source.status().toString();
    ASSERT_TRUE(source->has_value()) << model;
    EXPECT_EQ((*source)->kind, TokenizerKind::HuggingFace);
  }
}

TEST_F(TokenizerSourceTest, CollectsTheConfiguration) {
  write("tokenizer.json", tokenizerJson);
  write("tokenizer_config.json",
        R"({"add_bos_token": true, "eos_token": {"content": "<|end|>"},
            "chat_template": [{"name": "rag", "template": "no"},
                              {"name": "default", "template": "{{ x }}"}]})");
  write("special_tokens_map.json", R"({"bos_token": "<s>"})");
  write("onnx/generation_config.json",
        R"({"eos_token_id": [4, 5], "temperature": 0.25, "top_k": 20,
            "do_sample": true})");
  write("onnx/config.json", R"({"bos_token_id": 2, "pad_token_id": 4})");
  write("onnx/genai_config.json",
        R"({"model": {"eos_token_id": 1, "bos_token_id": 0},
            "search": {"temperature": 2, "top_p": 0.5}})");
  auto found = findTokenizer(path("onnx/model.onnx"));
  ASSERT_TRUE(found.ok()) << found.status().toString();
  ASSERT_TRUE(found->has_value());
  const TokenizerConfig &config = (*found)->config;
  EXPECT_EQ(config.bosId, 3);
  EXPECT_EQ(config.padId, 4);
  EXPECT_EQ(config.eosIds, (std::vector<int32_t>{5, 4, 1}));
  EXPECT_EQ(config.addBos, true);
  EXPECT_EQ(config.chatTemplate, "{{ x }}");
  EXPECT_EQ(config.generation.temperature, 0.25);
  EXPECT_EQ(config.generation.topP, 0.5);
  EXPECT_EQ(config.generation.topK, 20);
  EXPECT_EQ(config.generation.doSample, true);
  EXPECT_EQ(config.generation.minP, std::nullopt);

  // A template file wins over the one in the configuration.
  write("chat_template.jinja", "{{ y }}");
  found = findTokenizer(path("onnx/model.onnx"));
  EXPECT_EQ((*found)->config.chatTemplate, "{{ y }}");

  auto tokenizer =
      Tokenizer::load((*found)->kind, (*found)->bytes, (*found)->config);
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_TRUE((*tokenizer)->addsBos());
  EXPECT_EQ(*(*tokenizer)->encode("ab"), (std::vector<int32_t>{3, 2}));
  EXPECT_TRUE((*tokenizer)->isEos(1));
  EXPECT_FALSE((*tokenizer)->isEos(3));
}

TEST_F(TokenizerSourceTest, FaultsNameTheFile) {
  write("tokenizer.json", "{");
  auto broken = readTokenizer(path("tokenizer.json"));
  EXPECT_EQ(broken.status().code(), StatusCode::InvalidInput);
  EXPECT_NE(broken.status().message().find("tokenizer.json: not JSON"),
            std::string::npos)
      << broken.status().message();

  write("tokenizer.json", tokenizerJson);
  write("config.json", "[]");
  auto config = readTokenizer(path("tokenizer.json"));
  EXPECT_NE(config.status().message().find("config.json: not a JSON object"),
            std::string::npos)
      << config.status().message();

  write("tokenizer.json", R"({"model": {"type": "Unigram"}})");
  auto unigram = readTokenizer(path("tokenizer.json"));
  EXPECT_EQ(unigram.status().code(), StatusCode::Unsupported);
  EXPECT_NE(unigram.status().message().find("model 'Unigram'"),
            std::string::npos);
}

TEST_F(TokenizerSourceTest, SealsAndUnseals) {
  write("tokenizer.json", tokenizerJson);
  write("generation_config.json", R"({"eos_token_id": 4, "top_p": 0.9})");
  write("chat_template.jinja", "{{ 'é' }}");
  auto source = readTokenizer(path("tokenizer.json"));
  ASSERT_TRUE(source.ok()) << source.status().toString();
  auto blob = sealTokenizer(*source);
  ASSERT_TRUE(blob.ok());
  EXPECT_EQ(*blob, *sealTokenizer(*source));
  auto opened = unsealTokenizer(*blob);
  ASSERT_TRUE(opened.ok()) << opened.status().toString();
  EXPECT_EQ(opened->kind, source->kind);
  std::string_view document(
      reinterpret_cast<const char *>(opened->tokenizer.data()),
      opened->tokenizer.size());
  EXPECT_EQ(document.find("vocab"), std::string_view::npos) << document;
  EXPECT_EQ(document.find("merges"), std::string_view::npos) << document;
  EXPECT_EQ(opened->config, source->config);
  auto tokenizer = loadSealedTokenizer(*blob);
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ(*(*tokenizer)->encode("ab"), (std::vector<int32_t>{2}));
  EXPECT_EQ((*tokenizer)->vocabSize(), 6);
}

/// What a seal cannot hold is refused when it is made, by the same names.
TEST_F(TokenizerSourceTest, SealingNamesFaults) {
  for (auto [model, message] :
       {std::pair(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})",
                  "tokenizer.json: model: vocab: the id of 'a'"),
        std::pair(R"({"vocab": {"a": 1}, "merges": ["a b"]})",
                  "tokenizer.json: model: merges[0]"),
        std::pair(R"({"type": "WordPiece"})", "model 'WordPiece'")}) {
    TokenizerSource source;
    std::string text = std::string(R"({"model": )") + model + "}";
    source.bytes.assign(text.begin(), text.end());
    auto sealed = sealTokenizer(source);
    ASSERT_FALSE(sealed.ok());
    EXPECT_NE(sealed.status().message().find(message), std::string::npos)
        << sealed.status().message();
  }
}

TEST_F(TokenizerSourceTest, RefusesDamagedSeals) {
  write("tokenizer.json", tokenizerJson);
  std::vector<uint8_t> blob =
      *sealTokenizer(*readTokenizer(path("tokenizer.json")));
  for (size_t size = 0; size < blob.size(); ++size)
    EXPECT_FALSE(unsealTokenizer(std::span(blob).first(size)).ok()) << size;
  std::vector<uint8_t> longer = blob;
  longer.push_back(0);
  EXPECT_FALSE(unsealTokenizer(longer).ok());
  // Lengths whose sum wraps around.
  std::vector<uint8_t> wraps = blob;
  std::fill(wraps.begin() + 16, wraps.begin() + 24, 0xFF);
  EXPECT_FALSE(unsealTokenizer(wraps).ok());
  wraps = blob;
  std::fill(wraps.begin() + 24, wraps.begin() + 32, 0xFF);
  EXPECT_FALSE(unsealTokenizer(wraps).ok());
  // The tables' own faults; VocabularyTest has them one by one.
  std::vector<uint8_t> tables = blob;
  tables.back() = 0x80;
  auto damaged = loadSealedTokenizer(tables);
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.status().message().find(
                "sealed tokenizer: model: the pieces are not UTF-8"),
            std::string::npos)
      << damaged.status().message();
  std::vector<uint8_t> kind = blob;
  kind[8] = 77;
  EXPECT_EQ(loadSealedTokenizer(kind).status().code(), StatusCode::Unsupported);
}

} // namespace
