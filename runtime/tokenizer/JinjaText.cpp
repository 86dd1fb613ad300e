//===- JinjaText.cpp - string operations ----------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/JinjaText.h"

#include "runtime/tokenizer/Unicode.h"

#include <algorithm>

namespace llm::runtime::jinja {

/// White space by Python: White_Space and the separators U+001C to U+001F.
static bool isPythonSpace(char32_t codepoint) {
  return unicode::isWhitespace(codepoint) ||
         (codepoint >= 0x1C && codepoint <= 0x1F);
}

static bool isSpaceAt(std::string_view text, size_t offset) {
  return isPythonSpace(unicode::decodeAt(text, offset).codepoint);
}

size_t countCharacters(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

Text strip(const Text &text, const std::optional<std::string> &set, bool left,
           bool right) {
  std::string_view bytes = text.str();
  auto goes = [&](size_t begin, size_t length) {
    return set ? set->find(bytes.substr(begin, length)) != std::string::npos
               : isSpaceAt(bytes, begin);
  };
  size_t begin = 0, end = bytes.size();
  while (left && begin < end) {
    size_t length = unicode::decodeAt(bytes, begin).length;
    if (!goes(begin, length))
      break;
    begin += length;
  }
  while (right && begin < end) {
    size_t last = unicode::previousCharacter(bytes, end);
    if (!goes(last, end - last))
      break;
    end = last;
  }
  return text.slice(begin, end);
}

Text changeCase(const Text &text, std::string_view how) {
  std::string out;
  bool startsWord = true;
  for (size_t i = 0; i < text.size();) {
    unicode::Decoded at = unicode::decodeAt(text.str(), i);
    i += at.length;
    bool upper = how == "upper" || (how != "lower" && startsWord);
    if (upper)
      unicode::appendUpper(out, at.codepoint);
    else
      unicode::appendLower(out, at.codepoint);
    // A title has a capital after everything that is not a letter.
    startsWord = how == "title" &&
                 (!unicode::isWord(at.codepoint) ||
                  unicode::isNumeric(at.codepoint) || at.codepoint == '_');
  }
  return text.derive(std::move(out));
}

Expected<Value> replaceText(const Text &text, const Text &from, const Text &to,
                            int64_t count) {
  if (from.empty())
    return Status::unsupported("replacing an empty string");
  Text out;
  const std::string &bytes = text.str();
  size_t begin = 0;
  for (size_t at;
       count != 0 && (at = bytes.find(from.str(), begin)) != std::string::npos;
       --count) {
    out.append(text.slice(begin, at));
    out.append(to);
    begin = at + from.size();
    if (out.size() > maxValueWeight)
      return Status::resource("a replacement makes a text too large");
  }
  out.append(text.slice(begin, bytes.size()));
  return Value::string(std::move(out));
}

/// The separators of a text, in order.
static std::vector<ByteRange> separators(std::string_view text,
                                         std::string_view separator) {
  std::vector<ByteRange> found;
  if (!separator.empty()) {
    for (size_t at = text.find(separator); at != std::string_view::npos;
         at = text.find(separator, at + separator.size()))
      found.push_back({at, at + separator.size()});
    return found;
  }
  for (size_t i = 0; i < text.size();) {
    size_t length = unicode::decodeAt(text, i).length;
    if (isSpaceAt(text, i)) {
      if (!found.empty() && found.back().end == i)
        found.back().end = i + length;
      else
        found.push_back({i, i + length});
    }
    i += length;
  }
  return found;
}

List splitText(const Text &whole, std::string_view separator, int64_t most,
               bool fromRight) {
  bool bySpace = separator.empty();
  bool limited = most >= 0;
  // White space around the text separates nothing; where the number of splits
  // is limited, that at the far end may stay.
  Text text = bySpace ? strip(whole, std::nullopt, !limited || !fromRight,
                              !limited || fromRight)
                      : whole;
  std::vector<ByteRange> at = separators(text.str(), separator);
  if (limited && static_cast<uint64_t>(most) < at.size()) {
    auto keep = static_cast<std::ptrdiff_t>(most);
    if (fromRight)
      at.erase(at.begin(), at.end() - keep);
    else
      at.erase(at.begin() + keep, at.end());
  }
  List parts;
  auto add = [&](size_t begin, size_t end) {
    if (begin < end || !bySpace)
      parts.push_back(Value::string(text.slice(begin, end)));
  };
  size_t begin = 0;
  for (ByteRange range : at) {
    add(begin, range.begin);
    begin = range.end;
  }
  add(begin, text.size());
  return parts;
}

List splitLines(const Text &text) {
  List lines;
  const std::string &bytes = text.str();
  for (size_t begin = 0; begin < bytes.size();) {
    size_t end = std::min(bytes.find_first_of("\r\n", begin), bytes.size());
    lines.push_back(Value::string(text.slice(begin, end)));
    begin = end + 1;
    if (end + 1 < bytes.size() && bytes[end] == '\r' && bytes[end + 1] == '\n')
      ++begin;
  }
  return lines;
}

int64_t findText(const Text &text, const Text &part) {
  size_t at = text.str().find(part.str());
  if (at == std::string::npos)
    return -1;
  return static_cast<int64_t>(
      countCharacters(std::string_view(text.str()).substr(0, at)));
}

int64_t countText(const Text &text, const Text &part) {
  if (part.empty())
    return static_cast<int64_t>(countCharacters(text.str())) + 1;
  return static_cast<int64_t>(separators(text.str(), part.str()).size());
}

Text indentText(const Text &text, size_t width, bool first, bool blank) {
  Text out, spaces(std::string(width, ' '));
  const std::string &bytes = text.str();
  for (size_t begin = 0; begin <= bytes.size();) {
    size_t end = std::min(bytes.find('\n', begin), bytes.size());
    bool isFirst = begin == 0, isBlank = begin == end;
    if ((isFirst ? first : true) && (blank || !isBlank || (isFirst && first)))
      out.append(spaces);
    out.append(text.slice(begin, std::min(end + 1, bytes.size())));
    begin = end + 1;
  }
  return out;
}

bool allOf(const Text &text, bool digits) {
  for (size_t i = 0; i < text.size();) {
    unicode::Decoded at = unicode::decodeAt(text.str(), i);
    if (digits ? !(at.codepoint >= '0' && at.codepoint <= '9')
               : !isPythonSpace(at.codepoint))
      return false;
    i += at.length;
  }
  return !text.empty();
}

} // namespace llm::runtime::jinja
