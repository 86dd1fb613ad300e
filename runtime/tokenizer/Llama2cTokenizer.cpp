//===- Llama2cTokenizer.cpp - tokenizer.bin -------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/TokenizerKinds.h"

#include "runtime/tokenizer/BPE.h"
#include "runtime/tokenizer/Unicode.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

static_assert(std::endian::native == std::endian::little,
              "the file is read as it lies");

namespace llm::runtime {

namespace {

constexpr int32_t unkToken = 0, bosToken = 1, eosToken = 2;
constexpr int32_t firstByteToken = 3, firstTextToken = 259;
/// A merge needs a score above this (llama2.c, run.c).
constexpr float leastScore = -1e10F;

/// "<0xE2>" gives 0xE2.
std::optional<unsigned char> byteOfPiece(std::string_view piece) {
  auto value = [](char c) -> int {
    if (c >= '0' && c <= '9')
      return c - '0';
    if (c >= 'A' && c <= 'F')
      return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
      return c - 'a' + 10;
    return -1;
  };
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>')
    return std::nullopt;
  int high = value(piece[3]), low = value(piece[4]);
  if (high < 0 || low < 0)
    return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

class Llama2cTokenizer final : public Tokenizer {
public:
  Llama2cTokenizer(const TokenizerConfig &config) : Tokenizer(config) {
    if (!settings.bosId)
      settings.bosId = bosToken;
    if (!settings.unkId)
      settings.unkId = unkToken;
    // BOS parts the texts a model of llama2.c is trained on: it ends one too.
    if (settings.eosIds.empty())
      settings.eosIds = {bosToken, eosToken};
  }

  Status read(std::string_view bytes);

  std::optional<std::string> piece(int32_t id) const override {
    if (id < 0 || static_cast<size_t>(id) >= pieces.size())
      return std::nullopt;
    return pieces[static_cast<size_t>(id)];
  }
  std::optional<int32_t> id(std::string_view piece) const override {
    return vocab.find(piece);
  }
  int32_t vocabSize() const override {
    return static_cast<int32_t>(pieces.size());
  }
  bool isSpecial(int32_t id) const override {
    return id >= unkToken && id <= eosToken;
  }
  bool addsBos() const override { return settings.addBos.value_or(true); }

protected:
  Expected<std::vector<int32_t>> encodeSpans(std::span<const TextSpan> spans,
                                             bool addSpecial) const override;
  std::unique_ptr<PieceDecoder> startDecoder(std::string &out,
                                             DecodeOptions options,
                                             bool wholeText) const override;

private:
  void appendCharacter(std::string_view bytes, std::vector<int32_t> &ids) const;

  std::vector<std::string> pieces;
  std::vector<float> scores;
  Vocabulary vocab;
  std::optional<ScoreMerger> merger;
};

} // namespace

Status Llama2cTokenizer::read(std::string_view bytes) {
  size_t offset = 0;
  auto take = [&](auto &value) {
    if (bytes.size() - offset < sizeof(value))
      return false;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    offset += sizeof(value);
    return true;
  };
  int32_t longest = 0;
  if (!take(longest) || longest <= 0)
    return Status::invalidInput("it does not start with the length of the "
                                "longest piece");
  while (settings.vocabSize ? vocabSize() < *settings.vocabSize
                            : offset < bytes.size()) {
    std::string where = "piece " + std::to_string(pieces.size());
    float score = 0;
    int32_t length = 0;
    if (!take(score) || !take(length))
      return Status::invalidInput(where + ": the file ends");
    if (!std::isfinite(score))
      return Status::invalidInput(where + ": its score is not a number");
    if (length < 0 || length > longest)
      return Status::invalidInput(where + ": a length of " +
                                  std::to_string(length) + " bytes, where " +
                                  std::to_string(longest) + " is the longest");
    if (bytes.size() - offset < static_cast<size_t>(length))
      return Status::invalidInput(where + ": the file ends");
    pieces.emplace_back(bytes.substr(offset, static_cast<size_t>(length)));
    scores.push_back(score);
    offset += static_cast<size_t>(length);
  }
  if (offset != bytes.size())
    return Status::invalidInput("it goes on after " +
                                std::to_string(pieces.size()) + " pieces");
  if (vocabSize() < firstTextToken)
    return Status::invalidInput(
        "it has " + std::to_string(pieces.size()) +
        " pieces; the special tokens and the bytes alone are " +
        std::to_string(firstTextToken));
  // Of equal pieces the first has the spelling.
  for (size_t i = 0; i < pieces.size(); ++i)
    vocab.add(pieces[i], static_cast<int32_t>(i));
  merger.emplace(pieces, vocab, scores, /*firstMergeable=*/firstByteToken,
                 leastScore);
  return Status::success();
}

void Llama2cTokenizer::appendCharacter(std::string_view bytes,
                                       std::vector<int32_t> &ids) const {
  std::optional<int32_t> known = vocab.find(bytes);
  if (known && !isSpecial(*known)) {
    ids.push_back(*known);
    return;
  }
  for (char byte : bytes)
    ids.push_back(firstByteToken + static_cast<unsigned char>(byte));
}

Expected<std::vector<int32_t>>
Llama2cTokenizer::encodeSpans(std::span<const TextSpan> spans,
                              bool addSpecial) const {
  std::string text;
  for (const TextSpan &span : spans)
    text += span.text;

  std::vector<int32_t> ids;
  if (!text.empty()) {
    appendCharacter(" ", ids);
    auto continues = [&](size_t i) {
      return i < text.size() && (text[i] & 0xC0) == 0x80;
    };
    for (size_t i = 0; i < text.size();) {
      // A byte and the continuation bytes after it, at most four in all.
      size_t length = 1;
      while (length < 4 && continues(i + length))
        ++length;
      appendCharacter(std::string_view(text).substr(i, length), ids);
      i += length;
    }
    merger->merge(ids);
  }
  if (addSpecial && addsBos())
    ids.insert(ids.begin(), *settings.bosId);
  return ids;
}

std::unique_ptr<Tokenizer::PieceDecoder>
Llama2cTokenizer::startDecoder(std::string &out, DecodeOptions options,
                               bool) const {
  class Running final : public PieceDecoder {
  public:
    Running(const Llama2cTokenizer &tokenizer, DecodeOptions options,
            std::string &out)
        : tokenizer(tokenizer), skipSpecial(options.skipSpecial),
          atStart(!options.continuation), text(out) {}
    Status push(int32_t id) override {
      std::optional<std::string> piece = tokenizer.piece(id);
      if (!piece)
        return Status::success();
      if (id == bosToken)
        atStart = true;
      if (tokenizer.isSpecial(id)) {
        if (!skipSpecial)
          text.append(*piece);
        return Status::success();
      }
      std::string_view spelled = *piece;
      // The space that encoding puts before a text.
      if (std::exchange(atStart, false) && spelled.starts_with(' '))
        spelled.remove_prefix(1);
      if (std::optional<unsigned char> byte = byteOfPiece(*piece))
        text.append(std::string_view(reinterpret_cast<char *>(&*byte), 1));
      else
        text.append(spelled);
      return Status::success();
    }
    Status flush() override {
      text.flush();
      return Status::success();
    }

  private:
    const Llama2cTokenizer &tokenizer;
    bool skipSpecial, atStart;
    unicode::LossyStream text;
  };
  return std::make_unique<Running>(*this, options, out);
}

Expected<std::unique_ptr<Tokenizer>>
loadLlama2c(std::string_view bytes, const TokenizerConfig &config) {
  auto tokenizer = std::make_unique<Llama2cTokenizer>(config);
  LLM_RETURN_IF_ERROR(tokenizer->read(bytes));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

} // namespace llm::runtime
