//===- SkipFeedForward.cpp - Remove feed-forward parts --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

#include <map>

namespace first {
#define GEN_PASS_DECL
#define GEN_PASS_DEF_SKIPFEEDFORWARDPASS
#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"
} // namespace first

using namespace mlir;

/// The functions of a model's layers by number, as --llm-raise-decoder outlines
/// them.
static std::map<int64_t, func::FuncOp> findLayers(ModuleOp module,
                                                  StringRef model) {
  std::map<int64_t, func::FuncOp> layers;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto number = function->getAttrOfType<IntegerAttr>("llm.layer");
    auto owner = function->getAttrOfType<StringAttr>("llm.model");
    if (number && owner && owner.getValue() == model)
      layers[number.getInt()] = function;
  }
  return layers;
}

/// The hidden state before the feed-forward part is added to it: the other
/// operand of a sum with a linear's result. Null where `hidden` is no such sum.
static Value beforeFeedForward(Value hidden) {
  auto sum = hidden.getDefiningOp<llm::AddOp>();
  if (!sum)
    return {};
  Value left = sum->getOperand(0), right = sum->getOperand(1);
  if (right.getDefiningOp<llm::LinearOp>() && left.getType() == sum.getType())
    return left;
  if (left.getDefiningOp<llm::LinearOp>() && right.getType() == sum.getType())
    return right;
  return {};
}

namespace {
struct SkipFeedForwardPass
    : first::impl::SkipFeedForwardPassBase<SkipFeedForwardPass> {
  using SkipFeedForwardPassBase::SkipFeedForwardPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::map<int64_t, func::FuncOp> functions = findLayers(module, model);
    for (int64_t layer : layers) {
      auto found = functions.find(layer);
      if (found == functions.end()) {
        emitError(module.getLoc())
            << "model '" << model << "' has no layer " << layer << ", but "
            << functions.size() << " layers; --llm-raise-decoder outlines them";
        return signalPassFailure();
      }
      Operation *result = found->second.getBody().front().getTerminator();
      Value before = beforeFeedForward(result->getOperand(0));
      if (!before) {
        result->emitError("expected the hidden state that a layer returns to "
                          "be an llm.add of the result of an llm.linear");
        return signalPassFailure();
      }
      result->setOperand(0, before);
      ++numSkipped;
    }
  }
};
} // namespace

/// What the tools look for in a plugin.
extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "FirstPass", "1.0",
          [] { first::registerFirstPassPasses(); }};
}
