//===- Writer.cpp - Writing an artifact ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Artifact/Artifact.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Support/WeightData.h"
#include "llm/ABI/artifact.h"
#include "mlir/AsmParser/AsmParser.h"
#include "passes/Kernels/Layouts.h"
#include "runtime/artifact/Artifact.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace mlir;
using namespace ::llm;

namespace {

constexpr uint64_t kPageBytes = 4096;

/// A file written front to back beside its final path. Removed unless
/// committed.
class OutputFile {
public:
  static FailureOr<std::unique_ptr<OutputFile>> create(StringRef path,
                                                       Location loc) {
    // The rename would replace a device or a pipe.
    llvm::sys::fs::file_status status;
    if (!llvm::sys::fs::status(path, status) &&
        status.type() != llvm::sys::fs::file_type::regular_file &&
        status.type() != llvm::sys::fs::file_type::directory_file)
      return emitError(loc)
                 << "cannot write '" << path << "': not a regular file",
             failure();
    // Same directory: the rename must not cross file systems.
    SmallString<128> model(path);
    model += ".%%%%%%%%.tmp";
    int fd;
    SmallString<128> temporary;
    if (std::error_code error = llvm::sys::fs::createUniqueFile(
            model, fd, temporary, llvm::sys::fs::OF_None, 0666))
      return emitError(loc)
                 << "cannot write '" << path << "': " << error.message(),
             failure();
    // Ctrl-C leaves nothing behind either.
    llvm::sys::RemoveFileOnSignal(temporary);
    return std::unique_ptr<OutputFile>(
        new OutputFile(fd, path.str(), temporary.str().str(), loc));
  }

  ~OutputFile() {
    if (fd >= 0)
      ::close(fd);
    if (!committed)
      ::unlink(temporary.c_str());
    llvm::sys::DontRemoveFileOnSignal(temporary);
  }

  LogicalResult write(const void *data, size_t size) {
    const char *bytes = static_cast<const char *>(data);
    while (size > 0) {
      // Below the limit of one write, and small enough to notice a signal.
      ssize_t done = ::write(fd, bytes, std::min<size_t>(size, 64u << 20));
      if (done < 0 && errno == EINTR)
        continue;
      if (done <= 0)
        return fail();
      bytes += done;
      size -= done;
      position += done;
    }
    return success();
  }

  /// Zeros up to `offset`.
  LogicalResult padTo(uint64_t offset) {
    static const char zeros[1 << 16] = {};
    while (position < offset)
      if (failed(write(zeros,
                       std::min<uint64_t>(sizeof zeros, offset - position))))
        return failure();
    return success();
  }

  LogicalResult rewrite(uint64_t offset, const void *data, size_t size) {
    if (::pwrite(fd, data, size, offset) != static_cast<ssize_t>(size))
      return fail();
    return success();
  }

  LogicalResult commit() {
    int closed = ::close(fd);
    fd = -1;
    if (closed != 0 || ::rename(temporary.c_str(), path.c_str()) != 0)
      return fail();
    committed = true;
    return success();
  }

  uint64_t position = 0;

private:
  OutputFile(int fd, std::string path, std::string temporary, Location loc)
      : fd(fd), path(std::move(path)), temporary(std::move(temporary)),
        loc(loc) {}

  LogicalResult fail() {
    return emitError(loc) << "cannot write '" << path
                          << "': " << std::strerror(errno);
  }

  int fd;
  std::string path, temporary;
  Location loc;
  bool committed = false;
};

/// The packed weights, one after the other, each at its offset.
LogicalResult writeWeights(ModuleOp module, const artifact::Manifest &manifest,
                           OutputFile &file, uint64_t start,
                           uint64_t &checksum) {
  XXH3_state_t *state = XXH3_createState();
  llvm::scope_exit release([&] { XXH3_freeState(state); });
  XXH3_64bits_reset(state);
  WeightFiles files;
  std::vector<char> packed;
  for (const artifact::Weight &weight : manifest.weights()) {
    StringRef name = weight.name(), part;
    bool stored = weight.layout() == "stored";
    if (stored)
      std::tie(name, part) = name.rsplit('#');
    auto symbol = SymbolTable::lookupNearestSymbolFrom<mlir::llm::WeightOp>(
        module, StringAttr::get(module.getContext(), name));
    if (!symbol)
      return module.emitError("no llm.weight is named @") << name;
    packed.assign(llvm::alignTo(weight.size(), 64), 0);
    if (stored) {
      SmallVector<mlir::llm::ComponentAttr> parts;
      symbol.getFormat().getParts(parts);
      for (mlir::llm::ComponentAttr component : parts) {
        if (component.getName() != part)
          continue;
        FailureOr<WeightData> data = WeightData::open(
            component, [&] { return symbol.emitOpError(); }, &files);
        if (failed(data))
          return failure();
        std::memcpy(packed.data(), data->bytes().data(), weight.size());
      }
    } else {
      auto layout = dyn_cast_or_null<DictionaryAttr>(
          parseAttribute(weight.layout(), module.getContext()));
      if (!layout ||
          failed(mlir::llm::packWeight(
              symbol, layout,
              MutableArrayRef<char>(packed.data(), weight.size()), &files)))
        return failure();
    }
    XXH3_64bits_update(state, packed.data(), packed.size());
    if (failed(file.padTo(start + weight.offset())) ||
        failed(file.write(packed.data(), packed.size())))
      return failure();
  }
  checksum = XXH3_64bits_digest(state);
  return success();
}

} // namespace

namespace llm {
LogicalResult writeArtifact(ModuleOp module, const ArtifactInputs &inputs,
                            StringRef path) {
  FailureOr<artifact::Manifest> built = buildManifest(module, inputs);
  if (failed(built))
    return failure();
  artifact::Manifest &manifest = *built;

  // Offsets and checksums have a fixed width, so this is the final size; a
  // field of value 0 would be left out, hence the placeholders.
  for (artifact::Payload &payload : *manifest.mutable_payloads()) {
    payload.set_offset(1);
    payload.set_checksum(1);
  }
  uint64_t manifestSize = manifest.ByteSizeLong();
  uint64_t offset =
      llvm::alignTo(sizeof(llm_artifact_header) + manifestSize, kPageBytes);
  for (artifact::Payload &payload : *manifest.mutable_payloads()) {
    bool weights = payload.kind() == artifact::Payload::WEIGHTS;
    offset =
        llvm::alignTo(offset, weights ? LLM_PAYLOAD_ALIGNMENT : kPageBytes);
    payload.set_offset(offset);
    offset += payload.size();
  }
  uint64_t fileSize = offset;
  // What the runtime would refuse is not written: a module that was edited by
  // hand can say what no pass does.
  if (runtime::Status status = runtime::verifyManifest(manifest, fileSize);
      !status.ok())
    return emitError(module.getLoc())
           << "the module cannot be sealed: " << status.message();

  FailureOr<std::unique_ptr<OutputFile>> file =
      OutputFile::create(path, module.getLoc());
  if (failed(file))
    return failure();
  for (auto [i, payload] : llvm::enumerate(*manifest.mutable_payloads())) {
    if (failed((*file)->padTo(payload.offset())))
      return failure();
    const void *data = nullptr;
    if (payload.kind() == artifact::Payload::WEIGHTS) {
      uint64_t checksum;
      if (failed(writeWeights(module, manifest, **file, payload.offset(),
                              checksum)))
        return failure();
      payload.set_checksum(checksum);
      continue;
    }
    data = payload.kind() == artifact::Payload::CODE
               ? static_cast<const void *>(inputs.code[i].bytes.data())
               : inputs.tokenizer->bytes.data();
    payload.set_checksum(XXH3_64bits(data, payload.size()));
    if (failed((*file)->write(data, payload.size())))
      return failure();
  }

  std::string serialized = manifest.SerializeAsString();
  // A checksum of 0, once in 2^64, shortens the manifest; the gap is zeros.
  llm_artifact_header header = {};
  std::memcpy(header.magic, LLM_ARTIFACT_MAGIC, sizeof header.magic);
  header.version = LLM_ARTIFACT_VERSION;
  header.manifest_size = serialized.size();
  header.manifest_checksum = XXH3_64bits(serialized.data(), serialized.size());
  header.file_size = fileSize;
  header.header_checksum =
      XXH3_64bits(&header, offsetof(llm_artifact_header, header_checksum));
  if (failed((*file)->rewrite(0, &header, sizeof header)) ||
      failed((*file)->rewrite(sizeof header, serialized.data(),
                              serialized.size())))
    return failure();
  return (*file)->commit();
}
} // namespace llm
