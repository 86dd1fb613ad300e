//===- PostProcessor.cpp - ids around a text ------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/PostProcessor.h"

#include "runtime/tokenizer/Json.h"

namespace llm::runtime {

using json::Json;

/// The ids of one {"SpecialToken": {"id": NAME}} of a template.
static Status appendSpecial(const Json &component, const Json &special,
                            std::vector<int32_t> &ids) {
  LLM_ASSIGN_OR_RETURN(std::string name, json::requireString(special, "id"));
  const Json *table = json::find(component, "special_tokens");
  const Json *entry = table ? json::find(*table, name) : nullptr;
  const Json *values = entry ? json::find(*entry, "ids") : nullptr;
  if (!values || !values->is_array())
    return Status::invalidInput("the template's token '" + name +
                                "' is not among its special_tokens");
  for (const Json &value : *values) {
    std::optional<int32_t> id = json::asTokenId(value);
    if (!id)
      return Status::invalidInput("special token '" + name +
                                  "': not a token id");
    ids.push_back(*id);
  }
  return Status::success();
}

static Status readTemplate(const Json &component, PostProcessor &processor) {
  const Json *single = json::find(component, "single");
  if (!single || !single->is_array())
    return Status::invalidInput("TemplateProcessing without 'single'");
  bool seenText = false;
  for (const Json &item : *single) {
    if (const Json *special = json::find(item, "SpecialToken")) {
      LLM_RETURN_IF_ERROR(appendSpecial(
          component, *special, seenText ? processor.suffix : processor.prefix));
      continue;
    }
    const Json *sequence = json::find(item, "Sequence");
    if (!sequence)
      return Status::invalidInput(
          "TemplateProcessing: neither a SpecialToken nor a Sequence");
    LLM_ASSIGN_OR_RETURN(std::string name,
                         json::getString(*sequence, "id", ""));
    if (name != "A" || seenText)
      return Status::unsupported(
          "a template for one text that is not that text once");
    seenText = true;
  }
  if (!seenText)
    return Status::unsupported("a template for one text without the text");
  return Status::success();
}

/// The id of a pair ["<s>", 0].
static Expected<int32_t> readPair(const Json &component, std::string_view key) {
  const Json *pair = json::find(component, key);
  std::optional<int32_t> id;
  if (pair && pair->is_array() && pair->size() == 2)
    id = json::asTokenId((*pair)[1]);
  if (!id)
    return Status::invalidInput("'" + std::string(key) +
                                "' is not a token with its id");
  return *id;
}

Expected<PostProcessor> PostProcessor::parse(const Json &component) {
  PostProcessor processor;
  if (component.is_null())
    return processor;
  LLM_ASSIGN_OR_RETURN(std::string type, json::componentType(component));
  if (type == "ByteLevel")
    return processor;
  if (type == "TemplateProcessing") {
    LLM_RETURN_IF_ERROR(readTemplate(component, processor));
    return processor;
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    LLM_ASSIGN_OR_RETURN(int32_t first, readPair(component, "cls"));
    LLM_ASSIGN_OR_RETURN(int32_t last, readPair(component, "sep"));
    processor.prefix = {first};
    processor.suffix = {last};
    return processor;
  }
  if (type == "Sequence") {
    const Json *parts = json::find(component, "processors");
    if (!parts || !parts->is_array())
      return Status::invalidInput("Sequence without 'processors'");
    for (const Json &part : *parts) {
      LLM_ASSIGN_OR_RETURN(PostProcessor next, parse(part));
      // Each works on the result of the one before.
      processor.prefix.insert(processor.prefix.begin(), next.prefix.begin(),
                              next.prefix.end());
      processor.suffix.insert(processor.suffix.end(), next.suffix.begin(),
                              next.suffix.end());
    }
    return processor;
  }
  return Status::unsupported("post-processor '" + type + "'");
}

} // namespace llm::runtime
