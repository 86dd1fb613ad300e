//===- OutlineLoops.cpp - Loop nests as functions -------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::llm {
#define GEN_PASS_DEF_OUTLINELOOPSPASS
#include "passes/Host/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

/// Whether `loop` only computes: what allocates, releases or can end the run
/// stays in the host function, which alone knows the host.
static bool isPlain(scf::ForOp loop) {
  WalkResult walked = loop.walk([](Operation *op) {
    bool keeps = isa<memref::AllocOp, memref::AllocaOp, memref::DeallocOp,
                     LLVM::CallOp, CallOpInterface>(op);
    return keeps ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !walked.wasInterrupted();
}

namespace {
struct OutlineLoops : mlir::llm::impl::OutlineLoopsPassBase<OutlineLoops> {
  void runOnOperation() override {
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!func->hasAttr(kHostConstantsAttr))
        continue;
      SmallVector<scf::ForOp> loops;
      func.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
        if (!isPlain(loop))
          return WalkResult::advance();
        loops.push_back(loop);
        return WalkResult::skip();
      });
      for (scf::ForOp loop : loops)
        outline(func, loop);
    }
  }

private:
  void outline(func::FuncOp func, scf::ForOp loop);

  /// Outlined functions by their text.
  llvm::StringMap<func::FuncOp> known;
};
} // namespace

void OutlineLoops::outline(func::FuncOp func, scf::ForOp loop) {
  // What the loop uses from outside, in the order of use; constants go along.
  SetVector<Value> used;
  SmallVector<Operation *> constants;
  SetVector<Value> above(loop->operand_begin(), loop->operand_end());
  getUsedValuesDefinedAbove(loop.getRegion(), above);
  for (Value value : above) {
    Operation *source = value.getDefiningOp();
    if (source && source->hasTrait<OpTrait::ConstantLike>())
      constants.push_back(source);
    else
      used.insert(value);
  }
  OpBuilder b(&getContext());
  SmallVector<Type> types(ValueRange(used.getArrayRef()).getTypes());
  Location unknown = b.getUnknownLoc();
  auto outlined = func::FuncOp::create(
      unknown, "loop", b.getFunctionType(types, loop.getResultTypes()));
  outlined.setPrivate();
  outlined->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  Block *body = outlined.addEntryBlock();
  b.setInsertionPointToStart(body);
  IRMapping map;
  map.map(used.getArrayRef(), body->getArguments());
  llvm::sort(constants, [](Operation *a, Operation *c) {
    return a->getBlock() == c->getBlock() && a->isBeforeInBlock(c);
  });
  for (Operation *constant : constants)
    b.clone(*constant, map);
  Operation *copy = b.clone(*loop, map);
  func::ReturnOp::create(b, unknown, copy->getResults());

  // Layers repeat: equal loops become one function.
  std::string text;
  llvm::raw_string_ostream(text) << outlined;
  func::FuncOp &first = known[text];
  if (first) {
    outlined.erase();
  } else {
    first = outlined;
    outlined.setName(
        (func.getSymName() + "_loop_" + Twine(known.size() - 1)).str());
    func->getBlock()->getOperations().insert(Block::iterator(func), outlined);
    ++numLoops;
  }
  b.setInsertionPoint(loop);
  auto call = func::CallOp::create(b, loop.getLoc(), first, used.getArrayRef());
  loop->replaceAllUsesWith(call);
  loop->erase();
}
