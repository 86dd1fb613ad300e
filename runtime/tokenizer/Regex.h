//===- Regex.h - regular expressions ---------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Regular expressions of published tokenizers (Oniguruma syntax) run by PCRE2.

#ifndef LLM_RUNTIME_TOKENIZER_REGEX_H
#define LLM_RUNTIME_TOKENIZER_REGEX_H

#include "runtime/core/Status.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llm::runtime {

/// A byte range [begin, end) of a text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

/// Rewrites a pattern in Oniguruma's Ruby syntax to the PCRE2 pattern with the
/// same meaning, where the two spell things differently (\s, \w, \h, \uHHHH,
/// (?m), {n,m}+, {,m}, && in classes). Unsupported where PCRE2 has no
/// equivalent. Source: Oniguruma's doc/RE; PCRE2's pcre2pattern(3).
Expected<std::string> translateOniguruma(std::string_view pattern);

/// A compiled pattern. Immutable: matching from several threads is safe.
class Regex {
public:
  /// Compiles a pattern in Oniguruma syntax.
  static Expected<Regex> compile(std::string_view pattern);
  /// Compiles a pattern that matches `text` itself.
  static Expected<Regex> literal(std::string_view text);

  Regex(Regex &&);
  Regex &operator=(Regex &&);
  ~Regex();

  /// All non-overlapping matches in `text` (well-formed UTF-8), in order. An
  /// empty match right after the previous match is dropped, as Oniguruma's
  /// scan does. A pattern that backtracks beyond all measure ends in a
  /// Resource failure, never in a hang.
  Expected<std::vector<ByteRange>> findAll(std::string_view text) const;
  /// As above, into `matches`, whose memory is used again.
  Status findAll(std::string_view text, std::vector<ByteRange> &matches) const;

private:
  struct Impl;
  explicit Regex(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_REGEX_H
