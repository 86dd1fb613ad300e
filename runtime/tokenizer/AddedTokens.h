//===- AddedTokens.h - tokens found before the model -----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Added tokens: pieces that are found in the text before the model sees it.

#ifndef LLM_RUNTIME_TOKENIZER_ADDEDTOKENS_H
#define LLM_RUNTIME_TOKENIZER_ADDEDTOKENS_H

#include "runtime/core/Status.h"
#include "runtime/tokenizer/Regex.h"

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llm::runtime {

/// An entry of "added_tokens".
struct AddedToken {
  int32_t id = 0;
  std::string content;
  /// Refused inside other words; swallows the white space before, after it;
  /// looked for in the normalised text; skipped by decoding, and not to be had
  /// from untrusted text.
  bool singleWord = false, lstrip = false, rstrip = false, normalized = false,
       special = false;

  static Expected<AddedToken> parse(const nlohmann::json &entry);
};

/// A part of a text: an added token, or text between two.
struct TextPart {
  std::optional<int32_t> id;
  ByteRange range;
};

/// Finds tokens in text: the leftmost, among those the longest.
class AddedTokenMatcher {
public:
  /// `spelling` is what to look for: the content, normalised if the token is.
  void add(const AddedToken &token, std::string_view spelling);
  bool empty() const { return tokens.empty(); }

  /// Splits `text`. A special token that touches one of the `untrusted` ranges
  /// (ascending, disjoint) is left as text.
  std::vector<TextPart> split(std::string_view text,
                              const std::vector<ByteRange> &untrusted) const;

private:
  struct Node {
    int32_t token = -1; // index into tokens
    std::vector<std::pair<unsigned char, int32_t>> next;
  };
  struct Match {
    int32_t token;
    size_t end;
  };
  std::optional<Match> longestAt(std::string_view text, size_t begin) const;

  std::vector<AddedToken> tokens;
  std::vector<Node> nodes{1};
  std::array<bool, 256> startsToken{};
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_ADDEDTOKENS_H
