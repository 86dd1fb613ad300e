//===- Calibration.h - The inputs that calibration gathers ------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_CALIBRATION_H
#define LLM_PASSES_COMPRESS_CALIBRATION_H

#include "passes/Compress/CalibrationText.h"
#include "passes/Compress/DecoderParts.h"
#include "passes/Compress/InputAccumulator.h"
#include "passes/Compress/StatisticsWriter.h"
#include "passes/Compress/Weights.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace mlir::llm {

/// An input and the weights that are multiplied with it.
struct InputGroup {
  Value value;
  int64_t width = 0;
  SmallVector<WeightOp> weights;
  SmallVector<LinearOp> products;

  /// Its name as a tap.
  std::string name() const {
    WeightOp first = weights.front();
    return "in." + first.getSymName().str();
  }
};

/// What it takes to run samples through a decoder.
struct CalibrationRun {
  DecoderParts decoder;
  const ::llm::ModuleRunner *runner;
  Samples samples;

  /// Reports through the module what is missing.
  static FailureOr<CalibrationRun> get(ModuleOp module,
                                       CalibrationOptions options);
};

/// The inputs of dense float weights that products of the decoder read and
/// `selection` has, in the order of the weights. Reports a weight that is
/// multiplied with more than one input, or with one that is not f32 [rows,
/// width].
FailureOr<std::vector<InputGroup>> collectInputs(const DecoderParts &decoder,
                                                 const Selection &selection);

/// gram, norms and ranges, separated by |. Reports what else there is.
FailureOr<StatisticKinds> parseKinds(ModuleOp module, StringRef text);

/// The sums over some inputs. They are added up on a thread of their own, one
/// call of BLAS at a time, while the caller goes on: rows that wait are copied,
/// of a bounded size.
class InputSums {
public:
  InputSums(ArrayRef<const InputGroup *> inputs, StatisticKinds kinds,
            MLIRContext *context);
  ~InputSums();

  ArrayRef<Tap> taps() const { return list; }
  /// Adds rows of the tap `name`; reports at its weight one that is not finite.
  /// Waits while too many others do.
  LogicalResult add(StringRef name, int64_t rows, const float *x);
  /// Writes them under the names of all weights. Reports one whose input no run
  /// has handed out.
  LogicalResult write(StatisticsWriter &writer);

private:
  struct Rows {
    InputAccumulator *sum;
    std::vector<float> values;
  };
  void addWaiting();
  void finish();

  SmallVector<const InputGroup *> inputs;
  StatisticKinds kinds;
  MLIRContext *context;
  std::vector<Tap> list;
  std::vector<InputAccumulator> sums;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Rows> waiting; ///< the first one is being added
  size_t waitingValues = 0; ///< of all that wait
  bool finished = false;
  std::thread worker;
};

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_CALIBRATION_H
