//===- Normalizer.cpp - text before splitting -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/Normalizer.h"

#include "runtime/tokenizer/ByteAlphabet.h"
#include "runtime/tokenizer/Growth.h"
#include "runtime/tokenizer/Json.h"

#include <optional>

namespace llm::runtime {

using json::Json;

Expected<Regex> parsePattern(const Json &component) {
  const Json *pattern = json::find(component, "pattern");
  if (pattern && pattern->is_object() && pattern->size() == 1) {
    auto entry = pattern->items().begin();
    if (entry.value().is_string()) {
      const std::string &text = entry.value().get_ref<const std::string &>();
      if (entry.key() == "String")
        return Regex::literal(text);
      if (entry.key() == "Regex")
        return Regex::compile(text);
    }
  }
  return Status::invalidInput(
      R"('pattern' is neither {"String": …} nor {"Regex": …})");
}

Expected<std::string> replaceAll(const Regex &pattern, std::string_view text,
                                 std::string_view content) {
  LLM_ASSIGN_OR_RETURN(std::vector<ByteRange> matches, pattern.findAll(text));
  std::string result;
  size_t from = 0;
  for (ByteRange match : matches) {
    result += text.substr(from, match.begin - from);
    result += content;
    from = match.end;
    LLM_RETURN_IF_ERROR(checkGrowth(text.size(), result.size()));
  }
  result += text.substr(from);
  return result;
}

Expected<Normalizer> Normalizer::parse(const Json &component) {
  Normalizer normalizer;
  if (!component.is_null())
    LLM_RETURN_IF_ERROR(normalizer.add(component));
  return normalizer;
}

Status Normalizer::add(const Json &component) {
  LLM_RETURN_IF_ERROR(checkComponents(steps.size()));
  LLM_ASSIGN_OR_RETURN(std::string type, json::componentType(component));
  auto addForm = [&](unicode::Form form) {
    Step step;
    step.form = form;
    steps.push_back(std::move(step));
    return Status::success();
  };
  if (type == "Sequence") {
    const Json *parts = json::find(component, "normalizers");
    if (!parts || !parts->is_array())
      return Status::invalidInput("Sequence without 'normalizers'");
    for (const Json &part : *parts)
      LLM_RETURN_IF_ERROR(add(part));
    return Status::success();
  }
  if (type == "NFC")
    return addForm(unicode::Form::NFC);
  if (type == "NFD")
    return addForm(unicode::Form::NFD);
  if (type == "NFKC")
    return addForm(unicode::Form::NFKC);
  if (type == "NFKD")
    return addForm(unicode::Form::NFKD);

  Step step;
  if (type == "Lowercase") {
    step.kind = Step::Lowercase;
  } else if (type == "StripAccents") {
    step.kind = Step::StripAccents;
  } else if (type == "ByteLevel") {
    step.kind = Step::ByteLevel;
  } else if (type == "Strip") {
    step.kind = Step::Strip;
    LLM_ASSIGN_OR_RETURN(step.stripLeft,
                         json::getBool(component, "strip_left", true));
    LLM_ASSIGN_OR_RETURN(step.stripRight,
                         json::getBool(component, "strip_right", true));
  } else if (type == "Prepend") {
    step.kind = Step::Prepend;
    LLM_ASSIGN_OR_RETURN(step.content,
                         json::requireString(component, "prepend"));
  } else if (type == "Replace") {
    step.kind = Step::Replace;
    LLM_ASSIGN_OR_RETURN(step.content,
                         json::requireString(component, "content"));
    LLM_ASSIGN_OR_RETURN(Regex pattern, parsePattern(component));
    step.pattern.push_back(std::move(pattern));
  } else {
    return Status::unsupported("normalizer '" + type + "'");
  }
  steps.push_back(std::move(step));
  return Status::success();
}

static std::string mapCharacters(std::string_view text, auto &&appendTo) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    unicode::Decoded at = unicode::decodeAt(text, i);
    appendTo(result, at.codepoint);
    i += at.length;
  }
  return result;
}

static std::string strip(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    unicode::Decoded at = unicode::decodeAt(text, 0);
    if (!unicode::isWhitespace(at.codepoint))
      break;
    text.remove_prefix(at.length);
  }
  while (right && !text.empty()) {
    size_t last = unicode::previousCharacter(text, text.size());
    if (!unicode::isWhitespace(unicode::decodeAt(text, last).codepoint))
      break;
    text = text.substr(0, last);
  }
  return std::string(text);
}

Expected<std::string> Normalizer::apply(std::string text) const {
  size_t before = text.size();
  for (const Step &step : steps) {
    switch (step.kind) {
    case Step::UnicodeForm:
      text = unicode::normalize(text, step.form);
      break;
    case Step::Lowercase:
      text = mapCharacters(text, unicode::appendLower);
      break;
    case Step::StripAccents:
      text = mapCharacters(text, [](std::string &to, char32_t codepoint) {
        if (!unicode::isMark(codepoint))
          unicode::append(to, codepoint);
      });
      break;
    case Step::Strip:
      text = strip(text, step.stripLeft, step.stripRight);
      break;
    case Step::Prepend:
      if (!text.empty())
        text.insert(0, step.content);
      break;
    case Step::Replace: {
      LLM_ASSIGN_OR_RETURN(
          text, replaceAll(step.pattern.front(), text, step.content));
      break;
    }
    case Step::ByteLevel:
      text = toByteAlphabet(text);
      break;
    }
    LLM_RETURN_IF_ERROR(checkGrowth(before, text.size()));
  }
  return text;
}

} // namespace llm::runtime
