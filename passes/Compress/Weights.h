//===- Weights.h - The weights that the compress passes take ----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_WEIGHTS_H
#define LLM_PASSES_COMPRESS_WEIGHTS_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "lib/Support/FloatRows.h"
#include "lib/Support/WeightData.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/GlobPattern.h"

#include <atomic>

namespace mlir::llm {

/// How the functions of a module use one weight.
struct WeightUses {
  WeightOp weight;
  SmallVector<GetWeightOp> values;
  SmallVector<LinearOp> linears; ///< as their matrix
  bool transposed = false;       ///< some linear reads it as [inputs, outputs]
  bool plain = false;            ///< some linear reads it as [outputs, inputs]
  bool table = false;            ///< an embedding's
  bool other = false;            ///< read by anything else
};

/// The weights of `module` in their order, with their uses.
SmallVector<WeightUses> collectWeightUses(ModuleOp module);

/// What the options `where` and `match` select.
class Selection {
public:
  /// Reports through `emitError` what they do not take.
  static FailureOr<Selection>
  parse(StringRef where, StringRef match,
        function_ref<InFlightDiagnostic()> emitError);

  /// Whether the weight's name matches and one of the products that read it, or
  /// with `all` any use, lies where it should.
  bool contains(const WeightUses &uses) const;
  /// Whether `linear` lies where it should.
  bool isThere(LinearOp linear) const;

private:
  enum class Where { All, Layers, Head };
  Where where = Where::All;
  SmallVector<::llvm::GlobPattern> patterns;
};

/// The kind of a float type that weights are stored in.
std::optional<::llm::FloatKind> getFloatKind(Type type);

/// A dense float weight as a matrix, a row for each output.
class FloatMatrix {
public:
  /// Reports through the weight what cannot be read.
  static FailureOr<FloatMatrix> open(WeightOp weight, DenseFormatAttr format,
                                     bool transposed,
                                     ::llm::WeightFiles &files);

  int64_t rows() const { return numRows; }
  int64_t columns() const { return numColumns; }
  /// Copies rows [first, first + count) to `out`, one every `stride` floats.
  void read(int64_t first, int64_t count, int64_t stride, float *out) const;

private:
  FloatMatrix(::llm::WeightData data, ::llm::FloatKind kind)
      : data(std::move(data)), kind(kind) {}

  ::llm::WeightData data;
  ::llm::FloatKind kind;
  bool transposed = false;
  int64_t numRows = 0, numColumns = 0;
};

/// The index of the first element that is not finite, or -1.
int64_t findNotFinite(const float *values, int64_t count);

/// Keeps the least of the numbers it is given, from any thread.
class Least {
public:
  void add(int64_t value) {
    int64_t seen = least.load();
    while (value < seen && !least.compare_exchange_weak(seen, value)) {
    }
  }
  std::optional<int64_t> get() const {
    int64_t value = least.load();
    return value == INT64_MAX ? std::nullopt : std::optional<int64_t>(value);
  }

private:
  std::atomic<int64_t> least = INT64_MAX;
};

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_WEIGHTS_H
