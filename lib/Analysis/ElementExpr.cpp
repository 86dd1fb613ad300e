//===- ElementExpr.cpp - One element of a tensor as an expression ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/ElementExpr.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::llm;
using Kind = Element::Kind;

/// Masks are some twenty ops deep; more is not a mask.
static constexpr unsigned kMaxDepth = 64;
/// Selects double the tree; a file must not make it explode.
static constexpr size_t kMaxNodes = 1 << 16;

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isBool(Value value) {
  return tensorOf(value).getElementType().isInteger(1);
}

std::optional<double> Element::getNumber() const {
  if (kind == Kind::real)
    return number;
  if (kind == Kind::integer)
    if (std::optional<int64_t> constant = expr.getConstant())
      return static_cast<double>(*constant);
  return std::nullopt;
}

bool mlir::llm::operator==(const Element &a, const Element &b) {
  if (a.kind != b.kind || a.kind == Kind::unknown)
    return false;
  auto same = [](const Element *x, const Element *y) {
    return x == y || (x && y && *x == *y);
  };
  return a.expr == b.expr && a.number == b.number && a.tensor == b.tensor &&
         a.indices == b.indices && same(a.condition, b.condition) &&
         same(a.lhs, b.lhs) && same(a.rhs, b.rhs);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

const Element *ElementAnalysis::make(Element element) {
  if (nodes.size() >= kMaxNodes)
    element = Element();
  return &nodes.emplace_back(std::move(element));
}

const Element *ElementAnalysis::integer(SymbolicExpr expr) {
  Element element;
  if (expr.isKnown()) {
    element.kind = Kind::integer;
    element.expr = std::move(expr);
  }
  return make(std::move(element));
}

SymbolicExpr ElementAnalysis::index(const SymbolicExpr &size) {
  SymbolicExpr symbol = shapes.createSymbol();
  ranges.try_emplace(*symbol.getSymbol(), size);
  return symbol;
}

bool ElementAnalysis::isNonNegative(const SymbolicExpr &expr) const {
  if (expr.isNonNegative())
    return true;
  // The least value: an index that lowers the sum is as large as it can be, the
  // others are 0. Expressions are linear in the indices of masks; where one is
  // not, the substitution below is still a lower bound only if the symbol
  // occurs alone, so give up on products.
  SymbolicExpr least = expr;
  for (const auto &[symbol, size] : ranges) {
    if (!least.contains(symbol))
      continue;
    auto with = [&](const SymbolicExpr &value) {
      return least.substitute([&, s = symbol](Symbol other) {
        return other == s ? value : SymbolicExpr::symbol(other);
      });
    };
    SymbolicExpr zero = with(SymbolicExpr(0));
    SymbolicExpr slope = with(SymbolicExpr(1)) - zero;
    std::optional<int64_t> constant = slope.getConstant();
    if (!constant || zero + slope * SymbolicExpr::symbol(symbol) != least)
      return false;
    least = *constant > 0 ? zero : with(size - SymbolicExpr(1));
  }
  return least.isNonNegative();
}

const Element *ElementAnalysis::compare(Kind kind, const Element *a,
                                        const Element *b) {
  Element element;
  element.kind = kind;
  element.lhs = a;
  element.rhs = b;
  return make(std::move(element));
}

const Element *ElementAnalysis::negate(const Element *a) {
  Element element;
  element.kind = Kind::logicalNot;
  element.lhs = a;
  return make(std::move(element));
}

const Element *ElementAnalysis::binary(Operation *op, const Element *a,
                                       const Element *b) {
  auto node = [&](Kind kind) { return compare(kind, a, b); };
  bool integers = a->is(Kind::integer) && b->is(Kind::integer);
  std::optional<double> x = a->getNumber(), y = b->getNumber();
  auto real = [&](double number) {
    Element element;
    element.kind = Kind::real;
    element.number = number;
    return make(std::move(element));
  };
  return TypeSwitch<Operation *, const Element *>(op)
      .Case<AddOp>([&](Operation *) {
        return integers ? integer(a->expr + b->expr)
               : x && y ? real(*x + *y)
                        : node(Kind::add);
      })
      .Case<SubOp>([&](Operation *) {
        return integers ? integer(a->expr - b->expr)
               : x && y ? real(*x - *y)
                        : node(Kind::sub);
      })
      .Case<MulOp>([&](Operation *) {
        return integers ? integer(a->expr * b->expr)
               : x && y ? real(*x * *y)
                        : node(Kind::mul);
      })
      .Case<MinOp>([&](Operation *) { return node(Kind::min); })
      .Case<MaxOp>([&](Operation *) { return node(Kind::max); })
      .Case<EqualOp>([&](Operation *) { return node(Kind::equal); })
      .Case<LessOp>([&](Operation *) { return node(Kind::less); })
      .Case<LessEqualOp>([&](Operation *) { return node(Kind::lessEqual); })
      .Case<GreaterOp>([&](Operation *) { return compare(Kind::less, b, a); })
      .Case<GreaterEqualOp>(
          [&](Operation *) { return compare(Kind::lessEqual, b, a); })
      .Case<AndOp, OrOp>([&](Operation *op) {
        if (!isBool(op->getResult(0)))
          return unknown();
        return node(isa<AndOp>(op) ? Kind::logicalAnd : Kind::logicalOr);
      })
      .Default([&](Operation *) { return unknown(); });
}

const Element *ElementAnalysis::constant(DenseElementsAttr elements,
                                         Value value,
                                         ArrayRef<SymbolicExpr> indices) {
  int64_t at = 0;
  for (auto [index, size] : llvm::zip(indices, elements.getType().getShape())) {
    std::optional<int64_t> i = size == 1 ? 0 : index.getConstant();
    if (elements.isSplat())
      i = 0;
    if (!i || *i < 0 || *i >= size) {
      Element element;
      element.kind = Kind::load;
      element.tensor = value;
      element.indices.assign(indices.begin(), indices.end());
      return make(std::move(element));
    }
    at = at * size + *i;
  }
  if (elements.getNumElements() == 0)
    return unknown();
  Type type = elements.getElementType();
  if (isa<FloatType>(type)) {
    APFloat number = *(elements.value_begin<APFloat>() + at);
    bool loses;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    Element element;
    element.kind = Kind::real;
    element.number = number.convertToDouble();
    return make(std::move(element));
  }
  if (!isa<IntegerType>(type) || type.getIntOrFloatBitWidth() > 64)
    return unknown();
  APInt number = *(elements.value_begin<APInt>() + at);
  bool isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
  return integer(isUnsigned ? static_cast<int64_t>(number.getZExtValue())
                            : number.getSExtValue());
}

SmallVector<SymbolicExpr>
ElementAnalysis::operandIndices(Value operand, ArrayRef<SymbolicExpr> indices) {
  ArrayRef<SymbolicExpr> dims = shapes.getDims(operand);
  SmallVector<SymbolicExpr> out;
  size_t lead = indices.size() - std::min(indices.size(), dims.size());
  for (auto [i, dim] : llvm::enumerate(dims))
    out.push_back(dim == SymbolicExpr(1) ? SymbolicExpr(0) : indices[lead + i]);
  return out;
}

//===----------------------------------------------------------------------===//
// The element of an op's result
//===----------------------------------------------------------------------===//

const Element *ElementAnalysis::at(Value value,
                                   ArrayRef<SymbolicExpr> indices) {
  if (depth >= kMaxDepth || nodes.size() >= kMaxNodes ||
      llvm::any_of(indices, [](const auto &i) { return !i.isKnown(); }))
    return unknown();
  ++depth;
  llvm::scope_exit leave([&] { --depth; });
  return compute(value, indices);
}

/// The indices of the operand of an op that only adds and removes dimensions of
/// size 1; nullopt where it does more.
static std::optional<SmallVector<SymbolicExpr>>
moveOnes(ArrayRef<SymbolicExpr> from, ArrayRef<SymbolicExpr> to,
         ArrayRef<SymbolicExpr> indices) {
  SmallVector<SymbolicExpr> sizes, rest, out;
  for (auto [dim, index] : llvm::zip(to, indices))
    if (dim != SymbolicExpr(1)) {
      sizes.push_back(dim);
      rest.push_back(index);
    }
  size_t next = 0;
  for (const SymbolicExpr &dim : from) {
    if (dim == SymbolicExpr(1))
      out.push_back(0);
    else if (next < sizes.size() && sizes[next] == dim)
      out.push_back(rest[next++]);
    else
      return std::nullopt;
  }
  if (next != sizes.size())
    return std::nullopt;
  return out;
}

/// The indices of the operand of a reshape that merges the last two dimensions,
/// [.., m, n] to [.., m * n]; nullopt where it does not, or the last index is
/// not n * q + r for a q without symbols' remainders.
static std::optional<SmallVector<SymbolicExpr>>
splitLast(ArrayRef<SymbolicExpr> from, ArrayRef<SymbolicExpr> to,
          ArrayRef<SymbolicExpr> indices) {
  if (from.size() < 2 || from.size() != to.size() + 1 ||
      from.drop_back(2) != to.drop_back(1) ||
      from[from.size() - 2] * from.back() != to.back())
    return std::nullopt;
  std::optional<int64_t> n = from.back().getConstant();
  if (!n || *n <= 0)
    return std::nullopt;
  SmallVector<SymbolicExpr> out(indices.drop_back());
  for (int64_t r = 0; r < std::min<int64_t>(*n, 8); ++r) {
    SymbolicExpr quotient =
        (indices.back() - SymbolicExpr(r)).dividedBy(SymbolicExpr(*n));
    if (!quotient.isKnown())
      continue;
    out.push_back(quotient);
    out.push_back(r);
    return out;
  }
  return std::nullopt;
}

const Element *ElementAnalysis::compute(Value value,
                                        ArrayRef<SymbolicExpr> indices) {
  auto load = [&] {
    Element element;
    element.kind = Kind::load;
    element.tensor = value;
    element.indices.assign(indices.begin(), indices.end());
    return make(std::move(element));
  };
  if (shapes.getDims(value).size() != indices.size())
    return unknown();
  // Small integer tensors, such as a scalar that holds the past length.
  if (const SymbolicShape::Exprs *elements = shapes.getElements(value)) {
    int64_t position = 0;
    bool constant = true;
    for (auto [index, dim] : llvm::zip(indices, shapes.getDims(value))) {
      std::optional<int64_t> i =
          dim == SymbolicExpr(1) ? 0 : index.getConstant();
      constant &= i.has_value();
      position = position * *dim.getConstant() + i.value_or(0);
    }
    if (constant && position >= 0 &&
        position < static_cast<int64_t>(elements->size()))
      return integer((*elements)[position]);
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return load();
  auto move = [&](Value input) {
    auto moved =
        moveOnes(shapes.getDims(input), shapes.getDims(value), indices);
    return moved ? at(input, *moved) : unknown();
  };
  auto make3 = [&](Kind kind, const Element *c, const Element *a,
                   const Element *b) {
    Element element;
    element.kind = kind;
    element.condition = c;
    element.lhs = a;
    element.rhs = b;
    return make(std::move(element));
  };
  return TypeSwitch<Operation *, const Element *>(op)
      .Case<ConstantOp>([&](ConstantOp op) {
        auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
        return dense ? constant(dense, value, indices) : load();
      })
      .Case<GetWeightOp>([&](GetWeightOp op) {
        auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
            op, op.getWeightAttr());
        auto format =
            weight ? dyn_cast<DenseFormatAttr>(weight.getFormat()) : nullptr;
        auto dense =
            format && format.getData().getType() == weight.getType()
                ? dyn_cast<DenseElementsAttr>(format.getData().getSource())
                : nullptr;
        return dense ? constant(dense, value, indices) : load();
      })
      .Case<ConstantOfShapeOp>([&](ConstantOfShapeOp op) {
        auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
        if (!dense || !dense.isSplat())
          return unknown();
        return constant(dense.resizeSplat(
                            RankedTensorType::get({}, dense.getElementType())),
                        value, {});
      })
      .Case<UnsqueezeOp, SqueezeOp>(
          [&](auto op) { return move(op.getInput()); })
      .Case<ReshapeOp>([&](ReshapeOp op) {
        auto merged = splitLast(shapes.getDims(op.getInput()),
                                shapes.getDims(value), indices);
        return merged ? at(op.getInput(), *merged) : move(op.getInput());
      })
      .Case<ExpandOp>([&](ExpandOp op) {
        return at(op.getInput(), operandIndices(op.getInput(), indices));
      })
      .Case<TransposeOp>([&](TransposeOp op) {
        SmallVector<SymbolicExpr> inner(indices.size());
        for (auto [i, axis] : llvm::enumerate(op.getPerm()))
          inner[axis] = indices[i];
        return at(op.getInput(), inner);
      })
      .Case<CastOp>([&](CastOp op) {
        const Element *input = at(op.getInput(), indices);
        Type to = tensorOf(op.getResult()).getElementType();
        if (to.isInteger(1) && !isBool(op.getInput()))
          return make3(Kind::nonZero, nullptr, input, nullptr);
        if (!to.isInteger(1) && isBool(op.getInput()))
          return make3(Kind::select, input, integer(1), integer(0));
        // Masks and positions fit every type that models cast them to, but a
        // fraction does not survive the way to an integer.
        bool truncates =
            isa<FloatType>(tensorOf(op.getInput()).getElementType()) &&
            isa<IntegerType>(to);
        return truncates && !input->getNumber() ? unknown() : input;
      })
      .Case<RangeOp>([&](RangeOp op) {
        std::optional<SymbolicExpr> start = shapes.getScalar(op.getStart()),
                                    delta = shapes.getScalar(op.getDelta());
        if (!start || !delta)
          return unknown();
        return integer(*start + *delta * indices[0]);
      })
      .Case<SliceOp>([&](SliceOp op) {
        SmallVector<SymbolicExpr> inner(indices);
        const SymbolicShape::Exprs *starts = shapes.getElements(op.getStarts());
        const SymbolicShape::Exprs *ends = shapes.getElements(op.getEnds());
        if (!starts || !ends)
          return unknown();
        std::optional<SmallVector<int64_t>> axes, steps;
        if (op.getAxes() && !(axes = shapes.getConstants(op.getAxes())))
          return unknown();
        if (op.getSteps() && !(steps = shapes.getConstants(op.getSteps())))
          return unknown();
        size_t count = starts->size();
        if (ends->size() != count || (axes && axes->size() != count) ||
            (steps && steps->size() != count))
          return unknown();
        for (size_t i = 0; i < count; ++i) {
          std::optional<int64_t> axis = normalizeAxis(
              axes ? (*axes)[i] : static_cast<int64_t>(i), inner.size());
          if (!axis || (steps && (*steps)[i] != 1))
            return unknown();
          SymbolicExpr size = shapes.getDim(op.getInput(), *axis);
          SliceBounds bounds = clampSlice((*starts)[i], (*ends)[i], size);
          if (!bounds.start.isKnown())
            return unknown();
          inner[*axis] = inner[*axis] + bounds.start;
        }
        return at(op.getInput(), inner);
      })
      .Case<GatherOp>([&](GatherOp op) {
        ArrayRef<SymbolicExpr> input = shapes.getDims(op.getInput());
        size_t axis = *normalizeAxis(op.getAxis(), input.size());
        size_t count = shapes.getDims(op.getIndices()).size();
        const Element *index = at(op.getIndices(), indices.slice(axis, count));
        if (!index->is(Kind::integer))
          return unknown();
        SymbolicExpr picked = index->expr;
        std::optional<int64_t> constant = picked.getConstant();
        if (constant && *constant < 0)
          picked = picked + input[axis];
        SmallVector<SymbolicExpr> inner(indices.take_front(axis));
        inner.push_back(picked);
        llvm::append_range(inner, indices.drop_front(axis + count));
        return at(op.getInput(), inner);
      })
      .Case<ConcatOp>([&](ConcatOp op) {
        size_t axis = *normalizeAxis(op.getAxis(), indices.size());
        // index < size of the first: the first, else the rest; where the ranges
        // of the indices tell, only the part that it is.
        SymbolicExpr begin(0);
        SmallVector<std::pair<SymbolicExpr, const Element *>> parts;
        for (Value input : op.getInputs()) {
          SymbolicExpr end = begin + shapes.getDim(input, axis);
          bool before = isNonNegative(indices[axis] - end);
          bool last = isNonNegative(end - indices[axis] - SymbolicExpr(1));
          if (!before) {
            SmallVector<SymbolicExpr> inner(indices);
            inner[axis] = indices[axis] - begin;
            parts.emplace_back(end, at(input, inner));
          }
          begin = end;
          if (last)
            break;
        }
        if (parts.empty())
          return unknown();
        const Element *result = parts.back().second;
        for (auto &[end, element] : llvm::reverse(ArrayRef(parts).drop_back()))
          result =
              make3(Kind::select,
                    compare(Kind::less, integer(indices[axis]), integer(end)),
                    element, result);
        return result;
      })
      .Case<TriluOp>([&](TriluOp op) {
        SymbolicExpr diagonal(0);
        if (op.getDiagonal()) {
          std::optional<SymbolicExpr> k = shapes.getScalar(op.getDiagonal());
          if (!k)
            return unknown();
          diagonal = *k;
        }
        if (indices.size() < 2)
          return unknown();
        const SymbolicExpr &row = indices[indices.size() - 2],
                           &column = indices.back();
        // Upper keeps column - row >= k, lower column - row <= k.
        const Element *keep =
            op.getUpper() ? compare(Kind::lessEqual, integer(row + diagonal),
                                    integer(column))
                          : compare(Kind::lessEqual, integer(column),
                                    integer(row + diagonal));
        return make3(Kind::select, keep, at(op.getInput(), indices),
                     integer(0));
      })
      .Case<MatMulOp>([&](MatMulOp op) {
        // An outer product: nothing is summed.
        ArrayRef<SymbolicExpr> a = shapes.getDims(op.getLhs());
        ArrayRef<SymbolicExpr> b = shapes.getDims(op.getRhs());
        SymbolicExpr one(1);
        if (a.size() < 2 || b.size() < 2 || a.back() != one ||
            b[b.size() - 2] != one)
          return unknown();
        auto side = [&](Value operand, bool left) {
          SmallVector<SymbolicExpr> inner = operandIndices(operand, indices);
          inner[inner.size() - (left ? 1 : 2)] = SymbolicExpr(0);
          return at(operand, inner);
        };
        return compare(Kind::mul, side(op.getLhs(), true),
                       side(op.getRhs(), false));
      })
      .Case<WhereOp>([&](WhereOp op) {
        auto operand = [&](Value v) {
          return at(v, operandIndices(v, indices));
        };
        return make3(Kind::select, operand(op.getCondition()),
                     operand(op.getX()), operand(op.getY()));
      })
      .Case<CumSumOp>([&](CumSumOp op) {
        std::optional<int64_t> axis =
            normalizeAxis(op.getAxis(), indices.size());
        if (op.getExclusive() || op.getReverse() || !axis)
          return unknown();
        const Element *input = at(op.getInput(), indices);
        if (std::optional<double> number = input->getNumber();
            number && *number == 1)
          return integer(indices[*axis] + SymbolicExpr(1));
        Element element;
        element.kind = Kind::prefixSum;
        element.lhs = input;
        element.expr = indices[*axis];
        return make(std::move(element));
      })
      .Case<NotOp>([&](NotOp op) { return negate(at(op.getInput(), indices)); })
      .Case<NegOp>([&](NegOp op) {
        const Element *input = at(op.getInput(), indices);
        if (input->is(Kind::integer))
          return integer(-input->expr);
        if (std::optional<double> number = input->getNumber()) {
          Element element;
          element.kind = Kind::real;
          element.number = -*number;
          return make(std::move(element));
        }
        return unknown();
      })
      .Default([&](Operation *op) {
        if (!isElementwise(op) || op->getNumOperands() != 2)
          return isa<LLMDialect>(op->getDialect()) && isMemoryEffectFree(op)
                     ? load()
                     : unknown();
        auto operand = [&](Value v) {
          return at(v, operandIndices(v, indices));
        };
        return binary(op, operand(op->getOperand(0)),
                      operand(op->getOperand(1)));
      });
}
