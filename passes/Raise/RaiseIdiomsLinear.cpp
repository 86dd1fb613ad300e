//===- RaiseIdiomsLinear.cpp - Products with weights, and embeddings ------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Idioms.h"

using namespace mlir;
using namespace mlir::llm;

unsigned mlir::llm::raiseEmbeddings(func::FuncOp func, SymbolicShape &shapes) {
  unsigned count = 0;
  for (Operation *op : snapshot(func)) {
    auto gather = dyn_cast<GatherOp>(op);
    if (!gather || gather.getAxis() != 0)
      continue;
    RankedTensorType table = tensorOf(gather.getInput());
    if (table.getRank() != 2 || !isa<FloatType>(table.getElementType()) ||
        shapes.getConstants(gather.getIndices()))
      continue;
    OpBuilder builder(op);
    Value weight = asWeight(builder, gather.getInput());
    if (!weight || weight.getType() != table)
      continue;
    gather.getResult().replaceAllUsesWith(EmbeddingOp::create(
        builder, op->getLoc(), gather.getType(), gather.getIndices(), weight));
    ++count;
  }
  return count;
}

/// The vector that `value` broadcasts along the last of `rank` dimensions, a
/// weight; null where it is something else.
static Value biasVector(OpBuilder &builder, Value value, int64_t size) {
  if (tensorOf(value).getRank() != 1 || tensorOf(value).getDimSize(0) != size)
    return {};
  return asWeight(builder, value);
}

/// The value behind reshapes that keep the last dimension: the same rows.
static Value sameRows(Value value, SymbolicShape &shapes) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    Value inner = reshape.getInput();
    ArrayRef<SymbolicExpr> dims = shapes.getDims(inner);
    if (dims.empty() || dims.back() != shapes.getDims(value).back())
      break;
    value = inner;
  }
  return value;
}

/// A linear on rows as they were before reshapes, where `op` has flattened
/// batch and sequence for it; the result in the shape of `op`'s.
static Value createLinear(OpBuilder &builder, Operation *op,
                          SymbolicShape &shapes, Value input, Value weight,
                          Value bias, bool transposed, int64_t accuracy,
                          int64_t activationGroup) {
  Location loc = op->getLoc();
  RankedTensorType type = tensorOf(op->getResult(0));
  Value rows = sameRows(input, shapes);
  SmallVector<SymbolicExpr> result(shapes.getDims(op->getResult(0)));
  if (rows != input) {
    SmallVector<SymbolicExpr> dims(shapes.getDims(rows));
    dims.back() = result.back();
    Value linear = LinearOp::create(
        builder, loc, typeOf(dims, type.getElementType()), rows, weight, bias,
        transposed, accuracy, activationGroup);
    if (Value shaped = createReshape(builder, loc, shapes, linear, result))
      if (shaped.getType() == type)
        return shaped;
  }
  return LinearOp::create(builder, loc, type, input, weight, bias, transposed,
                          accuracy, activationGroup);
}

unsigned mlir::llm::raiseLinears(func::FuncOp func, SymbolicShape &shapes) {
  unsigned count = 0;
  for (Operation *op : snapshot(func)) {
    OpBuilder builder(op);
    if (auto matmul = dyn_cast<MatMulOp>(op)) {
      Value weight = skipFloatCasts(matmul.getRhs());
      bool transposed = true; // [K, N] as it stands.
      if (auto transpose = weight.getDefiningOp<TransposeOp>();
          transpose && transpose.getPerm() == ArrayRef<int64_t>{1, 0}) {
        weight = transpose.getInput();
        transposed = false;
      }
      if (tensorOf(weight).getRank() != 2 ||
          !isa<FloatType>(tensorOf(weight).getElementType()))
        continue;
      weight = asWeight(builder, weight);
      if (!weight || tensorOf(matmul.getLhs()).getRank() < 1)
        continue;
      matmul.getResult().replaceAllUsesWith(
          createLinear(builder, op, shapes, matmul.getLhs(), weight, Value(),
                       transposed, /*accuracy=*/0, /*activationGroup=*/0));
      ++count;
    } else if (auto linear = dyn_cast<LinearOp>(op)) {
      // Imported as one, of rows that were flattened for it.
      if (sameRows(linear.getInput(), shapes) != linear.getInput())
        linear.getResult().replaceAllUsesWith(createLinear(
            builder, op, shapes, linear.getInput(), linear.getWeight(),
            linear.getBias(), linear.getTransposed(), linear.getAccuracyLevel(),
            linear.getActivationGroup()));
    } else if (auto add = dyn_cast<AddOp>(op)) {
      for (auto [x, bias] : {std::pair(add.getLhs(), add.getRhs()),
                             std::pair(add.getRhs(), add.getLhs())}) {
        Value rows = sameRows(x, shapes);
        auto linear = rows.getDefiningOp<LinearOp>();
        if (!linear || linear.getBias() || !x.hasOneUse() ||
            (rows != x && !rows.hasOneUse()) || x.getType() != add.getType())
          continue;
        Value vector = biasVector(builder, bias, tensorOf(x).getShape().back());
        if (!vector)
          continue;
        Value result = LinearOp::create(
            builder, op->getLoc(), linear.getType(), linear.getInput(),
            linear.getWeight(), vector, linear.getTransposed(),
            linear.getAccuracyLevel(), linear.getActivationGroup());
        SmallVector<SymbolicExpr> dims(shapes.getDims(add.getResult()));
        result = createReshape(builder, op->getLoc(), shapes, result, dims);
        if (!result || result.getType() != add.getType())
          continue;
        add.getResult().replaceAllUsesWith(result);
        break;
      }
    }
  }
  return count;
}
