//===- Calibration.cpp - The inputs that calibration gathers --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/Calibration.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::llm {

FailureOr<StatisticKinds> parseKinds(ModuleOp module, StringRef text) {
  StatisticKinds kinds;
  SmallVector<StringRef> words;
  text.split(words, '|', -1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    if (word == "gram")
      kinds.gram = true;
    else if (word == "norms")
      kinds.norms = true;
    else if (word == "ranges")
      kinds.ranges = true;
    else
      return module.emitError() << "kinds are gram, norms and ranges, "
                                   "separated by |, not '"
                                << word << "'";
  }
  if (words.empty())
    return module.emitError("kinds names none of gram, norms and ranges");
  return kinds;
}

FailureOr<CalibrationRun> CalibrationRun::get(ModuleOp module,
                                              CalibrationOptions options) {
  FailureOr<DecoderParts> decoder = DecoderParts::get(module);
  if (failed(decoder))
    return failure();
  const auto *runner = ::llm::ModuleRunner::get(module.getContext());
  if (!runner)
    return module.emitError("cannot be run by this tool, which has no runtime: "
                            "llm-opt and llm-compile have one");
  FailureOr<Samples> samples = readSamples(module, *runner, std::move(options));
  if (failed(samples))
    return failure();
  return CalibrationRun{std::move(*decoder), runner, std::move(*samples)};
}

FailureOr<std::vector<InputGroup>> collectInputs(const DecoderParts &decoder,
                                                 const Selection &selection) {
  ModuleOp module = decoder.getModule();
  std::vector<InputGroup> groups;
  DenseMap<Value, size_t> numbers;
  for (const WeightUses &uses : collectWeightUses(module)) {
    WeightOp weight = uses.weight;
    auto format = dyn_cast<DenseFormatAttr>(weight.getFormat());
    if (uses.linears.empty() || !format ||
        !getFloatKind(format.getData().getType().getElementType()) ||
        !selection.contains(uses))
      continue;
    LinearOp first = uses.linears.front();
    Value input = first.getInput();
    for (LinearOp linear : uses.linears)
      if (linear.getInput() != input) {
        InFlightDiagnostic error = weight.emitOpError(
            "is multiplied with more than one input, which calibration cannot "
            "tell apart; leave it out by match");
        error.attachNote(linear.getLoc()) << "another input";
        return error;
      }
    auto type = cast<RankedTensorType>(input.getType());
    if (type.getRank() != 2 || type.isDynamicDim(1) ||
        !type.getElementType().isF32())
      return first.emitOpError("has an input that cannot be observed: ")
             << type << " is not f32 [rows, width]";
    auto [it, isNew] = numbers.try_emplace(input, groups.size());
    if (isNew)
      groups.push_back({input, type.getDimSize(1), {}, {}});
    groups[it->second].weights.push_back(weight);
    groups[it->second].products.append(uses.linears);
  }
  return groups;
}

/// Values of rows that may wait to be added: 32 MiB.
static constexpr size_t kMaxWaitingValues = size_t(8) << 20;

InputSums::InputSums(ArrayRef<const InputGroup *> inputs, StatisticKinds kinds,
                     MLIRContext *context)
    : inputs(inputs), kinds(kinds), context(context) {
  for (const InputGroup *input : inputs) {
    list.push_back({input->value, input->name()});
    sums.emplace_back(input->width, kinds);
  }
  worker = std::thread([this] { addWaiting(); });
}

InputSums::~InputSums() { finish(); }

void InputSums::addWaiting() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return finished || !waiting.empty(); });
    if (waiting.empty())
      return;
    Rows &rows = waiting.front();
    auto count = static_cast<int64_t>(rows.values.size()) / rows.sum->width();
    lock.unlock();
    rows.sum->add(rows.values.data(), count, context);
    lock.lock();
    waitingValues -= rows.values.size();
    waiting.pop_front();
    changed.notify_all();
  }
}

void InputSums::finish() {
  {
    std::lock_guard lock(mutex);
    finished = true;
  }
  changed.notify_all();
  if (worker.joinable())
    worker.join();
}

LogicalResult InputSums::add(StringRef name, int64_t rows, const float *x) {
  for (auto [input, tap, sum] : ::llvm::zip(inputs, list, sums)) {
    if (tap.name != name)
      continue;
    int64_t bad = findNotFinite(x, rows * sum.width());
    if (bad >= 0) {
      WeightOp weight = input->weights.front();
      return weight.emitOpError("has an input that is not finite on the "
                                "calibration text: channel ")
             << bad % sum.width();
    }
    auto size = static_cast<size_t>(rows * sum.width());
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] {
      return waiting.empty() || waitingValues + size <= kMaxWaitingValues;
    });
    waiting.push_back({&sum, std::vector<float>(x, x + size)});
    waitingValues += size;
    changed.notify_all();
  }
  return success();
}

LogicalResult InputSums::write(StatisticsWriter &writer) {
  finish();
  for (auto [input, sum] : ::llvm::zip(inputs, sums))
    for (WeightOp weight : input->weights)
      if (sum.rows() == 0)
        return weight.emitOpError("is of a function that does not run: its "
                                  "input was not seen");
      else if (failed(writer.write(weight.getSymName(), sum, kinds)))
        return failure();
  return success();
}

} // namespace mlir::llm
