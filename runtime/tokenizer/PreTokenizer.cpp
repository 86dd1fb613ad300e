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

/// Splits a text of `size` bytes by `matches` (ascending, disjoint); with
/// `invert` what lies between them takes their place. Pieces may be empty.
static void splitByMatches(size_t size, const std::vector<ByteRange> &matches,
                           SplitBehavior behavior, bool invert,
                           std::vector<ByteRange> &pieces) {
  pieces.clear();
  bool previous = false;
  auto put = [&](ByteRange range, bool isMatch) {
    bool joins = false;
    switch (behavior) {
    case SplitBehavior::Removed:
      if (isMatch)
        return;
      break;
    case SplitBehavior::Isolated:
      break;
    case SplitBehavior::Contiguous:
      joins = isMatch == previous;
      break;
    case SplitBehavior::MergedWithPrevious:
      joins = isMatch && !previous;
      break;
    case SplitBehavior::MergedWithNext:
      // Seen from the end: a match joins what follows it, which is no match.
      joins = previous && !isMatch;
      break;
    }
    previous = isMatch;
    if (joins && !pieces.empty())
      pieces.back().end = range.end;
    else
      pieces.push_back(range);
  };
  size_t from = 0;
  for (ByteRange match : matches) {
    if (from != match.begin)
      put({from, match.begin}, invert);
    put(match, !invert);
    from = match.end;
  }
  if (from != size)
    put({from, size}, invert);
}

/// Each character with a property, as a match of its own.
static void charactersWith(std::string_view text, auto &&property,
                           std::vector<ByteRange> &matches) {
  for (size_t i = 0; i < text.size();) {
    unicode::Decoded at = unicode::decodeAt(text, i);
    if (property(at.codepoint))
      matches.push_back({i, i + at.length});
    i += at.length;
  }
}

/// The matches of \w+|[^\w\s]+.
static void wordsAndSymbols(std::string_view text,
                            std::vector<ByteRange> &matches) {
  enum Class { Space, Letters, Symbols };
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

static void literalMatches(std::string_view text, std::string_view literal,
                           std::vector<ByteRange> &matches) {
  for (size_t at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, at + literal.size()))
    matches.push_back({at, at + literal.size()});
}

/// One text on its way through the steps. A word goes through all of them
/// before the next one does: so it stays in the processor's cache, and each
/// step needs memory for one word only.
class PreTokenizer::Run {
public:
  Run(const std::vector<Step> &steps, size_t bytes, const Sink &sink)
      : steps(steps), bytes(bytes), sink(sink), levels(steps.size()) {}

  /// Takes `text` through the steps from number `index` on.
  Status apply(size_t index, std::string_view text, bool atStart);

private:
  /// What a step works with. It is at one text at a time.
  struct Level {
    std::string text, part;
    std::vector<ByteRange> matches, pieces;
    size_t given = 0; ///< bytes, of all texts
  };
  static Status findMatches(const Step &step, std::string_view text,
                            std::vector<ByteRange> &matches);
  /// Puts before the text, or in the place of spaces, what the step says.
  static std::string_view rewrite(const Step &step, std::string_view text,
                                  bool atStart, std::string &memory);

  const std::vector<Step> &steps;
  size_t bytes;
  const Sink &sink;
  std::vector<Level> levels;
};

Status PreTokenizer::Run::findMatches(const Step &step, std::string_view text,
                                      std::vector<ByteRange> &matches) {
  matches.clear();
  switch (step.kind) {
  case Step::ByteLevel:
  case Step::Split:
    return step.pattern.front().findAll(text, matches);
  case Step::Digits:
    charactersWith(text, unicode::isNumeric, matches);
    break;
  case Step::Metaspace:
  case Step::CharDelimiter:
    literalMatches(text, step.replacement, matches);
    break;
  case Step::Whitespace:
    wordsAndSymbols(text, matches);
    break;
  case Step::WhitespaceSplit:
    charactersWith(text, unicode::isWhitespace, matches);
    break;
  case Step::Punctuation:
    charactersWith(text, unicode::isPunctuation, matches);
    break;
  }
  return Status::success();
}

std::string_view PreTokenizer::Run::rewrite(const Step &step,
                                            std::string_view text, bool atStart,
                                            std::string &memory) {
  if (step.kind == Step::ByteLevel) {
    if (!step.addPrefixSpace || text.starts_with(' '))
      return text;
    memory = ' ';
    memory += text;
    return memory;
  }
  if (step.kind != Step::Metaspace)
    return text;
  memory.clear();
  for (char c : text) {
    if (c == ' ')
      memory += step.replacement;
    else
      memory += c;
  }
  bool prepend =
      step.scheme == Step::Always || (step.scheme == Step::First && atStart);
  if (prepend && !memory.starts_with(step.replacement))
    memory.insert(0, step.replacement);
  return memory;
}

Status PreTokenizer::Run::apply(size_t index, std::string_view text,
                                bool atStart) {
  if (index == steps.size()) {
    sink(text);
    return Status::success();
  }
  const Step &step = steps[index];
  Level &level = levels[index];
  text = rewrite(step, text, atStart, level.text);
  bool split = step.kind == Step::ByteLevel   ? step.useRegex
               : step.kind == Step::Metaspace ? step.split
                                              : true;
  if (split) {
    LLM_RETURN_IF_ERROR(findMatches(step, text, level.matches));
    splitByMatches(text.size(), level.matches, step.behavior, step.invert,
                   level.pieces);
  } else {
    level.pieces.assign(1, {0, text.size()});
  }
  for (ByteRange piece : level.pieces) {
    if (piece.begin >= piece.end)
      continue;
    std::string_view part = text.substr(piece.begin, piece.end - piece.begin);
    if (step.kind == Step::ByteLevel) {
      toByteAlphabet(part, level.part);
      part = level.part;
    }
    level.given += part.size();
    LLM_RETURN_IF_ERROR(checkGrowth(bytes, level.given));
    LLM_RETURN_IF_ERROR(apply(index + 1, part, atStart && piece.begin == 0));
  }
  return Status::success();
}

Status PreTokenizer::apply(std::string_view text, bool atStart,
                           const Sink &sink) const {
  if (text.empty())
    return Status::success();
  return Run(steps, text.size(), sink).apply(0, text, atStart);
}

} // namespace llm::runtime
