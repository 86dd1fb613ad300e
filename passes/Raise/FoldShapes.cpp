//===- FoldShapes.cpp - Evaluate shape arithmetic -------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Passes.h"
#include "passes/Raise/Utils.h"

#include <cmath>

namespace mlir::llm {
#define GEN_PASS_DEF_FOLDSHAPESPASS
#include "passes/Raise/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

/// Float tensors of more elements are not computed here.
static constexpr int64_t kMaxFloats = 256;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// `value` as an llm.constant, where the analysis knows all its elements.
static DenseElementsAttr constantOf(Value value, SymbolicShape &shapes) {
  std::optional<SmallVector<int64_t>> elements = shapes.getConstants(value);
  if (!elements)
    return {};
  RankedTensorType type =
      typeOf(shapes.getDims(value), tensorOf(value).getElementType());
  unsigned width = type.getElementTypeBitWidth();
  SmallVector<APInt> out;
  for (int64_t element : *elements)
    out.push_back(APInt(width, element, /*isSigned=*/true,
                        /*implicitTrunc=*/true));
  return DenseIntElementsAttr::get(type, out);
}

static double roundTo(double value, Type type) {
  APFloat number(value);
  bool loses;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &loses);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

/// A small op on float constants, computed in double and rounded once: at least
/// as exact as any kernel. Only ops whose double result rounds correctly.
static DenseElementsAttr foldFloats(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() < 1 ||
      op->getNumOperands() > 2)
    return {};
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !isa<FloatType>(type.getElementType()))
    return {};
  SmallVector<SmallVector<double>> operands;
  SmallVector<int64_t> shape;
  for (Value operand : op->getOperands()) {
    DenseElementsAttr elements = getConstantElements(operand);
    if (!elements || elements.getNumElements() > kMaxFloats)
      return {};
    SmallVector<double> numbers;
    if (isa<FloatType>(elements.getElementType())) {
      for (APFloat number : elements.getValues<APFloat>()) {
        bool loses;
        number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                       &loses);
        numbers.push_back(number.convertToDouble());
      }
    } else if (isa<CastOp>(op) && isa<IntegerType>(elements.getElementType())) {
      bool isUnsigned = elements.getElementType().isUnsignedInteger() ||
                        elements.getElementType().isInteger(1);
      for (const APInt &number : elements.getValues<APInt>())
        numbers.push_back(isUnsigned ? number.roundToDouble()
                                     : number.signedRoundToDouble());
    } else {
      return {};
    }
    FailureOr<SmallVector<int64_t>> joined =
        broadcastShapes(shape, elements.getType().getShape());
    if (failed(joined))
      return {};
    shape = std::move(*joined);
    operands.push_back(std::move(numbers));
  }
  auto compute = [&](double x, double y) -> std::optional<double> {
    if (isa<CastOp>(op))
      return x;
    if (isa<NegOp>(op))
      return -x;
    if (isa<SqrtOp>(op))
      return std::sqrt(x);
    if (isa<ReciprocalOp>(op))
      return 1.0 / x;
    if (isa<AddOp>(op))
      return x + y;
    if (isa<SubOp>(op))
      return x - y;
    if (isa<MulOp>(op))
      return x * y;
    if (isa<DivOp>(op))
      return x / y;
    if (isa<PowOp>(op))
      return std::pow(x, y);
    return std::nullopt;
  };
  auto resultType = RankedTensorType::get(shape, type.getElementType());
  int64_t count = resultType.getNumElements();
  if (count > kMaxFloats)
    return {};
  // Of the ways to broadcast, only from one element.
  for (const auto &numbers : operands)
    if (numbers.size() != 1 && static_cast<int64_t>(numbers.size()) != count)
      return {};
  SmallVector<APFloat> out;
  for (int64_t i = 0; i < count; ++i) {
    auto at = [&](size_t k) {
      return k >= operands.size()      ? 0.0
             : operands[k].size() == 1 ? operands[k][0]
                                       : operands[k][i];
    };
    std::optional<double> value = compute(at(0), at(1));
    if (!value)
      return {};
    APFloat number(roundTo(*value, type.getElementType()));
    bool loses;
    number.convert(cast<FloatType>(type.getElementType()).getFloatSemantics(),
                   APFloat::rmNearestTiesToEven, &loses);
    out.push_back(number);
  }
  return DenseElementsAttr::get(resultType, out);
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

/// Gives `op` a constant target where one says the same. Returns the value to
/// use instead of its result, null to keep it; sets `changed`.
static Value simplifyReshape(ReshapeOp op, SymbolicShape &shapes,
                             bool &changed) {
  SmallVector<SymbolicExpr> dims(shapes.getDims(op.getResult()));
  if (shapes.getDims(op.getInput()) == ArrayRef<SymbolicExpr>(dims))
    return op.getInput();
  std::optional<SmallVector<int64_t>> target =
      reshapeTarget(shapes.getDims(op.getInput()), dims);
  if (!target)
    return {};
  std::optional<SmallVector<int64_t>> present =
      shapes.getConstants(op.getShape());
  if (present && *present == *target && !op.getAllowzero() &&
      op.getShape().getDefiningOp<ConstantOp>())
    return {};
  OpBuilder builder(op);
  op.getShapeMutable().assign(createIntVector(builder, op.getLoc(), *target));
  op.setAllowzero(false);
  changed = true;
  return {};
}

static Value simplifyExpand(ExpandOp op, SymbolicShape &shapes, bool &changed) {
  SmallVector<SymbolicExpr> input(shapes.getDims(op.getInput()));
  SmallVector<SymbolicExpr> dims(shapes.getDims(op.getResult()));
  if (input == dims)
    return op.getInput();
  // Expansion goes both ways, so 1 keeps a size.
  SmallVector<int64_t> target;
  size_t lead = dims.size() - std::min(dims.size(), input.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (std::optional<int64_t> constant = dims[i].getConstant())
      target.push_back(*constant);
    else if (i >= lead && input[i - lead] == dims[i])
      target.push_back(1);
    else
      return {};
  }
  std::optional<SmallVector<int64_t>> present =
      shapes.getConstants(op.getShape());
  if (present && *present == target &&
      op.getShape().getDefiningOp<ConstantOp>())
    return {};
  OpBuilder builder(op);
  op.getShapeMutable().assign(createIntVector(builder, op.getLoc(), target));
  changed = true;
  return {};
}

/// What an op that moves nothing can be replaced by.
static Value simplifySlice(SliceOp op, SymbolicShape &shapes) {
  if (!shapes.sameShape(op.getInput(), op.getResult()))
    return {};
  // The same size with positive steps takes everything in order.
  if (op.getSteps()) {
    auto steps = shapes.getConstants(op.getSteps());
    if (!steps || llvm::any_of(*steps, [](int64_t s) { return s != 1; }))
      return {};
  }
  return op.getInput();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct FoldShapes : mlir::llm::impl::FoldShapesPassBase<FoldShapes> {
  void runOnOperation() override {
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
      if (func.isDeclaration())
        continue;
      // Folding can make more sizes known (a slice that goes reveals the size
      // behind it), so go on until nothing changes; each round removes or
      // refines something.
      while (runOnce(func)) {
      }
    }
  }

  bool runOnce(func::FuncOp func) {
    bool changed = false;
    SymbolicShape shapes(func);
    func.walk([&](Operation *op) {
      if (op->getDialect() != func.getContext()->getLoadedDialect("llm") ||
          isa<ConstantOp, GetWeightOp>(op))
        return;
      if (op->use_empty())
        return;
      if (op->getNumResults() == 1 && isMemoryEffectFree(op)) {
        Value result = op->getResult(0);
        DenseElementsAttr constant = constantOf(result, shapes);
        if (!constant)
          constant = foldFloats(op);
        if (constant && replaceable(result, constant.getType())) {
          OpBuilder builder(op);
          result.replaceAllUsesWith(ConstantOp::create(
              builder, op->getLoc(), cast<RankedTensorType>(constant.getType()),
              constant));
          ++numFolded;
          changed = true;
          return;
        }
      }
      bool target = false;
      Value instead;
      if (auto reshape = dyn_cast<ReshapeOp>(op))
        instead = simplifyReshape(reshape, shapes, target);
      else if (auto expand = dyn_cast<ExpandOp>(op))
        instead = simplifyExpand(expand, shapes, target);
      else if (auto slice = dyn_cast<SliceOp>(op))
        instead = simplifySlice(slice, shapes);
      numTargets += target;
      changed |= target;
      if (instead && replaceable(op->getResult(0), instead.getType())) {
        op->getResult(0).replaceAllUsesWith(instead);
        changed = true;
      }
    });
    eraseDeadOps(func);
    changed |= refineTypes(func);
    return changed;
  }

  /// Whether something other than the function's own ops depends on the types
  /// of values: a call site, or control flow whose regions must agree.
  static bool hasFixedTypes(func::FuncOp func) {
    if (!SymbolTable::symbolKnownUseEmpty(func, func->getParentOp()))
      return true;
    return llvm::any_of(
        func.getBody().front().without_terminator(),
        [](Operation &op) { return !isa<LLMDialect>(op.getDialect()); });
  }

  /// Whether uses of `value` accept `type`. A more static one is as good where
  /// the rest of the round refines the users' types along.
  static bool replaceable(Value value, Type type) {
    auto from = tensorOf(value), to = cast<RankedTensorType>(type);
    if (from == to)
      return true;
    auto func = value.getDefiningOp()->getParentOfType<func::FuncOp>();
    for (auto [a, b] : llvm::zip(from.getShape(), to.getShape()))
      if (!ShapedType::isDynamic(a) && a != b)
        return false;
    return from.getRank() == to.getRank() &&
           from.getElementType() == to.getElementType() && !hasFixedTypes(func);
  }

  /// Sizes that are constant become part of the types.
  bool refineTypes(func::FuncOp func) {
    if (hasFixedTypes(func))
      return false;
    SymbolicShape shapes(func);
    bool changed = false;
    auto refine = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type)
        return;
      RankedTensorType refined =
          typeOf(shapes.getDims(value), type.getElementType());
      if (refined == type)
        return;
      value.setType(refined);
      ++numRefined;
      changed = true;
    };
    for (BlockArgument argument : func.getArguments())
      refine(argument);
    func.walk([&](Operation *op) {
      if (isa_and_nonnull<LLMDialect>(op->getDialect()))
        for (Value result : op->getResults())
          refine(result);
    });
    Operation *terminator = func.getBody().front().getTerminator();
    func.setFunctionType(FunctionType::get(func.getContext(),
                                           func.getBody().getArgumentTypes(),
                                           terminator->getOperandTypes()));
    return changed;
  }
};
} // namespace
