//===- RaiseIdiomsAttention.cpp - softmax(q k + mask) v -------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Raise/Idioms.h"

#include <cmath>

using namespace mlir;
using namespace mlir::llm;

namespace {
struct Scores {
  Value query, key;         ///< [batch, heads, seq or slots, size]
  SmallVector<Value> masks; ///< Added, or i1.
  double scale = 1, softcap = 0;
};
struct Cached {
  Value past, fresh; ///< past null: no cache.
  ConcatOp concat;
  int64_t heads = 0;
};
} // namespace

/// Takes numeric factors off `value` into `scale`.
static Value takeScale(Value value, double &scale) {
  for (;;) {
    value = skipFloatCasts(value);
    if (auto mul = value.getDefiningOp<MulOp>()) {
      if (std::optional<double> number = getSplatNumber(mul.getRhs())) {
        scale *= *number;
        value = mul.getLhs();
        continue;
      }
      if (std::optional<double> number = getSplatNumber(mul.getLhs())) {
        scale *= *number;
        value = mul.getRhs();
        continue;
      }
    } else if (auto div = value.getDefiningOp<DivOp>()) {
      std::optional<double> number = getSplatNumber(div.getRhs());
      if (number && *number != 0) {
        scale /= *number;
        value = div.getLhs();
        continue;
      }
    }
    return value;
  }
}

/// Whether a product of two tensors is what scales, caps and masks at the top
/// of `value` work on. Masks are added to it one after the other, on whichever
/// side; more than a few are none.
static bool leadsToProduct(Value value, unsigned masks = 3) {
  double scale = 1;
  value = takeScale(value, scale);
  if (auto tanh = value.getDefiningOp<TanhOp>())
    value = takeScale(tanh.getInput(), scale);
  if (value.getDefiningOp<MatMulOp>())
    return true;
  auto add = value.getDefiningOp<AddOp>();
  return add && masks > 0 &&
         (leadsToProduct(add.getLhs(), masks - 1) ||
          leadsToProduct(add.getRhs(), masks - 1));
}

/// x transposed in its last two axes.
static Value untranspose(OpBuilder &builder, Value value) {
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (!transpose)
    return {};
  ArrayRef<int64_t> perm = transpose.getPerm();
  if (perm == ArrayRef<int64_t>{0, 1, 3, 2})
    return transpose.getInput();
  // [batch, slots, heads, size] straight to [batch, heads, size, slots].
  if (perm != ArrayRef<int64_t>{0, 2, 3, 1})
    return {};
  RankedTensorType type = tensorOf(transpose.getInput());
  ArrayRef<int64_t> s = type.getShape();
  return TransposeOp::create(
      builder, value.getLoc(),
      RankedTensorType::get({s[0], s[2], s[1], s[3]}, type.getElementType()),
      transpose.getInput(), builder.getDenseI64ArrayAttr({0, 2, 1, 3}));
}

static bool matchScores(OpBuilder &builder, Value value, Scores &out) {
  // From the softmax inwards: masks, then a cap, then the product.
  for (unsigned i = 0; i < 16; ++i) {
    value = skipFloatCasts(value);
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (auto add = dyn_cast<AddOp>(op)) {
      bool left = leadsToProduct(add.getLhs());
      if (out.softcap || (!left && !leadsToProduct(add.getRhs())))
        return false;
      out.masks.push_back(skipFloatCasts(left ? add.getRhs() : add.getLhs()));
      // Scores are scaled before they are masked.
      if (out.scale != 1)
        return false;
      value = left ? add.getLhs() : add.getRhs();
      continue;
    }
    if (auto where = dyn_cast<WhereOp>(op)) {
      std::optional<double> x = getSplatNumber(where.getX()),
                            y = getSplatNumber(where.getY());
      if (out.scale != 1 || out.softcap || (x && *x > -1e4) || (y && *y > -1e4))
        return false;
      if (y) {
        out.masks.push_back(where.getCondition());
        value = where.getX();
      } else if (x) {
        out.masks.push_back(NotOp::create(builder, op->getLoc(),
                                          where.getCondition().getType(),
                                          where.getCondition()));
        value = where.getY();
      } else {
        return false;
      }
      continue;
    }
    if (auto tanh = dyn_cast<TanhOp>(op)) {
      // cap * tanh(s / cap).
      if (out.softcap || out.scale <= 0)
        return false;
      out.softcap = out.scale;
      double inner = 1;
      value = takeScale(tanh.getInput(), inner);
      out.scale = inner * out.softcap;
      continue;
    }
    if (auto matmul = dyn_cast<MatMulOp>(op)) {
      out.query = takeScale(matmul.getLhs(), out.scale);
      Value key = takeScale(matmul.getRhs(), out.scale);
      key = untranspose(builder, key);
      if (!key)
        return false;
      out.key = takeScale(key, out.scale);
      return tensorOf(out.query).getRank() == 4 &&
             tensorOf(out.key).getRank() == 4;
    }
    double scale = 1;
    Value inner = takeScale(value, scale);
    if (inner == value)
      return false;
    out.scale *= scale;
    value = inner;
  }
  return false;
}

/// [batch, kv heads, slots, size] behind the repetition for query heads.
static Value unrepeat(Value value, SymbolicShape &shapes, int64_t heads) {
  value = skipFloatCasts(value);
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return value;
  Value wide = skipFloatCasts(reshape.getInput());
  SmallVector<SymbolicExpr> dims(shapes.getDims(wide));
  auto expand = wide.getDefiningOp<ExpandOp>();
  auto tile = wide.getDefiningOp<TileOp>();
  if ((!expand && !tile) || dims.size() != 5)
    return value;
  Value ones = skipFloatCasts(wide.getDefiningOp()->getOperand(0));
  SmallVector<SymbolicExpr> narrow(shapes.getDims(ones));
  Operation *inserted = ones.getDefiningOp();
  // [b, k, 1, t, d] to [b, k, r, t, d] to [b, k * r, t, d].
  if (!inserted || !isa<UnsqueezeOp, ReshapeOp>(inserted) ||
      narrow.size() != 5 || narrow[2] != SymbolicExpr(1))
    return value;
  for (size_t i : {0, 1, 3, 4})
    if (narrow[i] != dims[i])
      return value;
  SmallVector<SymbolicExpr> out(shapes.getDims(value));
  if (out.size() != 4 || out[0] != dims[0] || out[1] != dims[1] * dims[2] ||
      out[2] != dims[3] || out[3] != dims[4])
    return value;
  Value inner = inserted->getOperand(0);
  SmallVector<SymbolicExpr> source(shapes.getDims(inner));
  narrow.erase(narrow.begin() + 2);
  return source == narrow ? inner : value;
}

static std::optional<Cached> matchCache(Value value, SymbolicShape &shapes,
                                        int64_t heads) {
  Cached cached;
  value = skipFloatCasts(unrepeat(value, shapes, heads));
  if (tensorOf(value).getRank() != 4)
    return std::nullopt;
  std::optional<int64_t> count = shapes.getDim(value, 1).getConstant();
  if (!count || *count <= 0 || heads % *count != 0)
    return std::nullopt;
  cached.heads = *count;
  cached.fresh = value;
  auto concat = value.getDefiningOp<ConcatOp>();
  if (!concat || concat.getInputs().size() != 2 ||
      normalizeAxis(concat.getAxis(), 4) != 2)
    return cached;
  cached.concat = concat;
  cached.past = concat.getInputs()[0];
  cached.fresh = concat.getInputs()[1];
  return cached;
}

/// One mask that hides what any of `masks` hides; null where kinds are mixed.
static Value joinMasks(OpBuilder &builder, Location loc, SymbolicShape &shapes,
                       ArrayRef<Value> masks) {
  Value joined;
  for (Value mask : masks) {
    if (!joined) {
      joined = mask;
      continue;
    }
    if (tensorOf(joined).getElementType() != tensorOf(mask).getElementType())
      return {};
    FailureOr<SmallVector<int64_t>> shape =
        broadcastShapes(tensorOf(joined).getShape(), tensorOf(mask).getShape());
    if (failed(shape))
      return {};
    auto type = RankedTensorType::get(*shape, tensorOf(mask).getElementType());
    joined = type.getElementType().isInteger(1)
                 ? Value(AndOp::create(builder, loc, type, joined, mask))
                 : Value(AddOp::create(builder, loc, type, joined, mask));
  }
  return joined;
}

static bool raiseAttention(MatMulOp op, SymbolicShape &shapes) {
  if (tensorOf(op.getResult()).getRank() != 4)
    return false;
  Value weights = skipFloatCasts(op.getLhs());
  auto softmax = weights.getDefiningOp<SoftmaxOp>();
  if (!softmax || softmax.getLog() ||
      normalizeAxis(softmax.getAxis(), tensorOf(weights).getRank()) != 3)
    return false;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Scores scores;
  if (!matchScores(builder, softmax.getInput(), scores))
    return false;
  std::optional<int64_t> heads = shapes.getDim(scores.query, 1).getConstant();
  if (!heads)
    return false;
  std::optional<Cached> key = matchCache(scores.key, shapes, *heads),
                        value = matchCache(op.getRhs(), shapes, *heads);
  if (!key || !value || key->heads != value->heads ||
      !key->past != !value->past)
    return false;
  Value mask;
  if (!scores.masks.empty()) {
    mask = joinMasks(builder, loc, shapes, scores.masks);
    if (!mask)
      return false;
  }
  SmallVector<Type> present;
  if (key->past)
    present = {key->concat.getType(), value->concat.getType()};
  auto attention = AttentionOp::create(
      builder, loc, op.getType(), present, scores.query, key->fresh,
      value->fresh, key->past, value->past, mask, /*nonpad_kv_seqlen=*/Value(),
      *heads, key->heads, APFloat(scores.scale), APFloat(scores.softcap),
      /*window=*/0, /*causal=*/false);
  op.getResult().replaceAllUsesWith(attention.getOutput());
  auto after = [&](OpOperand &use) {
    Operation *user =
        attention->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return user && attention->isBeforeInBlock(user);
  };
  for (auto [cached, result] :
       llvm::zip(SmallVector<Cached>{*key, *value}, attention.getPresent()))
    Value(cached.concat.getResult()).replaceUsesWithIf(result, after);
  return true;
}

unsigned mlir::llm::raiseAttentions(func::FuncOp func, SymbolicShape &shapes) {
  unsigned count = 0;
  for (Operation *op : snapshot(func))
    if (auto matmul = dyn_cast<MatMulOp>(op))
      count += raiseAttention(matmul, shapes);
  return count;
}
