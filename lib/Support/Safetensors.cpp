//===- Safetensors.cpp - Reading safetensors files ------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Support/Safetensors.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace llm {

/// Bits of an element; 0 for a type that there is not.
static int64_t bitsOf(StringRef dtype) {
  return llvm::StringSwitch<int64_t>(dtype)
      .Cases({"F64", "I64", "U64"}, 64)
      .Cases({"F32", "I32", "U32"}, 32)
      .Cases({"F16", "BF16", "I16", "U16"}, 16)
      .Cases({"I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2"}, 8)
      .Default(0);
}

/// One entry of the header over `data`; none where it is no tensor there.
static std::optional<Safetensors::Tensor> readTensor(const llvm::json::Value &v,
                                                     ArrayRef<char> data) {
  const llvm::json::Object *entry = v.getAsObject();
  if (!entry)
    return std::nullopt;
  std::optional<StringRef> dtype = entry->getString("dtype");
  const llvm::json::Array *shape = entry->getArray("shape"),
                          *offsets = entry->getArray("data_offsets");
  if (!dtype || !shape || !offsets || offsets->size() != 2)
    return std::nullopt;
  Safetensors::Tensor tensor;
  tensor.dtype = dtype->str();
  auto limit = static_cast<int64_t>(data.size());
  int64_t bits = bitsOf(*dtype);
  bool empty = false;
  for (const llvm::json::Value &dim : *shape) {
    std::optional<int64_t> size = dim.getAsInteger();
    if (!size || *size < 0)
      return std::nullopt;
    tensor.shape.push_back(*size);
    empty = empty || *size == 0;
  }
  for (int64_t size : tensor.shape) {
    // More than the file has cannot be right, and could overflow.
    if (!empty && bits > limit * 8 / size)
      return std::nullopt;
    bits = empty ? 0 : bits * size;
  }
  std::optional<int64_t> begin = (*offsets)[0].getAsInteger(),
                         end = (*offsets)[1].getAsInteger();
  if (bitsOf(*dtype) == 0 || !begin || !end || *begin < 0 || *begin > *end ||
      *end > limit || (*end - *begin) * 8 != bits)
    return std::nullopt;
  tensor.bytes = data.slice(*begin, *end - *begin);
  return tensor;
}

/// Whether values are nested deeper than a header's, whose parser recurs.
static bool isDeep(StringRef json) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
      continue;
    }
    inString = c == '"';
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth > 8)
      return true;
  }
  return false;
}

FailureOr<Safetensors>
Safetensors::open(StringRef path,
                  function_ref<InFlightDiagnostic()> emitError) {
  auto mapped = MappedFile::open(path);
  if (!mapped)
    return emitError() << "cannot read '" << path
                       << "': " << mapped.getError().message();
  auto bad = [&]() -> InFlightDiagnostic {
    return emitError() << "'" << path << "' is no safetensors file: ";
  };
  Safetensors result;
  result.file = path.str();
  result.mapped = *mapped;
  ArrayRef<char> bytes = result.mapped->bytes();
  if (bytes.size() < 8)
    return bad() << "it has " << bytes.size() << " bytes", failure();
  uint64_t length = llvm::support::endian::read64le(bytes.data());
  if (length > bytes.size() - 8)
    return bad() << "its header would have " << length << " bytes", failure();
  StringRef text(bytes.data() + 8, length);
  if (isDeep(text))
    return bad() << "its header is nested too deeply", failure();
  llvm::Expected<llvm::json::Value> header = llvm::json::parse(text);
  if (!header)
    return bad() << toString(header.takeError()), failure();
  const llvm::json::Object *entries = header->getAsObject();
  if (!entries)
    return bad() << "its header is no object", failure();
  for (const auto &[key, value] : *entries) {
    StringRef name = key;
    if (name == "__metadata__") {
      if (const llvm::json::Object *object = value.getAsObject())
        for (const auto &[entry, text] : *object)
          if (auto string = text.getAsString())
            result.entries[entry] = string->str();
      continue;
    }
    std::optional<Tensor> tensor =
        readTensor(value, bytes.drop_front(8 + length));
    if (!tensor) {
      // Nothing of a file's reaches a terminal as it is.
      std::string shown;
      llvm::raw_string_ostream os(shown);
      llvm::printEscapedString(name.take_front(200), os);
      return bad() << "its tensor '" << shown
                   << "' is described wrongly or ends behind the file",
             failure();
    }
    result.tensors[name] = std::move(*tensor);
  }
  return result;
}

const Safetensors::Tensor *Safetensors::find(StringRef name) const {
  auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second;
}

} // namespace llm
