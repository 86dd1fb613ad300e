//===- RaiseDecoderTokens.cpp - Batch times sequence becomes tokens -------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Raise/Decoder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::llm;

static bool isFloat(Value value) {
  return isa<FloatType>(tensorOf(value).getElementType());
}

namespace {
class TokenWriter {
public:
  TokenWriter(DecoderGraph &graph, SymbolicShape &shapes, Refusal &refusal)
      : graph(graph), shapes(shapes), refusal(refusal),
        builder(graph.func.getContext()) {}

  FailureOr<func::FuncOp> run(StringRef name);

private:
  LogicalResult refuse(Operation *op, const Twine &reason) {
    refusal.op = op;
    refusal.reason = reason.str();
    return failure();
  }
  LogicalResult write(Operation *op);
  LogicalResult writeEmbedding(EmbeddingOp op);
  LogicalResult writeAttention(CachedAttention &attention);
  LogicalResult writeElementwise(Operation *op);
  LogicalResult writeShifted(Operation *op);
  Value rope(Location loc, Value input, Value cos, Value sin, int64_t heads,
             int64_t rotaryDim, bool interleaved);

  /// The type over tokens: [batch, seq, ...] of any float is [tokens, ...] of
  /// f32.
  RankedTensorType tokenType(Value value) {
    RankedTensorType type = tensorOf(value);
    SmallVector<int64_t> shape{ShapedType::kDynamic};
    llvm::append_range(shape, type.getShape().drop_front(2));
    Type element = isa<FloatType>(type.getElementType())
                       ? builder.getF32Type()
                       : type.getElementType();
    return RankedTensorType::get(shape, element);
  }
  /// A copy of a constant computation in the new function.
  Value constant(Value value);
  /// A constant operand of an elementwise op whose result had `rank`
  /// dimensions, in f32 and with one dimension less.
  Value broadcastConstant(Value value, int64_t rank);
  Value readStep(Location loc, StringRef field) {
    Value &read = reads[field];
    if (!read)
      read = kv::ReadStepOp::create(
          builder, loc,
          RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type()),
          step, field);
    return read;
  }
  /// `axis` of the old value, of rank `rank`, in the new one.
  std::optional<int64_t> shift(int64_t axis, int64_t rank) {
    std::optional<int64_t> a = normalizeAxis(axis, rank);
    if (!a || *a < 2)
      return std::nullopt;
    return axis < 0 ? axis : *a - 1;
  }
  bool isToken(Value value) { return map.contains(value); }
  bool isConstant(Value value) { return graph.constants.contains(value); }

  DecoderGraph &graph;
  SymbolicShape &shapes;
  Refusal &refusal;
  OpBuilder builder;
  IRMapping map;                ///< Values over tokens.
  IRMapping constants;          ///< Copies of constants.
  llvm::StringMap<Value> reads; ///< By field.
  Value step, cache;
};
} // namespace

Value TokenWriter::constant(Value value) {
  // Operands first, without recursion.
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value next = stack.back();
    if (constants.contains(next)) {
      stack.pop_back();
      continue;
    }
    size_t before = stack.size();
    for (Value operand : next.getDefiningOp()->getOperands())
      if (!constants.contains(operand))
        stack.push_back(operand);
    if (stack.size() == before)
      builder.clone(*next.getDefiningOp(), constants);
  }
  return constants.lookup(value);
}

Value TokenWriter::broadcastConstant(Value value, int64_t rank) {
  RankedTensorType type = tensorOf(value);
  ArrayRef<int64_t> shape = type.getShape();
  // Sizes other than 1 along batch or seq would tell tokens apart.
  int64_t outer = type.getRank() - (rank - 2);
  for (int64_t i = 0; i < outer; ++i)
    if (shape[i] != 1)
      return {};
  Value copy = constant(value);
  Location loc = value.getLoc();
  if (isFloat(copy) && !type.getElementType().isF32()) {
    type = RankedTensorType::get(shape, builder.getF32Type());
    auto elements = copy.getDefiningOp<ConstantOp>() ? getConstantElements(copy)
                                                     : DenseElementsAttr();
    if (elements) {
      SmallVector<APFloat> numbers;
      for (APFloat number : elements.getValues<APFloat>()) {
        bool loses;
        number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                       &loses);
        numbers.push_back(number);
      }
      copy = ConstantOp::create(builder, loc, type,
                                DenseElementsAttr::get(type, numbers));
    } else {
      copy = CastOp::create(builder, loc, type, copy);
    }
  }
  if (outer < 2)
    return copy;
  SmallVector<int64_t> target(shape.drop_front(outer - 1));
  auto dropped = RankedTensorType::get(target, type.getElementType());
  return ReshapeOp::create(builder, loc, dropped, copy,
                           createIntVector(builder, loc, target), false);
}

Value TokenWriter::rope(Location loc, Value input, Value cos, Value sin,
                        int64_t heads, int64_t rotaryDim, bool interleaved) {
  int64_t width = tensorOf(input).getShape().back();
  int64_t rotary = rotaryDim ? rotaryDim : 2 * tensorOf(cos).getShape().back();
  return RopeOp::create(builder, loc, input.getType(), input, constant(cos),
                        constant(sin), readStep(loc, "position"), heads,
                        rotary * heads == width ? 0 : rotary, interleaved);
}

LogicalResult TokenWriter::writeEmbedding(EmbeddingOp op) {
  StringRef field =
      graph.positions.contains(op.getIndices()) ? "position" : "token";
  map.map(op.getResult(),
          EmbeddingOp::create(builder, op.getLoc(), tokenType(op.getResult()),
                              readStep(op.getLoc(), field),
                              constant(op.getTable())));
  return success();
}

LogicalResult TokenWriter::writeAttention(CachedAttention &attention) {
  Location loc = attention.op->getLoc();
  for (Value operand : {attention.query, attention.key, attention.value})
    if (!isToken(operand))
      return refuse(attention.op, "its operands are not one for each token");
  Value query = map.lookup(attention.query), key = map.lookup(attention.key),
        value = map.lookup(attention.value);
  if (attention.cosTable) {
    query = rope(loc, query, attention.cosTable, attention.sinTable,
                 attention.numHeads, 0, attention.interleaved);
    key = rope(loc, key, attention.cosTable, attention.sinTable,
               attention.kvHeads, 0, attention.interleaved);
  }
  cache = kv::AppendOp::create(builder, loc, cache.getType(), cache, step,
                               ValueRange{key, value}, attention.group,
                               attention.layer);
  Value sink;
  auto sinkType =
      RankedTensorType::get({attention.numHeads}, builder.getF32Type());
  if (attention.sink) {
    sink = constant(attention.sink);
    if (sink.getType() != sinkType)
      sink = CastOp::create(builder, loc, sinkType, sink);
  } else if (attention.smooth) {
    sink = ConstantOp::create(
        builder, loc, sinkType,
        DenseElementsAttr::get(sinkType,
                               builder.getF32FloatAttr(0).getValue()));
  }
  auto type = RankedTensorType::get(
      {ShapedType::kDynamic, attention.numHeads * attention.valueSize},
      builder.getF32Type());
  auto attend =
      kv::AttendOp::create(builder, loc, type, Type(), query, cache, step, sink,
                           builder.getI64IntegerAttr(attention.group),
                           builder.getI64IntegerAttr(attention.layer),
                           builder.getI64IntegerAttr(attention.numHeads),
                           builder.getF64FloatAttr(attention.scale),
                           builder.getF64FloatAttr(attention.softcap),
                           builder.getI64IntegerAttr(attention.window));
  map.map(attention.op->getResult(0), attend.getOutput());
  return success();
}

LogicalResult TokenWriter::writeElementwise(Operation *op) {
  int64_t rank = tensorOf(op->getResult(0)).getRank();
  if (auto cast = dyn_cast<CastOp>(op);
      cast && isFloat(cast.getInput()) && isFloat(cast.getResult())) {
    // Activations are f32 whatever the file's type.
    map.map(cast.getResult(), map.lookup(cast.getInput()));
    return success();
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Value copy;
    if (isToken(operand) && tensorOf(operand).getRank() == rank)
      copy = map.lookup(operand);
    else if (!isToken(operand))
      copy = broadcastConstant(operand, rank);
    if (!copy)
      return refuse(op, "an operand's sizes do not follow the tokens");
    operands.push_back(copy);
  }
  OperationState state(op->getLoc(), op->getName(), operands,
                       tokenType(op->getResult(0)), op->getAttrs());
  map.map(op->getResult(0), builder.create(state)->getResult(0));
  return success();
}

/// Ops along axes other than batch and seq: the same op, one axis less.
LogicalResult TokenWriter::writeShifted(Operation *op) {
  Location loc = op->getLoc();
  Value source = op->getOperand(0);
  int64_t rank = tensorOf(source).getRank();
  auto mixes = [&] { return refuse(op, "it mixes tokens"); };
  auto clone = [&](ValueRange operands) {
    SmallVector<Type> types;
    for (Value result : op->getResults())
      types.push_back(tokenType(result));
    OperationState state(loc, op->getName(), operands, types, op->getAttrs());
    Operation *copy = builder.create(state);
    for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
      map.map(from, to);
    return copy;
  };
  SmallVector<Value> operands{map.lookup(source)};
  for (Value operand : op->getOperands().drop_front()) {
    if (!isa<ConcatOp>(op) && !isConstant(operand))
      return refuse(op, "an operand is computed at run time");
    operands.push_back(isToken(operand)      ? map.lookup(operand)
                       : isConstant(operand) ? constant(operand)
                                             : Value());
    if (!operands.back() || (isa<ConcatOp>(op) && !isToken(operand)))
      return refuse(op, "an operand is not one for each token");
  }
  auto shiftAll = [&](ArrayRef<int64_t> axes, int64_t rank,
                      SmallVectorImpl<int64_t> &out) {
    for (int64_t axis : axes) {
      std::optional<int64_t> a = shift(axis, rank);
      if (!a)
        return false;
      out.push_back(*a);
    }
    return true;
  };
  SmallVector<int64_t> axes;
  if (auto norm = dyn_cast<RMSNormOp>(op)) {
    std::optional<int64_t> axis = shift(norm.getAxis(), rank);
    if (!axis)
      return mixes();
    bool last = *axis == rank - 2;
    cast<RMSNormOp>(clone(operands)).setAxis(last ? -1 : *axis);
  } else if (auto norm = dyn_cast<LayerNormOp>(op)) {
    std::optional<int64_t> axis = shift(norm.getAxis(), rank);
    if (!axis)
      return mixes();
    bool last = *axis == rank - 2;
    cast<LayerNormOp>(clone(operands)).setAxis(last ? -1 : *axis);
  } else if (auto softmax = dyn_cast<SoftmaxOp>(op)) {
    std::optional<int64_t> axis = shift(softmax.getAxis(), rank);
    if (!axis)
      return mixes();
    cast<SoftmaxOp>(clone(operands)).setAxis(*axis);
  } else if (auto cumsum = dyn_cast<CumSumOp>(op)) {
    std::optional<int64_t> axis = shift(cumsum.getAxis(), rank);
    if (!axis)
      return mixes();
    cast<CumSumOp>(clone(operands)).setAxis(*axis);
  } else if (auto argmax = dyn_cast<ArgMaxOp>(op)) {
    std::optional<int64_t> axis = shift(argmax.getAxis(), rank);
    if (!axis)
      return mixes();
    cast<ArgMaxOp>(clone(operands)).setAxis(*axis);
  } else if (auto concat = dyn_cast<ConcatOp>(op)) {
    std::optional<int64_t> axis = shift(concat.getAxis(), rank);
    if (!axis)
      return mixes();
    cast<ConcatOp>(clone(operands)).setAxis(*axis);
  } else if (auto split = dyn_cast<SplitOp>(op)) {
    std::optional<int64_t> axis = shift(split.getAxis(), rank);
    if (!axis)
      return mixes();
    cast<SplitOp>(clone(operands)).setAxis(*axis);
  } else if (auto gather = dyn_cast<GatherOp>(op)) {
    std::optional<int64_t> axis = shift(gather.getAxis(), rank);
    if (!axis)
      return mixes();
    cast<GatherOp>(clone(operands)).setAxis(*axis);
  } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
    if (!shiftAll(reduce.getAxes(), rank, axes))
      return mixes();
    cast<ReduceOp>(clone(operands)).setAxes(axes);
  } else if (auto unsqueeze = dyn_cast<UnsqueezeOp>(op)) {
    if (!shiftAll(unsqueeze.getAxes(),
                  tensorOf(unsqueeze.getResult()).getRank(), axes))
      return mixes();
    cast<UnsqueezeOp>(clone(operands)).setAxes(axes);
  } else if (auto squeeze = dyn_cast<SqueezeOp>(op)) {
    if (!shiftAll(squeeze.getAxes(), rank, axes))
      return mixes();
    cast<SqueezeOp>(clone(operands)).setAxes(axes);
  } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
    ArrayRef<int64_t> perm = transpose.getPerm();
    if (perm.size() < 2 || perm[0] != 0 || perm[1] != 1)
      return mixes();
    for (int64_t axis : perm.drop_front())
      axes.push_back(axis - 1);
    cast<TransposeOp>(clone(operands)).setPerm(axes);
  } else if (auto slice = dyn_cast<SliceOp>(op)) {
    std::optional<SmallVector<int64_t>> given;
    if (slice.getAxes())
      given = shapes.getConstants(slice.getAxes());
    if (!given || !shiftAll(*given, rank, axes))
      return mixes();
    cast<SliceOp>(clone(operands))
        .getAxesMutable()
        .assign(createIntVector(builder, loc, axes));
    // The constant must stand before the op that takes it.
    Operation *copy = map.lookup(slice.getResult()).getDefiningOp();
    copy->moveAfter(&*std::prev(builder.getInsertionPoint()));
  } else {
    return failure();
  }
  return success();
}

LogicalResult TokenWriter::write(Operation *op) {
  if (auto it = graph.attentions.find(op); it != graph.attentions.end())
    return writeAttention(it->second);
  if (auto embedding = dyn_cast<EmbeddingOp>(op))
    return writeEmbedding(embedding);
  Location loc = op->getLoc();
  // Every other op works on values over tokens.
  for (Value result : op->getResults()) {
    ArrayRef<SymbolicExpr> dims = shapes.getDims(result);
    if (dims.size() < 2 || dims[0] != graph.batch || dims[1] != graph.seq)
      return refuse(op, "its result is not [batch, seq, ...]");
  }
  if (auto linear = dyn_cast<LinearOp>(op)) {
    if (!isToken(linear.getInput()) || !isConstant(linear.getWeight()) ||
        (linear.getBias() && !isConstant(linear.getBias())))
      return refuse(op, "its weight is computed at run time");
    map.map(op->getResult(0),
            LinearOp::create(
                builder, loc, tokenType(linear.getResult()),
                map.lookup(linear.getInput()), constant(linear.getWeight()),
                linear.getBias() ? constant(linear.getBias()) : Value(),
                linear.getTransposed(), linear.getAccuracyLevel(),
                linear.getActivationGroup()));
    return success();
  }
  if (auto rope = dyn_cast<RopeOp>(op)) {
    if (!isToken(rope.getInput()) || tensorOf(rope.getInput()).getRank() != 3)
      return refuse(op, "its input is not [batch, seq, heads * size]");
    map.map(op->getResult(0),
            this->rope(loc, map.lookup(rope.getInput()), rope.getCosTable(),
                       rope.getSinTable(), rope.getNumHeads(),
                       rope.getRotaryDim(), rope.getInterleaved()));
    return success();
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    if (!isToken(reshape.getInput()))
      return refuse(op, "its input is not one for each token");
    SmallVector<int64_t> target{0};
    for (const SymbolicExpr &dim :
         shapes.getDims(reshape.getResult()).drop_front(2)) {
      std::optional<int64_t> size = dim.getConstant();
      if (!size)
        return refuse(op, "its sizes are not known");
      target.push_back(*size);
    }
    RankedTensorType type = tokenType(reshape.getResult());
    Value input = map.lookup(reshape.getInput());
    map.map(op->getResult(0),
            ReshapeOp::create(builder, loc, type, input,
                              createIntVector(builder, loc, target), false));
    return success();
  }
  if (isElementwise(op) || isa<ClipOp>(op))
    return writeElementwise(op);
  if (op->getNumOperands() > 0 && isToken(op->getOperand(0))) {
    refusal.reason.clear();
    if (succeeded(writeShifted(op)))
      return success();
    if (!refusal.reason.empty())
      return failure();
  }
  return refuse(op, "it is not known to work token by token");
}

FailureOr<func::FuncOp> TokenWriter::run(StringRef name) {
  MLIRContext *context = builder.getContext();
  auto cacheType = kv::CacheType::get(context, graph.groups);
  auto stepType = kv::StepType::get(context);
  auto logitsType = RankedTensorType::get(
      {ShapedType::kDynamic, graph.vocabulary}, builder.getF32Type());
  builder.setInsertionPoint(graph.func);
  auto target = func::FuncOp::create(
      builder, graph.func.getLoc(), name,
      builder.getFunctionType({stepType, cacheType}, {logitsType, cacheType}));
  Block *entry = target.addEntryBlock();
  step = entry->getArgument(0);
  cache = entry->getArgument(1);
  builder.setInsertionPointToStart(entry);
  for (Operation &op : graph.func.getBody().front())
    if (graph.reachable.contains(&op) && failed(write(&op))) {
      target.erase();
      return failure();
    }
  Value logits = map.lookup(graph.logits);

  // Only some tokens' logits are wanted: pick the rows before the product with
  // the vocabulary, behind elementwise ops on its result (a cap, a scale).
  OpOperand *rows = nullptr;
  for (Operation *op = logits.getDefiningOp(); op;) {
    if (auto linear = dyn_cast<LinearOp>(op)) {
      rows = &linear.getInputMutable();
      break;
    }
    OpOperand *next = nullptr;
    bool one = isElementwise(op);
    for (OpOperand &operand : op->getOpOperands())
      if (one && !isModelConstant(operand.get())) {
        one = !next;
        next = &operand;
      }
    if (!one || !next || !next->get().hasOneUse())
      break;
    op = next->get().getDefiningOp();
  }
  auto pick = [&](Value value, Location loc) -> Value {
    return GatherOp::create(builder, loc, value.getType(), value,
                            readStep(loc, "logit_row"), /*axis=*/0);
  };
  Location loc = logits.getLoc();
  if (rows) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(rows->getOwner());
    rows->set(pick(rows->get(), loc));
  } else {
    logits = pick(logits, loc);
  }
  func::ReturnOp::create(builder, loc, ValueRange{logits, cache});
  return target;
}

FailureOr<func::FuncOp> mlir::llm::buildTokenFunction(DecoderGraph &graph,
                                                      SymbolicShape &shapes,
                                                      StringRef name,
                                                      Refusal &refusal) {
  return TokenWriter(graph, shapes, refusal).run(name);
}
