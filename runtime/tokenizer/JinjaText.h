//===- JinjaText.h - string operations -------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Python's string operations on text that remembers where it came from.

#ifndef LLM_RUNTIME_TOKENIZER_JINJATEXT_H
#define LLM_RUNTIME_TOKENIZER_JINJATEXT_H

#include "runtime/tokenizer/JinjaValue.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llm::runtime::jinja {

size_t countCharacters(std::string_view text);

/// str.strip, lstrip, rstrip: white space, or the characters of `set`.
Text strip(const Text &text, const std::optional<std::string> &set, bool left,
           bool right);

/// upper, lower, capitalize, title. A text with anything untrusted in it
/// becomes untrusted as a whole.
Text changeCase(const Text &text, std::string_view how);

/// str.replace; `count` < 0 for all. Resource if the result is too large.
Expected<Value> replaceText(const Text &text, const Text &from, const Text &to,
                            int64_t count);

/// str.split and rsplit by `separator`, or by white space where it is empty;
/// `most` < 0 for all.
List splitText(const Text &text, std::string_view separator, int64_t most,
               bool fromRight);
/// str.splitlines, for \n, \r and \r\n.
List splitLines(const Text &text);

/// str.find in characters, and str.count.
int64_t findText(const Text &text, const Text &part);
int64_t countText(const Text &text, const Text &part);

/// Jinja's indent: lines but the first (unless `first`), and blank ones only
/// with `blank`.
Text indentText(const Text &text, size_t width, bool first, bool blank);

/// str.isdigit or str.isspace.
bool allOf(const Text &text, bool digits);

} // namespace llm::runtime::jinja

#endif // LLM_RUNTIME_TOKENIZER_JINJATEXT_H
