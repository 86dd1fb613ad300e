//===- TokenizerSource.h - files and sealing -------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Finding a model's tokenizer among its files, and sealing it into an artifact.

#ifndef LLM_RUNTIME_TOKENIZER_TOKENIZERSOURCE_H
#define LLM_RUNTIME_TOKENIZER_TOKENIZERSOURCE_H

#include "runtime/core/Status.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llm::runtime {

/// All that Tokenizer::load needs.
struct TokenizerSource {
  TokenizerKind kind = TokenizerKind::HuggingFace;
  /// HuggingFace: tokenizer.json, only the members that bear on its meaning.
  /// Llama2c: the file.
  std::vector<uint8_t> bytes;
  TokenizerConfig config;
};

/// Reads a tokenizer from `path`: tokenizer.json, llama2.c's tokenizer.bin (any
/// *.bin), or a directory with one of the two, tokenizer.json first. Its
/// configuration comes from the files beside it: tokenizer_config.json,
/// special_tokens_map.json, chat_template.jinja, generation_config.json,
/// genai_config.json, config.json; a directory `modelDirectory`, if not empty,
/// is looked through for those that are missing. Every eos id that any of them
/// names ends generation. The tokenizer has been loaded once when this
/// succeeds.
Expected<TokenizerSource> readTokenizer(const std::string &path,
                                        const std::string &modelDirectory = "");

/// Looks for the tokenizer of a model (a file or a directory): beside it, then
/// in the directory above, where exporters put it when the model is in onnx/.
/// Nothing if there is none.
Expected<std::optional<TokenizerSource>>
findTokenizer(const std::string &modelPath);

/// One blob with everything, the same for the same source. Little endian: the
/// bytes "LLMTOK02", uint32 kind, uint32 length of the configuration, uint64
/// length of the tokenizer, uint64 length of its tables; the configuration
/// (JSON), the tokenizer, the tables. For HuggingFace the tokenizer is
/// tokenizer.json without "vocab" and "merges" of its model, which the tables
/// hold as BPETables::pack gives them; Llama2c has its file and no tables.
Expected<std::vector<uint8_t>> sealTokenizer(const TokenizerSource &source);

/// The parts of a sealed tokenizer; they lie in the blob.
struct SealedParts {
  TokenizerKind kind = TokenizerKind::HuggingFace;
  TokenizerConfig config;
  std::span<const uint8_t> tokenizer, tables;
};

/// The reverse. InvalidInput for a blob whose parts sealTokenizer does not
/// write; the tokenizer and its tables are looked at when they are loaded.
Expected<SealedParts> unsealTokenizer(std::span<const uint8_t> blob);

/// Loads what is sealed in `blob`.
Expected<std::unique_ptr<Tokenizer>>
loadSealedTokenizer(std::span<const uint8_t> blob);

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_TOKENIZERSOURCE_H
