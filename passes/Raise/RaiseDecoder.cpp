//===- RaiseDecoder.cpp - A graph becomes a decoder over tokens -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Decoder.h"
#include "passes/Raise/Passes.h"

namespace mlir::llm {
#define GEN_PASS_DEF_RAISEDECODERPASS
#include "passes/Raise/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

/// The name of the ONNX node that a location goes back to, or "".
static std::string nodeName(Location loc) {
  std::string name;
  loc->walk([&](Location inner) {
    if (auto named = dyn_cast<NameLoc>(inner)) {
      name = named.getName().str();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return name;
}

/// One iteration: run the model, pick each sequence's token.
static void createLoop(OpBuilder &builder, func::FuncOp target) {
  Location loc = target.getLoc();
  MLIRContext *context = builder.getContext();
  builder.setInsertionPointAfter(target);
  auto loop = decode::LoopOp::create(builder, loc, "generate", StringAttr());
  Block *body = builder.createBlock(&loop.getBody());
  Value step = body->addArgument(target.getArgument(0).getType(), loc);
  Value cache = body->addArgument(target.getArgument(1).getType(), loc);
  Value sampling = body->addArgument(decode::SamplingType::get(context), loc);
  auto call =
      func::CallOp::create(builder, loc, target, ValueRange{step, cache});
  Value ids = decode::SampleOp::create(
      builder, loc,
      RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type()),
      call.getResult(0), sampling);
  decode::YieldOp::create(builder, loc, ids, call.getResult(1));
}

namespace {
struct RaiseDecoder : mlir::llm::impl::RaiseDecoderPassBase<RaiseDecoder> {
  using RaiseDecoderPassBase::RaiseDecoderPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> funcs;
    for (func::FuncOp func : module.getOps<func::FuncOp>())
      if (!func.isDeclaration() && func.isPublic())
        funcs.push_back(func);
    if (funcs.size() != 1) {
      emitError(module.getLoc(), "expected the one public function of an "
                                 "imported model, found ")
          << funcs.size();
      return signalPassFailure();
    }
    func::FuncOp main = funcs.front();
    if (module.lookupSymbol(model) &&
        module.lookupSymbol(model) != main.getOperation()) {
      module.lookupSymbol(model)->emitError("the name '")
          << model << "' of the decoder is taken";
      return signalPassFailure();
    }
    Refusal refusal;
    func::FuncOp target = raise(main, refusal);
    if (!target)
      return refuse(main, refusal);
    OpBuilder builder(module.getContext());
    main.erase();
    target.setSymName(model);
    if (model == "target")
      createLoop(builder, target);
    eraseUnusedWeights(module);
    ++numDecoders;
  }

  /// The decoder beside `main`, or null with the reason.
  func::FuncOp raise(func::FuncOp main, Refusal &refusal) {
    if (!main.getBody().hasOneBlock()) {
      refusal.reason = "it has more than one block";
      return {};
    }
    SymbolicShape shapes(main);
    DecoderGraph graph;
    if (failed(recognizeDecoder(main, shapes, graph, refusal)))
      return {};
    FailureOr<func::FuncOp> target =
        buildTokenFunction(graph, shapes, "decoder", refusal);
    if (failed(target))
      return {};
    if (failed(outlineLayers(*target, model, refusal))) {
      // The op that shows it is in the function that goes.
      std::string node =
          refusal.op ? nodeName(refusal.op->getLoc()) : std::string();
      refusal.op = nullptr;
      if (!node.empty())
        refusal.reason = "at node '" + node + "': " + refusal.reason;
      target->erase();
      return {};
    }
    OpBuilder builder(main.getContext());
    (*target)->setAttr("llm.model", builder.getStringAttr(model));
    (*target)->setAttr("llm.vocab",
                       builder.getI64IntegerAttr(graph.vocabulary));
    if (graph.maxContext)
      (*target)->setAttr("llm.max_context",
                         builder.getI64IntegerAttr(graph.maxContext));
    numLayers += graph.attentions.size();
    return *target;
  }

  void refuse(func::FuncOp main, const Refusal &refusal) {
    std::string text;
    if (refusal.op) {
      text = refusal.op->getName().getStringRef().str();
      std::string node = nodeName(refusal.op->getLoc());
      if (!node.empty())
        text += " at node '" + node + "'";
      text += ": ";
    }
    text += refusal.reason;
    main->setAttr(kNotDecoderAttr, StringAttr::get(main.getContext(), text));
    (refusal.op ? refusal.op : main.getOperation())
            ->emitRemark("not raised to a decoder: ")
        << refusal.reason;
  }
};
} // namespace
