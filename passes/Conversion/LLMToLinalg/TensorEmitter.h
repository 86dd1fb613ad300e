//===- TensorEmitter.h - Short spellings for lowering llm ops --------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every llm op becomes loops over its result: a linalg.generic whose body reads
// its operands at indices that it computes (tensor.extract). Sizes are index
// values; those that only the run tells are checked before anything is read
// with them, by cf.assert with a message that names the node. So the loops
// themselves never leave their tensors.
//
// Three element types are told apart. The *logical* one is that of the llm op
// (ui8, f8E4M3FN, i4); the *storage* one holds it in a tensor (signless, bytes
// for floats of 8 bits and for anything below a byte); the *compute* one is
// what arithmetic runs on (f32 for all narrower floats).
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_CONVERSION_LLMTOLINALG_TENSOREMITTER_H
#define LLM_PASSES_CONVERSION_LLMTOLINALG_TENSOREMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::llm {

/// The element type that holds logical elements of `type` in a tensor.
Type storageType(Type type);
/// The type that arithmetic on logical elements of `type` runs on.
Type computeType(Type type);
/// `type` with its elements replaced by their storage type.
RankedTensorType storageTensor(Type type);
/// The logical element type of a tensor value of an llm op.
Type elementOf(Value value);
/// "llm.gather at node '/model/Gather'", for messages of the running program.
std::string describe(Operation *op);

class TensorEmitter : public ImplicitLocOpBuilder {
public:
  using Body = function_ref<Value(ValueRange)>;
  using LoopBody = function_ref<SmallVector<Value>(Value, ValueRange)>;
  using Predicate = arith::CmpIPredicate;

  TensorEmitter(Operation *op, OpBuilder &builder)
      : ImplicitLocOpBuilder(op->getLoc(), builder), op(op) {}

  Operation *getOp() const { return op; }

  //===--- Scalars --------------------------------------------------------===//
  Value idx(int64_t value);
  /// A constant of an integer, float or index type.
  Value constant(Type type, double value);
  Value constantInt(Type type, int64_t value);
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  /// Quotient and remainder of non-negative index values; b > 0.
  Value div(Value a, Value b);
  Value rem(Value a, Value b);
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  Value cmp(Predicate predicate, Value a, Value b);
  Value cmp(Predicate predicate, Value a, int64_t b);
  Value land(Value a, Value b);
  Value lor(Value a, Value b);
  Value lnot(Value a);
  Value select(Value condition, Value a, Value b);
  /// An integer of logical type `type` as an index.
  Value toIndex(Value value, Type type);
  /// An index as an integer of type `type`.
  Value fromIndex(Value value, Type type);
  /// `index + (index < 0 ? size : 0)`.
  Value wrap(Value index, Value size);

  //===--- Elements -------------------------------------------------------===//
  /// A stored element of logical type `type` in its compute type, and back
  /// (rounding to nearest, ties to even; saturating where `saturate`).
  Value widen(Value stored, Type type);
  Value narrow(Value computed, Type type, bool saturate = true);
  /// `value`, of compute type of `from`, converted as ONNX Cast does to the
  /// compute type of `to`.
  Value convert(Value value, Type from, Type to);

  //===--- Tensors --------------------------------------------------------===//
  Value dim(Value tensor, int64_t axis);
  SmallVector<Value> dims(Value tensor);
  Value extract(Value tensor, ValueRange indices);
  /// The element of `tensor` at `indices`, computed in its compute type.
  Value read(Value tensor, ValueRange indices, Type logical) {
    return widen(extract(tensor, indices), logical);
  }
  /// Element `i` of an integer vector (or the scalar, for rank 0) as an index.
  Value readIndex(Value tensor, Type logical, int64_t i = 0);
  /// A tensor of type `type` (storage elements) of the given sizes, which are
  /// checked against the static ones. `body` gives the stored element.
  Value generate(RankedTensorType type, ValueRange sizes, Body body);
  /// As `generate`, over the broadcast of `operands`; `body` takes their stored
  /// elements. `types` are the operands' types as the op has them.
  Value map(RankedTensorType type, ValueRange operands, Body body);
  /// The broadcast of the operands' sizes (NumPy), checked.
  SmallVector<Value> broadcastSizes(ValueRange operands);
  /// The indices that read an operand of `operands` at `ivs` of the broadcast.
  SmallVector<Value> broadcastIndices(Value operand, ValueRange ivs);
  /// The elements of `tensor` in row-major order as `type`; the sizes hold as
  /// many elements (the caller's care).
  Value view(Value tensor, RankedTensorType type, ValueRange sizes);
  /// for (iv = 0; iv < count; ++iv) accumulators = body(iv, accumulators).
  SmallVector<Value> loop(Value count, ValueRange inits, LoopBody body);
  /// Nested loops over `sizes`, the last one innermost.
  SmallVector<Value>
  loops(ValueRange sizes, ValueRange inits,
        function_ref<SmallVector<Value>(ValueRange, ValueRange)> body);
  /// Whether `predicate` holds for every element index in `sizes`.
  Value all(ValueRange sizes, Body predicate);
  /// The product of `sizes`.
  Value product(ValueRange sizes);

  //===--- Checks ---------------------------------------------------------===//
  /// The run ends with "op at node: message" unless `ok` holds.
  void check(Value ok, const Twine &message);
  /// Checks that run-time sizes equal the static ones of `type`.
  void checkSizes(RankedTensorType type, ValueRange sizes);

private:
  Operation *op;
};

/// The constant that `value` is, if it is one.
std::optional<int64_t> constantOf(Value value);

} // namespace mlir::llm

#endif // LLM_PASSES_CONVERSION_LLMTOLINALG_TENSOREMITTER_H
