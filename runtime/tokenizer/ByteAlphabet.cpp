//===- ByteAlphabet.cpp - characters for bytes ----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/ByteAlphabet.h"

#include "runtime/tokenizer/Unicode.h"

#include <array>

namespace llm::runtime {

namespace {
constexpr int standInEnd = 0x100 + 68;

struct Tables {
  std::array<char32_t, 256> toChar;
  std::array<int16_t, standInEnd> toByte;
};

constexpr Tables makeTables() {
  Tables tables{};
  tables.toByte.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bool printable = (byte >= 0x21 && byte <= 0x7E) ||
                     (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    char32_t codepoint = printable ? static_cast<char32_t>(byte) : next++;
    tables.toChar[static_cast<size_t>(byte)] = codepoint;
    tables.toByte[codepoint] = static_cast<int16_t>(byte);
  }
  return tables;
}

constexpr Tables tables = makeTables();
} // namespace

void toByteAlphabet(std::string_view text, std::string &result) {
  // All of the alphabet has one or two bytes in UTF-8.
  result.resize(text.size() * 2);
  size_t size = 0;
  for (char c : text) {
    char32_t stands = tables.toChar[static_cast<unsigned char>(c)];
    if (stands < 0x80) {
      result[size++] = static_cast<char>(stands);
    } else {
      result[size++] = static_cast<char>(0xC0 | stands >> 6);
      result[size++] = static_cast<char>(0x80 | (stands & 0x3F));
    }
  }
  result.resize(size);
}

std::string toByteAlphabet(std::string_view text) {
  std::string result;
  toByteAlphabet(text, result);
  return result;
}

std::optional<std::string> fromByteAlphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    unicode::Decoded at = unicode::decodeAt(text, i);
    if (at.kind != unicode::Decoded::Character || at.codepoint >= standInEnd ||
        tables.toByte[at.codepoint] < 0)
      return std::nullopt;
    bytes += static_cast<char>(tables.toByte[at.codepoint]);
    i += at.length;
  }
  return bytes;
}

} // namespace llm::runtime
