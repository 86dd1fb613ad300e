//===- llm-opt.cpp - The pass driver --------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Artifact/Output.h"
#include "lib/Pipeline/Diagnostics.h"
#include "lib/Pipeline/LoadModule.h"
#include "lib/Pipeline/ModuleRunner.h"
#include "lib/Pipeline/PipelineError.h"
#include "lib/Pipeline/Register.h"
#include "lib/Pipeline/StandardStreams.h"
#include "lib/Pipeline/StoreInstrumentation.h"
#include "llm/ABI/artifact.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/ParseUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;

static constexpr llvm::StringLiteral kOverview =
    "LLM compiler pass driver\n\n"
    "Reads an ONNX model, an artifact, MLIR or MLIR bytecode, runs the passes "
    "named on the\n"
    "command line in their order, and prints the module.\n\n"
    "  llm-opt model.onnx --llm-fold-shapes -o folded.mlir\n";

/// An imported model, in the form that the driver of mlir-opt takes: it then
/// behaves for models as it does for text.
static std::unique_ptr<llvm::MemoryBuffer>
importModel(const std::string &path, mlir::DialectRegistry &registry) {
  mlir::MLIRContext context(registry);
  llm::ToolDiagnostics diagnostics(context);
  mlir::OwningOpRef<mlir::ModuleOp> module = llm::loadModule(path, context);
  if (!module)
    return nullptr;
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  if (failed(mlir::writeBytecodeToFile(*module, os)))
    return nullptr;
  return llvm::MemoryBuffer::getMemBufferCopy(bytes, path);
}

/// Loads the plugins that the command line names. MLIR's own option does so
/// while the options are parsed: too late for their passes to be options too,
/// and a library that cannot be loaded does not end the program. It still loads
/// them once more, which changes nothing.
static bool loadPassPlugins(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef argument = argv[i];
    if (argument == "--")
      break;
    if (!argument.consume_front("--load-pass-plugin") &&
        !argument.consume_front("-load-pass-plugin"))
      continue;
    if (!argument.consume_front("=")) {
      // A missing value is the parser's to report.
      if (!argument.empty() || i + 1 == argc)
        continue;
      argument = argv[++i];
    }
    if (llvm::Error error = llm::loadPassPlugin(argument)) {
      llvm::errs() << "llm-opt: error: " << llvm::toString(std::move(error))
                   << "\n";
      return false;
    }
  }
  return true;
}

/// Whether the driver will be able to read `buffer`. Prints the first error
/// where it will not: MLIR's parser adds one for each level that it returns
/// through, and the driver prints them all. What the driver reads otherwise
/// than as one module is left to it.
static bool parses(const llvm::MemoryBuffer &buffer,
                   mlir::DialectRegistry &registry,
                   const mlir::MlirOptMainConfig &config) {
  if (config.shouldVerifyDiagnostics() || !config.inputSplitMarker().empty() ||
      !config.getIrdlFile().empty() || config.shouldRunReproducer() ||
      config.shouldShowDialects() || config.shouldListPasses())
    return true;
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects(config.shouldAllowUnregisteredDialects());
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(buffer.getMemBufferRef(),
                                       /*RequiresNullTerminator=*/false),
      llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler printer(*sources, &context);
  bool reported = false;
  mlir::ScopedDiagnosticHandler first(
      &context, [&](mlir::Diagnostic &diagnostic) {
        bool error =
            diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
        bool print = error && !reported;
        reported |= error;
        return mlir::failure(print);
      });
  mlir::ParserConfig parser(&context, config.shouldVerifyOnParsing());
  return bool(mlir::parseSourceFileForTool(sources, parser,
                                           !config.shouldUseExplicitModule()));
}

int main(int argc, char **argv) {
  llm::prepareStandardStreams("llm-opt");
  llvm::InitLLVM init(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  llm::ignoreOutputSignals();
  mlir::registerAllPasses();
  llm::registerPasses();
  if (!loadPassPlugins(argc, argv))
    return 1;
  mlir::DialectRegistry registry;
  llm::registerDialects(registry);
  llm::registerModuleRunner(registry);

  static cl::opt<std::string> input(
      cl::Positional,
      cl::desc("<model.onnx, directory, artifact.llmx or module.mlir>"),
      cl::init("-"));
  static cl::opt<std::string> output("o", cl::desc("Output filename"),
                                     cl::value_desc("filename"), cl::init("-"));
  cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "llm-opt " LLM_VERSION " (LLVM " LLVM_VERSION_STRING
       << ", artifact format " << LLM_ARTIFACT_VERSION << ")\n";
  });
  std::string header = mlir::registerCLIOptions(kOverview, registry);
  // What a pass reports of a module would be buried under the module.
  constexpr llvm::StringLiteral printOp = "mlir-print-op-on-diagnostic";
  std::string quiet = ("--" + printOp + "=false").str();
  llvm::SmallVector<const char *> arguments(argv, argv + argc);
  if (llvm::none_of(arguments, [&](llvm::StringRef argument) {
        return argument.ltrim('-').starts_with(printOp);
      }))
    arguments.insert(arguments.begin() + 1, quiet.c_str());
  if (!cl::ParseCommandLineOptions(static_cast<int>(arguments.size()),
                                   arguments.data(), header, &llvm::errs()))
    return 2;
  if (input.empty() || output.empty()) {
    llvm::errs() << "llm-opt: error: the name of the "
                 << (input.empty() ? "input" : "output")
                 << " must not be empty\n";
    return 2;
  }

  // A pass that runs the model links code, and the linker, when it is done,
  // forgets the options of whoever called it.
  const std::string outputPath = output;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::string message;
  if (input != "-" && (llvm::sys::fs::is_directory(input) ||
                       llm::isONNXFile(input) || llm::isArtifactFile(input))) {
    if (!(buffer = importModel(input, registry)))
      return 1;
  } else if (!(buffer = mlir::openInputFile(input, &message))) {
    llvm::errs() << "error: " << message << "\n";
    return 1;
  } else if (std::optional<std::string> deep =
                 llm::findDeepNesting(buffer->getBuffer());
             deep && !mlir::isBytecode(*buffer)) {
    llvm::errs() << input << ": error: " << *deep << "\n";
    return 1;
  }
  mlir::MlirOptMainConfig given =
      mlir::MlirOptMainConfig::createFromCLOptions();
  if (!parses(*buffer, registry, given))
    return 1;
  bool wrongUsage = false;
  mlir::MlirOptMainConfig config = given;
  config.setPassPipelineSetupFn([&](mlir::PassManager &pm) {
    if (std::string store = llm::storeBeside(outputPath); !store.empty())
      llm::addStore(pm, store, /*scratch=*/false);
    std::string wrong = llm::pipelineError([&](llvm::raw_ostream &os) {
      mlir::ScopedDiagnosticHandler collect(pm.getContext(),
                                            [&](mlir::Diagnostic &diagnostic) {
                                              os << diagnostic.str() << "\n";
                                              return mlir::success();
                                            });
      return given.setupPassPipeline(pm);
    });
    if (wrong.empty())
      return mlir::success();
    wrongUsage = true;
    llvm::errs() << "llm-opt: error: invalid pass pipeline: " << wrong << "\n";
    return mlir::failure();
  });
  // Written when it is whole: an old file stays as it is until then.
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(mlir::MlirOptMain(os, std::move(buffer), registry, config)))
    return wrongUsage ? 2 : 1;
  if (outputPath == "-") {
    // A failure is reported when the program ends.
    llvm::outs() << text;
    return 0;
  }
  if (llvm::Error error = llm::writeText(outputPath, text)) {
    llvm::errs() << outputPath << ": error: cannot write: "
                 << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  return 0;
}
