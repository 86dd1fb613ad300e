//===- AddedTokens.cpp - tokens found before the model --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/AddedTokens.h"

#include "runtime/tokenizer/Json.h"
#include "runtime/tokenizer/Unicode.h"

#include <algorithm>
#include <limits>

namespace llm::runtime {

using json::Json;

/// Looking for tokens costs their length at every byte of the text.
static constexpr size_t maxContentBytes = 4096;

Expected<AddedToken> AddedToken::parse(const Json &entry) {
  AddedToken token;
  const Json *id = json::find(entry, "id");
  std::optional<int32_t> value = id ? json::asTokenId(*id) : std::nullopt;
  if (!value || *value == std::numeric_limits<int32_t>::max())
    return Status::invalidInput("'id' is missing or not a token id");
  token.id = *value;
  LLM_ASSIGN_OR_RETURN(token.content, json::requireString(entry, "content"));
  if (token.content.size() > maxContentBytes)
    return Status::unsupported(
        "a token of " + std::to_string(token.content.size()) +
        " bytes (at most " + std::to_string(maxContentBytes) + ")");
  LLM_ASSIGN_OR_RETURN(token.singleWord,
                       json::getBool(entry, "single_word", false));
  LLM_ASSIGN_OR_RETURN(token.lstrip, json::getBool(entry, "lstrip", false));
  LLM_ASSIGN_OR_RETURN(token.rstrip, json::getBool(entry, "rstrip", false));
  LLM_ASSIGN_OR_RETURN(token.special, json::getBool(entry, "special", false));
  LLM_ASSIGN_OR_RETURN(token.normalized,
                       json::getBool(entry, "normalized", !token.special));
  return token;
}

void AddedTokenMatcher::add(const AddedToken &token,
                            std::string_view spelling) {
  if (spelling.empty())
    return;
  startsToken[static_cast<unsigned char>(spelling[0])] = true;
  size_t node = 0;
  for (char c : spelling) {
    auto byte = static_cast<unsigned char>(c);
    auto &edges = nodes[node].next;
    auto edge = std::find_if(edges.begin(), edges.end(),
                             [&](auto &entry) { return entry.first == byte; });
    if (edge != edges.end()) {
      node = static_cast<size_t>(edge->second);
      continue;
    }
    auto target = static_cast<int32_t>(nodes.size());
    edges.push_back({byte, target});
    nodes.emplace_back();
    node = static_cast<size_t>(target);
  }
  // The first token of a spelling keeps it.
  if (nodes[node].token < 0) {
    nodes[node].token = static_cast<int32_t>(tokens.size());
    tokens.push_back(token);
  }
}

std::optional<AddedTokenMatcher::Match>
AddedTokenMatcher::longestAt(std::string_view text, size_t begin) const {
  std::optional<Match> longest;
  size_t node = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    const auto &edges = nodes[node].next;
    auto edge = std::find_if(edges.begin(), edges.end(),
                             [&](auto &entry) { return entry.first == byte; });
    if (edge == edges.end())
      break;
    node = static_cast<size_t>(edge->second);
    if (nodes[node].token >= 0)
      longest = Match{nodes[node].token, i + 1};
  }
  return longest;
}

static bool endsWithWord(std::string_view text) {
  return !text.empty() &&
         unicode::isWord(unicode::decodeAt(text, unicode::previousCharacter(
                                                     text, text.size()))
                             .codepoint);
}

static bool startsWithWord(std::string_view text) {
  return !text.empty() && unicode::isWord(unicode::decodeAt(text, 0).codepoint);
}

/// The offset where the white space that ends at `end` starts, but not before
/// `limit`.
static size_t skipSpaceBack(std::string_view text, size_t end, size_t limit) {
  while (end > limit) {
    size_t previous = unicode::previousCharacter(text, end);
    if (!unicode::isWhitespace(unicode::decodeAt(text, previous).codepoint))
      break;
    end = previous;
  }
  return end;
}

static size_t skipSpace(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    unicode::Decoded at = unicode::decodeAt(text, begin);
    if (!unicode::isWhitespace(at.codepoint))
      break;
    begin += at.length;
  }
  return begin;
}

std::vector<TextPart>
AddedTokenMatcher::split(std::string_view text,
                         const std::vector<ByteRange> &untrusted) const {
  std::vector<TextPart> parts;
  size_t from = 0; // where the text not yet given to a part starts
  auto range = untrusted.begin();
  for (size_t i = 0; i < text.size() && !tokens.empty();) {
    if (!startsToken[static_cast<unsigned char>(text[i])]) {
      ++i;
      continue;
    }
    std::optional<Match> match = longestAt(text, i);
    if (!match) {
      ++i;
      continue;
    }
    const AddedToken &token = tokens[static_cast<size_t>(match->token)];
    if (token.special) {
      while (range != untrusted.end() && range->end <= i)
        ++range;
      if (range != untrusted.end() && range->begin < match->end) {
        // Refused. Wholly inside, it is consumed as text; where it only
        // touches, a token may still start later in it.
        bool inside = range->begin <= i && match->end <= range->end;
        i = inside ? match->end : i + 1;
        continue;
      }
    }
    size_t begin = i, end = match->end;
    i = match->end;
    if (token.singleWord && (endsWithWord(text.substr(0, begin)) ||
                             startsWithWord(text.substr(end))))
      continue;
    if (token.lstrip)
      begin = skipSpaceBack(text, begin, std::min(from, begin));
    if (token.rstrip)
      end = skipSpace(text, end);
    if (from < begin)
      parts.push_back({std::nullopt, {from, begin}});
    parts.push_back({token.id, {begin, end}});
    from = end;
  }
  if (from < text.size())
    parts.push_back({std::nullopt, {from, text.size()}});
  return parts;
}

} // namespace llm::runtime
