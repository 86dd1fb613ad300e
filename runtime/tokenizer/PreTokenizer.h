//===- PreTokenizer.h - text to words --------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The pre-tokenizers of tokenizer.json: text to words, each encoded alone.

#ifndef LLM_RUNTIME_TOKENIZER_PRETOKENIZER_H
#define LLM_RUNTIME_TOKENIZER_PRETOKENIZER_H

#include "runtime/core/Status.h"
#include "runtime/tokenizer/Regex.h"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace llm::runtime {

/// What becomes of the matches that a text is split by; the meanings are those
/// of the `tokenizers` library.
enum class SplitBehavior {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous,
};

/// A sequence of pre-tokenizers: ByteLevel, Split, Digits, Metaspace,
/// Whitespace, WhitespaceSplit, Punctuation, CharDelimiterSplit.
class PreTokenizer {
public:
  /// The identity.
  PreTokenizer() = default;
  /// Reads the member "pre_tokenizer" (null is the identity). Unsupported, with
  /// its name, for any other component.
  static Expected<PreTokenizer> parse(const nlohmann::json &component);

  /// Takes a word, which is there during the call.
  using Sink = std::function<void(std::string_view word)>;
  /// Splits `text` (well-formed UTF-8) and gives the words to `sink` in order.
  /// No word is empty. `atStart` says that it starts where the whole text does.
  Status apply(std::string_view text, bool atStart, const Sink &sink) const;

private:
  struct Step {
    enum Kind {
      ByteLevel,
      Split,
      Digits,
      Metaspace,
      Whitespace,
      WhitespaceSplit,
      Punctuation,
      CharDelimiter,
    } kind = Split;
    enum Scheme { Always, First, Never } scheme = Always;
    SplitBehavior behavior = SplitBehavior::Isolated;
    bool invert = false;
    bool addPrefixSpace = false;
    bool useRegex = true;
    bool individualDigits = false;
    bool split = true;
    std::string replacement;
    std::vector<Regex> pattern; // of Split and ByteLevel: at most one
  };

  Status add(const nlohmann::json &component);
  static Status readMetaspace(const nlohmann::json &component, Step &step);
  class Run;

  std::vector<Step> steps;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_PRETOKENIZER_H
