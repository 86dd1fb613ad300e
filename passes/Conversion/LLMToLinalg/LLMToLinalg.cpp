//===- LLMToLinalg.cpp - Lower llm ops to loops on tensors ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "passes/Conversion/LLMToLinalg/Boundary.h"
#include "passes/Conversion/LLMToLinalg/Lowerings.h"

namespace mlir::llm {
#define GEN_PASS_DEF_CONVERTLLMTOLINALGPASS
#include "passes/Conversion/LLMToLinalg/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static Value castTo(OpBuilder &builder, Type type, ValueRange inputs,
                    Location loc) {
  return UnrealizedConversionCastOp::create(builder, loc, type, inputs)
      .getResult(0);
}

namespace {
struct StorageConverter : TypeConverter {
  StorageConverter() {
    addConversion([](Type type) { return type; });
    addConversion([](IntegerType type) { return storageType(type); });
    addConversion([](FloatType type) { return storageType(type); });
    addConversion([](RankedTensorType type) { return storageTensor(type); });
    addSourceMaterialization(castTo);
    addTargetMaterialization(castTo);
  }
};
} // namespace

/// An elements attribute with the storage elements of `type`.
static DenseElementsAttr storedElements(ElementsAttr value,
                                        RankedTensorType type) {
  Type logical = value.getElementType();
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
      AsmResourceBlob *blob = resource.getRawHandle().getBlob();
      bool splat = false;
      if (!blob ||
          !DenseElementsAttr::isValidRawBuffer(
              cast<ShapedType>(value.getType()), blob->getData(), splat))
        return {};
      dense = DenseElementsAttr::getFromRawBuffer(
          cast<ShapedType>(value.getType()), blob->getData());
    }
  if (!dense)
    return {};
  Type storage = type.getElementType();
  if (storage == logical)
    return dense;
  unsigned width = storage.getIntOrFloatBitWidth();
  auto convert = [&](APInt bits) {
    return logical.isSignlessInteger() ? bits.sextOrTrunc(width)
                                       : bits.zextOrTrunc(width);
  };
  SmallVector<APInt> elements;
  if (isa<FloatType>(logical)) {
    if (dense.isSplat())
      return DenseElementsAttr::get(
          type, convert(dense.getSplatValue<APFloat>().bitcastToAPInt()));
    for (const APFloat &element : dense.getValues<APFloat>())
      elements.push_back(convert(element.bitcastToAPInt()));
  } else {
    if (dense.isSplat())
      return DenseElementsAttr::get(type,
                                    convert(dense.getSplatValue<APInt>()));
    for (const APInt &element : dense.getValues<APInt>())
      elements.push_back(convert(element));
  }
  return DenseElementsAttr::get(type, elements);
}

static Value lowerConstant(TensorEmitter &e, ConstantOp op,
                           ConstantOp::Adaptor) {
  RankedTensorType type = storageTensor(op.getType());
  DenseElementsAttr value = storedElements(op.getValue(), type);
  if (!value) {
    op.emitOpError("holds elements of a kind that cannot be lowered: ")
        << op.getType();
    return {};
  }
  return arith::ConstantOp::create(e, value);
}

namespace {
/// Ops of control flow between llm ops (tensor.cast, tensor.extract, ...) take
/// the storage types.
struct RetypeTensorOp : ConversionPattern {
  RetypeTensorOp(const TypeConverter &types, MLIRContext *context)
      : ConversionPattern(types, MatchAnyOpTypeTag(), /*benefit=*/1, context) {}
  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<tensor::TensorDialect>(op->getDialect()) || op->getNumRegions())
      return failure();
    FailureOr<Operation *> converted =
        convertOpResultTypes(op, operands, *getTypeConverter(), rewriter);
    if (failed(converted))
      return failure();
    rewriter.replaceOp(op, *converted);
    return success();
  }
};

struct ConvertLLMToLinalg
    : mlir::llm::impl::ConvertLLMToLinalgPassBase<ConvertLLMToLinalg> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto func : module.getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      func->setAttr(kLogicalTypeAttr, TypeAttr::get(func.getFunctionType()));
      if (failed(expandWeights(func)) || failed(expandBoundary(func)))
        return signalPassFailure();
    }
    MLIRContext *context = &getContext();
    StorageConverter types;
    RewritePatternSet patterns(context);
    addLowering<ConstantOp, lowerConstant>(patterns, types);
    populateElementwiseLowerings(patterns, types);
    populateProductLowerings(patterns, types);
    populateShapeLowerings(patterns, types);
    populateReductionLowerings(patterns, types);
    populateMovementLowerings(patterns, types);
    populateIndexingLowerings(patterns, types);
    populateAlongAxisLowerings(patterns, types);
    populateAttentionLowerings(patterns, types);
    populateGroupQueryAttentionLowerings(patterns, types);
    patterns.add<RetypeTensorOp>(types, context);
    populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns,
                                                                   types);
    populateReturnOpTypeConversionPattern(patterns, types);
    populateCallOpTypeConversionPattern(patterns, types);

    ConversionTarget target(*context);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalDialect<LLMDialect>();
    target.addDynamicallyLegalDialect<tensor::TensorDialect>(
        [&](Operation *op) { return types.isLegal(op); });
    target.addLegalOp<WeightOp>();
    target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp func) {
      return types.isSignatureLegal(func.getFunctionType());
    });
    target.addDynamicallyLegalOp<func::ReturnOp, func::CallOp>(
        [&](Operation *op) { return types.isLegal(op); });
    scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns,
                                                         target);
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
