//===- Emitter.h - Writing vector code for a CPU ----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CPU_EMITTER_H
#define LLM_PASSES_KERNELS_CPU_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Kernels/KernelFamily.h"

namespace mlir::llm {

/// Length of a buffer that grows with a symbol: a bound, not a size.
inline constexpr int64_t kUnbounded = int64_t(1) << 40;

/// Writes one kernel function: buffers, sizes, work items. Values are scalars
/// or 1-D vectors; arithmetic splats nothing by itself.
class Emitter : public ImplicitLocOpBuilder {
public:
  /// A buffer operand: element type and static bound on its length.
  struct Buffer {
    Type type;
    int64_t length = kUnbounded;
  };

  /// Starts the function `name` in the builder's code module.
  Emitter(KernelBuilder &kernel, StringRef name, ArrayRef<Buffer> buffers,
          unsigned numSizes);
  /// Ends the function.
  void finish();

  int64_t width() const { return lanes; }
  Value buffer(unsigned i) { return fn.getArgument(i); }
  /// Size argument `i` as an index.
  Value size(unsigned i);
  Value begin() { return fn.getArgument(fn.getNumArguments() - 2); }
  Value end() { return fn.getArgument(fn.getNumArguments() - 1); }

  // Constants.
  Value idx(int64_t value);
  Value i32(int64_t value);
  Value f32(float value);
  /// `value` in every lane.
  Value splat(float value, int64_t lanes);
  Value splatInt(int64_t value, int64_t lanes, unsigned bits);
  VectorType f32Vec(int64_t lanes) {
    return VectorType::get({lanes}, getF32Type());
  }
  /// `value` in every lane of what is like `a`.
  Value splatLike(Value a, float value);
  Value broadcast(Value scalar, int64_t lanes);

  // Arithmetic on equal types.
  Value addi(Value a, Value b);
  Value addi(Value a, int64_t b) { return b ? addi(a, idx(b)) : a; }
  Value subi(Value a, Value b);
  Value muli(Value a, Value b);
  Value muli(Value a, int64_t b) { return b == 1 ? a : muli(a, idx(b)); }
  Value divi(Value a, int64_t b);
  Value remi(Value a, int64_t b);
  Value mini(Value a, Value b);
  Value maxi(Value a, Value b);
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value max(Value a, Value b);
  Value min(Value a, Value b);
  /// The larger one, a single instruction; b where either is NaN.
  Value larger(Value a, Value b);
  /// a * b + c, rounded once; twice where the processor has no FMA.
  Value fma(Value a, Value b, Value c);
  Value exp(Value a);
  /// e^a to 22 bits in a third of the operations, 0 below -87; of no use above
  /// 87.
  Value expUpTo87(Value a);
  /// 2^a by a polynomial of `degree` (3: 13 bits, 5: 23 bits); 0 below 2^-126.
  /// `a` is at most 1000.
  Value exp2(Value a, int64_t degree);
  Value sqrt(Value a);
  Value less(Value a, Value b);
  /// `value`, or 0 where `a` is below `least`.
  Value zeroBelow(Value a, float least, Value value);
  Value select(Value condition, Value a, Value b);
  /// An i32 as an index, sign extended.
  Value toIndex(Value a);

  /// The same bits as a vector of another type.
  Value bitcast(Value value, VectorType type);
  /// A call of an LLVM intrinsic.
  Value intrinsic(StringRef name, Type type, ValueRange arguments);

  // Memory. Vectors may be of any length; nothing beyond it is touched.
  Value load(Value memref, Value index);
  void store(Value value, Value memref, Value index);
  /// `lanes` elements from `index` on, as f32 where they are narrower floats.
  Value loadVec(Value memref, Value index, int64_t lanes);
  /// The elements as they are.
  Value loadRaw(Value memref, Value index, int64_t lanes);
  /// One `type` at a byte offset of a buffer of i8; floats, and ui8, as f32.
  Value loadAs(Type type, Value bytes, Value offset);
  /// `lanes` of them.
  Value loadVecAs(Type type, Value bytes, Value offset, int64_t lanes);
  /// f32 lanes, rounded to nearest even where the buffer is narrower.
  void storeVec(Value value, Value memref, Value index);
  /// f16 or bf16 (scalar or vector) to f32, and back.
  Value widen(Value value);
  Value narrow(Value value, Type element);
  /// The address of byte `offset` of a buffer, in a register of its own:
  /// what is loaded from it by `loadAt` takes no second register for an index,
  /// with which processors by Intel split an operation from its load.
  Value address(Value bytes, Value offset);
  Value loadAt(Type type, Value address, int64_t offset);
  void storeAt(Value value, Value address, int64_t offset);
  /// Two neighbours of a buffer of bf16, the first one in the lower half.
  Value loadPair(Value memref, Value index);
  /// Takes denormals for zeros from here on, as operands and as results; gives
  /// what `restoreDenormals` takes to end it.
  Value flushDenormals();
  void restoreDenormals(Value control);
  /// A buffer on the stack of the call.
  Value scratch(Type element, int64_t length);

  // Lanes.
  /// Lanes [first, first + count).
  Value lanesOf(Value vector, int64_t first, int64_t count);
  /// Sum or maximum (`larger`) of all lanes, halves first: one fixed order.
  Value reduceAdd(Value vector);
  Value reduceMax(Value vector);

  // Control.
  /// for iv in [low, high) by step; `body` gives the next values.
  SmallVector<Value>
  loop(Value low, Value high, int64_t step, ValueRange inits,
       function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void loop(Value low, Value high, int64_t step,
            function_ref<void(Value)> body);
  void ifThen(Value condition, function_ref<void()> body);
  void ifElse(Value condition, function_ref<void()> yes,
              function_ref<void()> no);
  /// Calls `body(offset, lanes)` for the parts of a row of `dim` elements: a
  /// loop of full registers, then what is left.
  void forRow(int64_t dim, function_ref<void(Value, int64_t)> body);
  /// The row's parts summed: `body(offset, lanes)` gives a term per lane. Four
  /// running sums per lane, added pairwise, then `reduceAdd`.
  Value sumRow(int64_t dim, function_ref<Value(Value, int64_t, Value)> body);

private:
  Value reduce(Value vector, function_ref<Value(Value, Value)> combine);
  func::FuncOp fn;
  int64_t lanes;
};

// One per file; populateCPUKernels collects them.
void populateAppendKernels(KernelRegistry &registry);
void populateAttentionKernels(KernelRegistry &registry);
void populateElementwiseKernels(KernelRegistry &registry);
void populateNormKernels(KernelRegistry &registry);
void populateLinearKernels(KernelRegistry &registry);
void populateRopeKernels(KernelRegistry &registry);
void populateRowOutputKernels(KernelRegistry &registry);
void populateRowKernels(KernelRegistry &registry);

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CPU_EMITTER_H
