//===- TokenizerSource.cpp - files and sealing ----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tokenizer/TokenizerSource.h"

#include "runtime/tokenizer/Json.h"
#include "runtime/tokenizer/TokenizerKinds.h"
#include "runtime/tokenizer/Unicode.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <initializer_list>

namespace llm::runtime {

using json::Json;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// More than any published tokenizer (Gemma's has 33 MB).
static constexpr uintmax_t maxTokenizerBytes = 512u << 20;
static constexpr uintmax_t maxConfigBytes = 16u << 20;

static Expected<std::string> readFile(const fs::path &path, uintmax_t limit) {
  std::error_code error;
  uintmax_t size = fs::file_size(path, error);
  if (error)
    return Status::invalidInput(error.message()).withContext(path.string());
  if (size > limit)
    return Status::invalidInput(path.string() + ": larger than " +
                                std::to_string(limit >> 20) + " MiB");
  std::ifstream file(path, std::ios::binary);
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!file)
    return Status::invalidInput("it cannot be read").withContext(path.string());
  return bytes;
}

static bool isFile(const fs::path &path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

namespace {

/// The configuration files of a tokenizer: each the first of its name among
/// the directories.
class ConfigFiles {
public:
  explicit ConfigFiles(std::vector<fs::path> directories)
      : directories(std::move(directories)) {}

  std::optional<fs::path> find(const char *name) const {
    for (const fs::path &directory : directories)
      if (isFile(directory / name))
        return directory / name;
    return std::nullopt;
  }

  /// The document, or null where there is none.
  Expected<Json> read(const char *name) const {
    std::optional<fs::path> path = find(name);
    if (!path)
      return Json();
    LLM_ASSIGN_OR_RETURN(std::string text, readFile(*path, maxConfigBytes));
    Expected<Json> document = json::parse(text);
    if (document && !document->is_object())
      return Status::invalidInput("not a JSON object")
          .withContext(path->string());
    return std::move(document).withContext(path->string());
  }

private:
  std::vector<fs::path> directories;
};

/// Puts a TokenizerConfig together.
class ConfigReader {
public:
  ConfigReader(const ConfigFiles &files, const Tokenizer &tokenizer,
               TokenizerConfig &config)
      : files(files), tokenizer(tokenizer), config(config) {}

  Status read();

private:
  void readTokens(const Json &document);
  void readIds(const Json &document);
  void readGeneration(const Json &document);
  Status readChatTemplate(const Json &tokenizerConfig);
  std::optional<int32_t> idOf(const Json *token) const;
  void addEos(std::optional<int32_t> id);

  const ConfigFiles &files;
  const Tokenizer &tokenizer;
  TokenizerConfig &config;
};

} // namespace

//===----------------------------------------------------------------------===//
// Configuration
//===----------------------------------------------------------------------===//

/// The id of "bos_token" and its like: a string or {"content": string}.
std::optional<int32_t> ConfigReader::idOf(const Json *token) const {
  if (token && token->is_object())
    token = json::find(*token, "content");
  if (!token || !token->is_string())
    return std::nullopt;
  return tokenizer.id(token->get_ref<const std::string &>());
}

void ConfigReader::addEos(std::optional<int32_t> id) {
  auto &ids = config.eosIds;
  if (id && std::find(ids.begin(), ids.end(), *id) == ids.end())
    ids.push_back(*id);
}

/// What names tokens by their text: tokenizer_config, special_tokens_map.
void ConfigReader::readTokens(const Json &document) {
  if (!config.bosId)
    config.bosId = idOf(json::find(document, "bos_token"));
  if (!config.unkId)
    config.unkId = idOf(json::find(document, "unk_token"));
  if (!config.padId)
    config.padId = idOf(json::find(document, "pad_token"));
  addEos(idOf(json::find(document, "eos_token")));
}

/// What names tokens by id: generation_config, genai_config's model, config.
void ConfigReader::readIds(const Json &document) {
  auto idAt = [&](std::string_view key) -> std::optional<int32_t> {
    const Json *value = json::find(document, key);
    return value ? json::asTokenId(*value) : std::nullopt;
  };
  if (!config.bosId)
    config.bosId = idAt("bos_token_id");
  if (!config.padId)
    config.padId = idAt("pad_token_id");
  const Json *eos = json::find(document, "eos_token_id");
  if (eos && eos->is_array()) {
    for (const Json &id : *eos)
      addEos(json::asTokenId(id));
  } else {
    addEos(idAt("eos_token_id"));
  }
}

void ConfigReader::readGeneration(const Json &document) {
  GenerationDefaults &defaults = config.generation;
  auto number = [&](std::string_view key, std::optional<double> &to) {
    const Json *value = json::find(document, key);
    if (!to && value && value->is_number() &&
        std::isfinite(value->get<double>()))
      to = value->get<double>();
  };
  number("temperature", defaults.temperature);
  number("top_p", defaults.topP);
  number("min_p", defaults.minP);
  number("repetition_penalty", defaults.repetitionPenalty);
  const Json *topK = json::find(document, "top_k");
  if (!defaults.topK && topK)
    defaults.topK = json::asTokenId(*topK);
  const Json *sample = json::find(document, "do_sample");
  if (!defaults.doSample && sample && sample->is_boolean())
    defaults.doSample = sample->get<bool>();
}

Status ConfigReader::readChatTemplate(const Json &tokenizerConfig) {
  if (std::optional<fs::path> path = files.find("chat_template.jinja")) {
    LLM_ASSIGN_OR_RETURN(config.chatTemplate, readFile(*path, maxConfigBytes));
    if (!unicode::isValid(config.chatTemplate))
      return Status::invalidInput("not UTF-8").withContext(path->string());
    return Status::success();
  }
  const Json *source = json::find(tokenizerConfig, "chat_template");
  // A list holds variants; the one for plain chat is "default".
  if (source && source->is_array()) {
    const Json *variants = source;
    source = nullptr;
    for (const Json &variant : *variants) {
      const Json *name = json::find(variant, "name");
      if (name && *name == "default")
        source = json::find(variant, "template");
    }
  }
  if (source && source->is_string())
    config.chatTemplate = source->get<std::string>();
  return Status::success();
}

Status ConfigReader::read() {
  LLM_ASSIGN_OR_RETURN(Json tokenizerConfig,
                       files.read("tokenizer_config.json"));
  LLM_ASSIGN_OR_RETURN(Json specialTokens,
                       files.read("special_tokens_map.json"));
  LLM_ASSIGN_OR_RETURN(Json generation, files.read("generation_config.json"));
  LLM_ASSIGN_OR_RETURN(Json genai, files.read("genai_config.json"));
  LLM_ASSIGN_OR_RETURN(Json model, files.read("config.json"));
  readTokens(tokenizerConfig);
  readTokens(specialTokens);
  readIds(generation);
  if (const Json *inner = json::find(genai, "model"))
    readIds(*inner);
  readIds(model);
  readGeneration(generation);
  if (const Json *search = json::find(genai, "search"))
    readGeneration(*search);
  const Json *addBos = json::find(tokenizerConfig, "add_bos_token");
  if (addBos && addBos->is_boolean())
    config.addBos = addBos->get<bool>();
  return readChatTemplate(tokenizerConfig);
}

//===----------------------------------------------------------------------===//
// Finding and reading
//===----------------------------------------------------------------------===//

/// tokenizer.json without what does not bear on encoding and decoding single
/// texts, in one spelling.
static Expected<std::string> slim(std::string_view text) {
  LLM_ASSIGN_OR_RETURN(Json document, json::parse(text));
  Json kept = Json::object();
  for (const char *key : {"added_tokens", "normalizer", "pre_tokenizer",
                          "post_processor", "decoder", "model"})
    if (const Json *member = json::find(document, key))
      kept[key] = *member;
  return kept.dump();
}

static std::optional<fs::path> tokenizerIn(const fs::path &directory) {
  for (const char *name : {"tokenizer.json", "tokenizer.bin"})
    if (isFile(directory / name))
      return directory / name;
  return std::nullopt;
}

static Expected<TokenizerSource> readFrom(const fs::path &path,
                                          const fs::path &modelDirectory) {
  TokenizerSource source;
  LLM_ASSIGN_OR_RETURN(std::string text, readFile(path, maxTokenizerBytes));
  if (path.extension() == ".json") {
    source.kind = TokenizerKind::HuggingFace;
    Expected<std::string> kept = slim(text);
    if (!kept)
      return kept.takeStatus().withContext(path.string());
    text = *std::move(kept);
  } else if (path.extension() == ".bin") {
    source.kind = TokenizerKind::Llama2c;
  } else {
    return Status::unsupported("neither tokenizer.json nor llama2.c's "
                               "tokenizer.bin")
        .withContext(path.string());
  }
  source.bytes.assign(text.begin(), text.end());

  auto tokenizer = Tokenizer::load(source.kind, source.bytes, {});
  if (!tokenizer)
    return tokenizer.takeStatus().withContext(path.parent_path().string());
  // The file does not say how many pieces it has; from here on that is known.
  if (source.kind == TokenizerKind::Llama2c)
    source.config.vocabSize = (*tokenizer)->vocabSize();
  std::vector<fs::path> directories{path.parent_path()};
  if (!modelDirectory.empty())
    directories.push_back(modelDirectory);
  ConfigFiles files(std::move(directories));
  LLM_RETURN_IF_ERROR(ConfigReader(files, **tokenizer, source.config).read());
  return source;
}

Expected<TokenizerSource> readTokenizer(const std::string &path,
                                        const std::string &modelDirectory) {
  return catchExceptions([&]() -> Expected<TokenizerSource> {
    std::error_code error;
    if (!fs::is_directory(path, error))
      return readFrom(path, modelDirectory);
    std::optional<fs::path> file = tokenizerIn(path);
    if (!file)
      return Status::invalidInput(
          path + ": it has neither tokenizer.json nor tokenizer.bin");
    return readFrom(*file, modelDirectory);
  });
}

Expected<std::optional<TokenizerSource>>
findTokenizer(const std::string &modelPath) {
  return catchExceptions([&]() -> Expected<std::optional<TokenizerSource>> {
    std::error_code error;
    fs::path beside = fs::absolute(modelPath, error).lexically_normal();
    if (error)
      return Status::invalidInput(error.message()).withContext(modelPath);
    if (!fs::is_directory(beside, error))
      beside = beside.parent_path();
    else if (!beside.has_filename())
      beside = beside.parent_path(); // a trailing slash
    for (const fs::path &directory : {beside, beside.parent_path()}) {
      if (std::optional<fs::path> file = tokenizerIn(directory)) {
        LLM_ASSIGN_OR_RETURN(TokenizerSource source, readFrom(*file, beside));
        return std::optional<TokenizerSource>(std::move(source));
      }
    }
    return std::optional<TokenizerSource>();
  });
}

//===----------------------------------------------------------------------===//
// Sealing
//===----------------------------------------------------------------------===//

static constexpr std::string_view magic = "LLMTOK02";
static constexpr size_t headerBytes = 8 + 4 + 4 + 8 + 8;

template <typename T>
static void putOptional(Json &to, const char *key, const std::optional<T> &v) {
  if (v)
    to[key] = *v;
}

static Json toJson(const TokenizerConfig &config) {
  Json document = Json::object();
  putOptional(document, "bos", config.bosId);
  putOptional(document, "unk", config.unkId);
  putOptional(document, "pad", config.padId);
  document["eos"] = config.eosIds;
  putOptional(document, "add_bos", config.addBos);
  putOptional(document, "vocab_size", config.vocabSize);
  document["chat_template"] = config.chatTemplate;
  Json generation = Json::object();
  putOptional(generation, "do_sample", config.generation.doSample);
  putOptional(generation, "temperature", config.generation.temperature);
  putOptional(generation, "top_p", config.generation.topP);
  putOptional(generation, "min_p", config.generation.minP);
  putOptional(generation, "repetition_penalty",
              config.generation.repetitionPenalty);
  putOptional(generation, "top_k", config.generation.topK);
  document["generation"] = std::move(generation);
  return document;
}

/// Reads members of the sealed configuration; a wrong type anywhere fails all.
namespace {
class SealedReader {
public:
  bool good = true;

  void get(const Json &from, const char *key, std::optional<int32_t> &to) {
    if (const Json *value = json::find(from, key)) {
      to = json::asTokenId(*value);
      good &= to.has_value();
    }
  }
  void get(const Json &from, const char *key, std::optional<double> &to) {
    if (const Json *value = json::find(from, key)) {
      good &= value->is_number();
      if (value->is_number())
        to = value->get<double>();
    }
  }
  void get(const Json &from, const char *key, std::optional<bool> &to) {
    if (const Json *value = json::find(from, key)) {
      good &= value->is_boolean();
      if (value->is_boolean())
        to = value->get<bool>();
    }
  }
};
} // namespace

static Expected<TokenizerConfig> fromJson(const Json &document) {
  TokenizerConfig config;
  SealedReader reader;
  reader.get(document, "bos", config.bosId);
  reader.get(document, "unk", config.unkId);
  reader.get(document, "pad", config.padId);
  reader.get(document, "add_bos", config.addBos);
  reader.get(document, "vocab_size", config.vocabSize);
  if (const Json *eos = json::find(document, "eos"); eos && eos->is_array()) {
    for (const Json &value : *eos) {
      std::optional<int32_t> id = json::asTokenId(value);
      reader.good &= id.has_value();
      if (id)
        config.eosIds.push_back(*id);
    }
  }
  LLM_ASSIGN_OR_RETURN(config.chatTemplate,
                       json::getString(document, "chat_template", ""));
  if (const Json *generation = json::find(document, "generation")) {
    GenerationDefaults &defaults = config.generation;
    reader.get(*generation, "do_sample", defaults.doSample);
    reader.get(*generation, "temperature", defaults.temperature);
    reader.get(*generation, "top_p", defaults.topP);
    reader.get(*generation, "min_p", defaults.minP);
    reader.get(*generation, "repetition_penalty", defaults.repetitionPenalty);
    reader.get(*generation, "top_k", defaults.topK);
  }
  if (!reader.good)
    return Status::invalidInput("a member of the configuration has a wrong "
                                "type");
  return config;
}

template <typename T>
static void putInteger(std::vector<uint8_t> &to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    to.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

template <typename T>
static T getInteger(std::span<const uint8_t> from, size_t offset) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(from[offset + i]) << (8 * i);
  return value;
}

static std::string_view asText(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

Expected<std::vector<uint8_t>> sealTokenizer(const TokenizerSource &source) {
  return catchExceptions([&]() -> Expected<std::vector<uint8_t>> {
    if (!unicode::isValid(source.config.chatTemplate))
      return Status::invalidInput("the chat template is not UTF-8");
    SplitTokenizer split;
    if (source.kind == TokenizerKind::HuggingFace) {
      LLM_ASSIGN_OR_RETURN(
          split,
          splitHuggingFace(asText(source.bytes)).withContext("tokenizer.json"));
    } else {
      split.document = asText(source.bytes);
    }
    std::string config = toJson(source.config).dump();
    std::vector<uint8_t> blob(magic.begin(), magic.end());
    putInteger(blob, static_cast<uint32_t>(source.kind));
    putInteger(blob, static_cast<uint32_t>(config.size()));
    putInteger(blob, static_cast<uint64_t>(split.document.size()));
    putInteger(blob, static_cast<uint64_t>(split.tables.size()));
    blob.insert(blob.end(), config.begin(), config.end());
    blob.insert(blob.end(), split.document.begin(), split.document.end());
    blob.insert(blob.end(), split.tables.begin(), split.tables.end());
    return blob;
  });
}

static Expected<SealedParts> readParts(std::span<const uint8_t> blob) {
  if (blob.size() < headerBytes ||
      !std::equal(magic.begin(), magic.end(), blob.begin()))
    return Status::invalidInput("not one of version 02");
  SealedParts parts;
  parts.kind = static_cast<TokenizerKind>(getInteger<uint32_t>(blob, 8));
  uint64_t configBytes = getInteger<uint32_t>(blob, 12);
  uint64_t bytes = getInteger<uint64_t>(blob, 16);
  uint64_t tableBytes = getInteger<uint64_t>(blob, 24);
  std::span<const uint8_t> rest = blob.subspan(headerBytes);
  if (configBytes > rest.size() || bytes > rest.size() - configBytes ||
      tableBytes != rest.size() - configBytes - bytes)
    return Status::invalidInput("its lengths do not add up to its size");
  LLM_ASSIGN_OR_RETURN(Json document,
                       json::parse(asText(rest.first(configBytes))));
  LLM_ASSIGN_OR_RETURN(parts.config, fromJson(document));
  parts.tokenizer = rest.subspan(configBytes, bytes);
  parts.tables = rest.subspan(configBytes + bytes);
  if (parts.kind == TokenizerKind::Llama2c && !parts.tables.empty())
    return Status::invalidInput("it has tables, which this kind has not");
  return parts;
}

Expected<SealedParts> unsealTokenizer(std::span<const uint8_t> blob) {
  return catchExceptions([&] { return readParts(blob); })
      .withContext("sealed tokenizer");
}

Expected<std::unique_ptr<Tokenizer>>
loadSealedTokenizer(std::span<const uint8_t> blob) {
  LLM_ASSIGN_OR_RETURN(SealedParts parts, unsealTokenizer(blob));
  if (parts.kind != TokenizerKind::HuggingFace)
    return Tokenizer::load(parts.kind, parts.tokenizer, parts.config);
  return catchExceptions([&] {
    return loadHuggingFace(asText(parts.tokenizer), parts.tables, parts.config)
        .withContext("sealed tokenizer");
  });
}

} // namespace llm::runtime
