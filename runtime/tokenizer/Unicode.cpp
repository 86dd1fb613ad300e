//===- Unicode.cpp - UTF-8 and characters ---------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/Unicode.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utf8proc.h>
#include <utility>
#include <vector>

namespace llm::runtime::unicode {

static bool isContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

Decoded decodeAt(std::string_view text, size_t offset) {
  auto byteAt = [&](size_t index) {
    return static_cast<unsigned char>(text[index]);
  };
  unsigned char lead = byteAt(offset);
  if (lead < 0x80)
    return {lead, 1, Decoded::Character};

  // The first continuation byte has a narrower range after some lead bytes:
  // that excludes overlong forms, surrogates and values past U+10FFFF
  // (Unicode 15, table 3-7).
  unsigned needed;
  unsigned char low = 0x80, high = 0xBF;
  char32_t codepoint;
  if (lead >= 0xC2 && lead <= 0xDF) {
    needed = 1;
    codepoint = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    needed = 2;
    codepoint = lead & 0x0F;
    if (lead == 0xE0)
      low = 0xA0;
    if (lead == 0xED)
      high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    needed = 3;
    codepoint = lead & 0x07;
    if (lead == 0xF0)
      low = 0x90;
    if (lead == 0xF4)
      high = 0x8F;
  } else {
    return {0, 1, Decoded::Invalid};
  }
  for (unsigned i = 1; i <= needed; ++i) {
    if (offset + i >= text.size())
      return {0, static_cast<uint8_t>(i), Decoded::Incomplete};
    unsigned char byte = byteAt(offset + i);
    if (byte < low || byte > high)
      return {0, static_cast<uint8_t>(i), Decoded::Invalid};
    low = 0x80;
    high = 0xBF;
    codepoint = (codepoint << 6) | (byte & 0x3F);
  }
  return {codepoint, static_cast<uint8_t>(needed + 1), Decoded::Character};
}

size_t previousCharacter(std::string_view text, size_t offset) {
  assert(offset > 0 && offset <= text.size() && "nothing before the offset");
  --offset;
  while (offset > 0 && isContinuation(static_cast<unsigned char>(text[offset])))
    --offset;
  return offset;
}

void append(std::string &text, char32_t codepoint) {
  auto push = [&](unsigned value) { text += static_cast<char>(value); };
  if (codepoint < 0x80) {
    push(codepoint);
  } else if (codepoint < 0x800) {
    push(0xC0 | (codepoint >> 6));
    push(0x80 | (codepoint & 0x3F));
  } else if (codepoint < 0x10000) {
    push(0xE0 | (codepoint >> 12));
    push(0x80 | ((codepoint >> 6) & 0x3F));
    push(0x80 | (codepoint & 0x3F));
  } else {
    push(0xF0 | (codepoint >> 18));
    push(0x80 | ((codepoint >> 12) & 0x3F));
    push(0x80 | ((codepoint >> 6) & 0x3F));
    push(0x80 | (codepoint & 0x3F));
  }
}

bool isValid(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    // Most bytes are ASCII: eight at a time.
    uint64_t bytes;
    if (text.size() - i >= sizeof(bytes)) {
      std::memcpy(&bytes, text.data() + i, sizeof(bytes));
      if (!(bytes & 0x8080808080808080)) {
        i += sizeof(bytes);
        continue;
      }
    }
    Decoded at = decodeAt(text, i);
    if (at.kind != Decoded::Character)
      return false;
    i += at.length;
  }
  return true;
}

std::string toValid(std::string_view text) {
  if (isValid(text))
    return std::string(text);
  std::string valid;
  valid.reserve(text.size());
  LossyStream stream(valid);
  stream.append(text);
  stream.flush();
  return valid;
}

void LossyStream::append(std::string_view bytes) {
  held += bytes;
  give(/*all=*/false);
}

void LossyStream::flush() { give(/*all=*/true); }

void LossyStream::give(bool all) {
  size_t i = 0;
  while (i < held.size()) {
    Decoded at = decodeAt(held, i);
    if (at.kind == Decoded::Incomplete && !all)
      break;
    out += at.kind == Decoded::Character
               ? std::string_view(held).substr(i, at.length)
               : replacementCharacter;
    i += at.length;
  }
  held.erase(0, i);
}

static utf8proc_category_t category(char32_t codepoint) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(codepoint));
}

bool isWhitespace(char32_t codepoint) {
  if ((codepoint >= 0x09 && codepoint <= 0x0D) || codepoint == 0x85)
    return true;
  utf8proc_category_t cat = category(codepoint);
  return cat == UTF8PROC_CATEGORY_ZS || cat == UTF8PROC_CATEGORY_ZL ||
         cat == UTF8PROC_CATEGORY_ZP;
}

bool isWord(char32_t codepoint) {
  switch (category(codepoint)) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_PC:
    return true;
  case UTF8PROC_CATEGORY_SO:
    // The alphabetic symbols (Other_Alphabetic): circled and squared letters.
    return (codepoint >= 0x24B6 && codepoint <= 0x24E9) ||
           (codepoint >= 0x1F130 && codepoint <= 0x1F149) ||
           (codepoint >= 0x1F150 && codepoint <= 0x1F169) ||
           (codepoint >= 0x1F170 && codepoint <= 0x1F189);
  default:
    return codepoint == 0x200C || codepoint == 0x200D;
  }
}

bool isNumeric(char32_t codepoint) {
  if (codepoint < 0x80)
    return codepoint >= '0' && codepoint <= '9';
  utf8proc_category_t cat = category(codepoint);
  return cat == UTF8PROC_CATEGORY_ND || cat == UTF8PROC_CATEGORY_NL ||
         cat == UTF8PROC_CATEGORY_NO;
}

bool isPunctuation(char32_t codepoint) {
  if (codepoint < 0x80)
    return (codepoint >= 0x21 && codepoint <= 0x2F) ||
           (codepoint >= 0x3A && codepoint <= 0x40) ||
           (codepoint >= 0x5B && codepoint <= 0x60) ||
           (codepoint >= 0x7B && codepoint <= 0x7E);
  utf8proc_category_t cat = category(codepoint);
  return cat >= UTF8PROC_CATEGORY_PC && cat <= UTF8PROC_CATEGORY_PO;
}

bool isMark(char32_t codepoint) {
  utf8proc_category_t cat = category(codepoint);
  return cat == UTF8PROC_CATEGORY_MN || cat == UTF8PROC_CATEGORY_MC ||
         cat == UTF8PROC_CATEGORY_ME;
}

void appendLower(std::string &text, char32_t codepoint) {
  // The one unconditional lower-case mapping to two characters
  // (SpecialCasing.txt).
  if (codepoint == 0x130) {
    text += "i\xCC\x87";
    return;
  }
  append(text, static_cast<char32_t>(
                   utf8proc_tolower(static_cast<utf8proc_int32_t>(codepoint))));
}

void appendUpper(std::string &text, char32_t codepoint) {
  if (codepoint == 0xDF) {
    text += "SS";
    return;
  }
  append(text, static_cast<char32_t>(
                   utf8proc_toupper(static_cast<utf8proc_int32_t>(codepoint))));
}

static int combiningClass(utf8proc_int32_t codepoint) {
  return utf8proc_get_property(codepoint)->combining_class;
}

/// Sorts a run of combining marks by class, keeping the order within a class.
static void orderMarks(std::vector<utf8proc_int32_t>::iterator begin,
                       std::vector<utf8proc_int32_t>::iterator end) {
  auto less = [](utf8proc_int32_t a, utf8proc_int32_t b) {
    return combiningClass(a) < combiningClass(b);
  };
  if (std::is_sorted(begin, end, less))
    return;
  struct Mark {
    int order;
    size_t index;
    utf8proc_int32_t codepoint;
  };
  std::vector<Mark> marks;
  for (auto it = begin; it != end; ++it)
    marks.push_back({combiningClass(*it), marks.size(), *it});
  std::sort(marks.begin(), marks.end(), [](const Mark &a, const Mark &b) {
    return std::pair(a.order, a.index) < std::pair(b.order, b.index);
  });
  std::transform(marks.begin(), marks.end(), begin,
                 [](const Mark &mark) { return mark.codepoint; });
}

std::string normalize(std::string_view text, Form form) {
  bool compose = form == Form::NFC || form == Form::NFKC;
  bool compatible = form == Form::NFKC || form == Form::NFKD;
  if (std::all_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return std::string(text);

  // utf8proc's own ordering of combining marks is an insertion sort, which a
  // long run of marks makes quadratic: decompose without it and sort here.
  auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                     (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> codepoints;
  codepoints.reserve(text.size());
  int boundary = 0;
  for (size_t i = 0; i < text.size();) {
    Decoded at = decodeAt(text, i);
    i += at.length;
    // The longest decomposition (U+FDFA) has 18 characters.
    utf8proc_int32_t buffer[32];
    utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(at.codepoint),
                                buffer, 32, options, &boundary);
    assert(count >= 0 && count <= 32 && "decomposition of a valid character");
    codepoints.insert(codepoints.end(), buffer, buffer + count);
  }
  for (auto run = codepoints.begin(); run != codepoints.end();) {
    if (combiningClass(*run) == 0) {
      ++run;
      continue;
    }
    auto end = std::find_if(run, codepoints.end(), [](utf8proc_int32_t c) {
      return combiningClass(c) == 0;
    });
    orderMarks(run, end);
    run = end;
  }
  if (compose) {
    utf8proc_ssize_t count = utf8proc_normalize_utf32(
        codepoints.data(), static_cast<utf8proc_ssize_t>(codepoints.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    assert(count >= 0 && "composition of valid characters");
    codepoints.resize(static_cast<size_t>(count));
  }
  std::string normal;
  normal.reserve(text.size());
  for (utf8proc_int32_t codepoint : codepoints)
    append(normal, static_cast<char32_t>(codepoint));
  return normal;
}

} // namespace llm::runtime::unicode
