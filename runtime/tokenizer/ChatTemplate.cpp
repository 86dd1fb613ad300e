//===- ChatTemplate.cpp - a conversation as text --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/ChatTemplate.h"

#include "runtime/tokenizer/JinjaInterpreter.h"
#include "runtime/tokenizer/JinjaSyntax.h"
#include "runtime/tokenizer/Unicode.h"

namespace llm::runtime {

using namespace jinja;

/// Published templates have up to some 20 KB.
static constexpr size_t maxTemplateBytes = 1 << 20;

std::vector<TextSpan> RenderedChat::spans() const {
  std::vector<TextSpan> spans;
  std::string_view view = text;
  size_t from = 0;
  for (ByteRange range : untrusted) {
    if (from < range.begin)
      spans.push_back({view.substr(from, range.begin - from), true});
    spans.push_back({view.substr(range.begin, range.end - range.begin), false});
    from = range.end;
  }
  if (from < view.size())
    spans.push_back({view.substr(from), true});
  return spans;
}

struct ChatTemplate::Impl {
  Body body;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl)
    : impl(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate &&) = default;
ChatTemplate &ChatTemplate::operator=(ChatTemplate &&) = default;
ChatTemplate::~ChatTemplate() = default;

Expected<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  return catchExceptions([&]() -> Expected<ChatTemplate> {
    if (source.size() > maxTemplateBytes || !unicode::isValid(source))
      return Status::invalidInput("chat template: not UTF-8, or larger than "
                                  "1 MiB");
    Expected<Body> body = jinja::parse(source);
    if (!body)
      return body.takeStatus().withContext("chat template");
    return ChatTemplate(std::make_unique<Impl>(Impl{*std::move(body)}));
  });
}

Expected<ChatTemplate> ChatTemplate::of(const Tokenizer &tokenizer) {
  if (tokenizer.config().chatTemplate.empty())
    return Status::unsupported("the model has no chat template");
  return parse(tokenizer.config().chatTemplate);
}

static Expected<Value> messageList(std::span<const ChatMessage> messages) {
  List list;
  for (const ChatMessage &message : messages) {
    Text content(unicode::toValid(message.content), /*trusted=*/false);
    // The role is the program's word, unless it is none that templates know.
    bool known = message.role == "system" || message.role == "user" ||
                 message.role == "assistant";
    Text role(unicode::toValid(message.role), known);
    LLM_ASSIGN_OR_RETURN(
        Value entry,
        Value::dict({{Text("role"), Value::string(std::move(role))},
                     {Text("content"), Value::string(std::move(content))}}));
    list.push_back(std::move(entry));
  }
  return Value::list(std::move(list));
}

Expected<RenderedChat>
ChatTemplate::render(std::span<const ChatMessage> messages,
                     const Tokens &tokens, bool addGenerationPrompt) const {
  return catchExceptions([&]() -> Expected<RenderedChat> {
    LLM_ASSIGN_OR_RETURN(Value list, messageList(messages));
    auto token = [](const std::string &spelled) {
      return Value::string(Text(spelled));
    };
    Interpreter interpreter({
        {Text("messages"), std::move(list)},
        {Text("add_generation_prompt"), Value::boolean(addGenerationPrompt)},
        {Text("bos_token"), token(tokens.bos)},
        {Text("eos_token"), token(tokens.eos)},
        {Text("unk_token"), token(tokens.unk)},
        {Text("pad_token"), token(tokens.pad)},
        {Text("tools"), Value::none()},
        {Text("documents"), Value::none()},
    });
    Expected<Text> text = interpreter.run(impl->body);
    if (!text)
      return text.takeStatus().withContext("chat template");
    return RenderedChat{text->str(), text->untrusted()};
  });
}

Expected<std::vector<int32_t>>
ChatTemplate::encode(const Tokenizer &tokenizer,
                     std::span<const ChatMessage> messages,
                     bool addGenerationPrompt) const {
  auto spell = [&](std::optional<int32_t> id) {
    return id ? tokenizer.piece(*id).value_or("") : std::string();
  };
  Tokens tokens;
  tokens.bos = spell(tokenizer.bosId());
  tokens.unk = spell(tokenizer.unkId());
  tokens.pad = spell(tokenizer.padId());
  if (!tokenizer.eosIds().empty())
    tokens.eos = spell(tokenizer.eosIds().front());
  LLM_ASSIGN_OR_RETURN(RenderedChat chat,
                       render(messages, tokens, addGenerationPrompt));
  // BOS is the template's business.
  return tokenizer.encode(chat.spans(), /*addSpecial=*/false);
}

} // namespace llm::runtime
