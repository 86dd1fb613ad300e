//===- PreTokenizer.cpp - text to words -----------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/PreTokenizer.h"

#include "runtime/tokenizer/ByteAlphabet.h"
#include "runtime/tokenizer/Growth.h"
#include "runtime/tokenizer/Json.h"
#include "runtime/tokenizer/Normalizer.h"
#include "runtime/tokenizer/Unicode.h"

#include <algorithm>

namespace llm::runtime {

using json::Json;

/// What byte-level BPE splits by unless told otherwise. Source: GPT-2's
/// encoder.
static constexpr std::string_view byteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

std::vector<ByteRange> splitByMatches(std::string_view text,
                                      const std::vector<ByteRange> &matches,
                                      SplitBehavior behavior, bool invert) {
  struct Span {
    ByteRange range;
    bool isMatch;
  };
  std::vector<Span> spans;
  size_t from = 0;
  for (ByteRange match : matches) {
    if (from != match.begin)
      spans.push_back({{from, match.begin}, invert});
    spans.push_back({match, !invert});
    from = match.end;
  }
  if (from != text.size())
    spans.push_back({{from, text.size()}, invert});

  std::vector<ByteRange> pieces;
  bool previous = false;
  switch (behavior) {
  case SplitBehavior::Removed:
    for (const Span &span : spans)
      if (!span.isMatch)
        pieces.push_back(span.range);
    break;
  case SplitBehavior::Isolated:
    for (const Span &span : spans)
      pieces.push_back(span.range);
    break;
  case SplitBehavior::Contiguous:
    for (const Span &span : spans) {
      if (span.isMatch == previous && !pieces.empty())
        pieces.back().end = span.range.end;
      else
        pieces.push_back(span.range);
      previous = span.isMatch;
    }
    break;
  case SplitBehavior::MergedWithPrevious:
    for (const Span &span : spans) {
      if (span.isMatch && !previous && !pieces.empty())
        pieces.back().end = span.range.end;
      else
        pieces.push_back(span.range);
      previous = span.isMatch;
    }
    break;
  case SplitBehavior::MergedWithNext:
    for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
      if (span->isMatch && !previous && !pieces.empty())
        pieces.back().begin = span->range.begin;
      else
        pieces.push_back(span->range);
      previous = span->isMatch;
    }
    std::reverse(pieces.begin(), pieces.end());
    break;
  }
  return pieces;
}

/// Each character with a property, as a match of its own.
static std::vector<ByteRange> charactersWith(std::string_view text,
                                             auto &&property) {
  std::vector<ByteRange> matches;
  for (size_t i = 0; i < text.size();) {
    unicode::Decoded at = unicode::decodeAt(text, i);
    if (property(at.codepoint))
      matches.push_back({i, i + at.length});
    i += at.length;
  }
  return matches;
}

/// The matches of \w+|[^\w\s]+.
static std::vector<ByteRange> wordsAndSymbols(std::string_view text) {
  enum Class { Space, Letters, Symbols };
  std::vector<ByteRange> matches;
  Class previous = Space;
  for (size_t i = 0; i < text.size();) {
    unicode::Decoded at = unicode::decodeAt(text, i);
    Class now = unicode::isWord(at.codepoint)         ? Letters
                : unicode::isWhitespace(at.codepoint) ? Space
                                                      : Symbols;
    if (now != Space) {
      if (now != previous)
        matches.push_back({i, i});
      matches.back().end = i + at.length;
    }
    previous = now;
    i += at.length;
  }
  return matches;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static Expected<SplitBehavior> readBehavior(const Json &component,
                                            std::string_view fallback) {
  LLM_ASSIGN_OR_RETURN(std::string name,
                       json::getString(component, "behavior", fallback));
  if (name == "Removed")
    return SplitBehavior::Removed;
  if (name == "Isolated")
    return SplitBehavior::Isolated;
  if (name == "MergedWithPrevious")
    return SplitBehavior::MergedWithPrevious;
  if (name == "MergedWithNext")
    return SplitBehavior::MergedWithNext;
  if (name == "Contiguous")
    return SplitBehavior::Contiguous;
  return Status::unsupported("split behavior '" + name + "'");
}

Expected<PreTokenizer> PreTokenizer::parse(const Json &component) {
  PreTokenizer preTokenizer;
  if (!component.is_null())
    LLM_RETURN_IF_ERROR(preTokenizer.add(component));
  return preTokenizer;
}

Status PreTokenizer::readMetaspace(const Json &component, Step &step) {
  LLM_ASSIGN_OR_RETURN(step.replacement,
                       json::getString(component, "replacement", "▁"));
  LLM_ASSIGN_OR_RETURN(std::string scheme,
                       json::getString(component, "prepend_scheme", ""));
  // Files older than "prepend_scheme" have "add_prefix_space".
  LLM_ASSIGN_OR_RETURN(bool prefix,
                       json::getBool(component, "add_prefix_space", true));
  if (scheme.empty())
    scheme = prefix ? "always" : "never";
  if (scheme == "always")
    step.scheme = Step::Always;
  else if (scheme == "first")
    step.scheme = Step::First;
  else if (scheme == "never")
    step.scheme = Step::Never;
  else
    return Status::unsupported("prepend scheme '" + scheme + "'");
  LLM_ASSIGN_OR_RETURN(step.split, json::getBool(component, "split", true));
  if (step.replacement.empty())
    return Status::invalidInput("Metaspace: 'replacement' is empty");
  return Status::success();
}

Status PreTokenizer::add(const Json &component) {
  LLM_RETURN_IF_ERROR(checkComponents(steps.size()));
  LLM_ASSIGN_OR_RETURN(std::string type, json::componentType(component));
  if (type == "Sequence") {
    const Json *parts = json::find(component, "pretokenizers");
    if (!parts || !parts->is_array())
      return Status::invalidInput("Sequence without 'pretokenizers'");
    for (const Json &part : *parts)
      LLM_RETURN_IF_ERROR(add(part));
    return Status::success();
  }
  Step step;
  if (type == "ByteLevel") {
    step.kind = Step::ByteLevel;
    LLM_ASSIGN_OR_RETURN(step.addPrefixSpace,
                         json::getBool(component, "add_prefix_space", true));
    LLM_ASSIGN_OR_RETURN(step.useRegex,
                         json::getBool(component, "use_regex", true));
    if (step.useRegex) {
      LLM_ASSIGN_OR_RETURN(Regex pattern, Regex::compile(byteLevelPattern));
      step.pattern.push_back(std::move(pattern));
    }
  } else if (type == "Split") {
    step.kind = Step::Split;
    LLM_ASSIGN_OR_RETURN(Regex pattern, parsePattern(component));
    step.pattern.push_back(std::move(pattern));
    LLM_ASSIGN_OR_RETURN(step.behavior, readBehavior(component, ""));
    LLM_ASSIGN_OR_RETURN(step.invert,
                         json::getBool(component, "invert", false));
  } else if (type == "Digits") {
    step.kind = Step::Digits;
    LLM_ASSIGN_OR_RETURN(step.individualDigits,
                         json::getBool(component, "individual_digits", false));
    step.behavior = step.individualDigits ? SplitBehavior::Isolated
                                          : SplitBehavior::Contiguous;
  } else if (type == "Metaspace") {
    step.kind = Step::Metaspace;
    step.behavior = SplitBehavior::MergedWithNext;
    LLM_RETURN_IF_ERROR(readMetaspace(component, step));
  } else if (type == "Whitespace") {
    step.kind = Step::Whitespace;
    step.behavior = SplitBehavior::Removed;
    step.invert = true;
  } else if (type == "WhitespaceSplit") {
    step.kind = Step::WhitespaceSplit;
    step.behavior = SplitBehavior::Removed;
  } else if (type == "Punctuation") {
    step.kind = Step::Punctuation;
    LLM_ASSIGN_OR_RETURN(step.behavior, readBehavior(component, "Isolated"));
  } else if (type == "CharDelimiterSplit") {
    step.kind = Step::CharDelimiter;
    step.behavior = SplitBehavior::Removed;
    LLM_ASSIGN_OR_RETURN(step.replacement,
                         json::requireString(component, "delimiter"));
    if (step.replacement.empty())
      return Status::invalidInput("CharDelimiterSplit: 'delimiter' is empty");
  } else {
    return Status::unsupported("pre-tokenizer '" + type + "'");
  }
  steps.push_back(std::move(step));
  return Status::success();
}

//===----------------------------------------------------------------------===//
// Applying
//===----------------------------------------------------------------------===//

static std::vector<ByteRange> literalMatches(std::string_view text,
                                             std::string_view literal) {
  std::vector<ByteRange> matches;
  for (size_t at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, at + literal.size()))
    matches.push_back({at, at + literal.size()});
  return matches;
}

Expected<std::vector<ByteRange>>
PreTokenizer::matchesOf(const Step &step, std::string_view text) {
  switch (step.kind) {
  case Step::ByteLevel:
  case Step::Split:
    return step.pattern.front().findAll(text);
  case Step::Digits:
    return charactersWith(text, unicode::isNumeric);
  case Step::Metaspace:
  case Step::CharDelimiter:
    return literalMatches(text, step.replacement);
  case Step::Whitespace:
    return wordsAndSymbols(text);
  case Step::WhitespaceSplit:
    return charactersWith(text, unicode::isWhitespace);
  case Step::Punctuation:
    return charactersWith(text, unicode::isPunctuation);
  }
  return Status::internal("unknown pre-tokenizer");
}

Status PreTokenizer::applyStep(const Step &step, Word word,
                               std::vector<Word> &out) {
  std::string &text = word.text;
  bool split = true;
  if (step.kind == Step::ByteLevel) {
    if (step.addPrefixSpace && !text.starts_with(' '))
      text.insert(0, 1, ' ');
    split = step.useRegex;
  } else if (step.kind == Step::Metaspace) {
    std::string replaced;
    for (char c : text) {
      if (c == ' ')
        replaced += step.replacement;
      else
        replaced += c;
    }
    text = std::move(replaced);
    bool prepend = step.scheme == Step::Always ||
                   (step.scheme == Step::First && word.atStart);
    if (prepend && !text.starts_with(step.replacement))
      text.insert(0, step.replacement);
    split = step.split;
  }
  std::vector<ByteRange> pieces{{0, text.size()}};
  if (split) {
    LLM_ASSIGN_OR_RETURN(std::vector<ByteRange> matches, matchesOf(step, text));
    pieces = splitByMatches(text, matches, step.behavior, step.invert);
  }
  for (ByteRange piece : pieces) {
    if (piece.begin >= piece.end)
      continue;
    std::string_view part(text.data() + piece.begin, piece.end - piece.begin);
    out.push_back({step.kind == Step::ByteLevel ? toByteAlphabet(part)
                                                : std::string(part),
                   word.atStart && piece.begin == 0});
  }
  return Status::success();
}

Status PreTokenizer::apply(std::vector<Word> &words) const {
  size_t before = 0;
  for (const Word &word : words)
    before += word.text.size();
  for (const Step &step : steps) {
    std::vector<Word> next;
    next.reserve(words.size());
    size_t after = 0, counted = 0;
    for (Word &word : words) {
      LLM_RETURN_IF_ERROR(applyStep(step, std::move(word), next));
      for (; counted < next.size(); ++counted)
        after += next[counted].text.size();
      LLM_RETURN_IF_ERROR(checkGrowth(before, after));
    }
    words = std::move(next);
  }
  return Status::success();
}

} // namespace llm::runtime
