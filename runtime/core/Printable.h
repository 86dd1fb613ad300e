//===- Printable.h - Text of files in messages ------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_CORE_PRINTABLE_H
#define LLM_RUNTIME_CORE_PRINTABLE_H

#include <string>
#include <string_view>

namespace llm::runtime {

/// `text` in one line: control characters, which would break it or command the
/// terminal, as \n, \t or \x1b; the middle of what is longer than 8 KiB left
/// out. Messages quote names that files give.
std::string printable(std::string_view text);

} // namespace llm::runtime

#endif // LLM_RUNTIME_CORE_PRINTABLE_H
