//===- SkipLayers.cpp - Remove layers of a decoder ------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

#include <map>

namespace first {
#define GEN_PASS_DECL
#define GEN_PASS_DEF_SKIPLAYERSPASS
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

namespace {
struct SkipLayersPass : first::impl::SkipLayersPassBase<SkipLayersPass> {
  using SkipLayersPassBase::SkipLayersPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::map<int64_t, func::FuncOp> functions = findLayers(module, model);
    if (functions.empty()) {
      emitError(module.getLoc())
          << "no layers of a model '" << model
          << "': run --llm-raise-decoder before --skip-layers";
      return signalPassFailure();
    }
    for (int64_t layer : layers) {
      auto found = functions.find(layer);
      if (found == functions.end()) {
        emitError(module.getLoc())
            << "model '" << model << "' has no layer " << layer;
        return signalPassFailure();
      }
      if (failed(skip(module, found->second)))
        return signalPassFailure();
      functions.erase(found);
      ++numSkipped;
    }
  }

  /// Replaces the calls of `layer`, (hidden, step, cache) -> (hidden, cache),
  /// by what they were given, and removes the function.
  LogicalResult skip(ModuleOp module, func::FuncOp layer) {
    FunctionType type = layer.getFunctionType();
    if (type.getNumInputs() != 3 || type.getNumResults() != 2 ||
        type.getInput(0) != type.getResult(0) ||
        type.getInput(2) != type.getResult(1))
      return layer.emitError() << "expected a layer to take hidden state, step "
                                  "and cache and to return the first and the "
                                  "last, got "
                               << type;
    std::optional<SymbolTable::UseRange> uses =
        SymbolTable::getSymbolUses(layer, module);
    if (!uses)
      return layer.emitError("cannot tell who calls this layer");
    for (SymbolTable::SymbolUse use : *uses) {
      auto call = dyn_cast<func::CallOp>(use.getUser());
      if (!call)
        return use.getUser()->emitError("expected layers to be called only");
      call.replaceAllUsesWith(
          ValueRange{call.getOperand(0), call.getOperand(2)});
      call.erase();
    }
    layer.erase();
    return success();
  }
};
} // namespace

/// What llm-opt looks for in a plugin.
extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "FirstPass", LLVM_VERSION_STRING,
          [] { first::registerFirstPassPasses(); }};
}
