//===- Compile.cpp - From a model to an artifact, stage by stage ---*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/Compile.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Pipeline/LoadModule.h"
#include "lib/Pipeline/Recipes.h"
#include "lib/Pipeline/Tokenizer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

#include <chrono>
#include <cstdio>

using namespace mlir;

namespace llm {

static constexpr std::pair<Stage, const char *> kStages[] = {
    {Stage::Import, "import"},     {Stage::Raise, "raise"},
    {Stage::Compress, "compress"}, {Stage::Decode, "decode"},
    {Stage::Dispatch, "dispatch"}, {Stage::Kernels, "kernels"},
    {Stage::Schedule, "schedule"}, {Stage::Artifact, "artifact"}};

StringRef stageName(Stage stage) {
  return kStages[static_cast<size_t>(stage)].second;
}

std::optional<Stage> parseStage(StringRef name) {
  for (auto [stage, text] : kStages)
    if (name == text)
      return stage;
  return std::nullopt;
}

static std::string raisePipeline(bool toDecoder) {
  return std::string("llm-fold-shapes,canonicalize,cse,llm-raise-idioms,"
                     "canonicalize,cse,") +
         (toDecoder ? "llm-raise-decoder,canonicalize,cse," : "") +
         "symbol-dce,llm-verify-raise";
}

std::string stagePipeline(Stage stage, const CompileOptions &options,
                          bool decoder) {
  switch (stage) {
  case Stage::Import:
    return "llm-verify-import";
  case Stage::Raise:
    return raisePipeline(/*toDecoder=*/true);
  case Stage::Compress:
    return "";
  case Stage::Decode:
    if (!decoder)
      return "";
    return "llm-page-kv-cache{page-size=" + std::to_string(options.pageSize) +
           "}" +
           (options.cacheType == "f32"
                ? std::string()
                : ",llm-cast-kv-cache{type=" + options.cacheType + "}") +
           ",llm-verify-decode";
  case Stage::Dispatch:
    if (!decoder)
      return "";
    return "llm-form-dispatches,convert-llm-to-rt{targets=" +
           llvm::join(options.targets, ",") + "}";
  case Stage::Kernels:
    if (!decoder)
      return "llm-host-function-pipeline";
    return "llm-pack-weights,llm-generate-kernels{mcpu=" + options.mcpu + "}";
  case Stage::Schedule:
    return decoder ? "llm-plan-memory" : "";
  case Stage::Artifact:
    return "";
  }
  return "";
}

/// Stored bytes of all weights.
static uint64_t storedBytes(ModuleOp module) {
  double bytes = 0;
  for (auto weight : module.getOps<mlir::llm::WeightOp>())
    bytes += weight.getFormat().getBitsPerElement(weight.getTensorType()) *
             weight.getTensorType().getNumElements() / 8;
  return static_cast<uint64_t>(bytes);
}

namespace {
/// Records passes with their options and what they did to the weights.
class PassRecorder : public PassInstrumentation {
public:
  explicit PassRecorder(std::vector<artifact::PassRecord> &records)
      : records(records) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (auto module = dyn_cast<ModuleOp>(op); module && isRecorded(pass))
      before = storedBytes(module);
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    if (!module || !isRecorded(pass))
      return;
    std::string text;
    llvm::raw_string_ostream os(text);
    pass->printAsTextualPipeline(os);
    StringRef options = text;
    options.consume_front(pass->getArgument());
    options = options.ltrim();
    options.consume_front("{");
    options.consume_back("}");
    artifact::PassRecord &record = records.emplace_back();
    record.set_name(pass->getArgument().str());
    record.set_options(options.str());
    record.set_bytes_before(before);
    record.set_bytes_after(storedBytes(module));
  }

private:
  /// Our passes, and those of plugins: all but what tidies up between them.
  static bool isRecorded(Pass *pass) {
    return !pass->getArgument().empty() &&
           !llvm::is_contained({"canonicalize", "cse", "symbol-dce"},
                               pass->getArgument());
  }

  std::vector<artifact::PassRecord> &records;
  uint64_t before = 0;
};
} // namespace

static LogicalResult runPipeline(ModuleOp module, StringRef pipeline,
                                 std::vector<artifact::PassRecord> *records) {
  if (pipeline.empty())
    return success();
  PassManager pm(module.getContext());
  std::string error;
  llvm::raw_string_ostream os(error);
  if (failed(parsePassPipeline(pipeline, pm, os)))
    return emitError(module.getLoc())
           << "invalid pass pipeline '" << pipeline << "': " << error;
  if (records)
    pm.addInstrumentation(std::make_unique<PassRecorder>(*records));
  return pm.run(module);
}

/// Writes `module` as text, beside `path` and renamed.
static LogicalResult writeModule(ModuleOp module, StringRef path) {
  llvm::Error error = llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
    OpPrintingFlags flags;
    flags.enableDebugInfo(true, false);
    module.print(os, flags);
    os << "\n";
    return llvm::Error::success();
  });
  if (error)
    return emitError(module.getLoc())
           << "cannot write '" << path << "': " << toString(std::move(error));
  return success();
}

/// The model that the module was imported from, beside which its tokenizer
/// lies; the input itself where the module does not say.
static std::string modelPath(ModuleOp module, StringRef input) {
  auto source = module->getAttrOfType<DictionaryAttr>(mlir::llm::kSourceAttr);
  auto path = source ? source.getAs<StringAttr>("path") : StringAttr();
  return path ? path.str() : input.str();
}

static bool isDecoder(ModuleOp module) {
  for (Operation &op : module.getOps())
    if (op.hasAttr("llm.model"))
      return true;
  return false;
}

static std::string notDecoderReason(ModuleOp module) {
  std::string reason;
  module.walk([&](Operation *op) {
    if (auto text = op->getAttrOfType<StringAttr>(mlir::llm::kNotDecoderAttr))
      reason = text.str();
  });
  return reason;
}

/// Why a raised decoder cannot become programs; "" where it can. The passes
/// that would make them are asked, on a copy: what they take is written down
/// nowhere else.
static std::string whyNoPrograms(ModuleOp module,
                                 const CompileOptions &options) {
  std::string reason;
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error ||
            !reason.empty())
          return success();
        diagnostic.getLocation()->walk([&](Location inner) {
          auto name = dyn_cast<NameLoc>(inner);
          if (!name)
            return WalkResult::advance();
          reason = "at node '" + name.getName().str() + "': ";
          return WalkResult::interrupt();
        });
        reason += diagnostic.str();
        return success();
      });
  OwningOpRef<ModuleOp> copy = module.clone();
  for (Stage stage : {Stage::Decode, Stage::Dispatch})
    if (failed(runPipeline(
            *copy, stagePipeline(stage, options, /*decoder=*/true), nullptr)))
      return reason.empty() ? "it cannot be lowered" : reason;
  return "";
}

/// Runs the raise stage. A decoder with an op that no kernel family computes
/// stays the graph it was, with the reason, as one that is not recognised does.
static LogicalResult runRaise(OwningOpRef<ModuleOp> &module,
                              const CompileOptions &options,
                              std::vector<artifact::PassRecord> &records) {
  OwningOpRef<ModuleOp> imported = module->clone();
  std::vector<artifact::PassRecord> before = records;
  if (failed(runPipeline(*module, raisePipeline(/*toDecoder=*/true), &records)))
    return failure();
  std::string reason =
      isDecoder(*module) ? whyNoPrograms(*module, options) : "";
  if (reason.empty())
    return success();
  module = std::move(imported);
  records = std::move(before);
  for (auto func : module->getOps<func::FuncOp>())
    if (func.isPublic() && !func.isDeclaration())
      func->setAttr(mlir::llm::kNotDecoderAttr,
                    StringAttr::get(func.getContext(), reason));
  return runPipeline(*module, raisePipeline(/*toDecoder=*/false), &records);
}

bool Reproducer::write(StringRef path) const {
  if (module.empty())
    return false;
  llvm::Error error = llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
    os << "// llm-opt --pass-pipeline='builtin.module(" << pipeline << ")'\n"
       << module;
    return llvm::Error::success();
  });
  bool written = !error;
  llvm::consumeError(std::move(error));
  return written;
}

FailureOr<CompileReport> compile(const CompileOptions &options,
                                 MLIRContext &context, Reproducer *reproducer) {
  auto start = std::chrono::steady_clock::now();
  OwningOpRef<ModuleOp> module = loadModule(options.input, context);
  if (!module)
    return failure();
  ArtifactInputs inputs;
  inputs.recipe = options.recipe;
  inputs.compilerVersion = options.compilerVersion;
  FailureOr<std::string> recipe = loadRecipe(options.recipe, module->getLoc());
  if (failed(recipe))
    return failure();

  CompileReport report;
  auto announce = [&](Stage stage) {
    if (options.progress)
      std::fprintf(stderr, "[%zu/%zu] %s\n", static_cast<size_t>(stage) + 1,
                   std::size(kStages), stageName(stage).str().c_str());
  };
  for (auto [stage, name] : kStages) {
    if (stage < options.startAt || stage == Stage::Artifact)
      continue;
    announce(stage);
    bool custom = options.passPipeline && stage != Stage::Import;
    std::string pipeline;
    if (custom)
      pipeline = stage == Stage::Raise ? *options.passPipeline : "";
    else if (stage == Stage::Compress)
      pipeline = isDecoder(*module) ? *recipe : "";
    else
      pipeline = stagePipeline(stage, options, isDecoder(*module));
    if (reproducer) {
      reproducer->stage = stage;
      reproducer->pipeline = pipeline;
      reproducer->module.clear();
      llvm::raw_string_ostream os(reproducer->module);
      module->print(os, OpPrintingFlags().enableDebugInfo(true, false));
    }
    if (stage == Stage::Raise && !custom
            ? failed(runRaise(module, options, inputs.passes))
            : failed(runPipeline(*module, pipeline, &inputs.passes)))
      return failure();
    // The function that carries it is gone once the graph is lowered.
    if (inputs.notDecoderReason.empty())
      inputs.notDecoderReason = notDecoderReason(*module);
    if (!options.saveIR.empty()) {
      SmallString<128> path(options.saveIR);
      llvm::sys::path::append(path, Twine(static_cast<int>(stage)) + "-" +
                                        name + ".mlir");
      if (failed(writeModule(*module, path)))
        return failure();
    }
    if (stage == options.stopAfter) {
      if (failed(writeModule(*module, options.output)))
        return failure();
      return report;
    }
  }

  announce(Stage::Artifact);
  if (reproducer)
    reproducer->stage = Stage::Artifact;
  report.notDecoderReason = inputs.notDecoderReason;
  FailureOr<std::vector<CodeObject>> code =
      compileCodeObjects(*module, options.mcpu);
  if (failed(code))
    return failure();
  inputs.code = std::move(*code);
  if (failed(sealTokenizer(*module, modelPath(*module, options.input),
                           options.tokenizer, inputs)) ||
      failed(writeArtifact(*module, inputs, options.output)))
    return failure();
  report.decoder = isDecoder(*module);
  report.tokenizer = inputs.tokenizer.has_value();
  report.weightsBytes = storedBytes(*module);
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return report;
}

} // namespace llm
