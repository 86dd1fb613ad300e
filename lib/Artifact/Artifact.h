//===- Artifact.h - Sealing a compiled module in one file ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_ARTIFACT_ARTIFACT_H
#define LLM_LIB_ARTIFACT_ARTIFACT_H

#include "dialects/RT/IR/RTDialect.h"
#include "llm/ABI/manifest.pb.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace llm {

class Output;

/// Code for one target, from one code module.
struct CodeObject {
  std::string name;   ///< symbol of the code module
  std::string target; ///< "cpu", "cuda", "cuda-emulator"
  std::string arch;
  std::vector<std::string> features; ///< that the processor must have
  llvm::SmallVector<char, 0> bytes;
};

/// The tokenizer as the runtime loads it, with what the manifest says of it.
struct SealedTokenizer {
  std::string kind;
  std::vector<uint8_t> bytes;
  bool addBos = false;
  std::string chatTemplate;
  std::string bosToken, eosToken;
};

/// What goes into an artifact beside the module.
struct ArtifactInputs {
  std::vector<CodeObject> code;
  std::optional<SealedTokenizer> tokenizer;
  artifact::GenerationDefaults generation;
  std::vector<artifact::PassRecord> passes;
  /// Of each pass; beside the artifact's contents, which do not depend on it.
  std::vector<double> passSeconds;
  /// A name, without directories.
  std::string recipe = "none";
  std::string compilerVersion;
  /// Why the graph did not raise to a decoder; empty where it did.
  std::string notDecoderReason;
};

/// The manifest of a lowered module (rt ops only, kernels generated, memory
/// planned). Payload offsets and checksums are left 0; payloads are the code
/// objects in order, then the weights, then the tokenizer.
mlir::FailureOr<artifact::Manifest> buildManifest(mlir::ModuleOp module,
                                                  const ArtifactInputs &inputs);

/// Packs the weights and writes the artifact to `output`, which takes one, and
/// commits it. Same inputs give the same bytes.
mlir::LogicalResult writeArtifact(mlir::ModuleOp module,
                                  const ArtifactInputs &inputs, Output &output);

/// The rt module that an artifact's manifest describes. Reports at the
/// artifact's name what is damaged.
mlir::OwningOpRef<mlir::ModuleOp> readArtifact(llvm::StringRef path,
                                               mlir::MLIRContext &context);

/// The manifest's name of an MLIR element type; ELEMENT_UNKNOWN where it has
/// none. Signless integers are signed ones, as in the llm dialect.
artifact::ElementType elementTypeOf(mlir::Type type);
/// The reverse; null for ELEMENT_UNKNOWN.
mlir::Type typeOf(artifact::ElementType type, mlir::MLIRContext &context);

} // namespace llm

#endif // LLM_LIB_ARTIFACT_ARTIFACT_H
