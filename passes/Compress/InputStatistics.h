//===- InputStatistics.h - What calibration saw of products -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_INPUTSTATISTICS_H
#define LLM_PASSES_COMPRESS_INPUTSTATISTICS_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Support/Safetensors.h"

namespace mlir::llm {

/// A safetensors file about the inputs of products, by the weight's name:
/// NAME.gram, f32 or f64 [inputs, inputs], the mean of x xᵀ.
class InputStatistics {
public:
  /// Reports through `emitError` what cannot be read.
  static FailureOr<InputStatistics>
  open(StringRef path, function_ref<InFlightDiagnostic()> emitError);

  /// The Gram matrix of `weight`, which has `columns` inputs. Reports through
  /// the weight one that is missing, has another shape or type, or is none.
  FailureOr<std::vector<double>> gram(WeightOp weight, int64_t columns) const;

private:
  explicit InputStatistics(::llm::Safetensors file) : file(std::move(file)) {}
  ::llm::Safetensors file;
};

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_INPUTSTATISTICS_H
