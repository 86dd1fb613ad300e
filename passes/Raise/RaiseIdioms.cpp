//===- RaiseIdioms.cpp - Decomposed spellings become composites -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Idioms.h"
#include "passes/Raise/Passes.h"

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
  auto module = constant->getParentOfType<ModuleOp>();
  SymbolTable table(module);
  auto component = ComponentAttr::get(builder.getContext(), "data",
                                      tensorOf(value), constant.getValue());
  OpBuilder atModule(module.getContext());
  atModule.setInsertionPointToStart(module.getBody());
  auto weight = WeightOp::create(
      atModule, constant.getLoc(), "constant", tensorOf(value),
      DenseFormatAttr::get(builder.getContext(), component), StringAttr());
  StringAttr name = table.insert(weight);
  // Beside the constant, so that it dominates whatever used that.
  OpBuilder beside(constant);
  Value result = GetWeightOp::create(beside, constant.getLoc(), tensorOf(value),
                                     FlatSymbolRefAttr::get(name));
  value.replaceAllUsesWith(result);
  return result;
}

/// Puts the ops into the order in which the results need them: depth first
/// from the terminator's operands. The order then depends on the graph only,
/// not on the spelling that it was raised from.
static void sortByNeed(Block &block) {
  Operation *terminator = block.getTerminator();
  for (Operation &op : block.without_terminator())
    if (!isMemoryEffectFree(&op) || op.getNumRegions() != 0)
      return;
  llvm::DenseSet<Operation *> placed;
  SmallVector<std::pair<Operation *, unsigned>> stack;
  stack.emplace_back(terminator, 0);
  while (!stack.empty()) {
    auto &[op, next] = stack.back();
    if (next < op->getNumOperands()) {
      Operation *operand = op->getOperand(next++).getDefiningOp();
      if (operand && !placed.contains(operand))
        stack.emplace_back(operand, 0);
      continue;
    }
    Operation *done = op;
    stack.pop_back();
    if (done != terminator && placed.insert(done).second)
      done->moveBefore(terminator);
  }
}

namespace {
struct RaiseIdioms : mlir::llm::impl::RaiseIdiomsPassBase<RaiseIdioms> {
  void runOnOperation() override {
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
      if (func.isDeclaration() || !func.getBody().hasOneBlock())
        continue;
      {
        SymbolicShape shapes(func);
        numActivations += raiseActivations(func, shapes);
        numEmbeddings += raiseEmbeddings(func, shapes);
        numLinears += raiseLinears(func, shapes);
        numMasks += raiseMasks(func, shapes);
        numFlattened += flattenHeads(func, shapes);
      }
      eraseDeadOps(func);
      sortByNeed(func.getBody().front());
    }
    eraseUnusedWeights(getOperation());
  }
};
} // namespace
