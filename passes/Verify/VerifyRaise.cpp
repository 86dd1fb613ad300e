//===- VerifyRaise.cpp - The contract of the raise stage ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Verify/Contracts.h"
#include "passes/Verify/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::llm {
#define GEN_PASS_DEF_VERIFYRAISEPASS
#include "passes/Verify/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

namespace {
struct Model {
  func::FuncOp function;
  SmallVector<func::FuncOp> layers; ///< By number; null where missing.
};
} // namespace

/// [?, N] of floats.
static bool isRows(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 2 && tensor.isDynamicDim(0) &&
         !tensor.isDynamicDim(1) && isa<FloatType>(tensor.getElementType());
}

static LogicalResult verifySignature(func::FuncOp func, bool layer) {
  ArrayRef<Type> in = func.getArgumentTypes(), out = func.getResultTypes();
  size_t lead = layer ? 1 : 0;
  bool ok = in.size() == lead + 2 && out.size() == 2 &&
            isa<kv::StepType>(in[lead]) && isa<kv::CacheType>(in[lead + 1]) &&
            isRows(out[0]) && out[1] == in[lead + 1];
  if (layer)
    ok = ok && isRows(in[0]);
  if (ok)
    return success();
  return func.emitError() << "has type " << func.getFunctionType() << ", a "
                          << (layer ? "layer takes (hidden, step, cache) and "
                                      "returns (hidden, cache)"
                                    : "decoder takes (step, cache) and returns "
                                      "(logits, cache)");
}

static LogicalResult verifyBody(func::FuncOp func) {
  WalkResult result = func.walk([&](Operation *op) {
    if (isa<AttentionOp, GroupQueryAttentionOp>(op)) {
      op->emitOpError("is left in a decoder, where kv.attend takes its place");
      return WalkResult::interrupt();
    }
    for (Value value : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || type.getRank() == 0)
        continue;
      if (llvm::any_of(type.getShape().drop_front(), ShapedType::isDynamic)) {
        op->emitOpError("gives ") << type
                                  << "; in a decoder only the first "
                                     "dimension, tokens, is dynamic";
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return kv::verifyLinearUse(func);
}

/// Calls of layers, in order, and every cache layer appended to and read.
static LogicalResult verifyModel(const Model &model) {
  func::FuncOp function = model.function;
  size_t next = 0;
  for (auto call : function.getOps<func::CallOp>()) {
    if (next >= model.layers.size())
      return call.emitOpError("calls more than the model's ")
             << model.layers.size() << " layers";
    func::FuncOp layer = model.layers[next];
    if (call.getCallee() != layer.getSymName())
      return call.emitOpError("calls @")
             << call.getCallee() << " where layer " << next << ", @"
             << layer.getSymName() << ", is due";
    ++next;
  }
  if (next != model.layers.size())
    return function.emitError() << "calls " << next << " of its "
                                << model.layers.size() << " layers";

  auto cache = cast<kv::CacheType>(function.getArgumentTypes()[1]);
  SmallVector<SmallVector<Operation *>> appended;
  for (kv::GroupAttr group : cache.getGroups())
    appended.emplace_back(group.getLayers(), nullptr);
  SmallVector<func::FuncOp> bodies(model.layers);
  bodies.push_back(function);
  for (func::FuncOp body : bodies)
    for (Operation &op : body.getBody().front()) {
      if (auto append = dyn_cast<kv::AppendOp>(op)) {
        Operation *&slot = appended[append.getGroup()][append.getLayer()];
        if (slot) {
          InFlightDiagnostic diag = append.emitOpError("layer ")
                                    << append.getLayer() << " of group "
                                    << append.getGroup()
                                    << " is appended to a second time";
          diag.attachNote(slot->getLoc()) << "the first";
          return diag;
        }
        slot = append;
      } else if (auto attend = dyn_cast<kv::AttendOp>(op)) {
        if (!appended[attend.getGroup()][attend.getLayer()])
          return attend.emitOpError("attends to layer ")
                 << attend.getLayer() << " of group " << attend.getGroup()
                 << " before this step's tokens are appended to it";
      }
    }
  for (auto [g, layers] : llvm::enumerate(appended))
    for (auto [l, op] : llvm::enumerate(layers))
      if (!op)
        return function.emitError()
               << "never appends to layer " << l << " of cache group " << g;
  return success();
}

LogicalResult mlir::llm::verifyDecoderForm(ModuleOp module) {
  ::llvm::MapVector<StringRef, Model> models;
  SmallVector<func::FuncOp> others;
  for (func::FuncOp func : module.getOps<func::FuncOp>()) {
    auto name = func->getAttrOfType<StringAttr>("llm.model");
    if (!name) {
      if (func.isPublic())
        others.push_back(func);
      continue;
    }
    Model &model = models[name];
    auto layer = func->getAttrOfType<IntegerAttr>("llm.layer");
    if (failed(verifySignature(func, layer != nullptr)) ||
        failed(verifyBody(func)))
      return failure();
    if (!layer) {
      if (model.function || func.getSymName() != name.getValue() ||
          !func.isPublic())
        return func.emitError()
               << "the function of model '" << name.getValue()
               << "' is one, public and of that name; layers have 'llm.layer'";
      if (!func->getAttrOfType<IntegerAttr>("llm.vocab"))
        return func.emitError("has no 'llm.vocab'");
      model.function = func;
      continue;
    }
    size_t number = layer.getInt();
    // A module holds every layer, so a number past its size is wrong anyway.
    if (layer.getInt() < 0 ||
        number >= module.getBody()->getOperations().size())
      return func.emitError()
             << "layer number " << layer.getInt() << " is out of range";
    if (model.layers.size() <= number)
      model.layers.resize(number + 1);
    if (model.layers[number])
      return func.emitError() << "is layer " << number << ", as @"
                              << model.layers[number].getSymName() << " is";
    model.layers[number] = func;
  }
  for (auto &[name, model] : models) {
    if (!model.function)
      return module.emitError()
             << "model '" << name << "' has layers and no function";
    for (auto [i, layer] : llvm::enumerate(model.layers))
      if (!layer)
        return model.function.emitError() << "has no layer " << i;
    if (failed(verifyModel(model)))
      return failure();
  }
  for (func::FuncOp func : others) {
    if (!models.empty())
      return func.emitError("is public beside a decoder and no part of it");
    if (!func->hasAttr(kNotDecoderAttr))
      return func.emitError("is no decoder, and 'llm.not_decoder' does not "
                            "say why (--llm-raise-decoder)");
  }
  auto loops = module.getOps<decode::LoopOp>();
  if (models.contains("target") && loops.empty())
    return models["target"].function.emitError("no decode.loop runs it");
  for (decode::LoopOp loop : loops)
    if (failed(kv::verifyLinearUse(loop)))
      return failure();
  return success();
}

namespace {
struct VerifyRaise : mlir::llm::impl::VerifyRaisePassBase<VerifyRaise> {
  void runOnOperation() override {
    if (failed(verifyDecoderForm(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
