//===- JinjaLexer.cpp - tokens of chat templates --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/JinjaSyntax.h"

#include "runtime/tokenizer/Unicode.h"

#include <algorithm>
#include <charconv>

namespace llm::runtime::jinja {

namespace {

bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Line ends as "\n", and one at the end of the template dropped.
std::string normalizeLines(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n')
        ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n'))
    text.pop_back();
  return text;
}

class Lexer {
public:
  explicit Lexer(std::string source) : source(std::move(source)) {}

  Expected<std::vector<Token>> run() {
    while (pos < source.size())
      LLM_RETURN_IF_ERROR(data());
    add(Token::End, "");
    return std::move(tokens);
  }

private:
  Status error(std::string message) const {
    return Status::invalidInput("line " + std::to_string(line) + ": " +
                                std::move(message));
  }
  bool at(std::string_view text) const {
    return std::string_view(source).substr(pos, text.size()) == text;
  }
  void add(Token::Kind kind, std::string text) {
    Token token;
    token.kind = kind;
    token.line = line;
    token.text = std::move(text);
    tokens.push_back(std::move(token));
  }
  /// Moves on to `end`, counting lines.
  void advanceTo(size_t end) {
    line += static_cast<int>(
        std::count(source.begin() + static_cast<std::ptrdiff_t>(pos),
                   source.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    pos = end;
  }

  /// Text up to the next tag, and the tag.
  Status data() {
    size_t tag = pos;
    while ((tag = source.find('{', tag)) != std::string::npos &&
           (tag + 1 >= source.size() ||
            std::string_view("{%#").find(source[tag + 1]) ==
                std::string_view::npos))
      ++tag;
    if (tag == std::string::npos) {
      add(Token::Data, source.substr(pos));
      advanceTo(source.size());
      return Status::success();
    }
    std::string text = source.substr(pos, tag - pos);
    char kind = source[tag + 1];
    char sign = tag + 2 < source.size() ? source[tag + 2] : '\0';
    if (sign == '-') {
      while (!text.empty() && isSpace(text.back()))
        text.pop_back();
    } else if (sign != '+' && kind != '{') {
      // Indentation before a block is not output.
      size_t lineStart = text.rfind('\n');
      lineStart = lineStart == std::string::npos ? 0 : lineStart + 1;
      bool wholeLine = lineStart > 0 || pos == 0 || source[pos - 1] == '\n';
      if (wholeLine &&
          std::all_of(text.begin() + static_cast<std::ptrdiff_t>(lineStart),
                      text.end(), isSpace))
        text.erase(lineStart);
    }
    if (!text.empty())
      add(Token::Data, std::move(text));
    advanceTo(tag + 2 + (sign == '-' || sign == '+' ? 1 : 0));
    if (kind == '#')
      return comment();
    bool block = kind == '%';
    add(block ? Token::BlockBegin : Token::PrintBegin, "");
    return inside(block);
  }

  /// After an end of tag: "-" eats all white space, a block's end one newline.
  void afterTag(bool strip, bool block) {
    size_t end = pos;
    if (strip)
      while (end < source.size() && isSpace(source[end]))
        ++end;
    else if (block && end < source.size() && source[end] == '\n')
      ++end;
    advanceTo(end);
  }

  Status comment() {
    size_t end = source.find("#}", pos);
    if (end == std::string::npos)
      return error("a comment without its end");
    char sign = end > pos ? source[end - 1] : '\0';
    advanceTo(end + 2);
    afterTag(sign == '-', sign != '+');
    return Status::success();
  }

  /// The tokens of a tag, with its end.
  Status inside(bool block) {
    std::string_view close = block ? "%}" : "}}";
    int brackets = 0;
    for (;;) {
      while (pos < source.size() && isSpace(source[pos]))
        advanceTo(pos + 1);
      if (pos >= source.size())
        return error("a tag without its end");
      bool signedEnd = (source[pos] == '-' || (block && source[pos] == '+')) &&
                       std::string_view(source).substr(pos + 1, 2) == close;
      if (brackets == 0 && (signedEnd || at(close))) {
        char sign = signedEnd ? source[pos] : '\0';
        add(block ? Token::BlockEnd : Token::PrintEnd, "");
        advanceTo(pos + (signedEnd ? 3 : 2));
        afterTag(sign == '-', block && sign != '+');
        return Status::success();
      }
      char c = source[pos];
      if (c == '(' || c == '[' || c == '{')
        ++brackets;
      if (c == ')' || c == ']' || c == '}')
        --brackets;
      LLM_RETURN_IF_ERROR(token());
    }
  }

  Status token() {
    char c = source[pos];
    if (isNameStart(c)) {
      size_t end = pos;
      while (end < source.size() &&
             (isNameStart(source[end]) || isDigit(source[end])))
        ++end;
      add(Token::Name, source.substr(pos, end - pos));
      advanceTo(end);
      return Status::success();
    }
    if (isDigit(c))
      return number();
    if (c == '"' || c == '\'')
      return string(c);
    constexpr std::string_view operators[] = {
        "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "(",
        ")",  "[",  "]",  "{",  "}",  "<",  ">", "=", ".", ",", ":", "|"};
    for (std::string_view spelled : operators) {
      if (!at(spelled))
        continue;
      add(Token::Operator, std::string(spelled));
      advanceTo(pos + spelled.size());
      return Status::success();
    }
    return error("unexpected '" +
                 source.substr(pos, unicode::decodeAt(source, pos).length) +
                 "'");
  }

  Status number() {
    size_t end = pos;
    while (end < source.size() && isDigit(source[end]))
      ++end;
    auto digits = [&] {
      while (end < source.size() && isDigit(source[end]))
        ++end;
    };
    auto digitAt = [&](size_t at) {
      return at < source.size() && isDigit(source[at]);
    };
    // "1.items" is not a number with a fraction.
    bool isFloat =
        end < source.size() && source[end] == '.' && digitAt(end + 1);
    if (isFloat) {
      ++end;
      digits();
    }
    if (end < source.size() && (source[end] == 'e' || source[end] == 'E')) {
      bool sign = end + 1 < source.size() &&
                  (source[end + 1] == '+' || source[end + 1] == '-');
      if (digitAt(end + 1 + sign)) {
        isFloat = true;
        end += 1 + sign;
        digits();
      }
    }
    Token token;
    token.line = line;
    const char *first = source.data() + pos, *last = source.data() + end;
    std::from_chars_result result{};
    if (isFloat) {
      token.kind = Token::Float;
      result = std::from_chars(first, last, token.number);
    } else {
      token.kind = Token::Integer;
      result = std::from_chars(first, last, token.integer);
    }
    if (result.ec != std::errc())
      return error("a number out of range");
    tokens.push_back(std::move(token));
    advanceTo(end);
    return Status::success();
  }

  Status string(char quote) {
    std::string text;
    size_t i = pos + 1;
    while (i < source.size() && source[i] != quote) {
      if (source[i] != '\\' || i + 1 >= source.size()) {
        text += source[i++];
        continue;
      }
      LLM_RETURN_IF_ERROR(escape(i, text));
    }
    if (i >= source.size())
      return error("a string without its end");
    add(Token::String, std::move(text));
    advanceTo(i + 1);
    return Status::success();
  }

  /// A backslash at `i` and what it escapes, as in Python.
  Status escape(size_t &i, std::string &text) {
    constexpr std::string_view from = "ntr\\'\"bfav0",
                               to("\n\t\r\\'\"\b\f\a\v\0", 11);
    char c = source[i + 1];
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      uint32_t codepoint = 0;
      const char *first = source.data() + i + 2;
      if (i + 2 + digits > source.size() ||
          std::from_chars(first, first + digits, codepoint, 16).ptr !=
              first + digits ||
          codepoint > 0x10FFFF || (codepoint >= 0xD800 && codepoint < 0xE000))
        return error("a string with a malformed escape");
      unicode::append(text, codepoint);
      i += 2 + digits;
      return Status::success();
    }
    if (size_t known = from.find(c); known != std::string_view::npos)
      text += to[known];
    else if (c != '\n') // a backslash at the end of a line joins two
      (text += '\\') += c;
    i += 2;
    return Status::success();
  }

  std::string source;
  size_t pos = 0;
  int line = 1;
  std::vector<Token> tokens;
};

} // namespace

Expected<std::vector<Token>> tokenize(std::string_view source) {
  return Lexer(normalizeLines(source)).run();
}

} // namespace llm::runtime::jinja
