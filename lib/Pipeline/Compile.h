//===- Compile.h - From a model to an artifact, stage by stage ---*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_PIPELINE_COMPILE_H
#define LLM_LIB_PIPELINE_COMPILE_H

#include "lib/Artifact/Artifact.h"
#include "lib/Pipeline/Recipes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <vector>

namespace llm {

/// The stages in their order. Each ends in a verifier.
enum class Stage {
  Import,
  Raise,
  Compress,
  Decode,
  Dispatch,
  Kernels,
  Schedule,
  Artifact
};

llvm::StringRef stageName(Stage stage);
std::optional<Stage> parseStage(llvm::StringRef name);

struct CompileOptions {
  std::string input;
  std::string output;
  std::vector<std::string> targets = {"cpu"};
  /// Processors of CPU code; the artifact holds code for each.
  std::vector<std::string> mcpus{"native"};
  /// GPU architectures, for cuda and cuda-emulator.
  std::vector<std::string> archs;
  /// Element type of the cache: f32, f16, bf16, int8, f8E4M3FN, f8E5M2; as the
  /// recipe leaves it where not given.
  std::optional<std::string> cacheType;
  /// Slots per page; 0 = contiguous.
  int64_t pageSize = 64;
  /// Options of llm-speculate; without them, a step gives each sequence one
  /// token.
  struct Speculation {
    int64_t lookup = 3;
    int64_t tokens = 4;
    /// What a proposed token adds to a step, in percent; the pass's own where
    /// not given.
    std::optional<int64_t> cost;
  };
  std::optional<Speculation> speculate;
  /// A name among models/recipes, or a file.
  std::string recipe = "none";
  /// Taken in its place where given; see parseQuantize.
  std::optional<Recipe> quantize;
  /// Where passes put weights on the way to an artifact; the caller removes it.
  /// Beside a module that is written, its own directory is used, which stays.
  std::string scratch;
  /// A text in UTF-8 for passes that calibrate; none where empty. What they
  /// have done lies in a directory until the artifact is there, so that a
  /// compilation that was killed goes on.
  std::string calibration;
  /// Runs instead of the stages between import and artifact.
  std::optional<std::string> passPipeline;
  /// A tokenizer file or directory; searched beside the model where empty.
  std::string tokenizer;
  Stage startAt = Stage::Import;
  Stage stopAfter = Stage::Artifact;
  /// Writes the module after every stage into this directory.
  std::string saveIR;
  /// Prints the stages as they begin, to stderr.
  bool progress = false;
  std::string compilerVersion;
};

/// What was compiled, for the tool's closing lines.
struct CompileReport {
  bool decoder = false;
  std::string notDecoderReason;
  bool tokenizer = false;
  Recipe recipe;
  uint64_t weightsBytes = 0;
  double seconds = 0;
};

/// Removes what passes that calibrated have kept for a compilation that goes
/// on; nobody needs it once the artifact is there.
void removeCalibrationState(const CompileOptions &options);

/// The passes of a stage as a textual pipeline on builtin.module, for a module
/// that is a decoder or not.
std::string stagePipeline(Stage stage, const CompileOptions &options,
                          bool decoder);

/// What it takes to run a stage again: its pipeline and the module before it.
struct Reproducer {
  Stage stage = Stage::Import;
  std::string pipeline;
  std::string module;

  /// Writes a module that llm-opt takes, its first line the command. False
  /// where there is nothing to write or the file cannot be written.
  bool write(llvm::StringRef path) const;
};

/// Compiles `options.input`. Diagnostics go to the context's handler. Keeps
/// `reproducer` at the stage that runs.
mlir::FailureOr<CompileReport> compile(const CompileOptions &options,
                                       mlir::MLIRContext &context,
                                       Reproducer *reproducer = nullptr);

/// Shared objects by a hash of what they were compiled from.
using CodeCache = llvm::StringMap<llvm::SmallVector<char, 0>>;

/// Compiles the code modules of a lowered module, in their order. One that does
/// not name its processor, the generic path's, is for all `mcpus`: for the
/// narrowest of them. CPU code that `cache` has is taken from there.
mlir::FailureOr<std::vector<CodeObject>>
compileCodeObjects(mlir::ModuleOp module,
                   llvm::ArrayRef<std::string> mcpus = {"native"},
                   CodeCache *cache = nullptr);

/// Compiles a raised decoder, or a part of one, that is not to be kept: for
/// this machine's processor, from the decode stage on, to an artifact at
/// `path`. Changes `module`.
mlir::LogicalResult compileToRun(mlir::ModuleOp module, llvm::StringRef path,
                                 CodeCache &cache);

/// The model that the module was imported from, beside which its tokenizer
/// lies; `input` where the module does not say.
std::string modelPath(mlir::ModuleOp module, llvm::StringRef input);

/// Registers `llm-import-pipeline` (the import and raise stages) and
/// `llm-cpu-pipeline` (from a raised decoder to one that can be sealed for the
/// CPU).
void registerPipelines();

} // namespace llm

#endif // LLM_LIB_PIPELINE_COMPILE_H
