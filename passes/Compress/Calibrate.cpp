//===- Calibrate.cpp - What products see on a text ------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/Calibration.h"
#include "passes/Compress/Passes.h"
#include "passes/Compress/SampleRunner.h"
#include "passes/Compress/StatisticsWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace mlir::llm {
#define GEN_PASS_DEF_CALIBRATEPASS
#include "passes/Compress/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

namespace {
struct Calibrate : mlir::llm::impl::CalibratePassBase<Calibrate> {
  using CalibratePassBase::CalibratePassBase;

  void runOnOperation() override {
    if (failed(calibrate()))
      signalPassFailure();
  }

private:
  LogicalResult calibrate();
  FailureOr<std::string> outputPath(StringRef key);
};

/// Most MiB that `memory` can be.
constexpr int64_t kMaxMemory = int64_t(1) << 24;

/// Layers [begin, end) that one pass over the samples observes.
struct Part {
  int64_t begin = 0, end = 0;
  bool tail = false;
  SmallVector<const InputGroup *> inputs;
};
} // namespace

FailureOr<std::string> Calibrate::outputPath(StringRef key) {
  if (!statistics.empty())
    return statistics.getValue();
  auto directory =
      getOperation()->getAttrOfType<StringAttr>(kCalibrationStateAttr);
  if (!directory)
    return getOperation().emitError("statistics=FILE must say where they go");
  if (failed(openRunDirectory(getOperation(), directory.getValue())))
    return failure();
  SmallString<128> path(directory.getValue());
  ::llvm::sys::path::append(path, key + ".safetensors");
  return path.str().str();
}

/// Parts from layer `first` on, of as many layers as `budget` bytes hold the
/// sums of, at least one.
static std::vector<Part> makeParts(const DecoderParts &decoder,
                                   ArrayRef<InputGroup> inputs,
                                   StatisticKinds kinds, uint64_t budget,
                                   int64_t first) {
  int64_t layers = decoder.numLayers();
  // What lies before the first layer runs with it, what lies behind the last
  // one alone, so that its rows need not be kept longer.
  std::vector<SmallVector<const InputGroup *>> ofLayer(layers + 1);
  for (const InputGroup &input : inputs)
    ofLayer[std::max<int64_t>(decoder.layerOf(input.products.front()), 0)]
        .push_back(&input);
  std::vector<Part> parts;
  uint64_t used = 0;
  int64_t last = layers;
  while (last >= 0 && ofLayer[last].empty())
    --last;
  for (int64_t layer = first; layer <= last; ++layer) {
    uint64_t bytes = 0;
    for (const InputGroup *input : ofLayer[layer])
      bytes += InputAccumulator::bytes(input->width, kinds);
    bool tail = layer == layers;
    if (parts.empty() || used + bytes > budget) {
      parts.push_back({layer, layer, false, {}});
      used = 0;
    }
    used += bytes;
    Part &part = parts.back();
    part.end = tail ? layer : layer + 1;
    part.tail = tail;
    part.inputs.append(ofLayer[layer]);
  }
  return parts;
}

LogicalResult Calibrate::calibrate() {
  ModuleOp module = getOperation();
  FailureOr<StatisticKinds> chosen = parseKinds(module, kinds);
  FailureOr<Selection> selection =
      Selection::parse(where, match, [&] { return module.emitError(); });
  if (failed(chosen) || failed(selection))
    return failure();
  if (memory < 0 || memory > kMaxMemory)
    return module.emitError("memory is from 0 to ") << kMaxMemory << " MiB";
  FailureOr<CalibrationRun> run = CalibrationRun::get(
      module, {text, tokens, tokenizer, numSamples, context});
  if (failed(run))
    return failure();
  const DecoderParts &decoder = run->decoder;
  FailureOr<std::vector<InputGroup>> inputs =
      collectInputs(decoder, *selection);
  if (failed(inputs))
    return failure();
  if (inputs->empty())
    return module.emitError("no dense float weight that a product reads is "
                            "selected: there is nothing to calibrate");

  std::string key = hashRun(module, run->samples,
                            (Twine("calibrate;") + kinds.getValue() + ";" +
                             where.getValue() + ";" + match.getValue())
                                .str());
  FailureOr<std::string> path = outputPath(key);
  if (failed(path))
    return failure();
  auto finish = [&] {
    module->setAttr(kStatisticsAttr, StringAttr::get(&getContext(), *path));
    return success();
  };
  std::string partial = *path + ".partial", found;
  if (::llvm::sys::fs::exists(*path)) {
    found = readStatisticsKey(module, *path);
    if (found.empty())
      return module.emitError()
             << "'" << *path << "' is there and holds no statistics of a run: "
             << "it is not written over";
  }
  if (found == key && !::llvm::sys::fs::exists(partial))
    return finish();
  FailureOr<RunState> state = RunState::open(module, partial, key);
  if (failed(state))
    return failure();
  if (found == key) {
    // The run that wrote it was killed before it could tidy up.
    state->remove();
    return finish();
  }
  std::string gathered = state->file("statistics");
  if (state->done() > 0 && !::llvm::sys::fs::exists(gathered) &&
      failed(state->restart()))
    return failure();
  SampleRunner samplesRunner(module, *run->runner, std::move(run->samples),
                             *state);
  std::vector<WeightStatistics> about;
  for (const InputGroup &input : *inputs)
    for (WeightOp weight : input.weights)
      about.push_back({weight.getSymName().str(), input.width});
  FailureOr<StatisticsWriter> writer =
      StatisticsWriter::open(module, gathered, about, *chosen, key,
                             /*goOn=*/state->done() > 0);
  if (failed(writer))
    return failure();

  std::vector<Part> parts = makeParts(decoder, *inputs, *chosen,
                                      uint64_t(memory) << 20, state->done());
  for (const Part &part : parts) {
    bool more = &part != &parts.back();
    InputSums sums(part.inputs, *chosen, &getContext());
    OwningOpRef<ModuleOp> extracted =
        decoder.extract(part.begin, part.end, part.tail, more, sums.taps());
    std::string what = "calibrating layers " + std::to_string(part.begin) +
                       " to " + std::to_string(part.end) + " of " +
                       std::to_string(decoder.numLayers());
    if (failed(samplesRunner.run(
            *extracted, part.begin, part.end,
            [&](StringRef name, int64_t rows, int64_t width, const float *x) {
              return sums.add(name, rows, x);
            },
            what)) ||
        failed(sums.write(*writer)) ||
        failed(state->setDone(part.end + part.tail)))
      return failure();
    samplesRunner.removeHidden(part.begin);
    numInputs += part.inputs.size();
  }
  if (failed(writer->close()))
    return failure();
  if (std::error_code error = ::llvm::sys::fs::rename(gathered, *path))
    return module.emitError()
           << "cannot write '" << *path << "': " << error.message();
  state->remove();
  return finish();
}
