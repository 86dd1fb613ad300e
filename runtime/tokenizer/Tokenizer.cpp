//===- Tokenizer.cpp - text to ids and back -------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/Tokenizer.h"

#include "runtime/tokenizer/TokenizerKinds.h"

#include <algorithm>
#include <utility>

namespace llm::runtime {

Expected<std::unique_ptr<Tokenizer>>
Tokenizer::load(TokenizerKind kind, std::span<const uint8_t> bytes,
                const TokenizerConfig &config) {
  return catchExceptions([&]() -> Expected<std::unique_ptr<Tokenizer>> {
    std::string_view text(reinterpret_cast<const char *>(bytes.data()),
                          bytes.size());
    switch (kind) {
    case TokenizerKind::HuggingFace:
      return loadHuggingFace(text, config).withContext("tokenizer.json");
    case TokenizerKind::Llama2c:
      return loadLlama2c(text, config).withContext("tokenizer.bin");
    }
    return Status::unsupported("tokenizer of kind " +
                               std::to_string(static_cast<uint32_t>(kind)));
  });
}

bool Tokenizer::isEos(int32_t id) const {
  return std::find(settings.eosIds.begin(), settings.eosIds.end(), id) !=
         settings.eosIds.end();
}

Expected<std::vector<int32_t>> Tokenizer::encode(std::string_view text,
                                                 EncodeOptions options) const {
  TextSpan span{text, options.parseSpecial};
  return encode(std::span(&span, 1), options.addSpecial);
}

Expected<std::vector<int32_t>>
Tokenizer::encode(std::span<const TextSpan> spans, bool addSpecial) const {
  return catchExceptions([&]() -> Expected<std::vector<int32_t>> {
    size_t total = 0;
    for (const TextSpan &span : spans) {
      if (span.text.size() > maxTextBytes - total)
        return Status::invalidInput("a text of more than " +
                                    std::to_string(maxTextBytes) + " bytes");
      total += span.text.size();
    }
    return encodeSpans(spans, addSpecial);
  });
}

Expected<std::string> Tokenizer::decode(std::span<const int32_t> ids,
                                        DecodeOptions options) const {
  return catchExceptions([&]() -> Expected<std::string> {
    std::string text;
    std::unique_ptr<PieceDecoder> decoder =
        startDecoder(text, options, /*wholeText=*/true);
    for (int32_t id : ids)
      LLM_RETURN_IF_ERROR(decoder->push(id));
    LLM_RETURN_IF_ERROR(decoder->flush());
    return text;
  });
}

DecodeStream::DecodeStream(const Tokenizer &tokenizer, DecodeOptions options)
    : tokenizer(tokenizer), options(options) {}
DecodeStream::~DecodeStream() = default;

Expected<std::string> DecodeStream::push(int32_t id) {
  return catchExceptions([&]() -> Expected<std::string> {
    if (!decoder)
      decoder = tokenizer.startDecoder(out, options, /*wholeText=*/false);
    LLM_RETURN_IF_ERROR(decoder->push(id));
    return std::exchange(out, {});
  });
}

Expected<std::string> DecodeStream::flush() {
  return catchExceptions([&]() -> Expected<std::string> {
    if (decoder) {
      LLM_RETURN_IF_ERROR(decoder->flush());
      decoder.reset();
      options.continuation = true;
    }
    return std::exchange(out, {});
  });
}

} // namespace llm::runtime
