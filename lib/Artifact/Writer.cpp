//===- Writer.cpp - Writing an artifact ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Artifact/Artifact.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Artifact/Output.h"
#include "lib/Support/WeightData.h"
#include "llm/ABI/artifact.h"
#include "mlir/AsmParser/AsmParser.h"
#include "passes/Kernels/Layouts.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Checksum.h"
#include "runtime/artifact/PassSeconds.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <span>

using namespace mlir;
using namespace ::llm;

namespace {

constexpr uint64_t kPageBytes = 4096;

LogicalResult report(ModuleOp module, const Output &output, llvm::Error error) {
  if (!error)
    return success();
  return emitError(module.getLoc())
         << "cannot write '" << output.path()
         << "': " << llvm::toString(std::move(error));
}

/// Zeros up to `offset`.
llvm::Error padTo(Output &output, uint64_t offset) {
  static const char zeros[1 << 16] = {};
  while (output.position() < offset)
    if (llvm::Error error =
            output.write(zeros, std::min<uint64_t>(sizeof zeros,
                                                   offset - output.position())))
      return error;
  return llvm::Error::success();
}

/// The packed weights, one after the other, each at its offset.
LogicalResult writeWeights(ModuleOp module, const artifact::Manifest &manifest,
                           Output &output, uint64_t start, uint64_t &checksum) {
  runtime::PayloadChecksum sum;
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
    sum.add(std::as_bytes(std::span(packed)));
    if (failed(
            report(module, output, padTo(output, start + weight.offset()))) ||
        failed(
            report(module, output, output.write(packed.data(), packed.size()))))
      return failure();
  }
  checksum = sum.get();
  return success();
}

} // namespace

namespace llm {
LogicalResult writeArtifact(ModuleOp module, const ArtifactInputs &inputs,
                            Output &output) {
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
  runtime::Status status = runtime::verifyManifest(manifest, fileSize);
  if (status.ok())
    status = runtime::verifySizes(manifest);
  if (!status.ok())
    return emitError(module.getLoc())
           << "the module cannot be sealed: " << status.message();

  auto check = [&](llvm::Error error) {
    return report(module, output, std::move(error));
  };
  for (auto [i, payload] : llvm::enumerate(*manifest.mutable_payloads())) {
    if (failed(check(padTo(output, payload.offset()))))
      return failure();
    const void *data = nullptr;
    if (payload.kind() == artifact::Payload::WEIGHTS) {
      uint64_t checksum;
      if (failed(writeWeights(module, manifest, output, payload.offset(),
                              checksum)))
        return failure();
      payload.set_checksum(checksum);
      continue;
    }
    data = payload.kind() == artifact::Payload::CODE
               ? static_cast<const void *>(inputs.code[i].bytes.data())
               : inputs.tokenizer->bytes.data();
    payload.set_checksum(runtime::payloadChecksum(
        {static_cast<const std::byte *>(data), payload.size()}));
    if (failed(check(output.write(data, payload.size()))))
      return failure();
  }

  std::string serialized = manifest.SerializeAsString();
  // A checksum of 0, once in 2^64, shortens the manifest; the gap is zeros.
  llm_artifact_header header = {};
  std::memcpy(header.magic, LLM_ARTIFACT_MAGIC, sizeof header.magic);
  header.version = LLM_ARTIFACT_VERSION;
  header.manifest_size = serialized.size();
  header.manifest_checksum =
      runtime::checksum(std::as_bytes(std::span(serialized)));
  header.file_size = fileSize;
  header.header_checksum = runtime::checksum(
      std::as_bytes(std::span(&header, 1))
          .first(offsetof(llm_artifact_header, header_checksum)));
  if (failed(check(output.writeAt(0, &header, sizeof header))) ||
      failed(check(
          output.writeAt(sizeof header, serialized.data(), serialized.size()))))
    return failure();
  output.annotate(
      LLM_PASS_SECONDS_ATTRIBUTE,
      runtime::formatPassSeconds(header.manifest_checksum, inputs.passSeconds));
  return check(output.commit());
}
} // namespace llm
