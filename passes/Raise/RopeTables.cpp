//===- RopeTables.cpp - Where cos and sin of a rotation come from ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/RopeTables.h"

#include "passes/Raise/Idioms.h"

#include <cmath>

using namespace mlir;
using namespace mlir::llm;

/// A head has some hundred elements; a table with more columns is none.
static constexpr int64_t kMaxColumns = 1 << 14;

std::optional<RopeTables::Source>
RopeTables::sourceOf(ElementAnalysis &elements, Value value,
                     ArrayRef<SymbolicExpr> indices) {
  Source source;
  const Element *e = elements.at(value, indices);
  while (e->is(Element::Kind::mul)) {
    std::optional<double> x = e->lhs->getNumber(), y = e->rhs->getNumber();
    if (!x && !y)
      return std::nullopt;
    source.scale *= x ? *x : *y;
    e = x ? e->rhs : e->lhs;
  }
  if (!e->is(Element::Kind::load) || !e->tensor.getDefiningOp())
    return std::nullopt;
  Operation *op = e->tensor.getDefiningOp();
  if (isa<EmbeddingOp>(op)) {
    source.rows = e->tensor;
    source.element = e;
    return source;
  }
  if (!isa<CosOp, SinOp>(op))
    return std::nullopt;
  source.kind = isa<CosOp>(op) ? Source::Kind::cosine : Source::Kind::sine;
  source.angle = op->getOperand(0);
  source.element = elements.at(source.angle, e->indices);
  return source;
}

/// The columns of a table at full width that stand for different numbers, where
/// it holds each of them twice.
Value RopeTables::halfTable(Value table, bool interleaved) {
  Value &half = halves[{table, interleaved}];
  if (half)
    return half;
  RankedTensorType type = tensorOf(table);
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  std::optional<SmallVector<double>> numbers =
      readFloats(table, int64_t(1) << 26);
  if (!numbers || columns % 2 != 0)
    return {};
  auto narrow =
      RankedTensorType::get({rows, columns / 2}, type.getElementType());
  SmallVector<APFloat> out;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < columns / 2; ++k) {
      const double *row = numbers->data() + r * columns;
      double first = row[interleaved ? 2 * k : k];
      double second = row[interleaved ? 2 * k + 1 : k + columns / 2];
      if (first != second)
        return {};
      APFloat number(first);
      bool loses;
      number.convert(cast<FloatType>(type.getElementType()).getFloatSemantics(),
                     APFloat::rmNearestTiesToEven, &loses);
      out.push_back(number);
    }
  half = createWeight(func, table.getLoc(), "rope.half",
                      DenseElementsAttr::get(narrow, out));
  return half;
}

Value RopeTables::computedTable(Source::Kind kind, ArrayRef<double> frequencies,
                                double scale) {
  Value &table = computed[{static_cast<int>(kind), scale,
                           std::vector<double>(frequencies)}];
  if (table)
    return table;
  // In f32, as models compute angles whatever their type.
  std::vector<float> numbers;
  numbers.reserve(maxPositions * frequencies.size());
  for (int64_t p = 0; p < maxPositions; ++p)
    for (double frequency : frequencies) {
      float angle = static_cast<float>(p) * static_cast<float>(frequency);
      double number = kind == Source::Kind::cosine
                          ? std::cos(static_cast<double>(angle))
                          : std::sin(static_cast<double>(angle));
      numbers.push_back(static_cast<float>(number) * static_cast<float>(scale));
    }
  auto type = RankedTensorType::get(
      {maxPositions, static_cast<int64_t>(frequencies.size())},
      Float32Type::get(func.getContext()));
  table = createWeight(func, func.getLoc(),
                       kind == Source::Kind::cosine ? "rope.cos" : "rope.sin",
                       DenseElementsAttr::get(type, ArrayRef<float>(numbers)));
  return table;
}

/// The integer tensor, [batch, seq] or with 1 for the batch, that `angle`
/// multiplies: what it casts to floats, of which `position` is an element.
Value RopeTables::findPositions(Operation *user, ElementAnalysis &elements,
                                Value angle, const Element *position,
                                const SymbolicExpr &b, const SymbolicExpr &s,
                                ArrayRef<SymbolicExpr> rows) {
  SmallVector<Value> stack{angle};
  llvm::DenseSet<Value> seen;
  while (!stack.empty() && seen.size() < 64) {
    Value value = stack.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second)
      continue;
    auto cast = dyn_cast<CastOp>(op);
    if (!cast || isa<FloatType>(tensorOf(cast.getInput()).getElementType())) {
      llvm::append_range(stack, op->getOperands());
      continue;
    }
    Value integers = cast.getInput();
    // Down to rank 2 or 1 through what only adds dimensions of size 1.
    while (tensorOf(integers).getRank() > 2) {
      Operation *inner = integers.getDefiningOp();
      if (!inner || !isa<UnsqueezeOp, ReshapeOp, ExpandOp>(inner))
        break;
      integers = inner->getOperand(0);
    }
    SmallVector<SymbolicExpr> dims(shapes.getDims(integers));
    SmallVector<SymbolicExpr> indices;
    if (dims.size() == 2 && dims[1] == rows[1] &&
        (dims[0] == rows[0] || dims[0] == SymbolicExpr(1)))
      indices = {dims[0] == SymbolicExpr(1) ? SymbolicExpr(0) : b, s};
    else if (dims.size() == 1 && dims[0] == rows[1])
      indices = {s};
    else
      continue;
    const Element *element = elements.at(integers, indices);
    if (*element == *position)
      return integers;
  }
  return {};
}

Value RopeTables::spread(Operation *user, Value positions, Value input,
                         bool headsFirst) {
  OpBuilder builder(user);
  Location loc = user->getLoc();
  SymbolicExpr batch = shapes.getDim(input, 0);
  if (tensorOf(positions).getRank() == 1) {
    auto type = RankedTensorType::get({1, tensorOf(positions).getDimSize(0)},
                                      tensorOf(positions).getElementType());
    positions = UnsqueezeOp::create(builder, loc, type, positions,
                                    builder.getDenseI64ArrayAttr({0}));
  }
  if (shapes.getDim(positions, 0) == batch)
    return positions;
  // The same positions for each sequence of the batch.
  auto size = RankedTensorType::get({1}, builder.getI64Type());
  Value first =
      ShapeOp::create(builder, loc, size, input, builder.getI64IntegerAttr(0),
                      builder.getI64IntegerAttr(1));
  Value one = createIntVector(builder, loc, {1});
  Value target = ConcatOp::create(
      builder, loc, RankedTensorType::get({2}, builder.getI64Type()),
      ValueRange{first, one}, /*axis=*/0);
  RankedTensorType type = typeOf({batch, shapes.getDim(positions, 1)},
                                 tensorOf(positions).getElementType());
  return ExpandOp::create(builder, loc, type, positions, target);
}

std::optional<RopeTables::Table> RopeTables::find(Operation *user, Value input,
                                                  Value cos, Value sin,
                                                  bool doubled,
                                                  bool interleaved) {
  SmallVector<SymbolicExpr> x(shapes.getDims(input));
  std::optional<int64_t> size =
      x.size() == 4 ? x[3].getConstant() : std::nullopt;
  if (!size || *size % 2 != 0 || *size > kMaxColumns)
    return std::nullopt;
  int64_t half = *size / 2;

  // Which dimension of the input is broadcast: that of the heads.
  auto layout = [&](Value value) -> std::optional<bool> {
    SmallVector<SymbolicExpr> dims(shapes.getDims(value));
    if (dims.size() < 2 || dims.size() > 4 ||
        dims.back() != SymbolicExpr(doubled ? *size : half))
      return std::nullopt;
    while (dims.size() < 4)
      dims.insert(dims.begin(), SymbolicExpr(1));
    SymbolicExpr one(1);
    if (dims[1] == one && dims[2] == x[2] && dims[2] != one)
      return true;
    if (dims[2] == one && dims[1] == x[1] && dims[1] != one)
      return false;
    return std::nullopt;
  };
  std::optional<bool> headsFirst = layout(cos);
  if (!headsFirst || layout(sin) != headsFirst)
    return std::nullopt;

  Table table;
  table.headsFirst = *headsFirst;
  SymbolicExpr batch = x[0], seq = x[*headsFirst ? 2 : 1];
  ElementAnalysis elements(shapes);
  SymbolicExpr b = elements.index(batch), s = elements.index(seq),
               k = elements.index(half), zero(0);
  Source::Kind wanted = Source::Kind::cosine;
  for (auto [value, out] :
       {std::pair(cos, &table.cos), std::pair(sin, &table.sin)}) {
    SmallVector<SymbolicExpr> dims(shapes.getDims(value));
    auto at = [&](const SymbolicExpr &column) {
      SmallVector<SymbolicExpr> all = {b, *headsFirst ? zero : s,
                                       *headsFirst ? s : zero, column};
      SmallVector<SymbolicExpr> indices(ArrayRef(all).take_back(dims.size()));
      for (auto [index, dim] : llvm::zip(indices, dims))
        if (dim == SymbolicExpr(1))
          index = zero;
      return sourceOf(elements, value, indices);
    };
    SymbolicExpr two(2), halfExpr(half);
    std::optional<Source> first = at(doubled && interleaved ? k * two : k);
    if (!first)
      return std::nullopt;
    bool wide = false;
    if (doubled) {
      std::optional<Source> second =
          at(interleaved ? k * two + SymbolicExpr(1) : k + halfExpr);
      if (!second || second->kind != first->kind ||
          second->scale != first->scale)
        return std::nullopt;
      wide = !(*second->element == *first->element);
    }
    Value positions;
    if (first->kind == Source::Kind::table) {
      auto rows = first->rows.getDefiningOp<EmbeddingOp>();
      ArrayRef<SymbolicExpr> indices = first->element->indices;
      SymbolicExpr column = wide && interleaved ? k * two : k;
      size_t rank = indices.size();
      if (first->scale != 1 || rank < 2 || rank > 3 ||
          indices[rank - 1] != column || indices[rank - 2] != s ||
          (rank == 3 && indices[0] != b && indices[0] != zero) ||
          tensorOf(rows.getTable()).getDimSize(1) != (wide ? *size : half))
        return std::nullopt;
      *out = wide ? halfTable(rows.getTable(), interleaved)
                  : Value(rows.getTable());
      positions = rows.getIndices();
    } else {
      if (first->kind != wanted || wide ||
          !first->element->is(Element::Kind::mul))
        return std::nullopt;
      // position * frequency, in either order.
      const Element *position = first->element->lhs,
                    *frequency = first->element->rhs;
      auto isFrequency = [&](const Element *e) {
        return e->is(Element::Kind::load) && isModelConstant(e->tensor) &&
               ::llvm::count_if(e->indices, [&](const SymbolicExpr &i) {
                 return i == k;
               }) == 1;
      };
      if (!isFrequency(frequency))
        std::swap(position, frequency);
      if (!isFrequency(frequency))
        return std::nullopt;
      for (const SymbolicExpr &index : frequency->indices)
        if (index != k && index != zero)
          return std::nullopt;
      std::optional<SmallVector<double>> numbers =
          readFloats(frequency->tensor, kMaxColumns);
      if (!numbers || static_cast<int64_t>(numbers->size()) != half)
        return std::nullopt;
      positions = findPositions(user, elements, first->angle, position, b, s,
                                {batch, seq});
      if (!positions)
        return std::nullopt;
      *out = computedTable(first->kind, *numbers, first->scale);
    }
    if (!*out || (table.positions && table.positions != positions))
      return std::nullopt;
    table.positions = positions;
    wanted = Source::Kind::sine;
  }
  SmallVector<SymbolicExpr> dims(shapes.getDims(table.positions));
  if (dims.size() > 2 || dims.back() != seq)
    return std::nullopt;
  table.positions = spread(user, table.positions, input, *headsFirst);
  return table;
}
