//===- Printable.cpp - Text of files in messages --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Printable.h"

namespace llm::runtime {

static bool continuesCharacter(char byte) { return (byte & 0xc0) == 0x80; }

static void appendPrintable(std::string &result, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (char byte : text) {
    if (byte == '\n') {
      result += "\\n";
    } else if (byte == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) {
      result += "\\x";
      result += digits[static_cast<size_t>(byte) / 16];
      result += digits[static_cast<size_t>(byte) % 16];
    } else {
      result += byte;
    }
  }
}

std::string printable(std::string_view text) {
  constexpr size_t half = 4096;
  std::string result;
  if (text.size() <= 2 * half) {
    appendPrintable(result, text);
    return result;
  }
  size_t first = half, last = text.size() - half;
  while (first > 0 && continuesCharacter(text[first]))
    --first;
  while (last < text.size() && continuesCharacter(text[last]))
    ++last;
  appendPrintable(result, text.substr(0, first));
  result += " ... " + std::to_string(last - first) + " bytes ... ";
  appendPrintable(result, text.substr(last));
  return result;
}

} // namespace llm::runtime
