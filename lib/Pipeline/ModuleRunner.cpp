//===- ModuleRunner.cpp - Running modules by the runtime ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/ModuleRunner.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Execution/ModuleRunner.h"
#include "lib/Pipeline/Compile.h"
#include "lib/Pipeline/Register.h"
#include "lib/Pipeline/Tokenizer.h"
#include "lib/Support/PrintingFlags.h"
#include "llm/runtime.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <tuple>

using namespace mlir;

namespace llm {
namespace {

struct CloseArtifact {
  void operator()(llm_artifact *artifact) const {
    llm_artifact_close(artifact);
  }
};
struct DestroySession {
  void operator()(llm_session *session) const { llm_session_destroy(session); }
};

/// The callbacks of one run, behind the C interface.
struct Sides {
  LoadedModule::Supply supply;
  LoadedModule::Observe observe;
  bool reported = false;

  static StepRows describe(const llm_rows *rows) {
    return {rows->name, static_cast<int64_t>(rows->first),
            static_cast<int64_t>(rows->rows),
            static_cast<int64_t>(rows->width)};
  }
  static int onSupply(void *context, const llm_rows *rows, float *data) {
    auto &self = *static_cast<Sides *>(context);
    self.reported = failed(self.supply(describe(rows), data));
    return self.reported;
  }
  static int onObserve(void *context, const llm_rows *rows, const float *data) {
    auto &self = *static_cast<Sides *>(context);
    self.reported = failed(self.observe(describe(rows), data));
    return self.reported;
  }
};

class LoadedArtifact : public LoadedModule {
public:
  explicit LoadedArtifact(Location loc) : loc(loc) {}

  LogicalResult open(const std::string &path, const RunOptions &options) {
    llm_artifact *opened = nullptr;
    if (llm_artifact_open(path.c_str(), &opened) != LLM_OK)
      return report();
    artifact.reset(opened);
    llm_session_options wanted;
    llm_session_options_init(&wanted);
    wanted.context = static_cast<int32_t>(options.context);
    wanted.chunk = static_cast<int32_t>(options.chunk);
    wanted.max_logit_rows = static_cast<int32_t>(options.chunk);
    llm_session *created = nullptr;
    if (llm_session_create(opened, &wanted, &created) != LLM_OK)
      return report();
    session.reset(created);
    return success();
  }

  LogicalResult run(ArrayRef<int32_t> tokens, Supply supply,
                    Observe observe) override {
    Sides sides{supply, observe};
    llm_probe_callbacks callbacks = {&sides, Sides::onSupply, Sides::onObserve};
    if (llm_probe(session.get(), tokens.data(), tokens.size(), LLM_ROLE_PROMPT,
                  &callbacks) == LLM_OK)
      return success();
    return sides.reported ? failure() : report();
  }

private:
  LogicalResult report() {
    return emitError(loc) << "running the model: " << llm_last_error();
  }
  Location loc;
  std::unique_ptr<llm_artifact, CloseArtifact> artifact;
  std::unique_ptr<llm_session, DestroySession> session;
};

class RuntimeModuleRunner : public ModuleRunner {
public:
  using ModuleRunner::ModuleRunner;

  FailureOr<std::unique_ptr<LoadedModule>>
  load(ModuleOp module, const RunOptions &options) const override;
  FailureOr<EncodedText> encode(ModuleOp module, StringRef tokenizer,
                                StringRef text) const override {
    return encodeText(module, modelPath(module, ""), tokenizer, text);
  }

private:
  /// Layers are alike, and so is their code. One thread at a time asks.
  mutable CodeCache code;
};

} // namespace

FailureOr<std::unique_ptr<LoadedModule>>
RuntimeModuleRunner::load(ModuleOp module, const RunOptions &options) const {
  // In a context of its own: what lowering makes goes with it, and a pass must
  // not load dialects into the one that it runs in.
  auto fail = [&](const std::string &reason) {
    return emitError(module.getLoc(), "running the model: ") << reason;
  };
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, wholePrintingFlags());
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  std::string reason;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && reason.empty())
      reason = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> copy =
      parseSourceString<ModuleOp>(text, ParserConfig(&context));
  SmallString<128> path(options.scratch);
  llvm::sys::path::append(path, "run.llmx");
  if (!copy || failed(compileToRun(*copy, path, code)))
    return fail("it cannot be lowered: " +
                (reason.empty() ? "for no reason given" : reason));
  auto loaded = std::make_unique<LoadedArtifact>(module.getLoc());
  LogicalResult opened = loaded->open(path.str().str(), options);
  // Mapped by now, or of no use.
  std::ignore = llvm::sys::fs::remove(path);
  if (failed(opened))
    return failure();
  return std::unique_ptr<LoadedModule>(std::move(loaded));
}

void registerModuleRunner(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, mlir::llm::LLMDialect *dialect) {
    dialect->addInterfaces<RuntimeModuleRunner>();
  });
}

} // namespace llm
