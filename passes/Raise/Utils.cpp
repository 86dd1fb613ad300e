//===- Utils.cpp - Shared by the raise passes -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Utils.h"
#include "lib/Support/WeightData.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::llm;

DenseElementsAttr mlir::llm::getConstantElements(Value value) {
  if (auto constant = value.getDefiningOp<ConstantOp>())
    return dyn_cast<DenseElementsAttr>(constant.getValue());
  auto get = value.getDefiningOp<GetWeightOp>();
  if (!get)
    return {};
  auto weight =
      SymbolTable::lookupNearestSymbolFrom<WeightOp>(get, get.getWeightAttr());
  if (!weight)
    return {};
  auto dense = dyn_cast<DenseFormatAttr>(weight.getFormat());
  // Elements of another type are not those of the value.
  return dense && dense.getData().getType() == weight.getType()
             ? dyn_cast<DenseElementsAttr>(dense.getData().getSource())
             : DenseElementsAttr();
}

std::optional<double> mlir::llm::getSplatNumber(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>())
    value = cast.getInput();
  if (auto expand = value.getDefiningOp<ExpandOp>())
    value = expand.getInput();
  DenseElementsAttr elements = getConstantElements(value);
  if (!elements || elements.getNumElements() == 0 ||
      (!elements.isSplat() && elements.getNumElements() != 1))
    return std::nullopt;
  Type type = elements.getElementType();
  if (isa<FloatType>(type)) {
    APFloat number = elements.getSplatValue<APFloat>();
    bool loses;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    return number.convertToDouble();
  }
  if (!isa<IntegerType>(type))
    return std::nullopt;
  APInt number = elements.getSplatValue<APInt>();
  bool isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
  return isUnsigned ? number.roundToDouble() : number.signedRoundToDouble();
}

std::optional<SmallVector<double>> mlir::llm::readFloats(Value value,
                                                         int64_t limit) {
  RankedTensorType type = tensorOf(value);
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (!element || !type.hasStaticShape() || type.getNumElements() > limit)
    return std::nullopt;
  SmallVector<double> out;
  auto append = [&](APFloat number) {
    bool loses;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    out.push_back(number.convertToDouble());
  };
  if (DenseElementsAttr elements = getConstantElements(value)) {
    for (const APFloat &number : elements.getValues<APFloat>())
      append(number);
    return out;
  }
  auto get = value.getDefiningOp<GetWeightOp>();
  auto weight = get ? SymbolTable::lookupNearestSymbolFrom<WeightOp>(
                          get, get.getWeightAttr())
                    : WeightOp();
  auto dense = weight ? dyn_cast<DenseFormatAttr>(weight.getFormat()) : nullptr;
  if (!dense)
    return std::nullopt;
  element = cast<FloatType>(dense.getData().getType().getElementType());
  if (element.getWidth() % 8 != 0)
    return std::nullopt;
  auto data = ::llm::WeightData::open(dense.getData(),
                                      [&] { return weight.emitRemark(); });
  if (failed(data))
    return std::nullopt;
  unsigned width = element.getWidth() / 8;
  for (int64_t i = 0, n = type.getNumElements(); i < n; ++i) {
    APInt bits(element.getWidth(), 0);
    for (unsigned b = 0; b < width; ++b)
      bits.insertBits(static_cast<uint8_t>(data->bytes()[i * width + b]), 8 * b,
                      8);
    append(APFloat(element.getFloatSemantics(), bits));
  }
  return out;
}

Value mlir::llm::createWeight(func::FuncOp func, Location loc, StringRef name,
                              DenseElementsAttr elements) {
  auto module = func->getParentOfType<ModuleOp>();
  auto type = cast<RankedTensorType>(elements.getType());
  auto component =
      ComponentAttr::get(func.getContext(), "data", type, elements);
  SymbolTable table(module);
  OpBuilder atModule = OpBuilder::atBlockBegin(module.getBody());
  auto weight = WeightOp::create(
      atModule, loc, name, type,
      DenseFormatAttr::get(func.getContext(), component), StringAttr());
  StringAttr symbol = table.insert(weight);
  OpBuilder atFunction = OpBuilder::atBlockBegin(&func.getBody().front());
  return GetWeightOp::create(atFunction, loc, type,
                             FlatSymbolRefAttr::get(symbol));
}

Value mlir::llm::createIntVector(OpBuilder &builder, Location loc,
                                 ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())},
                                    builder.getI64Type());
  return ConstantOp::create(builder, loc, type,
                            DenseIntElementsAttr::get(type, values));
}

unsigned mlir::llm::eraseDeadOps(func::FuncOp func) {
  unsigned count = 0;
  func.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (op != func.getOperation() && isOpTriviallyDead(op)) {
      op->erase();
      ++count;
    }
  });
  return count;
}

void mlir::llm::eraseUnusedWeights(ModuleOp module) {
  llvm::DenseSet<StringAttr> used;
  if (std::optional<SymbolTable::UseRange> uses =
          SymbolTable::getSymbolUses(&module.getBodyRegion()))
    for (SymbolTable::SymbolUse use : *uses)
      used.insert(use.getSymbolRef().getRootReference());
  else
    return;
  for (WeightOp weight : llvm::make_early_inc_range(module.getOps<WeightOp>()))
    if (!used.contains(weight.getSymNameAttr()))
      weight.erase();
}

std::optional<SmallVector<int64_t>>
mlir::llm::reshapeTarget(ArrayRef<SymbolicExpr> input,
                         ArrayRef<SymbolicExpr> dims) {
  SmallVector<int64_t> target;
  bool inferred = false;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (std::optional<int64_t> constant = dim.getConstant()) {
      // 0 would be read as "the input's".
      if (*constant <= 0)
        return std::nullopt;
      target.push_back(*constant);
    } else if (i < input.size() && input[i] == dim) {
      target.push_back(0);
    } else if (!inferred) {
      target.push_back(-1);
      inferred = true;
    } else {
      return std::nullopt;
    }
  }
  return target;
}

RankedTensorType mlir::llm::typeOf(ArrayRef<SymbolicExpr> dims,
                                   Type elementType) {
  SmallVector<int64_t> shape;
  for (const SymbolicExpr &dim : dims) {
    std::optional<int64_t> constant = dim.getConstant();
    shape.push_back(constant && *constant >= 0 ? *constant
                                               : ShapedType::kDynamic);
  }
  return RankedTensorType::get(shape, elementType);
}

Value mlir::llm::createReshape(OpBuilder &builder, Location loc,
                               SymbolicShape &shapes, Value input,
                               ArrayRef<SymbolicExpr> dims) {
  SmallVector<SymbolicExpr> wanted(dims);
  // Whatever the intermediate shape is, the elements are the same.
  while (Operation *producer = input.getDefiningOp()) {
    if (!isa<ReshapeOp, UnsqueezeOp, SqueezeOp>(producer) ||
        shapes.getDims(input) == ArrayRef<SymbolicExpr>(wanted))
      break;
    Value inner = producer->getOperand(0);
    if (shapes.getDims(inner) != ArrayRef<SymbolicExpr>(wanted) &&
        !reshapeTarget(shapes.getDims(inner), wanted))
      break;
    input = inner;
  }
  if (shapes.getDims(input) == ArrayRef<SymbolicExpr>(wanted))
    return input;
  std::optional<SmallVector<int64_t>> target =
      reshapeTarget(shapes.getDims(input), wanted);
  if (!target)
    return {};
  Value shape = createIntVector(builder, loc, *target);
  return ReshapeOp::create(builder, loc,
                           typeOf(wanted, tensorOf(input).getElementType()),
                           input, shape, /*allowzero=*/false);
}

void mlir::llm::sortByNeed(Block &block) {
  Operation *terminator = block.getTerminator();
  for (Operation &op : block.without_terminator())
    if (!isMemoryEffectFree(&op) || op.getNumRegions() != 0)
      return;
  llvm::DenseSet<Operation *> placed;
  SmallVector<std::pair<Operation *, unsigned>> stack;
  stack.emplace_back(terminator, 0);
  while (!stack.empty()) {
    auto &[op, next] = stack.back();
    if (next < op->getNumOperands()) {
      Operation *operand = op->getOperand(next++).getDefiningOp();
      if (operand && !placed.contains(operand))
        stack.emplace_back(operand, 0);
      continue;
    }
    Operation *done = op;
    stack.pop_back();
    if (done != terminator && placed.insert(done).second)
      done->moveBefore(terminator);
  }
}

bool mlir::llm::isModelConstant(Value value) {
  SmallVector<Value> stack{value};
  llvm::DenseSet<Operation *> seen;
  while (!stack.empty()) {
    Operation *op = stack.pop_back_val().getDefiningOp();
    if (!op)
      return false;
    if (isa<GetWeightOp, ConstantOp>(op) || !seen.insert(op).second)
      continue;
    if (op->getNumOperands() == 0 || op->getNumRegions() != 0 ||
        !isMemoryEffectFree(op))
      return false;
    llvm::append_range(stack, op->getOperands());
  }
  return true;
}
