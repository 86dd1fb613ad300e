//===- ModuleRunner.h - Running a module while it is compiled ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What passes that execute the model ask for. The compiler's library does not
// contain the runtime: a tool that does adds an implementation to the context
// (registerModuleRunner in lib/Pipeline/ModuleRunner.h).
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_EXECUTION_MODULERUNNER_H
#define LLM_LIB_EXECUTION_MODULERUNNER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectInterface.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llm {

/// Rows of one step, of consecutive tokens of the sequence.
struct StepRows {
  llvm::StringRef name; ///< of kv.supply or kv.observe
  int64_t first = 0;    ///< position of the first row's token
  int64_t rows = 0;
  int64_t width = 0;
};

/// A module that was lowered and loaded.
class LoadedModule {
public:
  /// Fills [rows][width].
  using Supply = llvm::function_ref<mlir::LogicalResult(const StepRows &rows,
                                                        float *data)>;
  /// Reads [rows][width].
  using Observe = llvm::function_ref<mlir::LogicalResult(const StepRows &rows,
                                                         const float *data)>;
  virtual ~LoadedModule();

  /// Runs `tokens` as the prompt of one sequence, in steps of at most the
  /// chunk, and hands what each step takes and gives to the callbacks. Which
  /// of them failed, or what is wrong with the tokens, has been reported.
  virtual mlir::LogicalResult run(llvm::ArrayRef<int32_t> tokens, Supply supply,
                                  Observe observe) = 0;
};

struct RunOptions {
  /// An existing directory for the artifact, which does not stay.
  std::string scratch;
  int64_t context = 512; ///< tokens of a sequence at most
  int64_t chunk = 512;   ///< tokens of a step at most
};

/// The ids of a text, and the one that leads each sequence where the tokenizer
/// adds one.
struct EncodedText {
  std::vector<int32_t> ids;
  std::optional<int32_t> lead;
};

/// An interface of the llm dialect.
class ModuleRunner : public mlir::DialectInterface::Base<ModuleRunner> {
public:
  explicit ModuleRunner(mlir::Dialect *dialect) : Base(dialect) {}

  /// The context's; null where the tool cannot run modules.
  static const ModuleRunner *get(mlir::MLIRContext *context);

  /// Lowers a copy of `module`, a raised decoder or, with `llm.part` on its
  /// function, a part of one that kv.supply and kv.observe cut out, for this
  /// machine's processor, and loads it. Reports at the module.
  virtual mlir::FailureOr<std::unique_ptr<LoadedModule>>
  load(mlir::ModuleOp module, const RunOptions &options) const = 0;

  /// The ids of `text` by the tokenizer at `tokenizer`, or the one beside or
  /// above the model that `module` was imported from. Reports at the module.
  virtual mlir::FailureOr<EncodedText> encode(mlir::ModuleOp module,
                                              llvm::StringRef tokenizer,
                                              llvm::StringRef text) const = 0;
};

} // namespace llm

MLIR_DECLARE_EXPLICIT_TYPE_ID(::llm::ModuleRunner)

#endif // LLM_LIB_EXECUTION_MODULERUNNER_H
