//===- DecoderParts.cpp - Some layers of a decoder, to be run -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/DecoderParts.h"

#include "dialects/KV/IR/KVDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::llm {

LogicalResult DecoderParts::find() {
  for (auto func : module.getOps<func::FuncOp>())
    if (func->hasAttr("llm.model") && !func->hasAttr("llm.layer") &&
        func.getSymName() == "target")
      model = func;
  if (!model || !model.getBody().hasOneBlock() ||
      model.getNumArguments() != 2 || model.getNumResults() != 2)
    return module.emitError(
        "has no decoder to run: @target, as --llm-raise-decoder makes it");
  SymbolTable symbols(module);
  Value hidden, cache = model.getArgument(1);
  for (auto call : model.getBody().getOps<func::CallOp>()) {
    auto layer = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!layer || !layer->hasAttr("llm.layer") || layer.isExternal() ||
        !layer.getBody().hasOneBlock() || call.getNumOperands() != 3 ||
        call.getNumResults() != 2)
      return call.emitError("calls what is no layer of the decoder");
    if ((hidden && call.getOperand(0) != hidden) ||
        call.getOperand(1) != model.getArgument(0) ||
        call.getOperand(2) != cache)
      return call.emitError("takes other than the results of the layer before, "
                            "so layers cannot be run one after the other");
    if (::llvm::is_contained(layers, layer))
      return call.emitError("calls a layer that another call runs, too");
    hidden = call.getResult(0);
    cache = call.getResult(1);
    calls.push_back(call);
    layers.push_back(layer);
  }
  return success();
}

FailureOr<DecoderParts> DecoderParts::get(ModuleOp module) {
  DecoderParts parts(module);
  if (failed(parts.find()))
    return failure();
  return parts;
}

int64_t DecoderParts::hiddenWidth() const {
  if (calls.empty())
    return 0;
  func::CallOp call = calls.front();
  return cast<RankedTensorType>(call.getOperand(0).getType()).getDimSize(1);
}

int64_t DecoderParts::layerOf(Operation *op) const {
  auto func = op->getParentOfType<func::FuncOp>();
  const auto *layer = ::llvm::find(layers, func);
  if (layer != layers.end())
    return layer - layers.begin();
  if (func != model || calls.empty())
    return numLayers();
  func::CallOp first = calls.front();
  return op->isBeforeInBlock(first) ? -1 : numLayers();
}

/// Copies the weights that functions of `to` name from `from`.
static void copyWeights(ModuleOp from, ModuleOp to) {
  OpBuilder builder(to.getContext());
  builder.setInsertionPointToStart(to.getBody());
  ::llvm::SmallPtrSet<Operation *, 16> seen;
  SymbolTable symbols(from);
  to.walk([&](GetWeightOp get) {
    Operation *weight = symbols.lookup(get.getWeight());
    if (weight && seen.insert(weight).second)
      builder.clone(*weight);
  });
}

/// Puts one part together.
class DecoderParts::Builder {
public:
  Builder(DecoderParts whole, ArrayRef<Tap> taps)
      : parts(std::move(whole)), builder(parts.module.getContext()),
        result(ModuleOp::create(parts.module.getLoc())) {
    for (const Tap &tap : taps)
      tapsOf[tap.value].push_back(tap.name);
    func::FuncOp model = parts.model;
    builder.setInsertionPointToStart(result->getBody());
    func = func::FuncOp::create(builder, model.getLoc(), model.getSymName(),
                                model.getFunctionType());
    func->setDiscardableAttrs(model->getDiscardableAttrDictionary());
    func->setAttr("llm.part", builder.getUnitAttr());
    Block *body = func.addEntryBlock();
    builder.setInsertionPointToStart(body);
    step = body->getArgument(0);
    cache = body->getArgument(1);
    map.map(model.getArgument(0), step);
    map.map(model.getArgument(1), cache);
  }

  void takeHidden(int64_t layer) {
    func::CallOp call = parts.calls[layer];
    hidden = kv::SupplyOp::create(builder, call.getLoc(),
                                  call.getOperand(0).getType(), step, kHidden);
    map.map(call.getOperand(0), hidden);
  }

  /// The hidden state behind the last layer.
  void takeLast() {
    func::CallOp call = parts.calls.back();
    hidden = kv::SupplyOp::create(builder, call.getLoc(),
                                  call.getResult(0).getType(), step, kHidden);
    map.map(call.getResult(0), hidden);
    map.map(call.getResult(1), cache);
  }

  void head() {
    func::CallOp first = parts.calls.front();
    for (Operation &op : *first->getBlock()) {
      if (&op == first)
        break;
      copy(op);
    }
    hidden = map.lookup(first.getOperand(0));
  }

  void layer(int64_t index) {
    func::FuncOp layer = parts.layers[index];
    map.map(layer.getArgument(0), hidden);
    map.map(layer.getArgument(1), step);
    map.map(layer.getArgument(2), cache);
    observe(layer.getArgument(0));
    Block &body = layer.getBody().front();
    for (Operation &op : body.without_terminator())
      copy(op);
    hidden = map.lookup(body.getTerminator()->getOperand(0));
    cache = map.lookup(body.getTerminator()->getOperand(1));
    func::CallOp call = parts.calls[index];
    map.map(call.getResult(0), hidden);
    map.map(call.getResult(1), cache);
  }

  /// What lies behind the last layer, and what that needs from before.
  void tail() {
    Block &body = parts.model.getBody().front();
    Operation *op = &body.front();
    if (!parts.calls.empty())
      op = parts.calls.back()->getNextNode();
    for (; op != body.getTerminator(); op = op->getNextNode())
      copyNeeded(*op);
    if (!parts.calls.empty())
      return;
    hidden = map.lookup(body.getTerminator()->getOperand(0));
    cache = map.lookup(body.getTerminator()->getOperand(1));
  }

  void handOutHidden() {
    kv::ObserveOp::create(builder, func.getLoc(), step, hidden, kHidden);
  }

  OwningOpRef<ModuleOp> finish() {
    func::ReturnOp::create(builder, func.getLoc(), ValueRange{hidden, cache});
    func.setFunctionType(builder.getFunctionType(
        func.getArgumentTypes(), {hidden.getType(), cache.getType()}));
    copyWeights(parts.module, *result);
    return std::move(result);
  }

private:
  void copy(Operation &op) {
    builder.clone(op, map);
    for (Value value : op.getResults())
      observe(value);
  }

  void copyNeeded(Operation &op) {
    SmallVector<Operation *> stack{&op};
    while (!stack.empty()) {
      Operation *current = stack.back();
      size_t before = stack.size();
      for (Value operand : current->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && !map.contains(operand))
          stack.push_back(producer);
      if (stack.size() != before)
        continue;
      stack.pop_back();
      if (current->getNumResults() && map.contains(current->getResult(0)))
        continue;
      copy(*current);
    }
  }

  void observe(Value value) {
    auto it = tapsOf.find(value);
    if (it == tapsOf.end())
      return;
    for (const std::string &name : it->second)
      kv::ObserveOp::create(builder, value.getLoc(), step, map.lookup(value),
                            name);
  }

  DecoderParts parts; ///< a copy: ops are handles
  OpBuilder builder;
  OwningOpRef<ModuleOp> result;
  func::FuncOp func;
  Value step, cache, hidden;
  IRMapping map;
  DenseMap<Value, SmallVector<std::string, 1>> tapsOf;
};

OwningOpRef<ModuleOp> DecoderParts::extract(int64_t begin, int64_t end,
                                            bool tail, bool hidden,
                                            ArrayRef<Tap> taps) const {
  Builder builder(*this, taps);
  if (!calls.empty()) {
    if (begin == 0)
      builder.head();
    else if (begin < numLayers())
      builder.takeHidden(begin);
    else
      builder.takeLast();
    for (int64_t layer = begin; layer < end; ++layer)
      builder.layer(layer);
  }
  if (tail)
    builder.tail();
  if (hidden)
    builder.handOutHidden();
  return builder.finish();
}

OwningOpRef<ModuleOp> DecoderParts::extractLayer(int64_t index) const {
  ModuleOp whole = module;
  OwningOpRef<ModuleOp> result(ModuleOp::create(whole.getLoc()));
  OpBuilder builder = OpBuilder::atBlockEnd(result->getBody());
  func::FuncOp layer = layers[index];
  builder.clone(*layer.getOperation());
  copyWeights(whole, *result);
  return result;
}

/// Whether another function reads `weight`.
static bool usedOutside(WeightOp weight, func::FuncOp layer) {
  auto uses = SymbolTable::getSymbolUses(
      weight, weight->getParentOfType<ModuleOp>().getOperation());
  return !uses || ::llvm::any_of(*uses, [&](const SymbolTable::SymbolUse &use) {
    return use.getUser()->getParentOfType<func::FuncOp>() != layer;
  });
}

LogicalResult DecoderParts::replaceLayer(int64_t index, ModuleOp changed) {
  func::FuncOp layer = layers[index];
  SymbolTable symbols(module), others(changed);
  auto func = others.lookup<func::FuncOp>(layer.getSymName());
  if (!func || func.getFunctionType() != layer.getFunctionType())
    return layer.emitError("is not there any more, or has another type, after "
                           "the pipeline");
  for (auto weight : changed.getOps<WeightOp>()) {
    OpBuilder builder(layer);
    auto old = symbols.lookup<WeightOp>(weight.getSymName());
    if (!old) {
      builder.clone(*weight.getOperation());
      continue;
    }
    if (old.getTensorType() != weight.getTensorType() &&
        usedOutside(old, layer))
      return weight.emitError("changed its type, and is used outside of its "
                              "layer, too");
    old.setType(weight.getTensorType());
    old.setFormatAttr(weight.getFormat());
  }
  layer.getBody().takeBody(func.getBody());
  return success();
}

} // namespace mlir::llm
