//===- Regex.cpp - regular expressions ------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/Regex.h"

#include "runtime/tokenizer/Unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace llm::runtime {

namespace {

/// Patterns of published tokenizers have some hundred bytes.
constexpr size_t maxPatternBytes = 16 * 1024;
/// Backtracking allowed from one start position, in PCRE2's match units: a base
/// and a share per byte, since one honest match may walk the whole text.
constexpr uint64_t baseMatchLimit = 200'000;
constexpr uint64_t matchLimitPerByte = 4;
constexpr uint32_t maxHeapKiB = 256 * 1024;
/// PCRE2 counts backtracking per start position only, so a pattern that fails
/// slowly everywhere is stopped by the clock, which is read between windows of
/// start positions. Honest patterns take about 10 ms per MiB.
constexpr double baseSeconds = 5;
constexpr double secondsPerMiB = 5;
constexpr size_t windowBytes = 256;

std::string pcreMessage(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof(buffer)) < 0)
    return "PCRE2 error " + std::to_string(code);
  return reinterpret_cast<const char *>(buffer);
}

template <auto Free> struct Deleter {
  template <typename T> void operator()(T *object) const { Free(object); }
};
using Code = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using CompileContext =
    std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;
using MatchContext =
    std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using MatchData =
    std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;
using JitStack =
    std::unique_ptr<pcre2_jit_stack, Deleter<pcre2_jit_stack_free>>;

} // namespace

struct Regex::Impl {
  Code code;
};

Regex::Regex(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Regex::Regex(Regex &&) = default;
Regex &Regex::operator=(Regex &&) = default;
Regex::~Regex() = default;

Expected<Regex> Regex::compile(std::string_view pattern) {
  Expected<std::string> translated = translateOniguruma(pattern);
  if (!translated)
    return translated.takeStatus().withContext("regular expression '" +
                                               std::string(pattern) + "'");
  CompileContext context(pcre2_compile_context_create(nullptr));
  if (!context)
    return Status::resource("out of memory");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_max_pattern_length(context.get(), maxPatternBytes);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()),
                          translated->size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                              PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT,
                          &error, &offset, context.get()));
  if (!code)
    return Status::invalidInput("regular expression '" + std::string(pattern) +
                                "': " + pcreMessage(error));
  // Without executable memory PCRE2 interprets instead: slower, same matches.
  (void)pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return Regex(std::make_unique<Impl>(Impl{std::move(code)}));
}

Expected<Regex> Regex::literal(std::string_view text) {
  std::string pattern;
  for (char c : text) {
    // Escape what is special somewhere; a backslash before other ASCII
    // punctuation is harmless, before letters it is not.
    if (static_cast<unsigned char>(c) < 0x80 &&
        unicode::isPunctuation(static_cast<unsigned char>(c)))
      pattern += '\\';
    pattern += c;
  }
  return compile(pattern);
}

Expected<std::vector<ByteRange>> Regex::findAll(std::string_view text) const {
  std::vector<ByteRange> matches;
  LLM_RETURN_IF_ERROR(findAll(text, matches));
  return matches;
}

Status Regex::findAll(std::string_view text,
                      std::vector<ByteRange> &matches) const {
  matches.clear();
  MatchContext context(pcre2_match_context_create(nullptr));
  MatchData data(
      pcre2_match_data_create_from_pattern(impl->code.get(), nullptr));
  if (!context || !data)
    return Status::resource("out of memory");
  // Compiled code has 32 KiB of the thread's stack, which nearly all patterns
  // are content with; mapping another one would cost more than most matches.
  JitStack stack;
  uint64_t limit = baseMatchLimit + matchLimitPerByte * text.size();
  pcre2_set_match_limit(context.get(),
                        static_cast<uint32_t>(std::min<uint64_t>(
                            limit, std::numeric_limits<uint32_t>::max())));
  pcre2_set_heap_limit(context.get(), maxHeapKiB);

  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  double allowed =
      baseSeconds + secondsPerMiB * static_cast<double>(text.size()) / 1048576;

  size_t from = 0;
  for (size_t sinceClock = 0; from <= text.size(); ++sinceClock) {
    size_t windowEnd = from + std::min(windowBytes, text.size() - from);
    pcre2_set_offset_limit(context.get(), windowEnd);
    int rc = pcre2_match(impl->code.get(),
                         reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                         from, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT && !stack) {
      stack.reset(pcre2_jit_stack_create(32 * 1024, 16 * 1024 * 1024, nullptr));
      if (!stack)
        return Status::resource("out of memory");
      pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
      continue;
    }
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
      return Status::resource("regular expression: " + pcreMessage(rc));
    if (rc == PCRE2_ERROR_NOMATCH || sinceClock % 256 == 255) {
      std::chrono::duration<double> spent = Clock::now() - start;
      if (spent.count() > allowed)
        return Status::resource("regular expression: takes too long on a text "
                                "of " +
                                std::to_string(text.size()) + " bytes");
    }
    if (rc == PCRE2_ERROR_NOMATCH) {
      if (windowEnd == text.size())
        break;
      // No match starts in [from, windowEnd]; go on at a character.
      from = windowEnd;
      while (from < text.size() && (text[from] & 0xC0) == 0x80)
        ++from;
      continue;
    }
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(data.get());
    size_t begin = range[0], end = range[1];
    // \K inside a lookaround can move the begin past the end.
    if (begin > end || begin < from)
      return Status::invalidInput("regular expression: a match that ends "
                                  "before it begins");
    if (begin == end && !matches.empty() && matches.back().end == end) {
      if (from >= text.size())
        break;
      from += unicode::decodeAt(text, from).length;
      continue;
    }
    matches.push_back({begin, end});
    from = end;
  }
  return Status::success();
}

} // namespace llm::runtime
