//===- ChatTemplate.h - a conversation as text -----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A conversation as the text, and the ids, that a model was trained on.

#ifndef LLM_RUNTIME_TOKENIZER_CHATTEMPLATE_H
#define LLM_RUNTIME_TOKENIZER_CHATTEMPLATE_H

#include "runtime/core/Status.h"
#include "runtime/tokenizer/Regex.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace llm::runtime {

struct ChatMessage {
  /// "system", "user" or "assistant", or what else the template knows.
  std::string role;
  std::string content;
};

/// A rendered conversation. The contents of the messages lie in `untrusted`,
/// wherever the template put them: spelling a special token there does not make
/// one.
struct RenderedChat {
  std::string text;
  std::vector<ByteRange> untrusted; // ascending, disjoint

  /// `text`, which must outlive the result, for Tokenizer::encode.
  std::vector<TextSpan> spans() const;
};

/// A chat template: a program in a subset of Jinja that covers what published
/// templates use. It sees `messages`, `add_generation_prompt`, `bos_token`,
/// `eos_token`, `unk_token`, `pad_token`, `tools` and `documents` (none), and
/// raise_exception, namespace, range, dict. There is no clock: a template that
/// asks for the date must have a default.
class ChatTemplate {
public:
  /// Parses `source`. Unsupported, with the line, for a construct that is not
  /// interpreted; InvalidInput where it is not a template.
  static Expected<ChatTemplate> parse(std::string_view source);
  /// The template of `tokenizer`; Unsupported if it has none.
  static Expected<ChatTemplate> of(const Tokenizer &tokenizer);

  ChatTemplate(ChatTemplate &&);
  ChatTemplate &operator=(ChatTemplate &&);
  ~ChatTemplate();

  /// The values of the variables that name special tokens.
  struct Tokens {
    std::string bos, eos, unk, pad;
  };

  /// Renders a conversation; with `addGenerationPrompt` up to where the answer
  /// starts. What the template itself refuses (roles out of order) is
  /// InvalidInput with its words.
  Expected<RenderedChat> render(std::span<const ChatMessage> messages,
                                const Tokens &tokens,
                                bool addGenerationPrompt) const;

  /// Renders with the special tokens of `tokenizer` and encodes.
  Expected<std::vector<int32_t>> encode(const Tokenizer &tokenizer,
                                        std::span<const ChatMessage> messages,
                                        bool addGenerationPrompt) const;

private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_TOKENIZER_CHATTEMPLATE_H
