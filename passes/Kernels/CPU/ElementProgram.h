//===- ElementProgram.h - Elementwise operators in postfix ------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_ELEMENTPROGRAM_H
#define LLM_PASSES_KERNELS_CPU_ELEMENTPROGRAM_H

#include "passes/Kernels/CPU/Emitter.h"

namespace mlir::llm {

/// The parameter `ops` of a kernel: operators on vectors of f32 in postfix, see
/// docs/formats/kernel-families.md.
class ElementProgram {
public:
  /// A function of one or two vectors.
  using Operator = Value (*)(Emitter &e, Value a, Value b);
  struct Step {
    enum Kind { Input, Constant, Unary, Binary } kind;
    int64_t input = 0;
    float constant = 0;
    Operator apply = nullptr;
  };
  static constexpr int64_t kMaxInputs = 64;

  /// Reports what is no program.
  static FailureOr<ElementProgram> parse(KernelBuilder &kernel);

  /// One past the largest number of an input.
  int64_t inputs() const { return numInputs; }
  /// Values that are left, at least one.
  int64_t outputs() const { return numOutputs; }
  /// The values that the program leaves, of `lanes` elements; `input(i)` loads
  /// those of an input.
  SmallVector<Value> run(Emitter &e, int64_t lanes,
                         function_ref<Value(int64_t)> input) const;

private:
  SmallVector<Step> steps;
  int64_t numInputs = 0, numOutputs = 0;
};

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_ELEMENTPROGRAM_H
