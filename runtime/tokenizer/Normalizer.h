//===- Normalizer.h - text before splitting --------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The normalizers of tokenizer.json: text to text, before it is split.

#ifndef LLM_RUNTIME_TOKENIZER_NORMALIZER_H
#define LLM_RUNTIME_TOKENIZER_NORMALIZER_H

#include "runtime/core/Status.h"
#include "runtime/tokenizer/Regex.h"
#include "runtime/tokenizer/Unicode.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace llm::runtime {

/// A pattern {"String": …} or {"Regex": …}, as several components have it.
Expected<Regex> parsePattern(const nlohmann::json &component);

/// A sequence of normalizers: NFC, NFD, NFKC, NFKD, Lowercase, StripAccents,
/// Strip, Prepend, Replace, ByteLevel.
class Normalizer {
public:
  /// The identity.
  Normalizer() = default;
  /// Reads the member "normalizer" (null is the identity). Unsupported, with
  /// its name, for any other component.
  static Expected<Normalizer> parse(const nlohmann::json &component);

  bool isIdentity() const { return steps.empty(); }
  /// Normalises well-formed UTF-8.
  Expected<std::string> apply(std::string text) const;

private:
  struct Step {
    enum Kind {
      UnicodeForm,
      Lowercase,
      StripAccents,
      Strip,
      Prepend,
      Replace,
      ByteLevel
    } kind = UnicodeForm;
    unicode::Form form = unicode::Form::NFC;
    bool stripLeft = false, stripRight = false;
    std::string content;
    std::vector<Regex> pattern; // of Replace: exactly one
  };

  Status add(const nlohmann::json &component);
  std::vector<Step> steps;
};

/// `text` with each match of `pattern` replaced by `content`.
Expected<std::string> replaceAll(const Regex &pattern, std::string_view text,
                                 std::string_view content);

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_NORMALIZER_H
