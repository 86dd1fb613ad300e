//===- WeightData.cpp - The bytes of a stored weight ----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Support/WeightData.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

#include <tuple>

using namespace mlir;

namespace llm {

llvm::ErrorOr<std::shared_ptr<MappedFile>> MappedFile::open(StringRef path) {
  namespace fs = llvm::sys::fs;
  // Looked at before it is opened: opening a pipe waits for its other end.
  fs::file_status status;
  if (std::error_code error = fs::status(path, status))
    return error;
  if (status.type() == fs::file_type::directory_file)
    return std::make_error_code(std::errc::is_a_directory);
  if (status.type() != fs::file_type::regular_file)
    return std::make_error_code(std::errc::invalid_argument);
  llvm::Expected<fs::file_t> fd = fs::openNativeFileForRead(path);
  if (!fd)
    return llvm::errorToErrorCode(fd.takeError());
  auto file = std::make_shared<MappedFile>();
  std::error_code error = fs::status(*fd, status);
  if (!error && status.getSize() != 0)
    file->region = fs::mapped_file_region(*fd, fs::mapped_file_region::readonly,
                                          status.getSize(), 0, error);
  std::ignore = fs::closeFile(*fd);
  if (error)
    return error;
  return file;
}

llvm::ErrorOr<std::shared_ptr<MappedFile>> WeightFiles::get(StringRef path) {
  std::shared_ptr<MappedFile> &entry = files[path];
  if (!entry) {
    llvm::ErrorOr<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
    if (!file)
      return file.getError();
    entry = *file;
  }
  return entry;
}

std::string hashBytes(ArrayRef<char> bytes) {
  uint64_t hash = llvm::xxh3_64bits(StringRef(bytes.data(), bytes.size()));
  std::string digits = llvm::utohexstr(hash, /*LowerCase=*/true);
  return std::string(16 - digits.size(), '0') + digits;
}

/// Appends each element of `elements` in the stored form.
static void packElements(DenseElementsAttr elements, std::vector<char> &out) {
  unsigned bits = elements.getElementType().getIntOrFloatBitWidth();
  if (bits == 1)
    bits = 8;
  out.assign(llvm::divideCeil(elements.getNumElements() * bits, 8), 0);
  uint64_t at = 0;
  auto put = [&](const APInt &value) {
    // Whole bytes, or 2 and 4 bits: no element crosses a byte's end.
    if (bits < 8) {
      out[at / 8] |= static_cast<char>(value.getZExtValue() << (at % 8));
    } else {
      for (unsigned byte = 0; byte < bits / 8; ++byte)
        if (byte * 8 < value.getBitWidth())
          out[at / 8 + byte] = static_cast<char>(value.extractBitsAsZExtValue(
              std::min(8u, value.getBitWidth() - byte * 8), byte * 8));
    }
    at += bits;
  };
  if (isa<FloatType>(elements.getElementType())) {
    for (APFloat value : elements.getValues<APFloat>())
      put(value.bitcastToAPInt());
  } else {
    for (APInt value : elements.getValues<APInt>())
      put(value);
  }
}

FailureOr<WeightData>
WeightData::open(mlir::llm::ComponentAttr component,
                 function_ref<InFlightDiagnostic()> emitError,
                 WeightFiles *files, bool verifyHash) {
  WeightData data;
  if (auto span = dyn_cast<mlir::llm::SpanAttr>(component.getSource())) {
    llvm::ErrorOr<std::shared_ptr<MappedFile>> file =
        files ? files->get(span.getFile()) : MappedFile::open(span.getFile());
    if (!file)
      return emitError() << "cannot map '" << span.getFile()
                         << "': " << file.getError().message();
    ArrayRef<char> bytes = (*file)->bytes();
    if (span.getOffset() > bytes.size() ||
        span.getLength() > bytes.size() - span.getOffset())
      return emitError() << "component '" << component.getName() << "' takes "
                         << span.getLength() << " bytes at offset "
                         << span.getOffset() << " of '" << span.getFile()
                         << "', which has " << bytes.size();
    data.view = bytes.slice(span.getOffset(), span.getLength());
    data.owner = *file;
    if (verifyHash && hashBytes(data.view) != span.getHash().lower())
      return emitError() << "component '" << component.getName()
                         << "': the bytes in '" << span.getFile()
                         << "' hash to " << hashBytes(data.view)
                         << ", the module says " << span.getHash()
                         << "; the file has changed since the module was made";
    return data;
  }
  if (auto resource =
          dyn_cast<DenseResourceElementsAttr>(component.getSource())) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return emitError() << "component '" << component.getName()
                         << "': the resource '"
                         << resource.getRawHandle().getKey() << "' has no data";
    auto owner = std::make_shared<std::vector<char>>(blob->getData());
    uint64_t elementBits = std::max(
        1u, component.getType().getElementType().getIntOrFloatBitWidth());
    uint64_t expected =
        llvm::divideCeil(component.getType().getNumElements() *
                             (elementBits == 1 ? 8 : elementBits),
                         8);
    if (owner->size() != expected)
      return emitError() << "component '" << component.getName() << "' takes "
                         << expected << " bytes, its resource has "
                         << owner->size();
    data.view = *owner;
    data.owner = owner;
    return data;
  }
  auto elements = dyn_cast<DenseElementsAttr>(component.getSource());
  unsigned bits = component.getType().getElementType().getIntOrFloatBitWidth();
  if (!elements || (bits >= 8 ? bits % 8 != 0 : 8 % bits != 0))
    return emitError() << "component '" << component.getName()
                       << "' has elements that cannot be stored: "
                       << component.getType();
  auto owner = std::make_shared<std::vector<char>>();
  // A lone byte-sized case is the common one and needs no repacking.
  if (bits >= 8 && !elements.isSplat())
    owner->assign(elements.getRawData().begin(), elements.getRawData().end());
  else
    packElements(elements, *owner);
  data.view = *owner;
  data.owner = owner;
  return data;
}

} // namespace llm
