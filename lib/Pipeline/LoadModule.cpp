//===- LoadModule.cpp - What a tool was given, as a module ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/LoadModule.h"

#include "lib/Artifact/Artifact.h"
#include "lib/Import/ONNX/Import.h"
#include "lib/Support/WeightData.h"
#include "llm/ABI/artifact.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

#include <vector>

using namespace mlir;

namespace llm {

bool isONNXFile(StringRef path) {
  if (path.ends_with(".onnx"))
    return true;
  llvm::ErrorOr<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
  if (!file || (*file)->bytes().size() < 4)
    return false;
  ArrayRef<char> bytes = (*file)->bytes();
  // Every writer begins with ir_version (field 1, a small number) and goes on
  // with a field of a few bits; text has no byte 8 there.
  auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  return at(0) == 0x08 && at(1) > 0 && at(1) < 0x20 && (at(2) & 7) == 2;
}

bool isArtifactFile(StringRef path) {
  llvm::ErrorOr<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
  StringRef magic(LLM_ARTIFACT_MAGIC, sizeof(llm_artifact_header::magic));
  return file && StringRef((*file)->bytes().data(), (*file)->bytes().size())
                     .starts_with(magic);
}

/// Whether brackets and braces outside of strings nest deeper than `limit`.
/// LLVM's JSON parser calls itself for each level.
static bool nestsDeeperThan(StringRef json, size_t limit) {
  size_t depth = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (c == '"')
      inString = !inString;
    else if (inString)
      i += c == '\\';
    else if ((c == '[' || c == '{') && ++depth > limit)
      return true;
    else if ((c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return false;
}

/// The file name of the decoder in a GenAI configuration.
static llvm::Expected<std::string> genaiModel(StringRef config) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer =
      llvm::MemoryBuffer::getFile(config);
  if (!buffer)
    return llvm::createStringError(config + ": " + buffer.getError().message());
  constexpr size_t kMaxDepth = 64;
  if (nestsDeeperThan((*buffer)->getBuffer(), kMaxDepth))
    return llvm::createStringError(config + ": JSON nested deeper than 64 "
                                            "levels");
  llvm::Expected<llvm::json::Value> json =
      llvm::json::parse((*buffer)->getBuffer());
  if (!json)
    return llvm::createStringError(config + ": " +
                                   llvm::toString(json.takeError()));
  const llvm::json::Object *object = json->getAsObject();
  for (StringRef key : {"model", "decoder"})
    object = object ? object->getObject(key) : nullptr;
  std::optional<StringRef> name =
      object ? object->getString("filename") : std::nullopt;
  if (!name)
    return llvm::createStringError(config +
                                   ": model.decoder.filename is missing");
  // A configuration from elsewhere must not point out of its directory.
  if (name->empty() || *name == "." || *name == ".." ||
      llvm::sys::path::filename(*name) != *name)
    return llvm::createStringError(config + ": model.decoder.filename is '" +
                                   *name +
                                   "', not the name of a file beside it");
  return name->str();
}

llvm::Expected<std::string> resolveModelPath(StringRef path) {
  namespace fs = llvm::sys::fs;
  if (!fs::is_directory(path))
    return path.str();
  auto below = [&](StringRef name) {
    llvm::SmallString<256> full(path);
    llvm::sys::path::append(full, name);
    return std::string(full);
  };
  std::string config = below("genai_config.json");
  if (fs::exists(config)) {
    llvm::Expected<std::string> name = genaiModel(config);
    if (!name)
      return name.takeError();
    std::string model = below(*name);
    if (!fs::exists(model))
      return llvm::createStringError(config + ": names the model '" + *name +
                                     "', which does not exist");
    return model;
  }
  for (const std::string &directory : {path.str(), below("onnx")}) {
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error)) {
      StringRef name = llvm::sys::path::filename(it->path());
      if (name == "model.onnx")
        return it->path();
      if (name.starts_with("model") && name.ends_with(".onnx"))
        found.push_back(it->path());
    }
    llvm::sort(found);
    if (found.size() == 1)
      return found.front();
    if (!found.empty())
      return llvm::createStringError(directory +
                                     ": has several models; name one of " +
                                     llvm::join(found, ", "));
  }
  return llvm::createStringError(
      path + ": has no genai_config.json, and no model*.onnx in it or in "
             "onnx/ below it");
}

std::optional<std::string> findDeepNesting(StringRef text) {
  // The parser recurses once per bracket; this leaves most of the stack free.
  constexpr int64_t limit = 256;
  int64_t depth = 0;
  size_t line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '\n':
      ++line;
      break;
    case '"':
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\')
          ++i;
      break;
    case '/':
      if (text.substr(i).starts_with("//")) {
        i = std::min(text.find('\n', i), text.size());
        ++line;
      }
      break;
    case '{':
    case '(':
    case '[':
    case '<':
      if (++depth > limit)
        return "line " + std::to_string(line) + ": nests deeper than " +
               std::to_string(limit) + " brackets";
      break;
    case '>':
      if (i > 0 && text[i - 1] == '-')
        break;
      [[fallthrough]];
    case '}':
    case ')':
    case ']':
      depth = std::max<int64_t>(depth - 1, 0);
      break;
    default:
      break;
    }
  }
  return std::nullopt;
}

OwningOpRef<ModuleOp> loadModule(StringRef path, MLIRContext &context) {
  llvm::Expected<std::string> file = resolveModelPath(path);
  if (!file) {
    emitError(UnknownLoc::get(&context)) << llvm::toString(file.takeError());
    return {};
  }
  if (isONNXFile(*file))
    return importONNX(*file, context);
  if (isArtifactFile(*file))
    return readArtifact(*file, context);
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer =
      std::make_error_code(std::errc::invalid_argument);
  // A device may never end.
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(*file, status) ||
      status.type() != llvm::sys::fs::file_type::character_file)
    buffer = llvm::MemoryBuffer::getFile(*file);
  if (!buffer) {
    emitError(FileLineColLoc::get(&context, *file, 0, 0))
        << "cannot read the module: " << buffer.getError().message();
    return {};
  }
  if (std::optional<std::string> deep = findDeepNesting((*buffer)->getBuffer());
      deep && !isBytecode(**buffer)) {
    emitError(FileLineColLoc::get(&context, *file, 0, 0)) << *deep;
    return {};
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
}

} // namespace llm
