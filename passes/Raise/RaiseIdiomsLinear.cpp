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
      matmul.getResult().replaceAllUsesWith(LinearOp::create(
          builder, op->getLoc(), matmul.getType(), matmul.getLhs(), weight,
          Value(), transposed, /*accuracy_level=*/0));
      ++count;
    } else if (auto add = dyn_cast<AddOp>(op)) {
      for (auto [x, bias] : {std::pair(add.getLhs(), add.getRhs()),
                             std::pair(add.getRhs(), add.getLhs())}) {
        auto linear = x.getDefiningOp<LinearOp>();
        if (!linear || linear.getBias() || !linear->hasOneUse() ||
            linear.getType() != add.getType())
          continue;
        Value vector = biasVector(builder, bias, tensorOf(x).getShape().back());
        if (!vector)
          continue;
        add.getResult().replaceAllUsesWith(LinearOp::create(
            builder, op->getLoc(), linear.getType(), linear.getInput(),
            linear.getWeight(), vector, linear.getTransposed(),
            linear.getAccuracyLevel()));
        break;
      }
    }
  }
  return count;
}
