//===- InputStatistics.cpp - What calibration saw of products -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/InputStatistics.h"

#include <cmath>
#include <cstring>

namespace mlir::llm {

FailureOr<InputStatistics>
InputStatistics::open(StringRef path,
                      function_ref<InFlightDiagnostic()> emitError) {
  FailureOr<::llm::Safetensors> file =
      ::llm::Safetensors::open(path, emitError);
  if (failed(file))
    return failure();
  return InputStatistics(std::move(*file));
}

/// Elements of f32 or f64 as f64.
template <typename T>
static void widen(ArrayRef<char> bytes, MutableArrayRef<double> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    out[i] = value;
  }
}

/// Makes the matrix symmetric by its upper triangle. False where it is no Gram
/// matrix: by Cauchy and Schwarz the diagonal bounds the rest. f32 may have
/// rounded.
static bool mirror(MutableArrayRef<double> gram, int64_t n) {
  std::vector<double> norms(n);
  for (int64_t i = 0; i < n; ++i) {
    double square = gram[i * n + i];
    if (!(square >= 0) || !std::isfinite(square))
      return false;
    norms[i] = std::sqrt(square);
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) {
      double product = gram[i * n + j], bound = norms[i] * norms[j];
      if (!(std::abs(product) <= bound * (1 + 1e-4)) ||
          !(std::abs(product - gram[j * n + i]) <= bound * 1e-4))
        return false;
      gram[j * n + i] = product;
    }
  return true;
}

FailureOr<std::vector<double>> InputStatistics::gram(WeightOp weight,
                                                     int64_t columns) const {
  std::string name = (weight.getSymName() + ".gram").str();
  const ::llm::Safetensors::Tensor *tensor = file.find(name);
  if (!tensor)
    return weight.emitOpError("has no statistics: '")
           << file.path() << "' has no tensor '" << name << "'";
  bool isDouble = tensor->dtype == "F64";
  if ((!isDouble && tensor->dtype != "F32") ||
      tensor->shape != ArrayRef<int64_t>{columns, columns})
    return weight.emitOpError("needs '")
           << name << "' of '" << file.path() << "' to be F32 or F64 ["
           << columns << ", " << columns << "]";
  std::vector<double> gram(columns * columns);
  if (isDouble)
    widen<double>(tensor->bytes, gram);
  else
    widen<float>(tensor->bytes, gram);
  if (!mirror(gram, columns))
    return weight.emitOpError("has bad statistics: '")
           << name << "' of '" << file.path()
           << "' is not the Gram matrix of finite inputs";
  return gram;
}

} // namespace mlir::llm
