//===- Compile.cpp - From a model to an artifact, stage by stage ---*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/Compile.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Artifact/Output.h"
#include "lib/Pipeline/LoadModule.h"
#include "lib/Pipeline/PipelineError.h"
#include "lib/Pipeline/StoreInstrumentation.h"
#include "lib/Pipeline/Tokenizer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Compress/CalibrationText.h"
#include "passes/Compress/RunState.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <cstdio>
#include <tuple>

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

/// The pass that stores the cache as `type`.
static std::string cachePass(const std::string &type) {
  bool codes = type == "int8" || type == "f8E4M3FN" || type == "f8E5M2";
  return (codes ? "llm-quantize-kv-cache{type=" : "llm-cast-kv-cache{type=") +
         type + "}";
}

/// The pass that rewrites the loop, with a comma before it.
static std::string speculatePass(const CompileOptions &options) {
  if (!options.speculate)
    return "";
  const CompileOptions::Speculation &asked = *options.speculate;
  return ",llm-speculate{lookup=" + std::to_string(asked.lookup) +
         " tokens=" + std::to_string(asked.tokens) +
         (asked.cost ? " token-cost=" + std::to_string(*asked.cost * 10)
                     : std::string()) +
         "}";
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
           (options.cacheType ? "," + cachePass(*options.cacheType)
                              : std::string()) +
           speculatePass(options) + ",llm-verify-decode";
  case Stage::Dispatch:
    if (!decoder)
      return "";
    return "llm-form-dispatches,convert-llm-to-rt{targets=" +
           llvm::join(options.targets, ",") + "}";
  case Stage::Kernels:
    if (!decoder)
      return "llm-host-function-pipeline";
    return "llm-pack-weights,llm-fuse-dispatches,"
           "llm-generate-kernels{mcpu=" +
           llvm::join(options.mcpus, ",") + "}";
  case Stage::Schedule:
    return decoder ? "llm-form-phases,llm-plan-memory" : "";
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
/// Records passes with their options, what they did to the weights, and how
/// long they took.
class PassRecorder : public PassInstrumentation {
public:
  explicit PassRecorder(ArtifactInputs &inputs) : inputs(inputs) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (auto module = dyn_cast<ModuleOp>(op); module && isRecorded(pass, op)) {
      before = storedBytes(module);
      start = Clock::now();
    }
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    if (!module || !isRecorded(pass, op))
      return;
    inputs.passSeconds.push_back(
        std::chrono::duration<double>(Clock::now() - start).count());
    std::string text;
    llvm::raw_string_ostream os(text);
    pass->printAsTextualPipeline(os);
    StringRef options = text;
    options.consume_front(pass->getArgument());
    options = options.ltrim();
    options.consume_front("{");
    options.consume_back("}");
    artifact::PassRecord &record = inputs.passes.emplace_back();
    record.set_name(pass->getArgument().str());
    record.set_options(options.str());
    record.set_bytes_before(before);
    record.set_bytes_after(storedBytes(module));
  }

private:
  using Clock = std::chrono::steady_clock;

  /// Our passes, and those of plugins: all but what tidies up between them, and
  /// what a pass runs on a part of the module.
  static bool isRecorded(Pass *pass, Operation *op) {
    return !op->getParentOp() && !pass->getArgument().empty() &&
           !llvm::is_contained({"canonicalize", "cse", "symbol-dce"},
                               pass->getArgument());
  }

  ArtifactInputs &inputs;
  uint64_t before = 0;
  Clock::time_point start;
};
} // namespace

/// Where passes put new weights, and whether they go with the tool.
static std::pair<std::string, bool> storeOf(const CompileOptions &options) {
  if (options.stopAfter != Stage::Artifact)
    return {storeBeside(options.output), false};
  if (!options.saveIR.empty()) {
    SmallString<128> path(options.saveIR);
    llvm::sys::path::append(path, "weights");
    return {path.str().str(), false};
  }
  return {options.scratch, true};
}

static LogicalResult runPipeline(ModuleOp module, StringRef pipeline,
                                 const CompileOptions &options,
                                 ArtifactInputs *inputs) {
  if (pipeline.empty())
    return success();
  PassManager pm(module.getContext());
  std::string wrong = pipelineError(
      [&](raw_ostream &os) { return parsePassPipeline(pipeline, pm, os); });
  if (!wrong.empty())
    return emitError(module.getLoc())
           << "invalid pass pipeline '" << pipeline << "': " << wrong;
  if (auto [store, scratch] = storeOf(options); !store.empty())
    addStore(pm, store, scratch);
  if (inputs)
    pm.addInstrumentation(std::make_unique<PassRecorder>(*inputs));
  return pm.run(module);
}

/// Where passes that calibrate keep what they have done.
static std::string calibrationState(const CompileOptions &options) {
  return options.output + ".calibration";
}

void removeCalibrationState(const CompileOptions &options) {
  mlir::llm::removeRunDirectory(calibrationState(options));
}

/// Tells the passes of the module, or no more, what to calibrate on.
static void setCalibration(ModuleOp module, const CompileOptions &options,
                           bool on) {
  if (!on) {
    module->removeAttr(mlir::llm::kCalibrationAttr);
    module->removeAttr(mlir::llm::kCalibrationStateAttr);
    return;
  }
  Builder b(module.getContext());
  module->setAttr(mlir::llm::kCalibrationStateAttr,
                  b.getStringAttr(calibrationState(options)));
  if (options.calibration.empty())
    return;
  module->setAttr(
      mlir::llm::kCalibrationAttr,
      b.getDictionaryAttr(
          {b.getNamedAttr("text", b.getStringAttr(options.calibration)),
           b.getNamedAttr("tokenizer", b.getStringAttr(options.tokenizer))}));
}

static std::string printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().enableDebugInfo(true, false));
  os << "\n";
  return text;
}

static LogicalResult cannotWrite(Location loc, StringRef path,
                                 llvm::Error error) {
  return emitError(loc) << "cannot write '" << path
                        << "': " << toString(std::move(error));
}

std::string modelPath(ModuleOp module, StringRef input) {
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
    if (failed(runPipeline(*copy,
                           stagePipeline(stage, options, /*decoder=*/true),
                           options, nullptr)))
      return reason.empty() ? "it cannot be lowered" : reason;
  return "";
}

/// Runs the raise stage. A decoder with an op that no kernel family computes
/// stays the graph it was, with the reason, as one that is not recognised does.
static LogicalResult runRaise(OwningOpRef<ModuleOp> &module,
                              const CompileOptions &options,
                              ArtifactInputs &inputs) {
  OwningOpRef<ModuleOp> imported = module->clone();
  std::vector<artifact::PassRecord> passes = inputs.passes;
  std::vector<double> seconds = inputs.passSeconds;
  if (failed(runPipeline(*module, raisePipeline(/*toDecoder=*/true), options,
                         &inputs)))
    return failure();
  std::string reason =
      isDecoder(*module) ? whyNoPrograms(*module, options) : "";
  if (reason.empty())
    return success();
  module = std::move(imported);
  inputs.passes = std::move(passes);
  inputs.passSeconds = std::move(seconds);
  for (auto func : module->getOps<func::FuncOp>())
    if (func.isPublic() && !func.isDeclaration())
      func->setAttr(mlir::llm::kNotDecoderAttr,
                    StringAttr::get(func.getContext(), reason));
  return runPipeline(*module, raisePipeline(/*toDecoder=*/false), options,
                     &inputs);
}

LogicalResult compileToRun(ModuleOp module, StringRef path, CodeCache &cache) {
  CompileOptions options;
  options.output = path.str();
  // Without the contracts of stages: a part does not keep them.
  std::string pipeline =
      "llm-page-kv-cache{page-size=" + std::to_string(options.pageSize) + "}";
  for (Stage stage : {Stage::Dispatch, Stage::Kernels, Stage::Schedule})
    pipeline += "," + stagePipeline(stage, options, /*decoder=*/true);
  if (failed(runPipeline(module, pipeline, options, nullptr)))
    return failure();
  ArtifactInputs inputs;
  FailureOr<std::vector<CodeObject>> code =
      compileCodeObjects(module, options.mcpus, &cache);
  if (failed(code))
    return failure();
  inputs.code = std::move(*code);
  llvm::Expected<std::unique_ptr<Output>> output =
      Output::open(path, Output::Kind::Artifact);
  if (!output)
    return cannotWrite(module.getLoc(), path, output.takeError());
  return writeArtifact(module, inputs, **output);
}

bool Reproducer::write(StringRef path) const {
  if (module.empty())
    return false;
  llvm::Error error =
      writeText(path, "// llm-opt --pass-pipeline='builtin.module(" + pipeline +
                          ")'\n" + module);
  bool written = !error;
  llvm::consumeError(std::move(error));
  return written;
}

FailureOr<CompileReport> compile(const CompileOptions &options,
                                 MLIRContext &context, Reproducer *reproducer) {
  auto start = std::chrono::steady_clock::now();
  FailureOr<Recipe> recipe = options.quantize
                                 ? FailureOr<Recipe>(*options.quantize)
                                 : loadRecipe(options.recipe, &context);
  if (failed(recipe))
    return failure();
  OwningOpRef<ModuleOp> module = loadModule(options.input, context);
  if (!module)
    return failure();
  // Before the work: it may not be writable, or be what is read.
  if (options.stopAfter == Stage::Artifact &&
      llvm::sys::fs::equivalent(modelPath(*module, options.input),
                                options.output))
    return emitError(module->getLoc())
           << "the artifact would replace its model: -o " << options.output
           << " is the same file";
  llvm::Expected<std::unique_ptr<Output>> output =
      Output::open(options.output, options.stopAfter == Stage::Artifact
                                       ? Output::Kind::Artifact
                                       : Output::Kind::Text);
  if (!output)
    return cannotWrite(module->getLoc(), options.output, output.takeError());
  ArtifactInputs inputs;
  // The directory is where it was compiled, not what.
  inputs.recipe = llvm::sys::path::filename(recipe->name).str();
  inputs.compilerVersion = options.compilerVersion;

  CompileReport report;
  auto announce = [&](Stage stage) {
    if (options.progress)
      std::fprintf(stderr, "[%zu/%zu] %s\n", static_cast<size_t>(stage) + 1,
                   std::size(kStages), stageName(stage).str().c_str());
  };
  bool customRan = false;
  for (auto [stage, name] : kStages) {
    if (stage < options.startAt || stage == Stage::Artifact)
      continue;
    announce(stage);
    bool custom = options.passPipeline && stage != Stage::Import;
    std::string pipeline;
    if (custom)
      pipeline = std::exchange(customRan, true) ? "" : *options.passPipeline;
    else if (stage == Stage::Compress)
      pipeline = isDecoder(*module) && !recipe->pipeline.empty()
                     ? recipe->pipeline + ",llm-verify-raise"
                     : "";
    else
      pipeline = stagePipeline(stage, options, isDecoder(*module));
    bool calibrates = custom || stage == Stage::Compress;
    setCalibration(*module, options, calibrates);
    if (reproducer) {
      reproducer->stage = stage;
      reproducer->pipeline = pipeline;
      reproducer->module.clear();
      llvm::raw_string_ostream os(reproducer->module);
      module->print(os, OpPrintingFlags().enableDebugInfo(true, false));
    }
    if (stage == Stage::Raise && !custom
            ? failed(runRaise(module, options, inputs))
            : failed(runPipeline(*module, pipeline, options, &inputs)))
      return failure();
    setCalibration(*module, options, false);
    // The function that carries it is gone once the graph is lowered.
    if (inputs.notDecoderReason.empty())
      inputs.notDecoderReason = notDecoderReason(*module);
    if (!options.saveIR.empty()) {
      SmallString<128> path(options.saveIR);
      llvm::sys::path::append(path, Twine(static_cast<int>(stage)) + "-" +
                                        name + ".mlir");
      if (llvm::Error error = writeText(path, printModule(*module)))
        return cannotWrite(module->getLoc(), path, std::move(error));
    }
    if (stage == options.stopAfter) {
      std::string text = printModule(*module);
      llvm::Error error = (*output)->write(text.data(), text.size());
      if (!error)
        error = (*output)->commit();
      if (error)
        return cannotWrite(module->getLoc(), options.output, std::move(error));
      return report;
    }
  }

  announce(Stage::Artifact);
  if (reproducer)
    reproducer->stage = Stage::Artifact;
  report.notDecoderReason = inputs.notDecoderReason;
  FailureOr<std::vector<CodeObject>> code =
      compileCodeObjects(*module, options.mcpus);
  if (failed(code))
    return failure();
  inputs.code = std::move(*code);
  if (failed(sealTokenizer(*module, modelPath(*module, options.input),
                           options.tokenizer, inputs)) ||
      failed(writeArtifact(*module, inputs, **output)))
    return failure();
  report.recipe = *recipe;
  report.decoder = isDecoder(*module);
  report.tokenizer = inputs.tokenizer.has_value();
  report.weightsBytes = storedBytes(*module);
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return report;
}

} // namespace llm
