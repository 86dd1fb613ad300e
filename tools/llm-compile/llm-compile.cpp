//===- llm-compile.cpp - Model to artifact ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Artifact/Output.h"
#include "lib/Pipeline/Compile.h"
#include "lib/Pipeline/Diagnostics.h"
#include "lib/Pipeline/ModuleRunner.h"
#include "lib/Pipeline/PipelineError.h"
#include "lib/Pipeline/Recipes.h"
#include "lib/Pipeline/Register.h"
#include "lib/Pipeline/StandardStreams.h"
#include "lib/Support/CPUTarget.h"
#include "llm/ABI/artifact.h"
#include "llm/ABI/step.h"
#include "mlir/IR/MLIRContext.h"
#include "tools/Arguments.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <set>
#include <sstream>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace {

constexpr int kInputAtFault = 1;
constexpr int kWrongUsage = 2;
constexpr int kOurFault = 3;
constexpr int kInterrupted = 130;

const char *const kExample = R"(example:
  llm-compile build/models/smollm2 -o smollm2.llmx
  llm-compile model.onnx -o model.llmx --recipe=w8a8
  llm-compile model.onnx -o model.llmx --recipe=w4a16-gptq --calibration=text.txt
  llm-compile model.onnx -o model.llmx --kv=f16,page-size=32
  llm-compile model.onnx -o model.llmx --speculate=lookup=3,tokens=4
  llm-compile model.onnx -o raised.mlir --stop-after=raise)";

const char *const kStageNames =
    "import, raise, compress, decode, dispatch, kernels, schedule, artifact";

/// The number after `key` in `part`, within [low, high]; nothing where `part`
/// is another key's.
std::optional<int64_t> numberOf(const std::string &option,
                                const std::string &part, const std::string &key,
                                int64_t low, int64_t high) {
  if (part.rfind(key + "=", 0) != 0)
    return std::nullopt;
  std::string text = part.substr(key.size() + 1);
  int64_t value = 0;
  if (llvm::StringRef(text).getAsInteger(10, value) || value < low ||
      value > high)
    throw CLI::ValidationError(option, key + " is " + std::to_string(low) +
                                           " to " + std::to_string(high) +
                                           ", not '" + text + "'");
  return value;
}

/// --kv=TYPE[,page-size=N]
void parseCache(const std::string &text, llm::CompileOptions &options) {
  std::stringstream stream(text);
  std::string part;
  bool first = true, sized = false;
  while (std::getline(stream, part, ',')) {
    if (auto size = numberOf("--kv", part, "page-size", 0, 1 << 20)) {
      if (std::exchange(sized, true))
        throw CLI::ValidationError("--kv", "page-size is given twice");
      options.pageSize = *size;
    } else if (first && (part == "f32" || part == "f16" || part == "bf16" ||
                         part == "int8")) {
      options.cacheType = part;
    } else if (first && part == "fp8") {
      options.cacheType = "f8E4M3FN";
    } else {
      throw CLI::ValidationError(
          "--kv", "'" + part +
                      "' is neither f32, f16, bf16, int8, fp8 nor page-size=N");
    }
    first = false;
  }
}

/// --speculate=lookup=N,tokens=K[,cost=PERCENT]
void parseSpeculate(const std::string &text, llm::CompileOptions &options) {
  const std::string option = "--speculate";
  llm::CompileOptions::Speculation &speculation = options.speculate.emplace();
  std::stringstream stream(text);
  std::string part;
  std::set<std::string> given;
  while (std::getline(stream, part, ',')) {
    std::string key = part.substr(0, part.find('='));
    if (!given.insert(key).second)
      throw CLI::ValidationError(option, key + " is given twice");
    if (auto lookup = numberOf(option, part, "lookup", 1, LLM_MAX_LOOKUP))
      speculation.lookup = *lookup;
    else if (auto tokens = numberOf(option, part, "tokens", 1, LLM_MAX_DRAFT))
      speculation.tokens = *tokens;
    else if (auto cost = numberOf(option, part, "cost", 0, 100))
      speculation.cost = cost;
    else if (key == "draft" || key == "self")
      throw CLI::ValidationError(
          option, "'" + part +
                      "': this version drafts by lookup=N only, not "
                      "with a model or with layers of one");
    else
      throw CLI::ValidationError(option,
                                 "'" + part +
                                     "' is neither lookup=N, tokens=K nor "
                                     "cost=PERCENT");
  }
  if (!given.count("lookup"))
    throw CLI::ValidationError(option, "'" + text +
                                           "' does not say how to "
                                           "draft: lookup=N");
}

/// An option that names nothing is not an option that is absent.
std::string refuseEmpty(const std::string &text) {
  return text.empty() ? "must not be empty" : "";
}

/// What the options say beyond the form that each has.
void verifyOptions(const llm::CompileOptions &options) {
  std::set<std::string> targets;
  for (const std::string &target : options.targets)
    if (!targets.insert(target).second)
      throw CLI::ValidationError("--target", "'" + target + "' is given twice");
  // What is wrong with this machine's own is not the user's mistake.
  std::string error;
  if (options.mcpus != std::vector<std::string>{"native"} &&
      failed(llm::CPUTarget::getAll(options.mcpus, error)))
    throw CLI::ValidationError("--mcpu", error);
  if (!llm::isRecipe(options.recipe))
    throw CLI::ValidationError("--recipe",
                               "no recipe is named '" + options.recipe +
                                   "' (there are: " + llm::recipeNames() +
                                   "), and it is no file");
  if (options.stopAfter < options.startAt)
    throw CLI::ValidationError("--stop-after", "lies before --start-at");
  if (options.passPipeline && options.stopAfter == llm::Stage::Import)
    throw CLI::ValidationError("--pass-pipeline",
                               "runs after --stop-after=import");
  if (options.speculate && options.passPipeline)
    throw CLI::ValidationError("--speculate",
                               "belongs to the stages that --pass-pipeline "
                               "replaces: name llm-speculate there");
  if (options.speculate && (options.startAt > llm::Stage::Decode ||
                            options.stopAfter < llm::Stage::Decode))
    throw CLI::ValidationError("--speculate",
                               "belongs to the stage decode, which does not "
                               "run");
  if (options.output == "-" && options.stopAfter == llm::Stage::Artifact)
    throw CLI::ValidationError("--output",
                               "an artifact takes a regular file; - is for a "
                               "module (--stop-after)");
}

llm::Stage stageOf(const std::string &option, const std::string &name) {
  std::optional<llm::Stage> stage = llm::parseStage(name);
  if (!stage)
    throw CLI::ValidationError(option, "no stage is named '" + name +
                                           "'; there are: " + kStageNames);
  return *stage;
}

/// The directory of weights on their way, for the handler of Ctrl-C.
const char *scratch = "";

/// What was compressed and what it costs; where nothing was, what could be.
void printRecipe(const llm::CompileReport &report) {
  const llm::Recipe &used = report.recipe;
  std::fprintf(stderr, "recipe %s: %s\n", used.name.c_str(),
               used.effect.empty() ? "its effect is not known"
                                   : used.effect.c_str());
  if (used.name != "none")
    return;
  for (const llm::Recipe &recipe : llm::listRecipes())
    if (recipe.name != "none")
      std::fprintf(stderr, "  --recipe=%s: %s\n", recipe.name.c_str(),
                   recipe.effect.c_str());
}

/// A crash, or a failure that nobody explained: leaves what we need to see it
/// again beside the output.
int reportCrash(const llm::CompileOptions &options,
                const llm::Reproducer &reproducer) {
  std::string path = options.output + ".reproducer.mlir";
  std::fprintf(stderr, "llm-compile: internal error in stage '%s'\n",
               llm::stageName(reproducer.stage).str().c_str());
  if (reproducer.write(path))
    std::fprintf(stderr, "llm-compile: wrote %s; please report it\n",
                 path.c_str());
  return kOurFault;
}

} // namespace

int main(int argc, char **argv) {
  llm::prepareStandardStreams("llm-compile");
  llm::ignoreOutputSignals();
  llm::CompileOptions options;
  options.compilerVersion = LLM_VERSION;
  options.progress = isatty(STDERR_FILENO);
  std::string cache, quantize, speculate, startAt, stopAfter, passPipeline;
  std::vector<std::string> plugins;

  CLI::App app("Compiles a language model (ONNX, a directory, or MLIR) into "
               "one artifact.",
               "llm-compile");
  app.footer(kExample);
  app.set_version_flag("--version", std::string("llm-compile " LLM_VERSION
                                                "\nLLVM " LLM_LLVM_VERSION
                                                "\nartifact format ") +
                                        std::to_string(LLM_ARTIFACT_VERSION));
  app.add_option("input", options.input,
                 "model.onnx, a directory that holds one, or a .mlir file")
      ->required();
  app.add_option("-o,--output", options.output, "where the result goes")
      ->required();
  app.add_option("--target", options.targets,
                 "targets: cpu, cuda-emulator (GPU kernels run on the CPU and "
                 "checked; so far rms_norm and int4 linear)")
      ->delimiter(',')
      ->check(CLI::IsMember({"cpu", "cuda-emulator"}));
  app.add_option(
         "--mcpu", options.mcpus,
         "processors: native, x86-64 (all of them), x86-64-v2, -v3, -v4 "
         "or names that LLVM knows; the artifact holds code for each, "
         "and llm-run takes the widest that runs")
      ->delimiter(',');
  app.add_option("--tokenizer", options.tokenizer,
                 "tokenizer file or directory; else beside or above the model");
  CLI::Option *recipe =
      app.add_option("--recipe", options.recipe,
                     "how to compress: " + llm::recipeNames() +
                         ", or a file with a pass pipeline");
  app.add_option("--quantize", quantize,
                 "in place of a recipe: how to store the weights of products, "
                 "METHOD[,bits=4,group-size=32|row,symmetric=true,search=0]; "
                 "methods: rtn, gptq (needs --calibration)")
      ->excludes(recipe);
  app.add_option("--calibration", options.calibration,
                 "a text that recipes which look at data run the model on; it "
                 "should be like what the model is for")
      ->type_name("TEXT");
  app.add_option("--kv", cache,
                 "cache: f32, f16, bf16, int8 or fp8[,page-size=N]; page size "
                 "0 is contiguous; the type is else the recipe's, or f32");
  app.add_option(
         "--speculate", speculate,
         "propose tokens and verify several in one step, which changes "
         "no answer: lookup=N (what followed the last N tokens "
         "before)[,tokens=4][,cost=10]; tokens: proposed at most, cost: "
         "what one adds to a step, in percent")
      ->type_name("lookup=N,...");
  app.add_option("--pass-pipeline", passPipeline,
                 "passes to run between import and artifact instead of the "
                 "stages");
  app.add_option("--load-pass-plugin", plugins,
                 "a shared library with passes for --pass-pipeline and "
                 "--recipe; may be given several times")
      ->type_name("FILE")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--stop-after", stopAfter,
                 std::string("write the module after this stage: ") +
                     kStageNames);
  app.add_option("--start-at", startAt,
                 "input is a module written after the stage before this one");
  app.add_option("--save-ir", options.saveIR,
                 "write the module after every stage into this directory")
      ->check(CLI::ExistingDirectory);
  for (CLI::Option *option : app.get_options())
    if (option->get_expected_min() > 0)
      option->check(refuseEmpty);
  try {
    llm::parseArguments(app, argc, argv);
    if (!cache.empty())
      parseCache(cache, options);
    if (!speculate.empty())
      parseSpeculate(speculate, options);
    if (!quantize.empty()) {
      llvm::Expected<llm::Recipe> parsed = llm::parseQuantize(quantize);
      if (!parsed)
        throw CLI::ValidationError("--quantize",
                                   llvm::toString(parsed.takeError()));
      options.quantize = std::move(*parsed);
      if (llvm::StringRef(options.quantize->pipeline)
              .starts_with("llm-calibrate") &&
          options.calibration.empty())
        throw CLI::ValidationError(
            "--quantize", "'" + quantize + "' needs --calibration=TEXT");
    }
    if (!startAt.empty())
      options.startAt = stageOf("--start-at", startAt);
    if (!stopAfter.empty())
      options.stopAfter = stageOf("--stop-after", stopAfter);
    if (!passPipeline.empty())
      options.passPipeline = passPipeline;
    verifyOptions(options);
  } catch (const CLI::ParseError &error) {
    std::ostringstream help;
    if (app.exit(error, help) != 0)
      return kWrongUsage;
    std::string text = help.str();
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
        std::fflush(stdout) == 0)
      return 0;
    llm::reportOutputFailure("llm-compile", errno);
    return kInputAtFault;
  }
  options.scratch =
      options.output + ".weights." + std::to_string(getpid()) + ".tmp";
  scratch = options.scratch.c_str();
  // LLVM has removed the files that passes wrote there.
  llvm::sys::SetInterruptFunction([] {
    llm::removeUnfinishedOutputs();
    rmdir(scratch);
    _exit(kInterrupted);
  });
  llm::ignoreOutputSignals();

  mlir::DialectRegistry registry;
  llm::registerDialects(registry);
  llm::registerModuleRunner(registry);
  llm::registerPasses();
  for (const std::string &plugin : plugins)
    if (llvm::Error error = llm::loadPassPlugin(plugin)) {
      std::fprintf(stderr, "llm-compile: error: %s\n",
                   llvm::toString(std::move(error)).c_str());
      return kInputAtFault;
    }
  if (options.passPipeline)
    if (std::string wrong = llm::pipelineError(*options.passPipeline);
        !wrong.empty()) {
      std::fprintf(stderr,
                   "--pass-pipeline: %s; it lists passes, without "
                   "builtin.module(...): llm-fold-shapes,canonicalize\n",
                   wrong.c_str());
      return kWrongUsage;
    }
  mlir::MLIRContext context(registry);
  // Diagnostics name the place; the op, printed whole, can be megabytes.
  context.printOpOnDiagnostic(false);
  llm::ToolDiagnostics diagnostics(context);
  mlir::FailureOr<llm::CompileReport> report;
  llm::Reproducer reproducer;
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext recovery;
  if (!recovery.RunSafely(
          [&] { report = llm::compile(options, context, &reproducer); })) {
    llm::removeUnfinishedOutputs();
    return reportCrash(options, reproducer);
  }
  // A reproducer needs the weights that the passes made.
  if (failed(report) && !diagnostics.sawError())
    return reportCrash(options, reproducer);
  std::ignore = llvm::sys::fs::remove_directories(options.scratch);
  if (failed(report))
    return kInputAtFault;
  if (options.stopAfter != llm::Stage::Artifact)
    return 0;
  llm::removeCalibrationState(options);
  if (!report->decoder)
    std::fprintf(stderr,
                 "note: compiled as a plain graph (llm-run exec), not as a "
                 "decoder%s%s\n",
                 report->notDecoderReason.empty() ? "" : ": ",
                 report->notDecoderReason.c_str());
  else if (!report->tokenizer)
    std::fprintf(stderr, "note: no tokenizer was found; the artifact takes "
                         "token ids only (--tokenizer=PATH adds one)\n");
  if (!report->decoder && report->recipe.name != "none")
    std::fprintf(stderr,
                 "note: recipe %s was not applied: recipes are for decoders\n",
                 report->recipe.name.c_str());
  if (options.progress) {
    std::fprintf(stderr, "%s: %.1f MB of weights, %.1f s\n",
                 options.output.c_str(), report->weightsBytes / 1e6,
                 report->seconds);
    if (report->decoder)
      printRecipe(*report);
  }
  return 0;
}
