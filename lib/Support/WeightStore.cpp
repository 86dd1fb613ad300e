//===- WeightStore.cpp - Where passes put new weights ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Support/WeightStore.h"

#include "lib/Support/WeightData.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using mlir::llm::ComponentAttr;

namespace llm {

/// The name that safetensors has for the elements of a component.
static StringRef elementName(Type type) {
  if (type.isF64())
    return "F64";
  if (type.isF32())
    return "F32";
  if (type.isF16())
    return "F16";
  if (type.isBF16())
    return "BF16";
  assert(type.isInteger(8) && "components are floats and bytes");
  return type.isUnsignedInteger() ? "U8" : "I8";
}

/// The length in 8 bytes, then JSON, padded so that the data begins at a
/// multiple of 64.
static std::string makeHeader(ArrayRef<NewComponent> components) {
  std::string json = "{";
  uint64_t offset = 0;
  for (const NewComponent &part : components) {
    if (offset)
      json += ",";
    std::string shape;
    for (int64_t dim : part.type.getShape())
      shape += (shape.empty() ? "" : ",") + std::to_string(dim);
    json += ("\"" + part.name + "\":{\"dtype\":\"" +
             elementName(part.type.getElementType()) + "\",\"shape\":[" +
             shape + "],\"data_offsets\":[" + Twine(offset) + "," +
             Twine(offset + part.bytes.size()) + "]}")
                .str();
    offset += part.bytes.size();
  }
  json += "}";
  json.append(llvm::alignTo(8 + json.size(), 64) - 8 - json.size(), ' ');
  uint64_t length = json.size();
  std::string header;
  for (int byte = 0; byte < 8; ++byte)
    header += static_cast<char>(length >> (8 * byte));
  return header + json;
}

/// Elements printed with the module, or a resource of it where they are many.
static ComponentAttr makeInline(const NewComponent &part) {
  constexpr size_t kFew = 4096;
  MLIRContext *context = part.type.getContext();
  ElementsAttr elements;
  if (part.bytes.size() <= kFew)
    elements = DenseElementsAttr::getFromRawBuffer(part.type, part.bytes);
  else
    elements = DenseResourceElementsAttr::get(
        part.type, part.name,
        HeapAsmResourceBlob::allocateAndCopyWithAlign(part.bytes, 64));
  return ComponentAttr::get(context, part.name, part.type, elements);
}

/// Writes beside `path` and renames. Not by llvm::writeToOutput, which ends the
/// process where the disk is full.
static llvm::Error writeStore(StringRef path, StringRef header,
                              ArrayRef<NewComponent> components) {
  auto file = llvm::sys::fs::TempFile::create(path + ".%%%%%%.tmp");
  if (!file)
    return file.takeError();
  llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  os << header;
  for (const NewComponent &part : components)
    os.write(part.bytes.data(), part.bytes.size());
  os.flush();
  if (std::error_code error = os.error()) {
    os.clear_error();
    return llvm::joinErrors(llvm::errorCodeToError(error), file->discard());
  }
  return file->keep(path);
}

FailureOr<SmallVector<ComponentAttr>>
storeComponents(ModuleOp module, ArrayRef<NewComponent> components,
                function_ref<InFlightDiagnostic()> emitError) {
  SmallVector<ComponentAttr> stored;
  auto store = module->getAttrOfType<StringAttr>(kStoreAttr);
  if (!store) {
    for (const NewComponent &part : components)
      stored.push_back(makeInline(part));
    return stored;
  }

  std::string header = makeHeader(components), content = header;
  SmallVector<std::string> hashes;
  for (const NewComponent &part : components)
    content += hashes.emplace_back(hashBytes(part.bytes));
  SmallString<128> path(store.getValue());
  llvm::sys::path::append(path, hashBytes(content) + ".safetensors");
  if (std::error_code error =
          llvm::sys::fs::create_directories(store.getValue()))
    return emitError() << "cannot make the directory '" << store.getValue()
                       << "': " << error.message();
  if (module->hasAttr(kScratchStoreAttr))
    llvm::sys::RemoveFileOnSignal(path);
  // Written even where it is there: an old file may be damaged, and one that is
  // mapped stays as it is, because the new one takes its place.
  llvm::Error error = writeStore(path, header, components);
  if (error)
    return emitError() << "cannot write '" << path
                       << "': " << llvm::toString(std::move(error));
  uint64_t offset = header.size();
  for (auto [part, hash] : llvm::zip(components, hashes)) {
    auto span = mlir::llm::SpanAttr::get(module.getContext(), path, offset,
                                         part.bytes.size(), hash);
    stored.push_back(
        ComponentAttr::get(module.getContext(), part.name, part.type, span));
    offset += part.bytes.size();
  }
  return stored;
}

} // namespace llm
