//===- TokenizerKinds.h - loaders by kind ----------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The loaders behind Tokenizer::load.

#ifndef LLM_RUNTIME_TOKENIZER_TOKENIZERKINDS_H
#define LLM_RUNTIME_TOKENIZER_TOKENIZERKINDS_H

#include "runtime/tokenizer/Tokenizer.h"

namespace llm::runtime {

Expected<std::unique_ptr<Tokenizer>>
loadHuggingFace(std::string_view bytes, const TokenizerConfig &config);

/// tokenizer.json without the vocabulary and the merges of its model, and these
/// as BPETables::pack has them.
struct SplitTokenizer {
  std::string document;
  std::vector<uint8_t> tables;
};

/// InvalidInput, naming the place, where loadHuggingFace gives it for the
/// vocabulary or the merges.
Expected<SplitTokenizer> splitHuggingFace(std::string_view bytes);

/// Loads what splitHuggingFace gives.
Expected<std::unique_ptr<Tokenizer>>
loadHuggingFace(std::string_view document, std::span<const uint8_t> tables,
                const TokenizerConfig &config);

Expected<std::unique_ptr<Tokenizer>> loadLlama2c(std::string_view bytes,
                                                 const TokenizerConfig &config);

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_TOKENIZERKINDS_H
