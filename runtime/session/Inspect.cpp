//===- Inspect.cpp - What an artifact holds ----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Inspect.h"

#include "llm/ABI/artifact.h"
#include "runtime/core/Expr.h"
#include "runtime/core/Limits.h"
#include "runtime/device/Program.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace llm::runtime {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t referenceTokens = 512;

/// The distinct ranges over T that a program's kernels have variants for. One
/// without an end goes to the most rows that a step's int32 offsets can count.
Json rowCountVariants(const artifact::Program &program) {
  std::set<std::pair<int64_t, int64_t>> ranges;
  for (const artifact::Kernel &kernel : program.kernels())
    for (const artifact::Variant &variant : kernel.variants())
      for (const artifact::Range &range : variant.ranges())
        if (program.symbols(static_cast<int>(range.symbol())) == "T")
          ranges.emplace(range.low(), range.high());
  if (ranges.empty())
    ranges.emplace(1, INT64_MAX);
  Json list = Json::array();
  for (auto [low, high] : ranges)
    list.push_back({low, std::min<int64_t>(high, INT32_MAX)});
  return list;
}

Json kernels(const artifact::Program &program, uint32_t code) {
  Json list = Json::array();
  for (const artifact::Kernel &kernel : program.kernels())
    for (const artifact::Variant &variant : kernel.variants()) {
      if (variant.code() != code)
        continue;
      Json entry;
      entry["name"] = variant.entry();
      entry["family"] = kernel.family();
      entry["registers"] = variant.registers();
      entry["spill_bytes"] = variant.spill_bytes();
      entry["shared_bytes"] = variant.shared_bytes();
      list.push_back(std::move(entry));
    }
  return list;
}

Json targets(const artifact::Manifest &manifest) {
  Json list = Json::array();
  for (int i = 0; i < manifest.payloads_size(); ++i) {
    const artifact::Payload &payload = manifest.payloads(i);
    if (payload.kind() != artifact::Payload::CODE)
      continue;
    Json entry;
    entry["target"] = payload.target();
    entry["arch"] = payload.arch();
    entry["features"] = std::vector<std::string>(payload.features().begin(),
                                                 payload.features().end());
    bool rowInvariant = true;
    Json variants = Json::array(), functions = Json::array();
    for (const artifact::Program &program : manifest.programs()) {
      if (program.target() != payload.target())
        continue;
      rowInvariant &= program.row_invariant();
      variants = rowCountVariants(program);
      for (Json &kernel : kernels(program, static_cast<uint32_t>(i)))
        functions.push_back(std::move(kernel));
    }
    entry["row_invariant"] = rowInvariant;
    entry["row_count_variants"] = std::move(variants);
    entry["kernels"] = std::move(functions);
    list.push_back(std::move(entry));
  }
  return list;
}

Json passes(const Artifact &artifact) {
  Json list = Json::array();
  for (int i = 0; i < artifact.manifest().passes_size(); ++i) {
    const artifact::PassRecord &pass = artifact.manifest().passes(i);
    Json entry;
    entry["name"] = pass.name();
    entry["options"] = pass.options();
    if (!artifact.passSeconds().empty())
      entry["seconds"] = artifact.passSeconds()[static_cast<size_t>(i)];
    entry["bytes_before"] = pass.bytes_before();
    entry["bytes_after"] = pass.bytes_after();
    if (pass.has_kl())
      entry["kl"] = pass.kl();
    list.push_back(std::move(entry));
  }
  return list;
}

Expected<Json> memory(const artifact::Manifest &manifest) {
  const artifact::Certificate &certificate = manifest.certificate();
  Symbols symbols;
  auto context = std::max<int64_t>(1, manifest.generation().max_context());
  symbols[Symbols::T] = std::min(context, referenceTokens);
  symbols[Symbols::S] = 1;
  symbols[Symbols::R] = 1;
  symbols[Symbols::P] = symbols[Symbols::T];
  symbols[Symbols::B] = 1;
  for (const artifact::CacheGroup &group : manifest.cache_groups())
    if (int64_t page = group.page_size())
      symbols[Symbols::B] =
          std::max(symbols[Symbols::B], (context + page - 1) / page);
  symbols[Symbols::C] = context;
  int64_t activations = 0;
  if (certificate.arena_bytes().nodes_size() > 0) {
    LLM_ASSIGN_OR_RETURN(
        activations, evaluateExpr(certificate.arena_bytes(), symbols.values));
  }
  Json json;
  json["weights_bytes"] = certificate.weights_bytes();
  json["activation_bytes"] = activations;
  json["kv_bytes_per_token"] = certificate.kv_bytes_per_slot();
  json["fixed_bytes"] = certificate.fixed_bytes();
  return json;
}

Json functions(const artifact::Manifest &manifest) {
  auto tensors = [](const auto &list) {
    Json result = Json::array();
    for (const artifact::TensorInfo &tensor : list) {
      Json dims = Json::array();
      for (const artifact::Dim &dim : tensor.dims())
        dims.push_back(dim.size() >= 0         ? Json(dim.size())
                       : !dim.symbol().empty() ? Json(dim.symbol())
                                               : Json("?"));
      result.push_back({{"name", tensor.name()}, {"dims", dims}});
    }
    return result;
  };
  Json list = Json::array();
  for (const artifact::HostFunction &function : manifest.host_functions())
    list.push_back({{"name", function.name()},
                    {"inputs", tensors(function.inputs())},
                    {"outputs", tensors(function.outputs())}});
  return list;
}

Expected<Json> describe(const Artifact &artifact) {
  const artifact::Manifest &manifest = artifact.manifest();
  Json json;
  json["decoder"] = manifest.decoder();
  if (!manifest.decoder())
    json["not_decoder_reason"] = manifest.not_decoder_reason();
  json["source"] = {{"path", manifest.source().path()},
                    {"hash", manifest.source().hash()},
                    {"licence", manifest.source().licence()},
                    {"producer", manifest.source().producer()}};
  json["compiler"] = manifest.compiler();
  json["format_version"] = LLM_ARTIFACT_VERSION;
  json["recipe"] = manifest.recipe();
  json["vocabulary_size"] = manifest.vocabulary_size();
  json["max_context"] = manifest.generation().max_context();
  if (manifest.has_tokenizer())
    json["tokenizer"] = manifest.tokenizer().kind();
  json["targets"] = targets(manifest);
  json["passes"] = passes(artifact);
  LLM_ASSIGN_OR_RETURN(json["memory"], memory(manifest));
  if (manifest.host_functions_size() > 0)
    json["functions"] = functions(manifest);
  return json;
}

} // namespace

Expected<std::string> inspectJson(const Artifact &artifact) {
  LLM_ASSIGN_OR_RETURN(Json json, describe(artifact));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Expected<std::string> inspectText(const Artifact &artifact) {
  LLM_ASSIGN_OR_RETURN(Json json, describe(artifact));
  const artifact::Manifest &manifest = artifact.manifest();
  auto number = [](const Json &value) { return value.get<uint64_t>(); };
  std::string text;
  auto line = [&](const std::string &name, const std::string &value) {
    text += name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') +
            value + "\n";
  };
  line("model", manifest.source().path() +
                    (manifest.source().licence().empty()
                         ? ""
                         : " (" + manifest.source().licence() + ")"));
  line("kind", manifest.decoder()
                   ? "decoder, vocabulary " +
                         std::to_string(manifest.vocabulary_size()) +
                         ", context " +
                         std::to_string(manifest.generation().max_context())
                   : "plain graph" +
                         (manifest.not_decoder_reason().empty()
                              ? ""
                              : " (" + manifest.not_decoder_reason() + ")"));
  line("recipe", manifest.recipe());
  line("compiler", manifest.compiler());
  line("tokenizer", manifest.has_tokenizer() ? manifest.tokenizer().kind()
                                             : "none: takes ids only");
  for (const Json &target : json["targets"])
    line("target",
         target["target"].get<std::string>() + " " +
             target["arch"].get<std::string>() + ", " +
             std::to_string(target["kernels"].size()) + " kernels" +
             (target["row_invariant"].get<bool>() ? ", row invariant"
                                                  : ", not row invariant"));
  for (const Json &pass : json["passes"]) {
    char seconds[32] = "";
    if (pass.contains("seconds"))
      std::snprintf(seconds, sizeof(seconds), ", %.3f s",
                    pass["seconds"].get<double>());
    std::string options = pass["options"].get<std::string>();
    line("pass", pass["name"].get<std::string>() +
                     (options.empty() ? "" : " " + options) + seconds);
  }
  const Json &memory = json["memory"];
  line("memory",
       "weights " + formatSize(number(memory["weights_bytes"])) +
           ", activations " + formatSize(number(memory["activation_bytes"])) +
           ", cache " + formatSize(number(memory["kv_bytes_per_token"])) +
           " per token, fixed " + formatSize(number(memory["fixed_bytes"])));
  line("file", formatSize(artifact.fileSize()));
  return text;
}

} // namespace llm::runtime
