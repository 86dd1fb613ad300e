//===- Tokenizer.cpp - Finding and sealing a model's tokenizer ---*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/Tokenizer.h"

#include "runtime/tokenizer/TokenizerSource.h"

using namespace mlir;

namespace llm {

static InFlightDiagnostic report(ModuleOp module,
                                 const runtime::Status &status) {
  return emitError(module.getLoc()) << "tokenizer: " << status.message();
}

/// The tokenizer at `tokenizer`, or the model's; none where it has none.
static FailureOr<std::optional<runtime::TokenizerSource>>
readSource(ModuleOp module, StringRef modelPath, StringRef tokenizer) {
  if (!tokenizer.empty()) {
    auto read = runtime::readTokenizer(tokenizer.str(), modelPath.str());
    if (!read)
      return report(module, read.status());
    return std::optional(std::move(*read));
  }
  auto found = runtime::findTokenizer(modelPath.str());
  if (!found)
    return report(module, found.status());
  return std::move(*found);
}

FailureOr<EncodedText> encodeText(ModuleOp module, StringRef modelPath,
                                  StringRef tokenizer, StringRef text) {
  auto source = readSource(module, modelPath, tokenizer);
  if (failed(source))
    return failure();
  if (!*source)
    return emitError(module.getLoc())
           << "the model has no tokenizer beside or above it to read a text "
              "with";
  auto sealed = runtime::sealTokenizer(**source);
  if (!sealed)
    return report(module, sealed.status());
  auto loaded = runtime::loadSealedTokenizer(*sealed);
  if (!loaded)
    return report(module, loaded.status());
  const runtime::Tokenizer &model = **loaded;
  auto ids = model.encode(std::string_view(text.data(), text.size()),
                          {.addSpecial = false, .parseSpecial = false});
  if (!ids)
    return report(module, ids.status());
  EncodedText result{std::move(*ids), std::nullopt};
  if (model.addsBos())
    result.lead = model.bosId();
  return result;
}

LogicalResult sealTokenizer(ModuleOp module, StringRef modelPath,
                            StringRef tokenizer, ArtifactInputs &inputs) {
  auto report = [&](const runtime::Status &status) {
    return llm::report(module, status);
  };
  auto found = readSource(module, modelPath, tokenizer);
  if (failed(found))
    return failure();
  std::optional<runtime::TokenizerSource> source = std::move(*found);
  if (!source)
    return success();
  auto sealed = runtime::sealTokenizer(*source);
  if (!sealed)
    return report(sealed.status());
  auto loaded = runtime::loadSealedTokenizer(*sealed);
  if (!loaded)
    return report(loaded.status());

  const runtime::Tokenizer &model = **loaded;
  for (auto program : module.getOps<rt::ProgramOp>()) {
    auto vocabulary = program->getAttrOfType<IntegerAttr>("llm.vocab");
    if (vocabulary && model.vocabSize() > vocabulary.getInt())
      emitWarning(module.getLoc())
          << "the tokenizer has ids up to " << model.vocabSize() - 1
          << ", the model " << vocabulary.getInt()
          << " tokens; a text with the others will be refused";
  }
  SealedTokenizer &out = inputs.tokenizer.emplace();
  out.kind = source->kind == runtime::TokenizerKind::Llama2c ? "llama2c"
                                                             : "huggingface";
  out.bytes = std::move(*sealed);
  out.addBos = model.addsBos();
  out.chatTemplate = source->config.chatTemplate;
  auto piece = [&](std::optional<int32_t> id) {
    return id ? model.piece(*id).value_or("") : std::string();
  };
  out.bosToken = piece(model.bosId());
  if (!model.eosIds().empty())
    out.eosToken = piece(model.eosIds().front());

  artifact::GenerationDefaults &defaults = inputs.generation;
  for (int32_t id : model.eosIds())
    defaults.add_eos_ids(id);
  defaults.set_bos_id(model.bosId().value_or(-1));
  const runtime::GenerationDefaults &read = source->config.generation;
  defaults.set_temperature(read.temperature.value_or(0));
  defaults.set_top_k(read.topK.value_or(0));
  defaults.set_top_p(read.topP.value_or(0));
  defaults.set_repetition_penalty(read.repetitionPenalty.value_or(0));
  return success();
}

} // namespace llm
