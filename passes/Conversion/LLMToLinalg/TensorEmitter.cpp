//===- TensorEmitter.cpp - Short spellings for lowering llm ops
//-----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/TensorEmitter.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::llm;

Type mlir::llm::storageType(Type type) {
  if (type.isIndex() || type.isInteger(1))
    return type;
  unsigned bits = type.getIntOrFloatBitWidth();
  // bf16 as well: without AVX-512 BF16, LLVM rounds to it in a library.
  if (isa<FloatType>(type) && bits > 8 && !type.isBF16())
    return type;
  return IntegerType::get(type.getContext(), std::max(8u, bits));
}

Type mlir::llm::computeType(Type type) {
  if (isa<FloatType>(type))
    return type.isF64() ? type : Float32Type::get(type.getContext());
  return storageType(type);
}

RankedTensorType mlir::llm::storageTensor(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(storageType(tensor.getElementType()));
}

Type mlir::llm::elementOf(Value value) {
  return cast<ShapedType>(value.getType()).getElementType();
}

/// The name of the ONNX node, or the place in a file, that `loc` holds.
static std::string placeOf(Location loc) {
  std::string place;
  loc->walk([&](Location inner) {
    if (auto name = dyn_cast<NameLoc>(inner)) {
      place = "node '" + name.getName().str() + "'";
      return WalkResult::interrupt();
    }
    if (auto file = dyn_cast<FileLineColLoc>(inner))
      place = "line " + std::to_string(file.getLine());
    return WalkResult::advance();
  });
  return place;
}

std::string mlir::llm::describe(Operation *op) {
  std::string text = op->getName().getStringRef().str();
  std::string place = placeOf(op->getLoc());
  return place.empty() ? text : text + " at " + place;
}

std::optional<int64_t> mlir::llm::constantOf(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getSExtValue();
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value TensorEmitter::idx(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}

Value TensorEmitter::constant(Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(*this, getFloatAttr(type, value));
  return constantInt(type, static_cast<int64_t>(value));
}

Value TensorEmitter::constantInt(Type type, int64_t value) {
  if (isa<FloatType>(type))
    return constant(type, static_cast<double>(value));
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  APInt bits(width, static_cast<uint64_t>(value), /*isSigned=*/true,
             /*implicitTrunc=*/true);
  return arith::ConstantOp::create(*this, IntegerAttr::get(type, bits));
}

Value TensorEmitter::add(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::AddFOp::create(*this, a, b);
  return createOrFold<arith::AddIOp>(a, b);
}
Value TensorEmitter::sub(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::SubFOp::create(*this, a, b);
  return createOrFold<arith::SubIOp>(a, b);
}
Value TensorEmitter::mul(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::MulFOp::create(*this, a, b);
  return createOrFold<arith::MulIOp>(a, b);
}
Value TensorEmitter::div(Value a, Value b) {
  return createOrFold<arith::DivUIOp>(a, b);
}
Value TensorEmitter::rem(Value a, Value b) {
  return createOrFold<arith::RemUIOp>(a, b);
}
Value TensorEmitter::min(Value a, Value b) {
  return createOrFold<arith::MinSIOp>(a, b);
}
Value TensorEmitter::max(Value a, Value b) {
  return createOrFold<arith::MaxSIOp>(a, b);
}
Value TensorEmitter::cmp(Predicate predicate, Value a, Value b) {
  return createOrFold<arith::CmpIOp>(predicate, a, b);
}
Value TensorEmitter::cmp(Predicate predicate, Value a, int64_t b) {
  return cmp(predicate, a, constantInt(a.getType(), b));
}
Value TensorEmitter::land(Value a, Value b) {
  return createOrFold<arith::AndIOp>(a, b);
}
Value TensorEmitter::lor(Value a, Value b) {
  return createOrFold<arith::OrIOp>(a, b);
}
Value TensorEmitter::lnot(Value a) {
  return createOrFold<arith::XOrIOp>(a, constantInt(a.getType(), 1));
}
Value TensorEmitter::select(Value condition, Value a, Value b) {
  return createOrFold<arith::SelectOp>(condition, a, b);
}

Value TensorEmitter::toIndex(Value value, Type type) {
  if (type.isIndex())
    return value;
  if (type.isUnsignedInteger())
    return createOrFold<arith::IndexCastUIOp>(getIndexType(), value);
  return createOrFold<arith::IndexCastOp>(getIndexType(), value);
}

Value TensorEmitter::fromIndex(Value value, Type type) {
  Type storage = storageType(type);
  return storage.isIndex() ? value
                           : createOrFold<arith::IndexCastOp>(storage, value);
}

Value TensorEmitter::wrap(Value index, Value size) {
  Value negative = cmp(Predicate::slt, index, 0);
  return select(negative, add(index, size), index);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value TensorEmitter::dim(Value tensor, int64_t axis) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(axis))
    return idx(type.getDimSize(axis));
  return createOrFold<tensor::DimOp>(tensor, axis);
}

SmallVector<Value> TensorEmitter::dims(Value tensor) {
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < cast<RankedTensorType>(tensor.getType()).getRank();
       ++i)
    sizes.push_back(dim(tensor, i));
  return sizes;
}

Value TensorEmitter::extract(Value tensor, ValueRange indices) {
  return tensor::ExtractOp::create(*this, tensor, indices);
}

Value TensorEmitter::readIndex(Value tensor, Type logical, int64_t i) {
  SmallVector<Value> at;
  auto type = cast<RankedTensorType>(tensor.getType());
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    at.push_back(idx(axis + 1 == type.getRank() ? i : 0));
  return toIndex(createOrFold<tensor::ExtractOp>(tensor, at), logical);
}

Value TensorEmitter::generate(RankedTensorType type, ValueRange sizes,
                              Body body) {
  checkSizes(type, sizes);
  SmallVector<Value> dynamic;
  for (auto [size, extent] : llvm::zip(sizes, type.getShape()))
    if (ShapedType::isDynamic(extent))
      dynamic.push_back(size);
  Value empty = tensor::EmptyOp::create(*this, type, dynamic);
  AffineMap map = getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      *this, type, ValueRange{}, empty, map, iterators,
      [&](OpBuilder &, Location, ValueRange) {
        SmallVector<Value> ivs;
        for (int64_t i = 0; i < type.getRank(); ++i)
          ivs.push_back(linalg::IndexOp::create(*this, i));
        linalg::YieldOp::create(*this, body(ivs));
      });
  return generic.getResult(0);
}

SmallVector<Value> TensorEmitter::broadcastSizes(ValueRange operands) {
  int64_t rank = 0;
  for (Value operand : operands)
    rank = std::max(rank, cast<RankedTensorType>(operand.getType()).getRank());
  SmallVector<Value> sizes(rank, nullptr);
  for (Value operand : operands) {
    SmallVector<Value> own = dims(operand);
    for (size_t i = 0; i < own.size(); ++i) {
      Value &size = sizes[rank - own.size() + i];
      Value other = own[i];
      if (!size || constantOf(size) == 1 || size == other) {
        size = other;
        continue;
      }
      if (constantOf(other) == 1)
        continue;
      Value isOne = cmp(Predicate::eq, size, 1);
      Value ok = lor(cmp(Predicate::eq, size, other),
                     lor(isOne, cmp(Predicate::eq, other, 1)));
      check(ok, "sizes do not broadcast along axis " +
                    Twine(rank - own.size() + i));
      size = constantOf(other) ? other : select(isOne, other, size);
    }
  }
  return sizes;
}

SmallVector<Value> TensorEmitter::broadcastIndices(Value operand,
                                                   ValueRange ivs) {
  auto type = cast<RankedTensorType>(operand.getType());
  SmallVector<Value> at;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    Value iv = ivs[ivs.size() - type.getRank() + i];
    if (type.getDimSize(i) == 1)
      at.push_back(idx(0));
    else if (!type.isDynamicDim(i))
      at.push_back(iv);
    else
      at.push_back(select(cmp(Predicate::eq, dim(operand, i), 1), idx(0), iv));
  }
  return at;
}

Value TensorEmitter::map(RankedTensorType type, ValueRange operands,
                         Body body) {
  SmallVector<Value> sizes = broadcastSizes(operands);
  checkSizes(type, sizes);
  int64_t rank = type.getRank();
  // A dynamic dimension can be read straight when no other operand widens it.
  auto direct = [&](Value operand) {
    auto own = cast<RankedTensorType>(operand.getType());
    for (int64_t i = 0; i < own.getRank(); ++i) {
      if (!own.isDynamicDim(i))
        continue;
      for (Value other : operands) {
        auto wide = cast<RankedTensorType>(other.getType());
        int64_t axis = i - own.getRank() + wide.getRank();
        if (other != operand && axis >= 0 && wide.getDimSize(axis) != 1)
          return false;
      }
    }
    return true;
  };
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (Value operand : operands) {
    if (!direct(operand))
      continue;
    auto own = cast<RankedTensorType>(operand.getType());
    SmallVector<AffineExpr> exprs;
    for (int64_t i = 0; i < own.getRank(); ++i)
      exprs.push_back(own.getDimSize(i) == 1
                          ? getAffineConstantExpr(0)
                          : getAffineDimExpr(rank - own.getRank() + i));
    inputs.push_back(operand);
    maps.push_back(AffineMap::get(rank, 0, exprs, getContext()));
  }
  maps.push_back(getMultiDimIdentityMap(rank));
  SmallVector<Value> dynamic;
  for (auto [size, extent] : llvm::zip(sizes, type.getShape()))
    if (ShapedType::isDynamic(extent))
      dynamic.push_back(size);
  Value empty = tensor::EmptyOp::create(*this, type, dynamic);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      *this, type, inputs, empty, maps, iterators,
      [&](OpBuilder &, Location, ValueRange args) {
        SmallVector<Value> ivs, elements;
        if (inputs.size() != operands.size())
          for (int64_t i = 0; i < rank; ++i)
            ivs.push_back(linalg::IndexOp::create(*this, i));
        size_t next = 0;
        for (Value operand : operands) {
          if (next < inputs.size() && inputs[next] == operand)
            elements.push_back(args[next++]);
          else
            elements.push_back(
                extract(operand, broadcastIndices(operand, ivs)));
        }
        linalg::YieldOp::create(*this, body(elements));
      });
  return generic.getResult(0);
}

Value TensorEmitter::view(Value tensor, RankedTensorType type,
                          ValueRange sizes) {
  if (tensor.getType() == type && type.hasStaticShape())
    return tensor;
  checkSizes(type, sizes);
  Value shape;
  if (type.getRank() == 0)
    shape = arith::ConstantOp::create(
        *this, DenseElementsAttr::get(RankedTensorType::get({0}, getI64Type()),
                                      ArrayRef<Attribute>()));
  else
    shape = tensor::FromElementsOp::create(*this, sizes);
  return tensor::ReshapeOp::create(*this, type, tensor, shape);
}

SmallVector<Value> TensorEmitter::loop(Value count, ValueRange inits,
                                       LoopBody body) {
  auto loop = scf::ForOp::create(
      *this, idx(0), count, idx(1), inits,
      [&](OpBuilder &, Location, Value iv, ValueRange accumulators) {
        scf::YieldOp::create(*this, body(iv, accumulators));
      });
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> TensorEmitter::loops(
    ValueRange sizes, ValueRange inits,
    function_ref<SmallVector<Value>(ValueRange, ValueRange)> body) {
  SmallVector<Value> ivs;
  std::function<SmallVector<Value>(ValueRange)> nest =
      [&](ValueRange accumulators) -> SmallVector<Value> {
    if (ivs.size() == sizes.size())
      return body(ivs, accumulators);
    return loop(sizes[ivs.size()], accumulators,
                [&](Value iv, ValueRange inner) {
                  ivs.push_back(iv);
                  SmallVector<Value> results = nest(inner);
                  ivs.pop_back();
                  return results;
                });
  };
  return nest(inits);
}

Value TensorEmitter::all(ValueRange sizes, Body predicate) {
  Value yes = constantInt(getI1Type(), 1);
  return loops(sizes, yes,
               [&](ValueRange ivs, ValueRange acc) -> SmallVector<Value> {
                 return {land(acc[0], predicate(ivs))};
               })[0];
}

Value TensorEmitter::product(ValueRange sizes) {
  Value total = idx(1);
  for (Value size : sizes)
    total = mul(total, size);
  return total;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void TensorEmitter::check(Value ok, const Twine &message) {
  if (constantOf(ok) && *constantOf(ok) != 0)
    return;
  cf::AssertOp::create(*this, ok, describe(op) + ": " + message.str());
}

void TensorEmitter::checkSizes(RankedTensorType type, ValueRange sizes) {
  for (auto [i, size, extent] : llvm::enumerate(sizes, type.getShape()))
    if (!ShapedType::isDynamic(extent))
      check(cmp(Predicate::eq, size, extent), "the result's axis " + Twine(i) +
                                                  " must have size " +
                                                  Twine(extent));
}
