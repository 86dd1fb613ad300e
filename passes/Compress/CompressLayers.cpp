//===- CompressLayers.cpp - Layer after layer, on what the last one gives -===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Support/PrintingFlags.h"
#include "lib/Support/WeightStore.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Compress/Calibration.h"
#include "passes/Compress/Passes.h"
#include "passes/Compress/SampleRunner.h"
#include "passes/Compress/StatisticsWriter.h"
#include "llvm/Support/FileSystem.h"

#include <tuple>

namespace mlir::llm {
#define GEN_PASS_DEF_COMPRESSLAYERSPASS
#include "passes/Compress/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

namespace {
struct CompressLayers
    : mlir::llm::impl::CompressLayersPassBase<CompressLayers> {
  using CompressLayersPassBase::CompressLayersPassBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    CompressLayersPassBase::getDependentDialects(registry);
    OpPassManager passes(ModuleOp::getOperationName());
    if (succeeded(parsePassPipeline(pipeline, passes, ::llvm::nulls())))
      passes.getDependentDialects(registry);
  }

  void runOnOperation() override {
    if (failed(compress()))
      signalPassFailure();
  }

private:
  LogicalResult compress();
  LogicalResult compressLayer(int64_t index, DecoderParts &decoder,
                              const SampleRunner &samples, RunState &state);
  LogicalResult observe(int64_t index, const DecoderParts &decoder,
                        const SampleRunner &samples, StringRef path);

  StatisticKinds chosen;
  OpPassManager nested{ModuleOp::getOperationName()};
};
} // namespace

static std::string layerFile(const RunState &state, int64_t index) {
  return state.file("layer." + std::to_string(index));
}

/// Writes the module for a later run, which finds it whole or not at all.
static LogicalResult keepLayer(ModuleOp layer, const std::string &path) {
  auto fail = [&](const std::string &reason) {
    return layer.emitError() << "cannot write '" << path << "': " << reason;
  };
  auto file = ::llvm::sys::fs::TempFile::create(path + ".%%%%%%");
  if (!file)
    return fail(toString(file.takeError()));
  ::llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  layer.print(os, ::llm::wholePrintingFlags());
  os.flush();
  std::error_code error = os.error();
  os.clear_error();
  if (error) {
    ::llvm::consumeError(file->discard());
    return fail(error.message());
  }
  if (::llvm::Error error = file->keep(path))
    return fail(toString(std::move(error)));
  return success();
}

/// Gathers what the layer's products see and writes it to `path`.
LogicalResult CompressLayers::observe(int64_t index,
                                      const DecoderParts &decoder,
                                      const SampleRunner &samples,
                                      StringRef path) {
  FailureOr<Selection> all = Selection::parse(
      "layers", "", [&] { return getOperation().emitError(); });
  FailureOr<std::vector<InputGroup>> groups = collectInputs(decoder, *all);
  if (failed(groups))
    return failure();
  SmallVector<const InputGroup *> inputs;
  std::vector<WeightStatistics> about;
  for (const InputGroup &group : *groups) {
    if (decoder.layerOf(group.products.front()) != index)
      continue;
    inputs.push_back(&group);
    for (WeightOp weight : group.weights)
      about.push_back({weight.getSymName().str(), group.width});
  }
  FailureOr<StatisticsWriter> writer = StatisticsWriter::open(
      getOperation(), path, about, chosen, /*key=*/"", /*goOn=*/false);
  if (failed(writer))
    return failure();
  InputSums sums(inputs, chosen, &getContext());
  OwningOpRef<ModuleOp> part = decoder.extract(index, index + 1, /*tail=*/false,
                                               /*hidden=*/false, sums.taps());
  if (!inputs.empty() &&
      failed(samples.run(
          *part, index, index + 1,
          [&](StringRef name, int64_t rows, int64_t width, const float *x) {
            return sums.add(name, rows, x);
          },
          "observing layer " + std::to_string(index))))
    return failure();
  if (failed(sums.write(*writer)))
    return failure();
  return writer->close();
}

LogicalResult CompressLayers::compressLayer(int64_t index,
                                            DecoderParts &decoder,
                                            const SampleRunner &samples,
                                            RunState &state) {
  ModuleOp module = getOperation();
  std::string seen = state.file("statistics");
  if (failed(observe(index, decoder, samples, seen)))
    return failure();
  OwningOpRef<ModuleOp> made = decoder.extractLayer(index);
  // A pass manager that runs in a pass takes what lies in its op.
  ModuleOp layer = made.release();
  module.getBody()->push_back(layer);
  layer->setAttr(kStatisticsAttr, StringAttr::get(&getContext(), seen));
  if (auto store = module->getAttrOfType<StringAttr>(::llm::kStoreAttr)) {
    // What goes with the tool would not be there for the next one.
    bool goes = module->hasAttr(::llm::kScratchStoreAttr);
    layer->setAttr(::llm::kStoreAttr,
                   goes ? StringAttr::get(&getContext(), state.weights())
                        : store);
  }
  LogicalResult result = runPipeline(nested, layer);
  layer->removeAttr(kStatisticsAttr);
  layer->removeAttr(::llm::kStoreAttr);
  if (succeeded(result))
    result = keepLayer(layer, layerFile(state, index));
  if (succeeded(result))
    result = decoder.replaceLayer(index, layer);
  layer.erase();
  if (failed(result))
    return failure();
  if (index + 1 < decoder.numLayers()) {
    OwningOpRef<ModuleOp> part =
        decoder.extract(index, index + 1, /*tail=*/false, /*hidden=*/true, {});
    if (failed(samples.run(
            *part, index, index + 1,
            [](StringRef, int64_t, int64_t, const float *) {
              return success();
            },
            "replaying layer " + std::to_string(index))))
      return failure();
  }
  if (failed(state.setDone(index + 1)))
    return failure();
  samples.removeHidden(index);
  return success();
}

LogicalResult CompressLayers::compress() {
  ModuleOp module = getOperation();
  FailureOr<StatisticKinds> parsed = parseKinds(module, kinds);
  if (failed(parsed))
    return failure();
  chosen = *parsed;
  nested = OpPassManager(ModuleOp::getOperationName());
  std::string wrong;
  ::llvm::raw_string_ostream os(wrong);
  if (pipeline.empty() || failed(parsePassPipeline(pipeline, nested, os))) {
    // Of what the parser prints the reason, without the picture of the place.
    auto [place, reason] = StringRef(wrong).split("error: ");
    return module.emitError("pipeline must be passes for a layer: ")
           << (pipeline.empty() ? "there are none" : reason.split('\n').first);
  }
  FailureOr<CalibrationRun> prepared = CalibrationRun::get(
      module, {text, tokens, tokenizer, numSamples, context});
  if (failed(prepared))
    return failure();
  DecoderParts &decoder = prepared->decoder;
  std::string key = hashRun(
      module, prepared->samples,
      (Twine("compress;") + kinds.getValue() + ";" + pipeline.getValue())
          .str());
  std::string directory = stateDirectory;
  if (auto given = module->getAttrOfType<StringAttr>(kCalibrationStateAttr);
      given && directory.empty()) {
    directory = given.str() + "/layers";
    if (failed(openRunDirectory(module, given.getValue())))
      return failure();
  }
  if (directory.empty())
    return module.emitError(
        "state=DIRECTORY must say where hidden states are kept");
  FailureOr<RunState> state = RunState::open(module, directory, key);
  if (failed(state))
    return failure();
  SampleRunner run(module, *prepared->runner, std::move(prepared->samples),
                   *state);
  for (int64_t index = 0; index < decoder.numLayers(); ++index) {
    if (index >= state->done()) {
      if (failed(compressLayer(index, decoder, run, *state)))
        return failure();
      ++numLayers;
      continue;
    }
    OwningOpRef<ModuleOp> kept = parseSourceFile<ModuleOp>(
        layerFile(*state, index), ParserConfig(&getContext()));
    if (!kept || failed(decoder.replaceLayer(index, *kept)))
      return module.emitError()
             << "'" << layerFile(*state, index)
             << "' is not as it was left; remove '" << directory << "'";
  }
  return success();
}
