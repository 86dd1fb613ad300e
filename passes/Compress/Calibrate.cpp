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
  if (std::error_code error =
          ::llvm::sys::fs::create_directories(directory.getValue()))
    return getOperation().emitError()
           << "cannot make the directory '" << directory.getValue()
           << "': " << error.message();
  SmallString<128> path(directory.getValue());
  ::llvm::sys::path::append(path, key + ".safetensors");
  return path.str().str();
}

/// Parts of as many layers as `budget` bytes hold the sums of, at least one.
static std::vector<Part> makeParts(const DecoderParts &decoder,
                                   ArrayRef<InputGroup> inputs,
                                   StatisticKinds kinds, uint64_t budget) {
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
  for (int64_t layer = 0; layer <= last; ++layer) {
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
  FailureOr<DecoderParts> decoder = DecoderParts::get(module);
  if (failed(decoder))
    return failure();
  const auto *runner = ::llm::ModuleRunner::get(&getContext());
  if (!runner)
    return emitNoRunner(module);
  FailureOr<std::vector<InputGroup>> inputs = collectInputs(module, *selection);
  if (failed(inputs))
    return failure();
  FailureOr<Samples> samples = readSamples(
      module, *runner, {text, tokens, tokenizer, numSamples, context});
  if (failed(samples))
    return failure();

  std::string key = hashRun(module, *samples,
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
  if (readStatisticsKey(module, *path) == key)
    return finish();

  FailureOr<RunState> state = RunState::open(module, *path + ".partial", key);
  if (failed(state))
    return failure();
  SampleRunner samplesRunner(module, *runner, std::move(*samples), *state);
  std::vector<WeightStatistics> about;
  for (const InputGroup &input : *inputs)
    for (WeightOp weight : input.weights)
      about.push_back({weight.getSymName().str(), input.width});
  FailureOr<StatisticsWriter> writer =
      StatisticsWriter::open(module, state->file("statistics"), about, *chosen,
                             key, /*goOn=*/state->done() > 0);
  if (failed(writer))
    return failure();

  std::vector<Part> parts =
      makeParts(*decoder, *inputs, *chosen, uint64_t(memory) << 20);
  for (auto [index, part] : ::llvm::enumerate(parts)) {
    auto step = static_cast<int64_t>(index);
    if (step < state->done())
      continue;
    bool more = index + 1 < parts.size();
    InputSums sums(part.inputs, *chosen, &getContext());
    OwningOpRef<ModuleOp> run =
        decoder->extract(part.begin, part.end, part.tail, more, sums.taps());
    std::string what = "calibrating layers " + std::to_string(part.begin) +
                       " to " + std::to_string(part.end) + " of " +
                       std::to_string(decoder->numLayers());
    if (failed(samplesRunner.run(
            *run, step, step + 1,
            [&](StringRef name, int64_t rows, int64_t width, const float *x) {
              return sums.add(name, rows, x);
            },
            what)) ||
        failed(sums.write(*writer)) || failed(state->setDone(step + 1)))
      return failure();
    samplesRunner.removeHidden(step);
    numInputs += part.inputs.size();
  }
  if (failed(writer->close()))
    return failure();
  if (std::error_code error =
          ::llvm::sys::fs::rename(state->file("statistics"), *path))
    return module.emitError()
           << "cannot write '" << *path << "': " << error.message();
  state->remove();
  return finish();
}
