//===- fuzz_tokenizer.cpp - hostile tokenizers, texts and templates -------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte says what the rest is: a tokenizer of either kind, followed by
// a NUL and a text for it, a chat template, a regular expression with a text,
// a sealed tokenizer, or the packed tables of one. Besides crashes and hangs it
// looks for decoded text that is not UTF-8, for streams that differ from whole
// texts, and for tables that packing does not give back.
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/ChatTemplate.h"
#include "runtime/tokenizer/Regex.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/TokenizerSource.h"
#include "runtime/tokenizer/Unicode.h"
#include "runtime/tokenizer/Vocabulary.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace llm::runtime;

static void require(bool condition, const char *what) {
  if (condition)
    return;
  std::fprintf(stderr, "fuzz_tokenizer: %s\n", what);
  std::abort();
}

static void useTokenizer(const Tokenizer &tokenizer, std::string_view text) {
  Expected<std::vector<int32_t>> ids = tokenizer.encode(text, {true, true});
  Expected<std::vector<int32_t>> plain = tokenizer.encode(text);
  if (!ids || !plain)
    return;
  for (int32_t id : *ids)
    (void)tokenizer.piece(id);
  for (bool skip : {false, true}) {
    Expected<std::string> whole = tokenizer.decode(*ids, {skip, false});
    if (!whole)
      continue;
    require(unicode::isValid(*whole), "decoded text is not UTF-8");
    DecodeStream stream(tokenizer, {skip, false});
    std::string parts;
    bool complete = true;
    for (int32_t id : *ids) {
      Expected<std::string> part = stream.push(id);
      complete &= part.ok();
      if (!part)
        break;
      require(unicode::isValid(*part), "a stream splits a character");
      parts += *part;
    }
    Expected<std::string> rest = stream.flush();
    if (complete && rest &&
        whole->find(unicode::replacementCharacter) == std::string::npos)
      require(parts + *rest == *whole, "a stream differs from the whole text");
  }
  if (Expected<ChatTemplate> chat = ChatTemplate::of(tokenizer)) {
    std::vector<ChatMessage> messages = {{"user", std::string(text)}};
    (void)chat->encode(tokenizer, messages, true);
  }
}

static void useTables(std::span<const uint8_t> bytes) {
  Expected<BPETables> tables = BPETables::unpack(bytes);
  if (!tables)
    return;
  std::vector<uint8_t> packed = tables->pack();
  require(std::equal(packed.begin(), packed.end(), bytes.begin(), bytes.end()),
          "packed tables are not what was unpacked");
}

static void useTemplate(std::string_view source) {
  Expected<ChatTemplate> chat = ChatTemplate::parse(source);
  if (!chat)
    return;
  std::vector<ChatMessage> messages = {
      {"system", "Be kind."}, {"user", "Hi <|im_end|>"}, {"assistant", "Ho"}};
  Expected<RenderedChat> text =
      chat->render(messages, {"<s>", "</s>", "", ""}, true);
  if (!text)
    return;
  size_t from = 0;
  for (ByteRange range : text->untrusted) {
    require(range.begin >= from && range.begin < range.end &&
                range.end <= text->text.size(),
            "untrusted ranges out of order");
    from = range.end;
  }
}

static void useRegex(std::string_view pattern, std::string_view text) {
  Expected<Regex> regex = Regex::compile(pattern);
  if (!regex)
    return;
  std::string valid = unicode::toValid(text);
  Expected<std::vector<ByteRange>> matches = regex->findAll(valid);
  if (!matches)
    return;
  size_t from = 0;
  for (ByteRange match : *matches) {
    require(match.begin >= from && match.begin <= match.end &&
                match.end <= valid.size(),
            "matches out of order");
    from = match.end;
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string_view all(reinterpret_cast<const char *>(data) + 1, size - 1);
  size_t cut = all.rfind('\0');
  if (cut == std::string_view::npos)
    cut = all.size();
  std::string_view head = all.substr(0, cut);
  std::string_view tail = cut < all.size() ? all.substr(cut + 1) : "a text";
  std::span<const uint8_t> bytes(data + 1, head.size());
  TokenizerConfig config;
  config.bosId = 1;
  switch (data[0] % 6) {
  case 0:
  case 1: {
    auto kind =
        data[0] % 6 == 0 ? TokenizerKind::HuggingFace : TokenizerKind::Llama2c;
    // A binary file has NULs of its own: its text comes from its end.
    if (kind == TokenizerKind::Llama2c) {
      bytes = {data + 1, size - 1};
      tail = all.substr(all.size() - std::min<size_t>(all.size(), 64));
    }
    if (auto tokenizer = Tokenizer::load(kind, bytes, config))
      useTokenizer(**tokenizer, tail);
    break;
  }
  case 2:
    useTemplate(all);
    break;
  case 3:
    useRegex(head, tail);
    break;
  case 4:
    if (auto tokenizer = loadSealedTokenizer({data + 1, size - 1}))
      useTokenizer(**tokenizer, "some text");
    break;
  case 5:
    useTables({data + 1, size - 1});
    break;
  }
  return 0;
}
