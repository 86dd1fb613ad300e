//===- FormDispatches.cpp - One op per dispatch ---------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Dispatch/Passes.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::llm {
#define GEN_PASS_DEF_FORMDISPATCHESPASS
#include "passes/Dispatch/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

/// Replaces calls of layer functions by their bodies. Layer functions have one
/// block, which the raising verifier has checked.
static FailureOr<unsigned> inlineLayers(func::FuncOp model,
                                        SymbolTable &symbols) {
  unsigned count = 0;
  for (func::CallOp call :
       llvm::make_early_inc_range(model.getBody().getOps<func::CallOp>())) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal() || !callee.getBody().hasOneBlock())
      return call.emitOpError("calls what is no layer function");
    IRMapping map;
    map.map(callee.getArguments(), call.getOperands());
    OpBuilder builder(call);
    for (Operation &op : callee.getBody().front().without_terminator())
      builder.clone(op, map);
    Operation *end = callee.getBody().front().getTerminator();
    for (auto [result, value] :
         llvm::zip(call.getResults(), end->getOperands()))
      result.replaceAllUsesWith(map.lookupOrDefault(value));
    call.erase();
    ++count;
  }
  return count;
}

/// The operator name of an op that `llm.fused_elementwise` can hold, or empty.
static StringRef operatorName(Operation *op) {
  if (auto gelu = dyn_cast<GeluOp>(op)) {
    switch (gelu.getApproximation()) {
    case GeluApproximation::none:
      return "gelu";
    case GeluApproximation::tanh:
      return "gelu_tanh";
    case GeluApproximation::sigmoid:
      return "gelu_sigmoid";
    }
  }
  if (!isa<LLMDialect>(op->getDialect()))
    return {};
  StringRef name = op->getName().stripDialect();
  int arity = FusedElementwiseOp::arity(name);
  return arity != 0 && static_cast<int>(op->getNumOperands()) == arity
             ? name
             : StringRef();
}

/// Whether `op` computes whole rows elementwise: [rows, width] in f32.
static bool isRowwise(Operation *op) {
  if (operatorName(op).empty())
    return false;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return type && type.getRank() == 2 && !type.isDynamicDim(1) &&
         type.getElementType().isF32();
}

namespace {
/// Collects the tree under one root in postfix order.
class Fusion {
public:
  explicit Fusion(Operation *root)
      : root(root), type(cast<RankedTensorType>(root->getResult(0).getType())) {
  }

  /// Appends the tree of `op`; a failure names what cannot be an operand.
  LogicalResult add(Operation *op) {
    ++size;
    for (Value operand : op->getOperands())
      if (failed(addValue(operand)))
        return failure();
    ops.push_back(operatorName(op).str());
    return success();
  }

  FusedElementwiseOp build(OpBuilder &builder) {
    SmallVector<StringRef> names(ops.begin(), ops.end());
    return FusedElementwiseOp::create(builder, root->getLoc(), type, inputs,
                                      builder.getStrArrayAttr(names));
  }

  unsigned size = 0;

private:
  LogicalResult addValue(Value value) {
    Operation *def = value.getDefiningOp();
    // A tree only: a value with further uses is stored anyway.
    if (def && def->getBlock() == root->getBlock() && isRowwise(def) &&
        value.hasOneUse() && size < kMaxOps &&
        def->getResult(0).getType() == type)
      return add(def);
    auto tensor = cast<RankedTensorType>(value.getType());
    if (auto constant = value.getDefiningOp<ConstantOp>()) {
      auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue());
      if (elements && elements.isSplat() && tensor.getElementType().isF32()) {
        uint64_t bits =
            elements.getSplatValue<APFloat>().bitcastToAPInt().getZExtValue();
        ops.push_back("const:0x" + llvm::utohexstr(bits, true, 8));
        return success();
      }
    }
    bool row = tensor.getRank() == 2 &&
               tensor.getDimSize(1) == type.getDimSize(1) &&
               tensor.isDynamicDim(0);
    bool vector =
        tensor.getRank() == 1 && tensor.getDimSize(0) == type.getDimSize(1);
    if (!row && !vector)
      return root->emitOpError("operand of type ")
             << tensor << " is neither rows nor a row of " << type;
    auto *it = llvm::find(inputs, value);
    ops.push_back("in" + std::to_string(it - inputs.begin()));
    if (it == inputs.end())
      inputs.push_back(value);
    return success();
  }

  // Keeps generated code within the vector registers.
  static constexpr unsigned kMaxOps = 24;
  Operation *root;
  RankedTensorType type;
  SmallVector<Value> inputs;
  SmallVector<std::string> ops;
};

struct FormDispatchesPass
    : public mlir::llm::impl::FormDispatchesPassBase<FormDispatchesPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> layers;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func->hasAttr("llm.model") || func.isExternal())
        continue;
      if (func->hasAttr("llm.layer")) {
        layers.push_back(func);
        continue;
      }
      FailureOr<unsigned> count = inlineLayers(func, symbols);
      if (failed(count) || failed(fuse(func)))
        return signalPassFailure();
      numInlined += *count;
    }
    for (func::FuncOp layer : layers)
      layer.erase();
  }

  LogicalResult fuse(func::FuncOp func) {
    Block &block = func.getBody().front();
    // Backwards, so that a root is met before what it takes in.
    SmallVector<Operation *> order;
    for (Operation &op : llvm::reverse(block))
      order.push_back(&op);
    llvm::SmallPtrSet<Operation *, 32> dead;
    for (Operation *op : order) {
      if (dead.contains(op))
        continue;
      if (op->getNumResults() && op->use_empty() && isMemoryEffectFree(op)) {
        op->erase();
        continue;
      }
      if (!isRowwise(op))
        continue;
      Fusion fusion(op);
      if (failed(fusion.add(op)))
        return failure();
      OpBuilder builder(op);
      FusedElementwiseOp fused = fusion.build(builder);
      op->getResult(0).replaceAllUsesWith(fused.getResult());
      op->erase();
      numFused += fusion.size;
    }
    return success();
  }
};
} // namespace
