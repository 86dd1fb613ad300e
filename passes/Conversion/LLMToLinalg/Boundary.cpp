//===- Boundary.cpp - Arguments and results of converted functions --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Boundary.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/Conversion/LLMToLinalg/Passes.h"
#include "passes/Conversion/LLMToLinalg/TensorEmitter.h"

using namespace mlir;
using namespace mlir::llm;

static Value recast(TensorEmitter &e, Type type, Value value) {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(e, type, value).getResult(0);
}

/// Whether elements of `type` share bytes.
static bool isPacked(Type type) {
  return !type.isInteger(1) && type.getIntOrFloatBitWidth() < 8;
}

/// Element `i` (row major) of the packed bytes `bytes`, as stored in a tensor.
static Value unpackElement(TensorEmitter &e, Value bytes, Value i,
                           Type logical) {
  unsigned bits = logical.getIntOrFloatBitWidth(), perByte = 8 / bits;
  Type i8 = e.getI8Type();
  Value byte = e.extract(bytes, e.div(i, e.idx(perByte)));
  Value shift = e.fromIndex(e.mul(e.rem(i, e.idx(perByte)), e.idx(bits)), i8);
  Value field = e.land(arith::ShRUIOp::create(e, byte, shift),
                       e.constantInt(i8, (1 << bits) - 1));
  if (!logical.isSignlessInteger())
    return field;
  Value up = e.constantInt(i8, 8 - bits);
  return arith::ShRSIOp::create(e, arith::ShLIOp::create(e, field, up), up);
}

/// The row-major index of `ivs` in a tensor of `sizes`.
static Value linearIndex(TensorEmitter &e, ValueRange ivs, ValueRange sizes) {
  Value at = e.idx(0);
  for (auto [iv, size] : llvm::zip(ivs, sizes))
    at = e.add(e.mul(at, size), iv);
  return at;
}

static Value unpack(TensorEmitter &e, Value bytes, RankedTensorType type,
                    ValueRange sizes) {
  Value unpacked = e.generate(storageTensor(type), sizes, [&](ValueRange ivs) {
    return unpackElement(e, bytes, linearIndex(e, ivs, sizes),
                         type.getElementType());
  });
  return recast(e, type, unpacked);
}

/// The packed bytes of `value`, of packed type.
static Value pack(TensorEmitter &e, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  unsigned bits = type.getElementTypeBitWidth(), perByte = 8 / bits;
  Value stored = recast(e, storageTensor(type), value);
  Value count = e.product(e.dims(stored));
  Type i8 = e.getI8Type();
  auto flatType = RankedTensorType::get({ShapedType::kDynamic}, i8);
  Value flat = e.view(stored, flatType, count);
  Value bytes = e.div(e.add(count, e.idx(perByte - 1)), e.idx(perByte));
  return e.generate(flatType, bytes, [&](ValueRange ivs) {
    Value byte = e.constantInt(i8, 0);
    for (unsigned i = 0; i < perByte; ++i) {
      Value at = e.add(e.mul(ivs[0], e.idx(perByte)), e.idx(i));
      Value inside = e.cmp(TensorEmitter::Predicate::slt, at, count);
      Value safe = e.select(inside, at, e.idx(0));
      Value field =
          e.land(e.extract(flat, safe), e.constantInt(i8, (1 << bits) - 1));
      field = e.select(inside, field, e.constantInt(i8, 0));
      byte = e.lor(
          byte, arith::ShLIOp::create(e, field, e.constantInt(i8, i * bits)));
    }
    return byte;
  });
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// The logical matrix of affine groups whose parts are the given tensors.
static Value dequantize(TensorEmitter &e, GetWeightOp op,
                        AffineGroupsFormatAttr format, ValueRange parts) {
  auto type = cast<RankedTensorType>(op.getType());
  unsigned bits = format.getBits(), perByte = 8 / bits;
  Type i8 = e.getI8Type(), f32 = e.getF32Type(), i32 = e.getI32Type();
  Type scaleType = format.getScales().getType().getElementType();
  Value data = recast(
      e, RankedTensorType::get(format.getData().getType().getShape(), i8),
      parts[0]);
  Value scales =
      recast(e, storageTensor(format.getScales().getType()), parts[1]);
  Value zeros, factors;
  if (format.getFactors())
    factors =
        recast(e, storageTensor(format.getFactors().getType()), parts.back());
  if (format.getZeros()) {
    RankedTensorType zeroType = format.getZeros().getType();
    zeros = recast(e, zeroType.clone(storageType(zeroType.getElementType())),
                   parts[2]);
  }
  auto field = [&](Value bytes, Value row, Value i) -> Value {
    Value byte = e.extract(bytes, {row, e.div(i, e.idx(perByte))});
    Value shift = e.fromIndex(e.mul(e.rem(i, e.idx(perByte)), e.idx(bits)), i8);
    Value code = e.land(arith::ShRUIOp::create(e, byte, shift),
                        e.constantInt(i8, (1 << bits) - 1));
    Value wide = arith::ExtUIOp::create(e, i32, code);
    return arith::SIToFPOp::create(e, f32, wide);
  };
  SmallVector<Value> sizes{e.idx(type.getDimSize(0)),
                           e.idx(type.getDimSize(1))};
  Value result =
      e.generate(storageTensor(type), sizes, [&](ValueRange ivs) -> Value {
        Value group = e.div(ivs[1], e.idx(format.getGroupSize()));
        Value code = field(data, ivs[0], ivs[1]);
        Value zero;
        if (!zeros)
          zero = e.constant(f32, 1 << (bits - 1));
        else if (elementOf(zeros).isInteger(8))
          zero = field(zeros, ivs[0], group);
        else
          zero = e.convert(e.read(zeros, {ivs[0], group}, scaleType),
                           computeType(scaleType), f32);
        Value scale = e.convert(e.read(scales, {ivs[0], group}, scaleType),
                                computeType(scaleType), f32);
        if (factors) {
          Value part = e.div(ivs[1], e.idx(format.getFactorGroup()));
          Value factor = arith::SIToFPOp::create(
              e, f32, e.extract(factors, {ivs[0], part}));
          scale = e.mul(scale, factor);
        }
        Value value = e.mul(e.sub(code, zero), scale);
        Type to = type.getElementType();
        return e.narrow(e.convert(value, f32, computeType(to)), to);
      });
  return recast(e, type, result);
}

LogicalResult mlir::llm::expandWeights(func::FuncOp func) {
  DenseMap<StringAttr, SmallVector<GetWeightOp>> uses;
  SmallVector<WeightOp> weights;
  WalkResult walked = func.walk([&](GetWeightOp op) {
    auto weight =
        SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, op.getWeightAttr());
    if (!weight) {
      op.emitOpError("no llm.weight is named ") << op.getWeightAttr();
      return WalkResult::interrupt();
    }
    SmallVector<GetWeightOp> &list = uses[weight.getSymNameAttr()];
    if (list.empty())
      weights.push_back(weight);
    list.push_back(op);
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  for (WeightOp weight : weights) {
    SmallVector<ComponentAttr> components;
    weight.getFormat().getParts(components);
    SmallVector<Value> parts;
    for (ComponentAttr component : components) {
      auto attrs = DictionaryAttr::get(
          func.getContext(),
          {{StringAttr::get(func.getContext(), kConstantAttr),
            StringAttr::get(func.getContext(),
                            weight.getSymName() + ":" + component.getName())}});
      if (failed(func.insertArgument(func.getNumArguments(),
                                     component.getType(), attrs,
                                     weight.getLoc())))
        return failure();
      parts.push_back(func.getArguments().back());
    }
    GetWeightOp first = uses[weight.getSymNameAttr()].front();
    OpBuilder builder(&func.front(), func.front().begin());
    TensorEmitter e(first, builder);
    Value value;
    if (isa<DenseFormatAttr>(weight.getFormat()))
      value = parts[0].getType() == first.getType()
                  ? parts[0]
                  : CastOp::create(e, first.getType(), parts[0],
                                   e.getBoolAttr(true));
    else if (auto affine = dyn_cast<AffineGroupsFormatAttr>(weight.getFormat()))
      value = dequantize(e, first, affine, parts);
    else
      return weight.emitOpError("has a format that the generic path does not "
                                "read; dense and affine groups are read");
    for (GetWeightOp use : uses[weight.getSymNameAttr()]) {
      use.replaceAllUsesWith(value);
      use.erase();
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Arguments and results
//===----------------------------------------------------------------------===//

/// Replaces argument `index` by its run-time form; returns how many arguments
/// stand for it.
static FailureOr<unsigned> expandArgument(func::FuncOp func, unsigned index) {
  BlockArgument argument = func.getArgument(index);
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type)
    return 1;
  Type element = type.getElementType();
  OpBuilder builder(&func.front(), func.front().begin());
  TensorEmitter e(func, builder);
  MLIRContext *context = func.getContext();
  if (element.isInteger(1)) {
    auto bytes =
        type.clone(IntegerType::get(context, 8, IntegerType::Unsigned));
    argument.setType(bytes);
    auto cast = CastOp::create(e, type, argument, e.getBoolAttr(true));
    argument.replaceAllUsesExcept(cast, cast);
    return 1;
  }
  if (!isPacked(element))
    return 1;
  unsigned count = 1;
  SmallVector<Value> sizes(type.getRank());
  for (int64_t i = 0; i < type.getRank(); ++i) {
    if (!type.isDynamicDim(i))
      continue;
    if (failed(func.insertArgument(index + count, e.getIndexType(), {},
                                   argument.getLoc())))
      return failure();
    sizes[i] = func.getArgument(index + count++);
  }
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (!type.isDynamicDim(i))
      sizes[i] = e.idx(type.getDimSize(i));
  // Uses move to the unpacked tensor before the argument changes its type.
  Value placeholder =
      UnrealizedConversionCastOp::create(e, type, ValueRange()).getResult(0);
  argument.replaceAllUsesWith(placeholder);
  argument.setType(
      RankedTensorType::get({ShapedType::kDynamic}, e.getI8Type()));
  Value value = unpack(e, argument, type, sizes);
  placeholder.replaceAllUsesWith(value);
  placeholder.getDefiningOp()->erase();
  return count;
}

LogicalResult mlir::llm::expandBoundary(func::FuncOp func) {
  SmallVector<Type> inputs;
  for (unsigned i = 0; i < func.getNumArguments();) {
    FailureOr<unsigned> count = expandArgument(func, i);
    if (failed(count))
      return failure();
    i += *count;
  }
  for (BlockArgument argument : func.getArguments())
    inputs.push_back(argument.getType());

  SmallVector<Type> results;
  SmallVector<DictionaryAttr> attrs;
  auto terminator = cast<func::ReturnOp>(func.front().getTerminator());
  OpBuilder builder(terminator);
  TensorEmitter e(terminator, builder);
  SmallVector<Value> values;
  for (auto [i, value] : llvm::enumerate(terminator.getOperands())) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    attrs.push_back(func.getResultAttrDict(i));
    if (!type || !isPacked(type.getElementType())) {
      values.push_back(value);
      continue;
    }
    SmallVector<Value> sizes = e.dims(recast(e, storageTensor(type), value));
    values.push_back(pack(e, value));
    llvm::append_range(values, sizes);
    attrs.append(sizes.size(), DictionaryAttr::get(func.getContext()));
  }
  terminator->setOperands(values);
  for (Value value : values)
    results.push_back(value.getType());
  func.setFunctionType(FunctionType::get(func.getContext(), inputs, results));
  func.setAllResultAttrs(attrs);
  return success();
}
