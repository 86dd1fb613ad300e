//===- RowOutput.h - The forms in which rows are written --------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_ROWOUTPUT_H
#define LLM_PASSES_KERNELS_CPU_ROWOUTPUT_H

#include "passes/Kernels/CPU/Emitter.h"

namespace mlir::llm {

/// What a kernel that makes rows leaves of them: parameter `output` and, for
/// int8, `group_size`, `scale_group` and `zero`.
struct RowForm {
  enum class Kind { F32, Int8, BF16 } kind = Kind::F32;
  int64_t dim = 1;        ///< elements of a row
  int64_t groupSize = 0;  ///< int8: elements that share an offset
  int64_t zero = 1;       ///< int8: offsets are -zero * the sum of the codes
  int64_t scaleGroup = 0; ///< int8: elements that share a scale, whole groups

  /// The form that the kernel's parameters ask for.
  static FailureOr<RowForm> of(KernelBuilder &kernel, int64_t dim);
  /// Elements from one row to the next.
  int64_t stride() const;
  /// Appends the buffers that it takes: f32; codes, scales, offsets; bf16.
  void addBuffers(SmallVectorImpl<Emitter::Buffer> &buffers,
                  MLIRContext *context) const;
};

/// Writes rows in a form.
class RowOutput {
public:
  /// The form's buffers begin at `first`.
  RowOutput(Emitter &e, const RowForm &form, unsigned first)
      : e(e), form(form), first(first) {}
  /// Row `t`, of which `values(offset, lanes)` computes a part as f32. It is
  /// called once for every element.
  void write(Value t, function_ref<Value(Value, int64_t)> values);
  /// Elements [column, ...) of row `t`, not of int8. `endRow` is to follow.
  void store(Value values, Value t, Value column);
  /// Scale group `s` of row `t` of int8, of the `length` f32 elements of
  /// `source` from `from` on. `endRow` is to follow.
  void quantizeGroup(Value t, Value s, Value source, Value from,
                     int64_t length);
  /// What follows the elements and is read, once for each row.
  void endRow(Value t);
  /// Row `t` of int8, of the f32 elements of `source` from `from` on.
  void quantize(Value t, Value source, Value from);

private:
  void forScaleGroups(function_ref<void(Value, int64_t)> body);
  Value encode(Value source, Value from, Value to, Value inverse,
               int64_t length);
  Emitter &e;
  RowForm form;
  unsigned first;
};

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_ROWOUTPUT_H
