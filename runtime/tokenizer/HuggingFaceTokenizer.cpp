//===- HuggingFaceTokenizer.cpp - tokenizer.json --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/TokenizerKinds.h"

#include "runtime/tokenizer/AddedTokens.h"
#include "runtime/tokenizer/BPE.h"
#include "runtime/tokenizer/Decoder.h"
#include "runtime/tokenizer/Json.h"
#include "runtime/tokenizer/Normalizer.h"
#include "runtime/tokenizer/PostProcessor.h"
#include "runtime/tokenizer/PreTokenizer.h"
#include "runtime/tokenizer/Unicode.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace llm::runtime {

using json::Json;

namespace {

class HuggingFaceTokenizer final : public Tokenizer {
public:
  /// `tables` are the packed ones; where there are none, those of `document`
  /// count.
  static Expected<std::unique_ptr<Tokenizer>>
  load(const Json &document, std::optional<std::span<const uint8_t>> tables,
       const TokenizerConfig &config);

  std::optional<std::string> piece(int32_t id) const override;
  std::optional<int32_t> id(std::string_view piece) const override;
  int32_t vocabSize() const override { return end; }
  bool isSpecial(int32_t id) const override { return special.contains(id); }
  bool addsBos() const override {
    return settings.bosId && !processor.prefix.empty() &&
           processor.prefix.front() == *settings.bosId;
  }

protected:
  Expected<std::vector<int32_t>> encodeSpans(std::span<const TextSpan> spans,
                                             bool addSpecial) const override;
  std::unique_ptr<PieceDecoder> startDecoder(std::string &out,
                                             DecodeOptions options,
                                             bool wholeText) const override;

private:
  HuggingFaceTokenizer(const TokenizerConfig &config, BPEModel model)
      : Tokenizer(config), model(std::move(model)) {}

  Status readAddedTokens(const Json &document);
  void applyAddBos();
  Status encodeText(std::string_view text, bool atStart,
                    const std::vector<ByteRange> &untrusted,
                    std::vector<int32_t> &ids) const;

  BPEModel model;
  Normalizer normalizer;
  PreTokenizer preTokenizer;
  PostProcessor processor;
  Decoder decoder;
  /// Looked for in the text as it is, and in the normalised text.
  AddedTokenMatcher plain, normalized;
  std::unordered_map<int32_t, std::string> addedPieces;
  /// Of the normalised ones: what they decode to.
  std::unordered_map<int32_t, std::string> addedSpellings;
  std::map<std::string, int32_t, std::less<>> addedIds;
  std::unordered_set<int32_t> special;
  int32_t end = 0;
};

/// Runs a component's reader on a member of the document.
template <typename Component>
Expected<Component> readComponent(const Json &document, std::string_view key) {
  static const Json null;
  const Json *member = json::find(document, key);
  return Component::parse(member ? *member : null).withContext(key);
}

} // namespace

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// The member "model" of tokenizer.json, with its type. Unsupported for another
/// than BPE.
static Expected<const Json *> findModel(const Json &document) {
  const Json *model = json::find(document, "model");
  if (!model || !model->is_object())
    return Status::invalidInput("'model' is missing or not an object");
  // Files from before the model had a type hold BPE where they have merges.
  LLM_ASSIGN_OR_RETURN(
      std::string type,
      json::getString(*model, "type",
                      json::find(*model, "merges") ? "BPE" : "(none)"));
  if (type != "BPE")
    return Status::unsupported("model '" + type + "'");
  return model;
}

static Expected<BPEModel>
readModel(const Json &model, std::optional<std::span<const uint8_t>> packed) {
  LLM_ASSIGN_OR_RETURN(BPETables tables, packed ? BPETables::unpack(*packed)
                                                : BPETables::parse(model));
  return BPEModel::create(model, std::move(tables));
}

Expected<std::unique_ptr<Tokenizer>>
HuggingFaceTokenizer::load(const Json &document,
                           std::optional<std::span<const uint8_t>> tables,
                           const TokenizerConfig &config) {
  LLM_ASSIGN_OR_RETURN(const Json *modelJson, findModel(document));
  Expected<BPEModel> model = readModel(*modelJson, tables);
  if (!model)
    return model.takeStatus().withContext("model");

  std::unique_ptr<HuggingFaceTokenizer> tokenizer(
      new HuggingFaceTokenizer(config, *std::move(model)));
  HuggingFaceTokenizer &t = *tokenizer;
  LLM_ASSIGN_OR_RETURN(t.normalizer,
                       readComponent<Normalizer>(document, "normalizer"));
  LLM_ASSIGN_OR_RETURN(t.preTokenizer,
                       readComponent<PreTokenizer>(document, "pre_tokenizer"));
  LLM_ASSIGN_OR_RETURN(
      t.processor, readComponent<PostProcessor>(document, "post_processor"));
  LLM_ASSIGN_OR_RETURN(t.decoder, readComponent<Decoder>(document, "decoder"));
  t.end = t.model.vocabulary().endId();
  LLM_RETURN_IF_ERROR(t.readAddedTokens(document));
  t.model.setReserved(t.special);
  t.applyAddBos();
  if (!t.settings.unkId)
    t.settings.unkId = t.model.unkId();
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

Status HuggingFaceTokenizer::readAddedTokens(const Json &document) {
  const Json *entries = json::find(document, "added_tokens");
  if (!entries || entries->is_null())
    return Status::success();
  if (!entries->is_array())
    return Status::invalidInput("'added_tokens' is not an array");
  for (size_t i = 0; i < entries->size(); ++i) {
    Expected<AddedToken> parsed = AddedToken::parse((*entries)[i]);
    if (!parsed)
      return parsed.takeStatus().withContext("added_tokens[" +
                                             std::to_string(i) + "]");
    AddedToken token = *std::move(parsed);
    if (token.content.empty())
      continue;
    // The model's id of a piece wins over the entry's, as in the library.
    if (std::optional<int32_t> known = model.vocabulary().find(token.content))
      token.id = *known;
    if (!addedIds.try_emplace(token.content, token.id).second)
      continue;
    addedPieces.try_emplace(token.id, token.content);
    end = std::max(end, token.id + 1);
    if (token.special)
      special.insert(token.id);
    if (!token.normalized) {
      plain.add(token, token.content);
      continue;
    }
    LLM_ASSIGN_OR_RETURN(std::string spelling, normalizer.apply(token.content));
    normalized.add(token, spelling);
    addedSpellings.try_emplace(token.id, std::move(spelling));
  }
  return Status::success();
}

/// Makes the template agree with `addBos`, where the configuration has it.
void HuggingFaceTokenizer::applyAddBos() {
  if (!settings.addBos || !settings.bosId || *settings.addBos == addsBos())
    return;
  auto &prefix = processor.prefix;
  if (*settings.addBos)
    prefix.insert(prefix.begin(), *settings.bosId);
  else
    prefix.erase(prefix.begin());
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

std::optional<std::string> HuggingFaceTokenizer::piece(int32_t id) const {
  if (auto it = addedPieces.find(id); it != addedPieces.end())
    return it->second;
  if (std::optional<std::string_view> piece = model.vocabulary().piece(id))
    return std::string(*piece);
  return std::nullopt;
}

std::optional<int32_t> HuggingFaceTokenizer::id(std::string_view piece) const {
  if (auto it = addedIds.find(piece); it != addedIds.end())
    return it->second;
  return model.vocabulary().find(piece);
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

/// What of `ranges` lies in `window`, relative to its begin.
static std::vector<ByteRange> within(const std::vector<ByteRange> &ranges,
                                     ByteRange window) {
  std::vector<ByteRange> inside;
  for (ByteRange range : ranges) {
    size_t begin = std::max(range.begin, window.begin);
    size_t end = std::min(range.end, window.end);
    if (begin < end)
      inside.push_back({begin - window.begin, end - window.begin});
  }
  return inside;
}

Status HuggingFaceTokenizer::encodeText(std::string_view text, bool atStart,
                                        const std::vector<ByteRange> &untrusted,
                                        std::vector<int32_t> &ids) const {
  LLM_ASSIGN_OR_RETURN(std::string normal, normalizer.apply(std::string(text)));
  // Where characters move there is no telling whose they are: then a text with
  // anything untrusted in it is untrusted as a whole.
  std::vector<ByteRange> ranges = untrusted;
  if (!normalizer.isIdentity() && !ranges.empty())
    ranges = {{0, normal.size()}};
  BPEModel::Workspace space;
  PreTokenizer::Sink encodeWord = [&](std::string_view word) {
    model.encode(word, ids, space);
  };
  for (const TextPart &part : normalized.split(normal, ranges)) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    LLM_RETURN_IF_ERROR(preTokenizer.apply(
        std::string_view(normal).substr(part.range.begin,
                                        part.range.end - part.range.begin),
        atStart && part.range.begin == 0, encodeWord));
  }
  return Status::success();
}

Expected<std::vector<int32_t>>
HuggingFaceTokenizer::encodeSpans(std::span<const TextSpan> spans,
                                  bool addSpecial) const {
  std::string text;
  std::vector<ByteRange> untrusted;
  for (const TextSpan &span : spans) {
    size_t begin = text.size();
    text += unicode::toValid(span.text);
    if (span.parseSpecial || begin == text.size())
      continue;
    if (!untrusted.empty() && untrusted.back().end == begin)
      untrusted.back().end = text.size();
    else
      untrusted.push_back({begin, text.size()});
  }

  std::vector<int32_t> ids;
  if (addSpecial)
    ids = processor.prefix;
  for (const TextPart &part : plain.split(text, untrusted)) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    LLM_RETURN_IF_ERROR(
        encodeText(std::string_view(text).substr(
                       part.range.begin, part.range.end - part.range.begin),
                   part.range.begin == 0, within(untrusted, part.range), ids));
  }
  if (addSpecial)
    ids.insert(ids.end(), processor.suffix.begin(), processor.suffix.end());
  return ids;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

std::unique_ptr<Tokenizer::PieceDecoder>
HuggingFaceTokenizer::startDecoder(std::string &out, DecodeOptions options,
                                   bool wholeText) const {
  class Running final : public PieceDecoder {
  public:
    Running(const HuggingFaceTokenizer &tokenizer, bool skipSpecial,
            std::unique_ptr<DecodeStage> stages)
        : tokenizer(tokenizer), skipSpecial(skipSpecial),
          stages(std::move(stages)) {}
    Status push(int32_t id) override {
      if (skipSpecial && tokenizer.isSpecial(id))
        return Status::success();
      auto spelling = tokenizer.addedSpellings.find(id);
      if (spelling != tokenizer.addedSpellings.end())
        return stages->push(spelling->second, /*begins=*/true);
      std::optional<std::string> piece = tokenizer.piece(id);
      return piece ? stages->push(*piece, /*begins=*/true) : Status::success();
    }
    Status flush() override { return stages->flush(); }

  private:
    const HuggingFaceTokenizer &tokenizer;
    bool skipSpecial;
    std::unique_ptr<DecodeStage> stages;
  };
  return std::make_unique<Running>(
      *this, options.skipSpecial,
      decoder.start(out, {options.continuation, wholeText}));
}

Expected<std::unique_ptr<Tokenizer>>
loadHuggingFace(std::string_view bytes, const TokenizerConfig &config) {
  LLM_ASSIGN_OR_RETURN(Json document, json::parse(bytes));
  return HuggingFaceTokenizer::load(document, std::nullopt, config);
}

Expected<std::unique_ptr<Tokenizer>>
loadHuggingFace(std::string_view document, std::span<const uint8_t> tables,
                const TokenizerConfig &config) {
  LLM_ASSIGN_OR_RETURN(Json parsed, json::parse(document));
  return HuggingFaceTokenizer::load(parsed, tables, config);
}

Expected<SplitTokenizer> splitHuggingFace(std::string_view bytes) {
  LLM_ASSIGN_OR_RETURN(Json document, json::parse(bytes));
  LLM_ASSIGN_OR_RETURN(const Json *model, findModel(document));
  Expected<BPETables> tables = BPETables::parse(*model);
  if (!tables)
    return tables.takeStatus().withContext("model");
  Json &settings = document["model"];
  settings.erase("vocab");
  settings.erase("merges");
  settings["type"] = "BPE";
  return SplitTokenizer{document.dump(), tables->pack()};
}

} // namespace llm::runtime
