//===- SampleRunner.h - Samples through the parts of a decoder --*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_SAMPLERUNNER_H
#define LLM_PASSES_COMPRESS_SAMPLERUNNER_H

#include "passes/Compress/CalibrationText.h"
#include "passes/Compress/RunState.h"

namespace mlir::llm {

/// Runs samples through parts of a decoder (DecoderParts), the hidden states
/// between parts being files of a state, f32 [tokens, width].
class SampleRunner {
public:
  SampleRunner(ModuleOp module, const ::llm::ModuleRunner &runner,
               Samples samples, const RunState &state);

  /// Rows that a part hands out.
  using Observe = function_ref<LogicalResult(StringRef name, int64_t rows,
                                             int64_t width, const float *data)>;
  /// Runs all samples through `part`, which reads hidden state `in`, if it
  /// reads one, and leaves hidden state `out`, if it hands one out. `what` is
  /// shown on a terminal.
  LogicalResult run(ModuleOp part, int64_t in, int64_t out, Observe observe,
                    StringRef what) const;
  /// Removes a hidden state that nobody reads any more.
  void removeHidden(int64_t number) const;

  int64_t tokens() const { return firsts.back(); }
  const Samples &getSamples() const { return samples; }

private:
  std::string hiddenFile(int64_t number) const;

  ModuleOp module;
  const ::llm::ModuleRunner &runner;
  Samples samples;
  std::vector<int64_t> firsts; ///< the first row of each sample, and the end
  const RunState &state;
};

/// A hash of the module's weights and functions, and of the samples: what a
/// run's results depend on, but for `options`.
std::string hashRun(ModuleOp module, const Samples &samples, StringRef options);

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_SAMPLERUNNER_H
