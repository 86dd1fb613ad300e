//===- GenerateHostFunction.cpp - A function becomes a host function ------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Host/Passes.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Conversion/LLMToLinalg/Passes.h"

namespace mlir::llm {
#define GEN_PASS_DEF_GENERATEHOSTFUNCTIONPASS
#include "passes/Host/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

namespace {
struct GenerateHostFunction
    : mlir::llm::impl::GenerateHostFunctionPassBase<GenerateHostFunction> {
  using GenerateHostFunctionPassBase::GenerateHostFunctionPassBase;
  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run();
};
} // namespace

LogicalResult GenerateHostFunction::run() {
  ModuleOp module = getOperation();
  auto func = module.lookupSymbol<func::FuncOp>(function);
  if (!func || func.isExternal())
    return module.emitError("defines no function @") << function;
  auto logical = func->getAttrOfType<TypeAttr>(kLogicalTypeAttr);
  if (!logical)
    return func.emitOpError("was not converted; run --convert-llm-to-linalg "
                            "first");
  auto type = cast<FunctionType>(logical.getValue());
  for (Type each :
       llvm::concat<const Type>(type.getInputs(), type.getResults()))
    if (!isa<RankedTensorType>(each))
      return func.emitOpError("has a parameter that is no ranked tensor: ")
             << each;
  WalkResult calls = func.walk([&](CallOpInterface call) {
    call.emitError("a host function cannot call another function; inline it");
    return WalkResult::interrupt();
  });
  if (calls.wasInterrupted())
    return failure();

  // Arguments are the inputs, of which packed ones bring their dynamic sizes
  // along, then the constants.
  Builder builder(&getContext());
  SmallVector<Attribute> constants, constantTypes, inputDims, outputDims;
  SmallVector<Attribute> inputNames, outputNames;
  auto describe = [&](DictionaryAttr attrs, StringRef fallback, size_t index,
                      SmallVectorImpl<Attribute> &names,
                      SmallVectorImpl<Attribute> &dims) {
    auto name = attrs ? attrs.getAs<StringAttr>(kNameAttr) : StringAttr();
    if (!name)
      name = builder.getStringAttr(fallback + Twine(index));
    names.push_back(name);
    Attribute dim = attrs ? attrs.get(kDimsAttr) : Attribute();
    dims.push_back(dim ? dim : builder.getArrayAttr({}));
  };
  auto isSize = [](Type each) { return isa<IndexType>(each); };
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    DictionaryAttr attrs = func.getArgAttrDict(i);
    auto constant =
        attrs ? attrs.getAs<StringAttr>(kConstantAttr) : StringAttr();
    if (constant) {
      // The parts of a weight are neighbours, in the order of its format.
      Attribute weight =
          builder.getStringAttr(constant.getValue().rsplit(':').first);
      if (constants.empty() || constants.back() != weight)
        constants.push_back(weight);
      constantTypes.push_back(TypeAttr::get(func.getArgument(i).getType()));
    } else if (!isSize(func.getArgument(i).getType())) {
      describe(attrs, "input", inputNames.size(), inputNames, inputDims);
    }
    if (isa<RankedTensorType>(func.getArgument(i).getType()))
      func.setArgAttr(i, bufferization::BufferizationDialect::kWritableAttrName,
                      builder.getBoolAttr(false));
  }
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (!isSize(func.getResultTypes()[i]))
      describe(func.getResultAttrDict(i), "output", outputNames.size(),
               outputNames, outputDims);
  if (inputNames.size() != type.getNumInputs() ||
      outputNames.size() != type.getNumResults())
    return func.emitOpError("does not fit its ") << kLogicalTypeAttr;

  OpBuilder b(func);
  auto host = rt::HostFunctionOp::create(
      b, func.getLoc(), func.getSymNameAttr(), func.getSymNameAttr(),
      FlatSymbolRefAttr::get(&getContext(), code), TypeAttr::get(type),
      builder.getArrayAttr(inputNames), builder.getArrayAttr(outputNames),
      builder.getArrayAttr(inputDims), builder.getArrayAttr(outputDims),
      builder.getArrayAttr(constants), StringAttr());
  auto target = module.lookupSymbol<ModuleOp>(code);
  if (!target) {
    b.setInsertionPointAfter(host);
    target = ModuleOp::create(b, func.getLoc(), StringRef(code));
  }
  func->setAttr(kHostConstantsAttr, builder.getArrayAttr(constantTypes));
  func->setAttr("llm.input_names", builder.getArrayAttr(inputNames));
  func->moveBefore(target.getBody(), target.getBody()->end());
  return success();
}
