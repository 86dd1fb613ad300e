//===- RaiseIdiomsRope.cpp - Rotary embeddings ----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Idioms.h"
#include "passes/Raise/RopeTables.h"

using namespace mlir;
using namespace mlir::llm;

namespace {
/// A tensor rotated by a quarter turn: (-x2, x1).
struct Quarter {
  Value input;
  bool interleaved = false;
};

/// A whole rotation of `input`, [batch, heads, seq, size] or [batch, seq,
/// heads, size]; cos and sin broadcast to it, or to half of it.
struct Rotation {
  Value input, cos, sin;
  bool interleaved = false;
  bool doubled = false; ///< cos and sin hold each number for both of a pair.
};
} // namespace

/// The part [begin, end) of the last dimension that `value` is of `whole`, with
/// a step.
struct Part {
  Value whole;
  int64_t begin = 0, end = 0, step = 1;
};
static std::optional<Part> lastPart(Value value, SymbolicShape &shapes) {
  if (auto split = value.getDefiningOp<SplitOp>()) {
    Value whole = split.getInput();
    int64_t rank = tensorOf(whole).getRank();
    if (normalizeAxis(split.getAxis(), rank) != rank - 1)
      return std::nullopt;
    Part part{whole, 0, 0, 1};
    for (Value result : split.getResults()) {
      std::optional<int64_t> size = shapes.getDims(result).back().getConstant();
      if (!size)
        return std::nullopt;
      part.end = part.begin + *size;
      if (result == value)
        return part;
      part.begin = part.end;
    }
    return std::nullopt;
  }
  auto slice = value.getDefiningOp<SliceOp>();
  if (!slice || !slice.getAxes())
    return std::nullopt;
  auto axes = shapes.getConstants(slice.getAxes());
  auto starts = shapes.getConstants(slice.getStarts());
  auto ends = shapes.getConstants(slice.getEnds());
  std::optional<SmallVector<int64_t>> steps = SmallVector<int64_t>{1};
  if (slice.getSteps())
    steps = shapes.getConstants(slice.getSteps());
  Value whole = slice.getInput();
  int64_t rank = tensorOf(whole).getRank();
  if (!axes || !starts || !ends || !steps || axes->size() != 1 ||
      starts->size() != 1 || ends->size() != 1 || steps->size() != 1 ||
      normalizeAxis(axes->front(), rank) != rank - 1)
    return std::nullopt;
  SliceBounds bounds = clampSlice(starts->front(), ends->front(),
                                  shapes.getDim(whole, rank - 1));
  std::optional<int64_t> begin = bounds.start.getConstant(),
                         end = bounds.end.getConstant();
  if (!begin || !end || steps->front() <= 0)
    return std::nullopt;
  return Part{whole, *begin, *end, steps->front()};
}

/// Halves (or even and odd elements) of the last dimension, which has `size`.
static bool arePair(const Part &first, const Part &second, int64_t size,
                    bool &interleaved) {
  if (first.whole != second.whole || size % 2 != 0)
    return false;
  int64_t half = size / 2;
  if (first.step == 1 && second.step == 1 && first.begin == 0 &&
      first.end == half && second.begin == half && second.end == size) {
    interleaved = false;
    return true;
  }
  if (first.step == 2 && second.step == 2 && first.begin == 0 &&
      second.begin == 1 && first.end >= size - 1 && second.end == size) {
    interleaved = true;
    return true;
  }
  return false;
}

/// a and b joined along the last dimension; or side by side, element for
/// element: stacked along a new last dimension and flattened.
static bool matchJoin(Value value, SymbolicShape &shapes, Value &a, Value &b,
                      bool &interleaved) {
  auto concat = value.getDefiningOp<ConcatOp>();
  interleaved = false;
  if (!concat) {
    auto reshape = value.getDefiningOp<ReshapeOp>();
    if (!reshape)
      return false;
    concat = reshape.getInput().getDefiningOp<ConcatOp>();
    if (!concat ||
        tensorOf(concat.getResult()).getRank() != tensorOf(value).getRank() + 1)
      return false;
    interleaved = true;
  }
  int64_t rank = tensorOf(concat.getResult()).getRank();
  if (concat.getInputs().size() != 2 ||
      normalizeAxis(concat.getAxis(), rank) != rank - 1)
    return false;
  a = concat.getInputs()[0];
  b = concat.getInputs()[1];
  if (!interleaved)
    return true;
  for (Value *part : {&a, &b}) {
    Operation *op = part->getDefiningOp();
    if (!op || !isa<UnsqueezeOp, ReshapeOp>(op) ||
        shapes.getDims(*part).back() != SymbolicExpr(1) ||
        shapes.getDims(*part).drop_back() != shapes.getDims(op->getOperand(0)))
      return false;
    *part = op->getOperand(0);
  }
  return true;
}

/// (-x2, x1) of x = (x1, x2).
static std::optional<Quarter> matchQuarter(Value value, SymbolicShape &shapes) {
  Value a, b;
  bool stacked, interleaved;
  if (!matchJoin(skipFloatCasts(value), shapes, a, b, stacked))
    return std::nullopt;
  auto neg = skipFloatCasts(a).getDefiningOp<NegOp>();
  if (!neg)
    return std::nullopt;
  std::optional<Part> second = lastPart(skipFloatCasts(neg.getInput()), shapes);
  std::optional<Part> first = lastPart(skipFloatCasts(b), shapes);
  std::optional<int64_t> size = shapes.getDims(value).back().getConstant();
  if (!first || !second || !size ||
      !arePair(*first, *second, *size, interleaved) || stacked != interleaved ||
      shapes.getDims(first->whole).back() != SymbolicExpr(*size))
    return std::nullopt;
  return Quarter{first->whole, interleaved};
}

/// x * cos + quarter(x) * sin.
static std::optional<Rotation> matchSum(AddOp add, SymbolicShape &shapes) {
  for (auto [left, right] : {std::pair(add.getLhs(), add.getRhs()),
                             std::pair(add.getRhs(), add.getLhs())}) {
    auto straight = skipFloatCasts(left).getDefiningOp<MulOp>(),
         turned = skipFloatCasts(right).getDefiningOp<MulOp>();
    if (!straight || !turned)
      continue;
    for (auto [rotated, sin] : {std::pair(turned.getLhs(), turned.getRhs()),
                                std::pair(turned.getRhs(), turned.getLhs())}) {
      std::optional<Quarter> quarter = matchQuarter(rotated, shapes);
      if (!quarter)
        continue;
      Value x = skipFloatCasts(quarter->input);
      Value cos = skipFloatCasts(straight.getLhs()) == x   ? straight.getRhs()
                  : skipFloatCasts(straight.getRhs()) == x ? straight.getLhs()
                                                           : Value();
      if (!cos)
        continue;
      return Rotation{x, cos, sin, quarter->interleaved, /*doubled=*/true};
    }
  }
  return std::nullopt;
}

/// a * b as {a, b}, for either order.
static bool isProduct(Value value, Value x, Value &other) {
  auto mul = skipFloatCasts(value).getDefiningOp<MulOp>();
  if (!mul)
    return false;
  if (skipFloatCasts(mul.getLhs()) == x)
    other = mul.getRhs();
  else if (skipFloatCasts(mul.getRhs()) == x)
    other = mul.getLhs();
  else
    return false;
  return true;
}

/// (x1 * cos - x2 * sin, x2 * cos + x1 * sin), with half tables.
static std::optional<Rotation> matchPairs(Value value, SymbolicShape &shapes) {
  Value a, b;
  bool stacked, interleaved;
  if (!matchJoin(value, shapes, a, b, stacked))
    return std::nullopt;
  auto sub = skipFloatCasts(a).getDefiningOp<SubOp>();
  auto add = skipFloatCasts(b).getDefiningOp<AddOp>();
  if (!sub || !add)
    return std::nullopt;
  auto first = skipFloatCasts(sub.getLhs()).getDefiningOp<MulOp>();
  if (!first)
    return std::nullopt;
  for (Value x1 :
       {skipFloatCasts(first.getLhs()), skipFloatCasts(first.getRhs())}) {
    std::optional<Part> low = lastPart(x1, shapes);
    Value cos, sin, cos2, sin2;
    if (!low || !isProduct(sub.getLhs(), x1, cos))
      continue;
    auto second = skipFloatCasts(sub.getRhs()).getDefiningOp<MulOp>();
    if (!second)
      continue;
    for (Value x2 :
         {skipFloatCasts(second.getLhs()), skipFloatCasts(second.getRhs())}) {
      std::optional<Part> high = lastPart(x2, shapes);
      std::optional<int64_t> size =
          shapes.getDims(low->whole).back().getConstant();
      if (!high || !size || !isProduct(sub.getRhs(), x2, sin) ||
          !arePair(*low, *high, *size, interleaved) || interleaved != stacked)
        continue;
      bool matched = (isProduct(add.getLhs(), x2, cos2) &&
                      isProduct(add.getRhs(), x1, sin2)) ||
                     (isProduct(add.getRhs(), x2, cos2) &&
                      isProduct(add.getLhs(), x1, sin2));
      if (!matched || skipFloatCasts(cos) != skipFloatCasts(cos2) ||
          skipFloatCasts(sin) != skipFloatCasts(sin2))
        continue;
      return Rotation{skipFloatCasts(low->whole), cos, sin, interleaved,
                      /*doubled=*/false};
    }
  }
  return std::nullopt;
}

/// The rope that made `value`, perhaps with heads and seq swapped around it.
static RopeOp behindSwap(Value value) {
  value = skipFloatCasts(value);
  if (auto transpose = value.getDefiningOp<TransposeOp>();
      transpose && transpose.getPerm() == ArrayRef<int64_t>{0, 2, 1, 3})
    value = transpose.getInput();
  return value.getDefiningOp<RopeOp>();
}

/// Heads and seq swapped.
static Value swapHeads(OpBuilder &builder, Location loc, Value value) {
  RankedTensorType type = tensorOf(value);
  ArrayRef<int64_t> s = type.getShape();
  return TransposeOp::create(
      builder, loc,
      RankedTensorType::get({s[0], s[2], s[1], s[3]}, type.getElementType()),
      value, builder.getDenseI64ArrayAttr({0, 2, 1, 3}));
}

/// A rotation of the first elements of each head, joined with the others.
static Value matchPartial(ConcatOp op, SymbolicShape &shapes) {
  int64_t rank = tensorOf(op.getResult()).getRank();
  if (rank != 4 || op.getInputs().size() != 2 ||
      normalizeAxis(op.getAxis(), rank) != rank - 1)
    return {};
  RopeOp rope = behindSwap(op.getInputs()[0]);
  std::optional<Part> rest =
      lastPart(skipFloatCasts(op.getInputs()[1]), shapes);
  if (!rope || rope.getRotaryDim() || !rest ||
      tensorOf(rope.getResult()).getRank() != 4)
    return {};
  bool swapped = skipFloatCasts(op.getInputs()[0]) != rope.getResult();
  Value rotated = rope.getInput();
  if (swapped) {
    auto transpose = rotated.getDefiningOp<TransposeOp>();
    if (!transpose)
      return {};
    rotated = transpose.getInput();
  }
  std::optional<Part> first = lastPart(skipFloatCasts(rotated), shapes);
  if (!first || first->whole != rest->whole || first->step != 1 ||
      rest->step != 1 || first->begin != 0 || first->end != rest->begin ||
      SymbolicExpr(rest->end) != shapes.getDim(first->whole, rank - 1) ||
      shapes.getDims(first->whole) != shapes.getDims(op.getResult()))
    return {};
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value input = swapped ? swapHeads(builder, loc, first->whole) : first->whole;
  Value result =
      RopeOp::create(builder, loc, input.getType(), input, rope.getCosTable(),
                     rope.getSinTable(), rope.getPositions(), /*num_heads=*/0,
                     first->end, rope.getInterleaved());
  return swapped ? swapHeads(builder, loc, result) : result;
}

unsigned mlir::llm::raiseRopes(func::FuncOp func, SymbolicShape &shapes,
                               int64_t maxPositions) {
  unsigned count = 0;
  RopeTables tables(func, shapes, maxPositions);
  for (Operation *op : snapshot(func)) {
    std::optional<Rotation> rotation;
    if (auto add = dyn_cast<AddOp>(op))
      rotation = matchSum(add, shapes);
    else if (isa<ConcatOp, ReshapeOp>(op))
      rotation = matchPairs(op->getResult(0), shapes);
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Value result;
    if (rotation) {
      std::optional<RopeTables::Table> table =
          tables.find(op, rotation->input, rotation->cos, rotation->sin,
                      rotation->doubled, rotation->interleaved);
      if (!table)
        continue;
      Value input = rotation->input;
      if (!table->headsFirst)
        input = swapHeads(builder, loc, input);
      result = RopeOp::create(builder, loc, input.getType(), input, table->cos,
                              table->sin, table->positions, /*num_heads=*/0,
                              /*rotary_dim=*/0, rotation->interleaved);
      if (!table->headsFirst)
        result = swapHeads(builder, loc, result);
      ++count;
    } else if (auto concat = dyn_cast<ConcatOp>(op)) {
      result = matchPartial(concat, shapes);
    }
    if (!result)
      continue;
    if (result.getType() != op->getResult(0).getType())
      result = CastOp::create(builder, loc, op->getResult(0).getType(), result);
    op->getResult(0).replaceAllUsesWith(result);
  }
  return count;
}
