//===- OnigurumaSyntax.cpp - Oniguruma to PCRE2 ---------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/Regex.h"

#include "runtime/tokenizer/Unicode.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace llm::runtime {

namespace {

/// What \w and \h stand for, as the inside of a PCRE2 class. PCRE2's own \w
/// lacks marks and connectors; its \h is horizontal space, not hex digits.
/// Oniguruma counts the superscripts and fractions of Latin-1 to \w.
constexpr std::string_view wordClass =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\xB2\xB3\xB9\xBC-\xBE)";
constexpr std::string_view hexClass = "0-9A-Fa-f";
constexpr int maxClassDepth = 4;

/// POSIX brackets and named properties that PCRE2 lacks or defines otherwise,
/// as the inside of a class.
struct NamedClass {
  std::string_view name;
  std::string_view inside;
};
constexpr NamedClass posixClasses[] = {
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"alpha", R"(\p{Alphabetic})"},
    {"ascii", R"(\x00-\x7F)"},
    {"blank", R"(\t\p{Zs})"},
    {"cntrl", R"(\p{Cc})"},
    {"digit", R"(\p{Nd})"},
    {"lower", R"(\p{Lowercase})"},
    {"punct", R"(\p{P}\p{S})"},
    {"space", R"(\p{White_Space})"},
    {"upper", R"(\p{Uppercase})"},
    {"word", R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})"},
    {"xdigit", hexClass},
};

bool isHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
         (c >= 'A' && c <= 'F');
}
bool isDigit(char c) { return c >= '0' && c <= '9'; }

class Translator {
public:
  explicit Translator(std::string_view in) : in(in) {}

  Expected<std::string> run() {
    while (pos < in.size())
      LLM_RETURN_IF_ERROR(item());
    return std::move(out);
  }

private:
  std::string_view in;
  size_t pos = 0;
  std::string out;
  /// Where in `out` the last atom starts, for quantifiers that must wrap it.
  size_t atom = 0;
  std::vector<size_t> groups;

  bool at(std::string_view text) const {
    return in.substr(pos, text.size()) == text;
  }

  Status item() {
    char c = in[pos];
    if (c == '\\') {
      atom = out.size();
      return escape(/*inClass=*/false, out);
    }
    if (c == '[') {
      LLM_ASSIGN_OR_RETURN(std::string set, characterClass(0));
      atom = out.size();
      out += set;
      return Status::success();
    }
    if (c == '(')
      return open();
    if (c == ')') {
      ++pos;
      out += ')';
      if (!groups.empty()) {
        atom = groups.back();
        groups.pop_back();
      }
      return Status::success();
    }
    if (c == '{')
      return interval();
    if (c != '*' && c != '+' && c != '?')
      atom = out.size();
    // A whole character, so that a quantifier wraps all its bytes.
    size_t length = unicode::decodeAt(in, pos).length;
    out += in.substr(pos, length);
    pos += length;
    return Status::success();
  }

  /// "(" and what follows it up to the body of the group.
  Status open() {
    if (at("(*"))
      return Status::unsupported("'(*' (a verb or callout)");
    if (at("(?~"))
      return Status::unsupported("'(?~' (the absent operator)");
    groups.push_back(out.size());
    if (!at("(?")) {
      ++pos;
      out += '(';
      return Status::success();
    }
    size_t end = pos + 2;
    while (end < in.size() &&
           ((in[end] >= 'a' && in[end] <= 'z') || in[end] == '-'))
      ++end;
    bool isOptions =
        end > pos + 2 && end < in.size() && (in[end] == ':' || in[end] == ')');
    out += "(?";
    if (!isOptions) {
      pos += 2;
      return Status::success();
    }
    for (char option : in.substr(pos + 2, end - pos - 2)) {
      // Ruby's m is what others call s; its ^ and $ always see lines.
      if (option == 'm')
        out += 's';
      else if (option == 'i' || option == 'x' || option == '-')
        out += option;
      else
        return Status::unsupported(std::string("option '") + option + "'");
    }
    pos = end;
    return Status::success();
  }

  /// {n}, {n,}, {n,m}, {,m} with a possible suffix, or a literal brace.
  Status interval() {
    size_t end = pos + 1;
    auto digits = [&] {
      size_t begin = end;
      while (end < in.size() && isDigit(in[end]))
        ++end;
      return in.substr(begin, end - begin);
    };
    std::string_view low = digits(), high;
    bool comma = end < in.size() && in[end] == ',';
    if (comma) {
      ++end;
      high = digits();
    }
    if (end >= in.size() || in[end] != '}' || (low.empty() && high.empty())) {
      atom = out.size();
      out += "\\{";
      ++pos;
      return Status::success();
    }
    ++end;
    std::string bounds = "{" + std::string(low.empty() ? "0" : low);
    if (comma)
      bounds += "," + std::string(high);
    bounds += "}";
    char suffix = end < in.size() ? in[end] : '\0';
    out += bounds;
    pos = end;
    // Ruby reads {n,m}+ as (?:{n,m})+, not as possessive, and {n}? likewise.
    if (suffix == '+' || (suffix == '?' && !comma)) {
      out.insert(atom, "(?:");
      out += ')';
      out += suffix;
      ++pos;
    }
    return Status::success();
  }

  /// One escape, appended to `to`: the pattern, or the inside of a class.
  Status escape(bool inClass, std::string &to) {
    if (pos + 1 >= in.size())
      return Status::invalidInput("it ends in a backslash");
    char c = in[pos + 1];
    auto set = [&](std::string_view inside) {
      to += inClass ? std::string(inside) : "[" + std::string(inside) + "]";
      pos += 2;
      return Status::success();
    };
    auto emit = [&](std::string_view text) {
      to += text;
      pos += 2;
      return Status::success();
    };
    switch (c) {
    case 's': // PCRE2's \s also has U+180E.
      return emit("\\p{White_Space}");
    case 'S':
      return emit("\\P{White_Space}");
    case 'w':
      return set(wordClass);
    case 'h':
      return set(hexClass);
    case 'W':
    case 'H':
      if (inClass)
        return Status::unsupported(std::string("'\\") + c +
                                   "' inside a character class");
      return set("^" + std::string(c == 'W' ? wordClass : hexClass));
    case 'v':
      return emit("\\x0B");
    case 'Q':
    case 'E':
    case 'V':
    case 'L':
    case 'U':
      return emit(std::string_view(&c, 1));
    case 'O':
      if (!inClass)
        return emit("(?s:.)");
      break;
    case 'y':
    case 'Y':
    case 'C':
    case 'M':
      return Status::unsupported(std::string("'\\") + c + "'");
    case 'u':
      return unicodeEscape(to);
    case 'x':
      if (pos + 3 < in.size() && isHex(in[pos + 2]) && isHex(in[pos + 3]) &&
          in[pos + 2] >= '8')
        return Status::unsupported("'\\xHH' beyond ASCII (a raw byte)");
      break;
    case 'p':
    case 'P':
      return property(to);
    default:
      break;
    }
    size_t length = unicode::decodeAt(in, pos + 1).length;
    to += in.substr(pos, 1 + length);
    pos += 1 + length;
    return Status::success();
  }

  Status unicodeEscape(std::string &to) {
    std::string_view digits = in.substr(pos + 2, 4);
    if (digits.size() != 4 || !std::all_of(digits.begin(), digits.end(), isHex))
      return Status::invalidInput("'\\u' without four hexadecimal digits");
    to += "\\x{" + std::string(digits) + "}";
    pos += 6;
    return Status::success();
  }

  Status property(std::string &to) {
    size_t end = in.find('}', pos);
    if (pos + 2 >= in.size() || in[pos + 2] != '{' ||
        end == std::string_view::npos)
      return Status::invalidInput("'\\p' without '{…}'");
    std::string_view name = in.substr(pos + 3, end - pos - 3);
    std::string_view caret = name.starts_with('^') ? "^" : "";
    name.remove_prefix(caret.size());
    if (name == "Punct")
      name = "P";
    else if (name == "Digit")
      name = "Nd";
    to += in.substr(pos, 3);
    to += caret;
    to += name;
    to += '}';
    pos = end + 1;
    return Status::success();
  }

  /// "[:NAME:]", appended to the inside of a class.
  Status posixClass(std::string &to) {
    size_t end = in.find(":]", pos);
    if (end == std::string_view::npos)
      return Status::invalidInput("'[:' without ':]'");
    std::string_view name = in.substr(pos + 2, end - pos - 2);
    for (const NamedClass &known : posixClasses) {
      if (known.name != name)
        continue;
      to += known.inside;
      pos = end + 2;
      return Status::success();
    }
    return Status::unsupported("'[:" + std::string(name) + ":]'");
  }

  /// A class from its '[': the PCRE2 text that matches one character of it.
  Expected<std::string> characterClass(int depth) {
    if (depth > maxClassDepth)
      return Status::unsupported("deeply nested character classes");
    ++pos;
    bool negated = pos < in.size() && in[pos] == '^';
    if (negated)
      ++pos;
    std::string inside;
    std::vector<std::string> also; // classes to intersect with
    for (bool first = true;; first = false) {
      if (pos >= in.size())
        return Status::invalidInput("a character class without its ']'");
      char c = in[pos];
      if (c == ']' && !first) {
        ++pos;
        break;
      }
      if (c == '[' && at("[:")) {
        LLM_RETURN_IF_ERROR(posixClass(inside));
      } else if (c == '[') {
        return Status::unsupported("a character class inside another");
      } else if (at("&&")) {
        pos += 2;
        if (negated || pos >= in.size() || in[pos] != '[')
          return Status::unsupported("this use of '&&' in a character class");
        LLM_ASSIGN_OR_RETURN(std::string other, characterClass(depth + 1));
        also.push_back(std::move(other));
        if (pos >= in.size() || (in[pos] != ']' && !at("&&")))
          return Status::unsupported("this use of '&&' in a character class");
      } else if (c == '\\') {
        LLM_RETURN_IF_ERROR(escape(/*inClass=*/true, inside));
      } else {
        if (c == ']')
          inside += '\\';
        size_t length = unicode::decodeAt(in, pos).length;
        inside += in.substr(pos, length);
        pos += length;
      }
    }
    std::string set = (negated ? "[^" : "[") + inside + "]";
    if (also.empty())
      return set;
    std::string both = "(?:";
    for (const std::string &other : also)
      both += "(?=" + other + ")";
    return both + set + ")";
  }
};

} // namespace

Expected<std::string> translateOniguruma(std::string_view pattern) {
  if (!unicode::isValid(pattern))
    return Status::invalidInput("it is not UTF-8");
  return Translator(pattern).run();
}

} // namespace llm::runtime
