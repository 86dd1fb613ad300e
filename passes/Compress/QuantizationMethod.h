//===- QuantizationMethod.h - From a matrix to integer codes ----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What --llm-quantize-weights asks of a method. A further method is one file
// and a line in QuantizationMethod.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS_QUANTIZATIONMETHOD_H
#define LLM_PASSES_COMPRESS_QUANTIZATIONMETHOD_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <vector>

namespace mlir::llm {

/// A matrix, a row for each output, and how to store it (#llm.affine).
struct QuantizationRequest {
  int64_t rows = 0;
  int64_t columns = 0;
  unsigned bits = 4;      ///< 2, 4 or 8
  int64_t groupSize = 32; ///< a multiple of 8
  /// Inputs of a group that share a factor, 0: there are none. Scales then have
  /// 6 bits behind the first one.
  int64_t factorGroup = 0;
  bool symmetric = true; ///< no zero points: code 2^(bits-1) is 0
  unsigned search = 0;
  bool halfScales = true; ///< every scale is rounded to f16
  /// [columns][columns]: a multiple of the sum of x xᵀ over inputs x of the
  /// product; none where the method does not need it. Finite, symmetric, and
  /// no element is larger than the diagonal allows.
  llvm::ArrayRef<double> gram;
  double damping = 0.01; ///< of its mean diagonal, added to the diagonal
  bool actOrder = true;  ///< inputs by falling diagonal
  /// Copies rows [first, first + count) to `out`, one every paddedColumns()
  /// floats, and leaves what is between alone. From any thread.
  llvm::function_ref<void(int64_t first, int64_t count, float *out)> read;
  /// Calls its argument with 0 ... count - 1, on several threads.
  llvm::function_ref<void(int64_t count, llvm::function_ref<void(int64_t)>)>
      parallelFor;

  int64_t groups() const { return (columns + groupSize - 1) / groupSize; }
  int64_t paddedColumns() const { return groups() * groupSize; }
  /// The parts of a group, each with a grid of its own.
  int64_t partSize() const { return factorGroup ? factorGroup : groupSize; }
  int64_t partsOfGroup() const { return groupSize / partSize(); }
  int64_t parts() const { return paddedColumns() / partSize(); }
  int64_t codeRowBytes() const { return paddedColumns() * bits / 8; }
  int64_t zeroRowBytes() const { return (groups() * bits + 7) / 8; }
};

/// The components of #llm.affine, row major.
struct QuantizedMatrix {
  std::vector<char> codes;   ///< [rows][codeRowBytes()]
  std::vector<float> scales; ///< [rows][groups()]
  std::vector<char> zeros;   ///< [rows][zeroRowBytes()], none where symmetric
  std::vector<char> factors; ///< [rows][parts()], where there are any
};

struct QuantizationMethod {
  llvm::StringRef name;
  bool needsGram;
  /// Fills `out`, the same whatever the number of threads. False where what
  /// scales are stored in is too coarse for one, or too small: `out` is then of
  /// no use.
  bool (*quantize)(const QuantizationRequest &request, QuantizedMatrix &out);
};

/// All methods, by name in alphabetical order.
llvm::ArrayRef<QuantizationMethod> quantizationMethods();

/// Rows that a method quantizes at once on one thread.
inline constexpr int64_t kRowBlock = 32;

bool quantizeGPTQ(const QuantizationRequest &request, QuantizedMatrix &out);
bool quantizeRoundToNearest(const QuantizationRequest &request,
                            QuantizedMatrix &out);

} // namespace mlir::llm

#endif // LLM_PASSES_COMPRESS_QUANTIZATIONMETHOD_H
