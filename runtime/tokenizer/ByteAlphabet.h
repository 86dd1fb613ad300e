//===- ByteAlphabet.h - characters for bytes -------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The printable stand-ins of byte-level BPE: one character for each byte.

#ifndef LLM_RUNTIME_TOKENIZER_BYTEALPHABET_H
#define LLM_RUNTIME_TOKENIZER_BYTEALPHABET_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llm::runtime {

/// Each byte of `text` as its character: printable Latin-1 stands for itself,
/// the other 68 bytes are U+0100 and on, in order. Source: Radford et al.,
/// "Language Models are Unsupervised Multitask Learners" (GPT-2), its encoder.
std::string toByteAlphabet(std::string_view text);
/// As above, into `result`, whose memory is used again.
void toByteAlphabet(std::string_view text, std::string &result);

/// The bytes that `text` stands for, or nothing if a character of it is not in
/// the alphabet.
std::optional<std::string> fromByteAlphabet(std::string_view text);

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_BYTEALPHABET_H
