//===- Tokenizer.h - text to ids and back ----------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Text to token ids and back.

#ifndef LLM_RUNTIME_TOKENIZER_TOKENIZER_H
#define LLM_RUNTIME_TOKENIZER_TOKENIZER_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llm::runtime {

/// What the bytes of a tokenizer are. The numbers are stored in artifacts.
enum class TokenizerKind : uint32_t {
  /// tokenizer.json of the `tokenizers` library, with a BPE model.
  HuggingFace = 1,
  /// tokenizer.bin of llama2.c: int32 longest piece; per piece a float score,
  /// an int32 length and the bytes; little-endian. Ids 0, 1, 2 are unknown, BOS
  /// and EOS, 3 to 258 the bytes.
  Llama2c = 2,
};

/// Sampling that a model's publisher suggests (generation_config.json).
struct GenerationDefaults {
  std::optional<bool> doSample;
  std::optional<double> temperature, topP, minP, repetitionPenalty;
  std::optional<int32_t> topK;

  bool operator==(const GenerationDefaults &) const = default;
};

/// What the files beside a tokenizer say about its use.
struct TokenizerConfig {
  std::optional<int32_t> bosId, unkId, padId;
  /// Generation stops at any of these.
  std::vector<int32_t> eosIds;
  /// Whether BOS leads an encoded text; unset leaves it to the tokenizer.
  std::optional<bool> addBos;
  /// Jinja source; empty where there is none.
  std::string chatTemplate;
  GenerationDefaults generation;
  /// Llama2c: the number of pieces, where known; else the file says it.
  std::optional<int32_t> vocabSize;

  bool operator==(const TokenizerConfig &) const = default;
};

/// A part of a text to encode.
struct TextSpan {
  std::string_view text;
  /// Special tokens that it spells become their ids. Leave it false for text
  /// from outside: spelling "<|im_end|>" then does not end a turn. A token that
  /// only partly lies in such a span is not taken for one either.
  bool parseSpecial = false;
};

struct EncodeOptions {
  /// Put BOS and whatever else the tokenizer adds around the text.
  bool addSpecial = true;
  /// As TextSpan::parseSpecial.
  bool parseSpecial = false;
};

struct DecodeOptions {
  /// Special tokens give no text.
  bool skipSpecial = true;
  /// The text goes on from earlier text: the space that SentencePiece puts
  /// before a text is not taken off.
  bool continuation = false;
};

/// Longest text that encode accepts, in bytes.
inline constexpr size_t maxTextBytes = size_t{1} << 30;

class DecodeStream;

/// A loaded tokenizer. Immutable: all its functions may be called from several
/// threads.
class Tokenizer {
public:
  /// Loads `bytes`, which need not outlive the call. Unsupported, naming it,
  /// for a component this build does not have.
  static Expected<std::unique_ptr<Tokenizer>>
  load(TokenizerKind kind, std::span<const uint8_t> bytes,
       const TokenizerConfig &config);

  virtual ~Tokenizer() = default;

  /// The ids of `text`. Bytes that are not UTF-8 are read as U+FFFD, except by
  /// Llama2c, which has a piece for every byte.
  Expected<std::vector<int32_t>> encode(std::string_view text,
                                        EncodeOptions options = {}) const;
  /// The ids of the concatenation of `spans`, which is encoded as one text.
  Expected<std::vector<int32_t>> encode(std::span<const TextSpan> spans,
                                        bool addSpecial) const;

  /// The text of `ids`. Ids without a piece give none; bytes that are not UTF-8
  /// become U+FFFD as in the `tokenizers` library.
  Expected<std::string> decode(std::span<const int32_t> ids,
                               DecodeOptions options = {}) const;

  /// The piece of `id` as the vocabulary spells it.
  virtual std::optional<std::string> piece(int32_t id) const = 0;
  virtual std::optional<int32_t> id(std::string_view piece) const = 0;
  /// One past the largest id.
  virtual int32_t vocabSize() const = 0;
  /// Special tokens: those that mark structure, not text.
  virtual bool isSpecial(int32_t id) const = 0;

  std::optional<int32_t> bosId() const { return settings.bosId; }
  std::optional<int32_t> unkId() const { return settings.unkId; }
  std::optional<int32_t> padId() const { return settings.padId; }
  const std::vector<int32_t> &eosIds() const { return settings.eosIds; }
  bool isEos(int32_t id) const;
  /// Whether encoding with addSpecial leads with BOS.
  virtual bool addsBos() const = 0;
  const TokenizerConfig &config() const { return settings; }

protected:
  explicit Tokenizer(const TokenizerConfig &config) : settings(config) {}

  virtual Expected<std::vector<int32_t>>
  encodeSpans(std::span<const TextSpan> spans, bool addSpecial) const = 0;
  friend class DecodeStream;
  /// A decoder of pieces, appending to `out`. `wholeText` asks for the exact
  /// result for a complete text over early output.
  class PieceDecoder {
  public:
    virtual ~PieceDecoder() = default;
    virtual Status push(int32_t id) = 0;
    virtual Status flush() = 0;
  };
  virtual std::unique_ptr<PieceDecoder> startDecoder(std::string &out,
                                                     DecodeOptions options,
                                                     bool wholeText) const = 0;

  TokenizerConfig settings;
};

/// Decodes ids one at a time. What push and flush return, put together, is the
/// text; a character is never split, so bytes of an incomplete one are held
/// back. One difference to Tokenizer::decode: in a run of byte pieces that is
/// not UTF-8 as a whole, characters given out before the fault stay.
class DecodeStream {
public:
  /// `tokenizer` outlives the stream.
  explicit DecodeStream(const Tokenizer &tokenizer, DecodeOptions options = {});
  DecodeStream(DecodeStream &&) = delete;
  ~DecodeStream();

  /// The text that `id` completes, possibly none.
  Expected<std::string> push(int32_t id);
  /// The end: what was held back, incomplete characters as U+FFFD. The stream
  /// then starts over, as a continuation.
  Expected<std::string> flush();

private:
  const Tokenizer &tokenizer;
  DecodeOptions options;
  std::string out;
  std::unique_ptr<Tokenizer::PieceDecoder> decoder;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_TOKENIZER_H
