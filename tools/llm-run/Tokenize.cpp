//===- Tokenize.cpp - llm-run tokenize -------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/llm-run/Common.h"

#include <nlohmann/json.hpp>

namespace llm::run {

using namespace runtime;
using Json = nlohmann::ordered_json;

namespace {

struct TokenizeOptions {
  std::string artifact, text;
  bool decode = false, json = false;
};

Status tokenizeAction(const TokenizeOptions &options) {
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact,
                       Artifact::open(options.artifact));
  auto loaded = requireTokenizer(*artifact).withContext(options.artifact);
  if (!loaded)
    return loaded.takeStatus();
  std::unique_ptr<Tokenizer> tokenizer = *std::move(loaded);
  std::vector<int32_t> ids;
  std::string text = options.text;
  if (options.decode) {
    LLM_ASSIGN_OR_RETURN(ids, parseIds(options.text).withContext("--text"));
    for (int32_t id : ids)
      if (id >= tokenizer->vocabSize())
        return Status::invalidInput("--text: token " + std::to_string(id) +
                                    " is not in the vocabulary of " +
                                    std::to_string(tokenizer->vocabSize()));
    LLM_ASSIGN_OR_RETURN(text, tokenizer->decode(ids, {.skipSpecial = false}));
  } else {
    LLM_ASSIGN_OR_RETURN(ids, tokenizer->encode(text, {.addSpecial = true,
                                                       .parseSpecial = true}));
  }
  if (options.json) {
    Json line;
    line["tokens"] = ids;
    line["text"] = text;
    Json pieces = Json::array();
    for (int32_t id : ids)
      pieces.push_back(tokenizer->piece(id).value_or(""));
    line["pieces"] = std::move(pieces);
    printJson(line);
    return Status::success();
  }
  if (options.decode) {
    print(text + "\n");
    return Status::success();
  }
  std::string list;
  for (int32_t id : ids)
    list += (list.empty() ? "" : ",") + std::to_string(id);
  print(list + "\n");
  return Status::success();
}

} // namespace

void addTokenize(CLI::App &app, Action &action) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App *command =
      app.add_subcommand("tokenize", "Prints the token ids of a text");
  addArtifactArgument(*command, options->artifact);
  command->add_option("--text", options->text, "the text")
      ->required()
      ->type_name("TEXT");
  command->add_flag("--decode", options->decode,
                    "the text is a list of ids: print what they spell");
  command->add_flag("--json", options->json,
                    "print JSON: tokens, text and pieces");
  command->footer("Example:\n  llm-run tokenize model.llmx --text 'Hello, "
                  "world'\n  llm-run tokenize model.llmx --text 1,403,407 "
                  "--decode");
  command->callback([options, &action] {
    action = [options] { return tokenizeAction(*options); };
  });
}

} // namespace llm::run
