//===- StatisticsWriter.h - Writing what calibration saw --------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_STATISTICSWRITER_H
#define LLM_PASSES_COMPRESS_STATISTICSWRITER_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Compress/InputAccumulator.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::llm {

/// On the module: the safetensors file with the statistics of its products'
/// inputs (StrAttr).
inline constexpr StringRef kStatisticsAttr = "llm.statistics";

/// What a file of InputStatistics holds about one weight.
struct WeightStatistics {
  std::string weight;
  int64_t width = 0; ///< inputs
};

/// A safetensors file of f32 that is written tensor by tensor, in any order and
/// by more than one process.
class StatisticsWriter {
public:
  /// The file at `path` for these weights, new or, with `goOn`, as an earlier
  /// one of the same weights has left it. Reports through `module`.
  static FailureOr<StatisticsWriter> open(ModuleOp module, StringRef path,
                                          ArrayRef<WeightStatistics> weights,
                                          StatisticKinds kinds, StringRef key,
                                          bool goOn);
  StatisticsWriter(StatisticsWriter &&other) noexcept
      : module(other.module), file(std::move(other.file)),
        fd(std::exchange(other.fd, -1)), offsets(std::move(other.offsets)) {}
  StatisticsWriter(const StatisticsWriter &) = delete;
  StatisticsWriter &operator=(const StatisticsWriter &) = delete;
  ~StatisticsWriter();

  /// Writes all about one weight.
  LogicalResult write(StringRef weight, const InputAccumulator &inputs,
                      StatisticKinds kinds);
  /// Closes the file, which has everything.
  LogicalResult close();

private:
  StatisticsWriter(ModuleOp module, StringRef path)
      : module(module), file(path) {}
  InFlightDiagnostic error(const std::string &reason) {
    return module.emitError() << "cannot write '" << file << "': " << reason;
  }
  LogicalResult put(uint64_t offset, const char *data, size_t bytes);
  LogicalResult put(StringRef tensor, ArrayRef<float> values);

  ModuleOp module;
  std::string file;
  int fd = -1;
  ::llvm::StringMap<uint64_t> offsets; ///< of tensors in the file
};

/// The key that a finished statistics file was written with; "" where the file
/// is none.
std::string readStatisticsKey(ModuleOp module, StringRef path);

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_STATISTICSWRITER_H
