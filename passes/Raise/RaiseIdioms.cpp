//===- RaiseIdioms.cpp - Decomposed spellings become composites -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Idioms.h"
#include "passes/Raise/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::llm {
#define GEN_PASS_DEF_RAISEIDIOMSPASS
#include "passes/Raise/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

SmallVector<Operation *> mlir::llm::snapshot(func::FuncOp func) {
  SmallVector<Operation *> ops;
  for (Operation &op : func.getBody().front())
    ops.push_back(&op);
  return ops;
}

Value mlir::llm::skipFloatCasts(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>()) {
    if (!isa<FloatType>(tensorOf(cast.getInput()).getElementType()) ||
        !isa<FloatType>(tensorOf(cast.getResult()).getElementType()))
      break;
    value = cast.getInput();
  }
  return value;
}

Value mlir::llm::asWeight(OpBuilder &builder, Value value) {
  value = skipFloatCasts(value);
  if (value.getDefiningOp<GetWeightOp>())
    return value;
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !isa<FloatType>(tensorOf(value).getElementType()))
    return {};
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!elements)
    return {};
  Value result = createWeight(constant->getParentOfType<func::FuncOp>(),
                              constant.getLoc(), "constant", elements);
  value.replaceAllUsesWith(result);
  return result;
}

/// Puts the weights into the order of their first use, as the ops are.
static void sortWeights(ModuleOp module) {
  SymbolTable table(module);
  llvm::SetVector<Operation *> used;
  module.walk([&](GetWeightOp get) {
    if (auto weight = table.lookup<WeightOp>(get.getWeight()))
      used.insert(weight);
  });
  for (Operation *weight : llvm::reverse(used))
    weight->moveBefore(&module.getBody()->front());
}

namespace {
struct RaiseIdioms : mlir::llm::impl::RaiseIdiomsPassBase<RaiseIdioms> {
  using RaiseIdiomsPassBase::RaiseIdiomsPassBase;

  void runOnOperation() override {
    if (maxPositions <= 0 || maxPositions > (1 << 24)) {
      emitError(getOperation().getLoc(),
                "max-positions must be from 1 to 16777216, got ")
          << maxPositions.getValue();
      return signalPassFailure();
    }
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
      if (func.isDeclaration() || !func.getBody().hasOneBlock())
        continue;
      {
        SymbolicShape shapes(func);
        numNorms += raiseNorms(func, shapes);
        numActivations += raiseActivations(func, shapes);
        numEmbeddings += raiseEmbeddings(func, shapes);
        // Before the linears: angles can be a product with a weight.
        numRopes += raiseRopes(func, shapes, maxPositions);
        numLinears += raiseLinears(func, shapes);
        numAttentions += raiseAttentions(func, shapes);
        numMasks += raiseMasks(func, shapes);
        numFlattened += flattenHeads(func, shapes);
      }
      eraseDeadOps(func);
      sortByNeed(func.getBody().front());
    }
    eraseUnusedWeights(getOperation());
    sortWeights(getOperation());
  }
};
} // namespace
