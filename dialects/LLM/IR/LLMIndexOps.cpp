//===- LLMIndexOps.cpp - Gather, scatter and pad --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/LLM/IR/LLMVerify.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::detail;

static LogicalResult verifyReduction(Operation *op, StringRef reduction) {
  if (llvm::is_contained({"none", "add", "mul", "max", "min"}, reduction))
    return success();
  return op->emitOpError("reduction must be none, add, mul, max or min, not '")
         << reduction << "'";
}

/// One index for each element of a result: along `axis` any number, along the
/// others no more than the input has.
static LogicalResult verifyElementIndices(Operation *op, RankedTensorType input,
                                          RankedTensorType indices,
                                          int64_t axis) {
  if (failed(verifyAxis(op, axis, input.getRank())))
    return failure();
  bool fits = indices.getRank() == input.getRank();
  for (int64_t i = 0; fits && i < input.getRank(); ++i)
    fits = i == *normalizeAxis(axis, input.getRank()) ||
           input.isDynamicDim(i) || indices.isDynamicDim(i) ||
           indices.getDimSize(i) <= input.getDimSize(i);
  if (!fits)
    return op->emitOpError("indices ")
           << indices << " do not fit " << input << " beside axis " << axis;
  return success();
}

/// Index tuples along the last axis of `indices`, into the axes of `input`
/// after the first `batch`; gives the shape of what they point to.
static LogicalResult verifyTuples(Operation *op, RankedTensorType input,
                                  RankedTensorType indices, int64_t batch,
                                  SmallVectorImpl<int64_t> &shape) {
  if (input.getRank() < 1 || indices.getRank() < 1)
    return op->emitOpError("input and indices are at least vectors");
  if (batch < 0 || batch >= std::min(input.getRank(), indices.getRank()))
    return op->emitOpError("batch_dims ")
           << batch << " is no number of leading axes of both " << input
           << " and " << indices;
  int64_t depth = indices.getShape().back();
  if (ShapedType::isDynamic(depth) || depth < 1 ||
      depth > input.getRank() - batch)
    return op->emitOpError("indices ")
           << indices << " are no tuples into " << input;
  llvm::append_range(shape, indices.getShape().drop_back());
  llvm::append_range(shape, input.getShape().drop_front(batch + depth));
  return success();
}

LogicalResult GatherElementsOp::verify() {
  auto indices = tensorOf(getIndices());
  if (failed(verifyElementIndices(*this, tensorOf(getInput()), indices,
                                  getAxis())) ||
      failed(verifySameElements(*this)))
    return failure();
  return verifyResultShape(*this, indices.getShape());
}

LogicalResult GatherNDOp::verify() {
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices());
  SmallVector<int64_t> shape;
  if (failed(verifyTuples(*this, input, indices, getBatchDims(), shape)))
    return failure();
  int64_t batch = getBatchDims();
  if (!compatible(input.getShape().take_front(batch),
                  indices.getShape().take_front(batch)))
    return emitOpError("the leading axes of ")
           << input << " and " << indices << " differ";
  if (failed(verifySameElements(*this)))
    return failure();
  return verifyResultShape(*this, shape);
}

LogicalResult PadOp::verify() {
  auto input = tensorOf(getInput()), pads = tensorOf(getPads());
  if (!llvm::is_contained({"constant", "edge", "reflect", "wrap"}, getMode()))
    return emitOpError("mode must be constant, edge, reflect or wrap, not '")
           << getMode() << "'";
  if (failed(verifyVector(*this, getPads(), "the pads")))
    return failure();
  if (differ(pads.getDimSize(0), 2 * input.getRank()))
    return emitOpError("pads ")
           << pads << " are not two for each axis of " << input;
  if (getValue()) {
    if (failed(verifyScalar(*this, getValue(), "the value")))
      return failure();
    if (tensorOf(getValue()).getElementType() != input.getElementType())
      return emitOpError("value ")
             << tensorOf(getValue()) << " is no element of " << input;
  }
  if (failed(verifySameElements(*this)))
    return failure();
  SmallVector<int64_t> shape(input.getRank(), ShapedType::kDynamic);
  return verifyResultShape(*this, shape);
}

LogicalResult ScatterElementsOp::verify() {
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices()),
       updates = tensorOf(getUpdates());
  if (failed(verifyReduction(*this, getReduction())) ||
      failed(verifyElementIndices(*this, input, indices, getAxis())))
    return failure();
  if (updates.getElementType() != input.getElementType() ||
      !compatible(updates.getShape(), indices.getShape()))
    return emitOpError("updates ")
           << updates << " do not fit indices " << indices << " into " << input;
  if (failed(verifySameElements(*this)))
    return failure();
  return verifyResultShape(*this, input.getShape());
}

LogicalResult ScatterNDOp::verify() {
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices()),
       updates = tensorOf(getUpdates());
  SmallVector<int64_t> expected;
  if (failed(verifyReduction(*this, getReduction())) ||
      failed(verifyTuples(*this, input, indices, 0, expected)))
    return failure();
  if (updates.getElementType() != input.getElementType() ||
      !compatible(updates.getShape(), expected))
    return emitOpError("updates ")
           << updates << " do not fit indices " << indices << " into " << input;
  if (failed(verifySameElements(*this)))
    return failure();
  return verifyResultShape(*this, input.getShape());
}
