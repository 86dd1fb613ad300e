//===- RaiseIdiomsLayout.cpp - Heads stay inside the last dimension -------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/MaskAnalysis.h"
#include "passes/Raise/Idioms.h"

using namespace mlir;
using namespace mlir::llm;

static const int64_t kSwapHeads[] = {0, 2, 1, 3};

/// [batch, heads, seq, size] as [batch, seq, heads * size]. Null where the
/// sizes cannot be said.
static Value flatten(OpBuilder &builder, Location loc, SymbolicShape &shapes,
                     Value value) {
  auto transpose = value.getDefiningOp<TransposeOp>();
  Value rows = transpose && transpose.getPerm() == ArrayRef(kSwapHeads)
                   ? transpose.getInput()
                   : Value();
  if (!rows) {
    SmallVector<SymbolicExpr> dims(shapes.getDims(value));
    std::swap(dims[1], dims[2]);
    rows = TransposeOp::create(builder, loc,
                               typeOf(dims, tensorOf(value).getElementType()),
                               value, builder.getDenseI64ArrayAttr(kSwapHeads));
  }
  SmallVector<SymbolicExpr> dims(shapes.getDims(rows));
  SymbolicExpr width = dims[2] * dims[3];
  if (!width.isKnown())
    return {};
  return createReshape(builder, loc, shapes, rows, {dims[0], dims[1], width});
}

/// [batch, seq, heads * size] as [batch, heads, seq, size], of type `type`.
static Value unflatten(OpBuilder &builder, Location loc, SymbolicShape &shapes,
                       Value value, Value like) {
  SmallVector<SymbolicExpr> dims(shapes.getDims(like));
  std::swap(dims[1], dims[2]);
  Value rows = createReshape(builder, loc, shapes, value, dims);
  if (!rows)
    return {};
  return TransposeOp::create(builder, loc, like.getType(), rows,
                             builder.getDenseI64ArrayAttr(kSwapHeads));
}

/// Tables without positions that were themselves picked by positions.
static void findPositions(Value &cos, Value &sin, Value &positions) {
  auto cosRows = cos.getDefiningOp<EmbeddingOp>(),
       sinRows = sin.getDefiningOp<EmbeddingOp>();
  if (positions || !cosRows || !sinRows ||
      cosRows.getIndices() != sinRows.getIndices())
    return;
  positions = cosRows.getIndices();
  cos = cosRows.getTable();
  sin = sinRows.getTable();
}

static bool flattenRope(RopeOp op, SymbolicShape &shapes) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  int64_t rank = tensorOf(op.getInput()).getRank();
  Value input = op.getInput(), cos = op.getCosTable(), sin = op.getSinTable(),
        positions = op.getPositions();
  SymbolicExpr heads(op.getNumHeads());
  SymbolicExpr size = shapes.getDims(input).back();
  if (rank == 4) {
    heads = shapes.getDim(input, 1);
    input = flatten(builder, loc, shapes, input);
  } else {
    size = size.dividedBy(heads);
  }
  std::optional<int64_t> count = heads.getConstant();
  if (!input || !count)
    return false;
  findPositions(cos, sin, positions);
  // "All of it" is spelled 0.
  int64_t rotary = op.getRotaryDim();
  if (!rotary)
    if (std::optional<int64_t> half = shapes.getDims(cos).back().getConstant())
      rotary = 2 * *half;
  if (size == SymbolicExpr(rotary))
    rotary = 0;
  if (rank != 4 && positions == op.getPositions() &&
      rotary == static_cast<int64_t>(op.getRotaryDim()))
    return false;
  Value rope = RopeOp::create(builder, loc, input.getType(), input, cos, sin,
                              positions, *count, rotary, op.getInterleaved());
  if (rank == 4)
    rope = unflatten(builder, loc, shapes, rope, op.getResult());
  if (!rope)
    return false;
  op.getResult().replaceAllUsesWith(rope);
  return true;
}

static bool flattenAttention(AttentionOp op, SymbolicShape &shapes) {
  if (tensorOf(op.getQuery()).getRank() != 4)
    return false;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value query = flatten(builder, loc, shapes, op.getQuery());
  Value key = flatten(builder, loc, shapes, op.getKey());
  Value value = flatten(builder, loc, shapes, op.getValue());
  if (!query || !key || !value)
    return false;
  SmallVector<SymbolicExpr> dims(shapes.getDims(op.getOutput()));
  RankedTensorType type = typeOf({dims[0], dims[2], dims[1] * dims[3]},
                                 tensorOf(op.getOutput()).getElementType());
  auto flat = AttentionOp::create(
      builder, loc, type, op.getPresent().getTypes(), query, key, value,
      op.getPastKey(), op.getPastValue(), op.getMask(), op.getNonpadKvSeqlen(),
      op.getNumHeads(), op.getKvHeads(), op.getScale(), op.getSoftcap(),
      op.getWindow(), op.getCausal());
  Value output =
      unflatten(builder, loc, shapes, flat.getOutput(), op.getOutput());
  if (!output)
    return false;
  op.getOutput().replaceAllUsesWith(output);
  for (auto [from, to] : llvm::zip(op.getPresent(), flat.getPresent()))
    from.replaceAllUsesWith(to);
  return true;
}

/// Transposes that undo each other, reshapes of reshapes.
static void cancel(Operation *op, SymbolicShape &shapes) {
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    auto inner = transpose.getInput().getDefiningOp<TransposeOp>();
    if (!inner)
      return;
    for (auto [i, axis] : llvm::enumerate(transpose.getPerm()))
      if (inner.getPerm()[axis] != static_cast<int64_t>(i))
        return;
    transpose.getResult().replaceAllUsesWith(inner.getInput());
    return;
  }
  auto reshape = dyn_cast<ReshapeOp>(op);
  if (!reshape || !reshape.getInput().getDefiningOp<ReshapeOp>())
    return;
  OpBuilder builder(op);
  SmallVector<SymbolicExpr> dims(shapes.getDims(reshape.getResult()));
  Value simple =
      createReshape(builder, op->getLoc(), shapes, reshape.getInput(), dims);
  if (simple && tensorOf(simple).getRank() == tensorOf(reshape).getRank())
    reshape.getResult().replaceAllUsesWith(simple);
}

unsigned mlir::llm::flattenHeads(func::FuncOp func, SymbolicShape &shapes) {
  unsigned count = 0;
  for (Operation *op : snapshot(func)) {
    if (auto rope = dyn_cast<RopeOp>(op))
      count += flattenRope(rope, shapes);
    else if (auto attention = dyn_cast<AttentionOp>(op))
      count += flattenAttention(attention, shapes);
    else
      cancel(op, shapes);
  }
  return count;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

unsigned mlir::llm::raiseMasks(func::FuncOp func, SymbolicShape &shapes) {
  unsigned count = 0;
  llvm::DenseMap<Value, Value> paddings; // By argument.
  for (Operation *op : snapshot(func)) {
    auto attention = dyn_cast<AttentionOp>(op);
    if (!attention || !attention.getMask() || attention.getNonpadKvSeqlen())
      continue;
    bool flat = tensorOf(attention.getQuery()).getRank() == 3;
    SymbolicExpr queries = shapes.getDim(attention.getQuery(), flat ? 1 : 2);
    SymbolicExpr keys = shapes.getDim(attention.getKey(), flat ? 1 : 2);
    SymbolicExpr past(0);
    if (attention.getPastKey())
      past = shapes.getDim(attention.getPastKey(), 2);
    std::string reason;
    std::optional<MaskMeaning> meaning = analyzeMask(
        shapes, attention.getMask(), queries, past + keys, past, reason);
    if (!meaning)
      continue;
    // A window looks back from the query, so it needs the causal order.
    if (meaning->window && !meaning->causal && !attention.getCausal())
      continue;
    attention.setCausal(attention.getCausal() || meaning->causal);
    if (meaning->window)
      attention.setWindow(
          attention.getWindow()
              ? std::min<int64_t>(attention.getWindow(), meaning->window)
              : meaning->window);
    if (!meaning->padding) {
      attention.getMaskMutable().clear();
      ++count;
      continue;
    }
    Value &mask = paddings[meaning->padding];
    if (!mask) {
      OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
      RankedTensorType type = tensorOf(meaning->padding);
      mask = meaning->padding;
      if (!type.getElementType().isInteger(1))
        mask = CastOp::create(
            builder, op->getLoc(),
            RankedTensorType::get(type.getShape(), builder.getI1Type()), mask);
      mask = UnsqueezeOp::create(
          builder, op->getLoc(),
          RankedTensorType::get({type.getDimSize(0), 1, 1, type.getDimSize(1)},
                                builder.getI1Type()),
          mask, builder.getDenseI64ArrayAttr({1, 2}));
    }
    attention.getMaskMutable().assign(mask);
    ++count;
  }
  return count;
}
