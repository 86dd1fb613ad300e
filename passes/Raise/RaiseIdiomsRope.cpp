//===- RaiseIdiomsRope.cpp - Rotary embeddings ----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Idioms.h"

using namespace mlir;
using namespace mlir::llm;

namespace {
/// One of cos and sin: rows [batch, seq, rotary / 2], each number used for both
/// elements of a pair.
struct Rows {
  Value value;
  bool headsFirst = false; ///< Broadcast over [batch, heads, seq, size].
  bool interleaved = false;
};

/// A tensor rotated by a quarter turn: (-x2, x1).
struct Quarter {
  Value input;
  bool interleaved = false;
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

/// Rows behind what spreads them over heads: casts, a dimension of 1 for the
/// heads, an expansion.
static std::optional<Rows> matchSpread(Value value, Value like,
                                       SymbolicShape &shapes) {
  SmallVector<SymbolicExpr> x(shapes.getDims(like));
  Rows rows;
  rows.value = skipFloatCasts(value);
  while (Operation *op = rows.value.getDefiningOp()) {
    if (!isa<ExpandOp>(op))
      break;
    rows.value = skipFloatCasts(op->getOperand(0));
  }
  SmallVector<SymbolicExpr> dims(shapes.getDims(rows.value));
  if (x.size() != 4 || dims.size() < 3 || dims.size() > 4)
    return std::nullopt;
  if (dims.size() == 3) // [batch or 1, seq, size] would meet heads; only
    dims.insert(dims.begin(), SymbolicExpr(1)); // [1, seq, size] fits.
  SymbolicExpr one(1);
  if (dims[1] == one && dims[2] == x[2] && dims[2] != one)
    rows.headsFirst = true;
  else if (dims[2] == one && dims[1] == x[1] && dims[1] != one)
    rows.headsFirst = false;
  else
    return std::nullopt;
  // Back to [batch, seq, size].
  while (tensorOf(rows.value).getRank() == 4) {
    Operation *op = rows.value.getDefiningOp();
    if (!op || !isa<UnsqueezeOp, ReshapeOp>(op))
      return std::nullopt;
    Value inner = op->getOperand(0);
    SmallVector<SymbolicExpr> wanted(dims);
    wanted.erase(wanted.begin() + (rows.headsFirst ? 1 : 2));
    if (shapes.getDims(inner) != ArrayRef<SymbolicExpr>(wanted) &&
        tensorOf(inner).getRank() != 4)
      return std::nullopt;
    rows.value = skipFloatCasts(inner);
  }
  return rows;
}

/// Rows that hold each number twice, as the half that is doubled.
static bool halve(Rows &rows, bool interleaved, SymbolicShape &shapes) {
  Value a, b;
  bool stacked;
  if (!matchJoin(rows.value, shapes, a, b, stacked) || a != b ||
      stacked != interleaved)
    return false;
  rows.value = skipFloatCasts(a);
  rows.interleaved = stacked;
  return true;
}

static bool areRows(Value cos, Value sin) {
  auto c = cos.getDefiningOp<EmbeddingOp>(),
       s = sin.getDefiningOp<EmbeddingOp>();
  return c && s && c.getIndices() == s.getIndices();
}

namespace {
/// A whole rotation of `input`.
struct Rotation {
  Value input;
  Rows cos, sin;
  bool interleaved = false;
};
} // namespace

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
      std::optional<Rows> c = matchSpread(cos, x, shapes),
                          s = matchSpread(sin, x, shapes);
      if (!c || !s || c->headsFirst != s->headsFirst ||
          !halve(*c, quarter->interleaved, shapes) ||
          !halve(*s, quarter->interleaved, shapes))
        continue;
      return Rotation{x, *c, *s, quarter->interleaved};
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
      std::optional<Rows> c = matchSpread(cos, x1, shapes),
                          s = matchSpread(sin, x1, shapes);
      if (!c || !s || c->headsFirst != s->headsFirst)
        continue;
      return Rotation{skipFloatCasts(low->whole), *c, *s, interleaved};
    }
  }
  return std::nullopt;
}

unsigned mlir::llm::raiseRopes(func::FuncOp func, SymbolicShape &shapes) {
  unsigned count = 0;
  for (Operation *op : snapshot(func)) {
    std::optional<Rotation> rotation;
    if (auto add = dyn_cast<AddOp>(op))
      rotation = matchSum(add, shapes);
    else if (isa<ConcatOp, ReshapeOp>(op))
      rotation = matchPairs(op->getResult(0), shapes);
    if (!rotation || !areRows(rotation->cos.value, rotation->sin.value))
      continue;
    auto cos = rotation->cos.value.getDefiningOp<EmbeddingOp>(),
         sin = rotation->sin.value.getDefiningOp<EmbeddingOp>();
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Value input = rotation->input;
    SmallVector<SymbolicExpr> dims(shapes.getDims(input));
    // Positions go token by token, so they have a batch.
    Value positions = cos.getIndices();
    if (shapes.getDims(positions).size() != 2)
      continue;
    Value result;
    if (rotation->cos.headsFirst) {
      result = RopeOp::create(builder, loc, input.getType(), input,
                              cos.getTable(), sin.getTable(), positions,
                              /*num_heads=*/0, /*rotary_dim=*/0,
                              rotation->interleaved);
    } else {
      std::optional<int64_t> heads = dims[2].getConstant();
      Value flat = heads ? createReshape(builder, loc, shapes, input,
                                         {dims[0], dims[1], dims[2] * dims[3]})
                         : Value();
      if (!flat)
        continue;
      flat = RopeOp::create(builder, loc, flat.getType(), flat, cos.getTable(),
                            sin.getTable(), positions, *heads, 0,
                            rotation->interleaved);
      result = createReshape(builder, loc, shapes, flat, dims);
    }
    if (!result)
      continue;
    if (result.getType() != op->getResult(0).getType())
      result = CastOp::create(builder, loc, op->getResult(0).getType(), result);
    op->getResult(0).replaceAllUsesWith(result);
    ++count;
  }
  return count;
}
