//===- Unicode.h - UTF-8 and characters ------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// UTF-8 and the character properties that tokenizers ask for. Properties and
// normalisation forms come from utf8proc (Unicode 15).

#ifndef LLM_RUNTIME_TOKENIZER_UNICODE_H
#define LLM_RUNTIME_TOKENIZER_UNICODE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace llm::runtime::unicode {

/// U+FFFD in UTF-8, what undecodable bytes are shown as.
inline constexpr std::string_view replacementCharacter = "\xEF\xBF\xBD";

/// What the bytes at one position of a UTF-8 text are.
struct Decoded {
  enum Kind : uint8_t {
    /// A whole character.
    Character,
    /// Bytes that no continuation could make a character.
    Invalid,
    /// The text ends inside what may become a character.
    Incomplete,
  };
  char32_t codepoint = 0;
  /// Bytes covered, at least 1. For Invalid the maximal subpart that one
  /// U+FFFD stands for (Unicode 15, section 3.9, "U+FFFD Substitution").
  uint8_t length = 1;
  Kind kind = Invalid;
};

/// Decodes the character at `offset`, which must be inside `text`.
Decoded decodeAt(std::string_view text, size_t offset);

/// The bytes of the character before `offset` > 0 in well-formed text: the
/// offset where it starts.
size_t previousCharacter(std::string_view text, size_t offset);

/// Appends `codepoint`, a Unicode scalar value, as UTF-8.
void append(std::string &text, char32_t codepoint);

/// True if `text` is well-formed UTF-8.
bool isValid(std::string_view text);

/// `text` with each maximal invalid subpart replaced by U+FFFD.
std::string toValid(std::string_view text);

/// Turns bytes that come in parts into well-formed text: as toValid, with an
/// incomplete character held back until the next part.
class LossyStream {
public:
  /// Appends to `out`, which outlives the stream.
  explicit LossyStream(std::string &out) : out(out) {}
  void append(std::string_view bytes);
  /// The end: an incomplete character becomes U+FFFD.
  void flush();

private:
  void give(bool all);
  std::string &out;
  std::string held;
};

/// White_Space property.
bool isWhitespace(char32_t codepoint);
/// Regular expression \w by Unicode TS 18: alphabetic, marks, decimal digits,
/// connector punctuation, join controls.
bool isWord(char32_t codepoint);
/// General category N (decimal digits, letter numbers, other numbers).
bool isNumeric(char32_t codepoint);
/// General category P, or any ASCII punctuation (which has some of category S).
bool isPunctuation(char32_t codepoint);
/// General category M: combining marks of all kinds.
bool isMark(char32_t codepoint);

/// Appends the lower case of `codepoint`, by full unconditional mapping.
void appendLower(std::string &text, char32_t codepoint);
/// Appends the upper case of `codepoint`, by simple mapping, and "SS" for
/// U+00DF.
void appendUpper(std::string &text, char32_t codepoint);

enum class Form { NFC, NFD, NFKC, NFKD };

/// `text`, well-formed, in a normalisation form (UAX 15). Takes time
/// O(n log n) whatever the order of its combining marks.
std::string normalize(std::string_view text, Form form);

} // namespace llm::runtime::unicode

#endif // LLM_RUNTIME_TOKENIZER_UNICODE_H
