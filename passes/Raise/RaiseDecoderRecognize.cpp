//===- RaiseDecoderRecognize.cpp - Is this graph a causal decoder? --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/MaskAnalysis.h"
#include "passes/Raise/Decoder.h"

using namespace mlir;
using namespace mlir::llm;

/// The value behind casts between integer types.
static Value skipIntCasts(Value value) {
  while (auto cast = value.getDefiningOp<CastOp>()) {
    if (!isa<IntegerType>(tensorOf(cast.getInput()).getElementType()))
      break;
    value = cast.getInput();
  }
  return value;
}

namespace {
class Recognizer {
public:
  Recognizer(func::FuncOp func, SymbolicShape &shapes, DecoderGraph &graph,
             Refusal &refusal)
      : func(func), shapes(shapes), graph(graph), refusal(refusal) {}

  LogicalResult run();

private:
  LogicalResult refuse(Operation *op, const Twine &reason) {
    refusal.op = op;
    refusal.reason = reason.str();
    return failure();
  }
  bool isConstant(Value value) const { return graph.constants.contains(value); }
  LogicalResult classifyResults();
  LogicalResult collect();
  LogicalResult findTokens();
  LogicalResult readAttention(AttentionOp op, CachedAttention &out);
  LogicalResult readGroupQuery(GroupQueryAttentionOp op, CachedAttention &out);
  LogicalResult readCache(CachedAttention &out, ValueRange present);
  LogicalResult readPositions(Operation *op, Value positions, Value table,
                              bool required);
  void assignGroups();

  func::FuncOp func;
  SymbolicShape &shapes;
  DecoderGraph &graph;
  Refusal &refusal;
  /// Returned presents.
  llvm::DenseSet<Value> returned;
  /// Embeddings by an argument, in order.
  SmallVector<EmbeddingOp> lookups;
};
} // namespace

/// The result is an attention's present: it is a cache, not an answer.
static bool isPresent(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isa<AttentionOp, GroupQueryAttentionOp>(op) &&
         cast<OpResult>(value).getResultNumber() > 0;
}

LogicalResult Recognizer::classifyResults() {
  Operation *terminator = func.getBody().front().getTerminator();
  for (Value value : terminator->getOperands()) {
    if (isPresent(value)) {
      returned.insert(value);
      continue;
    }
    if (graph.logits)
      return refuse(value.getDefiningOp(),
                    "a second result is neither the logits nor a cache that "
                    "an attention returns");
    graph.logits = value;
  }
  if (!graph.logits || !graph.logits.getDefiningOp())
    return refuse(nullptr, "no result is computed");
  RankedTensorType type = tensorOf(graph.logits);
  if (type.getRank() != 3 || !isa<FloatType>(type.getElementType()) ||
      type.isDynamicDim(2))
    return refuse(graph.logits.getDefiningOp(),
                  "the result beside the caches is not [batch, seq, "
                  "vocabulary] of floats with a known vocabulary");
  graph.vocabulary = type.getDimSize(2);
  graph.batch = shapes.getDim(graph.logits, 0);
  graph.seq = shapes.getDim(graph.logits, 1);
  return success();
}

/// Follows data from the logits (and from attentions whose caches are returned)
/// back to embeddings.
LogicalResult Recognizer::collect() {
  SmallVector<Operation *> stack{graph.logits.getDefiningOp()};
  for (Value present : returned)
    stack.push_back(present.getDefiningOp());
  SmallVector<Operation *> found;
  while (!stack.empty()) {
    Operation *op = stack.pop_back_val();
    if (!graph.reachable.insert(op).second)
      continue;
    SmallVector<Value> data;
    if (auto attention = dyn_cast<AttentionOp>(op))
      data = {attention.getQuery(), attention.getKey(), attention.getValue()};
    else if (auto gqa = dyn_cast<GroupQueryAttentionOp>(op))
      data = {gqa.getQuery(), gqa.getKey(), gqa.getValue()};
    else if (auto rope = dyn_cast<RopeOp>(op))
      data = {rope.getInput()};
    else if (!isa<EmbeddingOp>(op))
      llvm::append_range(data, op->getOperands());
    for (Value value : data) {
      if (isConstant(value))
        continue;
      Operation *producer = value.getDefiningOp();
      if (!producer)
        return refuse(op, "it reads the model's input " +
                              Twine(cast<BlockArgument>(value).getArgNumber()) +
                              " other than as ids, positions, mask or cache");
      stack.push_back(producer);
    }
  }
  for (Operation &op : func.getBody().front()) {
    if (!graph.reachable.contains(&op))
      continue;
    if (auto lookup = dyn_cast<EmbeddingOp>(op))
      lookups.push_back(lookup);
    if (isa<AttentionOp, GroupQueryAttentionOp>(op))
      graph.attentions[&op].op = &op;
  }
  if (graph.attentions.empty())
    return refuse(nullptr, "there is no attention");
  return success();
}

LogicalResult Recognizer::findTokens() {
  // An embedding by an argument that is also the positions of a rope, or whose
  // elements are computed, is one of positions.
  SmallVector<std::pair<BlockArgument, EmbeddingOp>> candidates;
  for (EmbeddingOp lookup : lookups) {
    Value indices = skipIntCasts(lookup.getIndices());
    auto argument = dyn_cast<BlockArgument>(indices);
    if (argument && tensorOf(indices).getRank() == 2 &&
        !graph.positions.contains(indices))
      candidates.emplace_back(argument, lookup);
  }
  llvm::SmallSetVector<BlockArgument, 2> arguments;
  for (auto &[argument, lookup] : candidates)
    arguments.insert(argument);
  if (arguments.size() > 1) {
    // The table of the tokens has the vocabulary's rows.
    for (BlockArgument argument : arguments.takeVector())
      for (auto &[other, lookup] : candidates)
        if (other == argument &&
            tensorOf(lookup.getTable()).getDimSize(0) == graph.vocabulary)
          arguments.insert(argument);
  }
  if (arguments.size() != 1)
    return refuse(lookups.empty() ? nullptr : lookups.front().getOperation(),
                  "which input holds the token ids is not clear: " +
                      Twine(arguments.size()) + " inputs could");
  graph.tokens = arguments.front();
  if (shapes.getDim(graph.tokens, 0) != graph.batch ||
      shapes.getDim(graph.tokens, 1) != graph.seq)
    return refuse(graph.logits.getDefiningOp(),
                  "logits have shape [" + shapes.str(graph.batch) + ", " +
                      shapes.str(graph.seq) + ", ...], token ids [" +
                      shapes.str(shapes.getDim(graph.tokens, 0)) + ", " +
                      shapes.str(shapes.getDim(graph.tokens, 1)) +
                      "]: not one row for each token");
  return success();
}

LogicalResult Recognizer::readPositions(Operation *op, Value positions,
                                        Value table, bool required) {
  if (positions && !graph.positions.contains(positions)) {
    SymbolicExpr past(0);
    for (auto &[_, attention] : graph.attentions)
      if (attention.pastKey) {
        past = shapes.getDim(attention.pastKey, 2);
        break;
      }
    Value indices = skipIntCasts(positions);
    Positions meaning = analyzePositions(shapes, indices, past);
    if (meaning.meaning == PositionMeaning::unknown ||
        (meaning.argument && meaning.argument == graph.tokens))
      return refuse(op, "its positions are neither an input nor the tokens' "
                        "places in their sequences");
    graph.positions.insert(positions);
    graph.positions.insert(indices);
  } else if (!positions && required) {
    return refuse(op, "its cos and sin are not rows of a table");
  }
  if (!isConstant(table))
    return refuse(op, "its table is no weight");
  int64_t rows = tensorOf(table).getDimSize(0);
  if (!graph.maxContext || rows < graph.maxContext)
    graph.maxContext = rows;
  return success();
}

LogicalResult Recognizer::readCache(CachedAttention &out, ValueRange present) {
  for (Value past : {out.pastKey, out.pastValue}) {
    if (!past)
      continue;
    if (!isa<BlockArgument>(past))
      return refuse(out.op, "its past is no input of the model");
    for (Operation *user : past.getUsers())
      if (graph.reachable.contains(user) && user != out.op)
        return refuse(user, "it reads a cache besides the attention that "
                            "updates it");
  }
  // A cache that goes in must come out, and nothing else may use it.
  for (Value value : present) {
    if (out.pastKey && !returned.contains(value))
      return refuse(out.op, "its updated cache is no result of the model");
    for (Operation *user : value.getUsers())
      if (graph.reachable.contains(user))
        return refuse(user, "it reads a cache besides the attention that "
                            "updates it");
  }
  if (out.pastKey && present.empty())
    return refuse(out.op, "it does not return its updated cache");
  std::optional<int64_t> keyWidth = shapes.getDim(out.key, 2).getConstant(),
                         valueWidth = shapes.getDim(out.value, 2).getConstant();
  if (!keyWidth || !valueWidth)
    return refuse(out.op, "the size of its heads is not known");
  out.keySize = *keyWidth / out.kvHeads;
  out.valueSize = *valueWidth / out.kvHeads;
  for (Value operand : {out.query, out.key, out.value})
    if (shapes.getDim(operand, 0) != graph.batch ||
        shapes.getDim(operand, 1) != graph.seq)
      return refuse(out.op, "its queries, keys and values are not one for each "
                            "token (cross-attention?)");
  return success();
}

LogicalResult Recognizer::readAttention(AttentionOp op, CachedAttention &out) {
  if (tensorOf(op.getQuery()).getRank() != 3)
    return refuse(op, "its operands are not [batch, seq, heads * size] "
                      "(--llm-raise-idioms makes them so)");
  if (op.getNonpadKvSeqlen())
    return refuse(op, "its cache is written outside (nonpad_kv_seqlen)");
  out.query = op.getQuery();
  out.key = op.getKey();
  out.value = op.getValue();
  out.pastKey = op.getPastKey();
  out.pastValue = op.getPastValue();
  out.numHeads = op.getNumHeads();
  out.kvHeads = op.getKvHeads();
  out.scale = op.getScale().convertToDouble();
  out.softcap = op.getSoftcap().convertToDouble();
  out.window = op.getWindow();
  out.keysRotated = isa_and_nonnull<RopeOp>(op.getKey().getDefiningOp());
  bool causal = op.getCausal();
  if (op.getMask()) {
    SymbolicExpr past(0);
    if (out.pastKey)
      past = shapes.getDim(out.pastKey, 2);
    std::string reason;
    std::optional<MaskMeaning> meaning = analyzeMask(
        shapes, op.getMask(), graph.seq, past + graph.seq, past, reason);
    if (!meaning)
      return refuse(op, "its mask is not understood: " + reason);
    causal |= meaning->causal;
    if (meaning->window)
      out.window =
          out.window ? std::min(out.window, meaning->window) : meaning->window;
  }
  if (!causal)
    return refuse(op, "it is not causal");
  return readCache(out, op.getPresent());
}

/// Whether `value` [batch] is the number of ones in each row of an argument
/// [batch, slots], less 1.
static bool isCountLessOne(Value value) {
  auto behind = [](Value value) {
    while (Operation *op = value.getDefiningOp()) {
      bool moves =
          isa<ReshapeOp, SqueezeOp, UnsqueezeOp>(op) ||
          (isa<CastOp>(op) &&
           isa<IntegerType>(tensorOf(op->getOperand(0)).getElementType()));
      if (!moves)
        break;
      value = op->getOperand(0);
    }
    return value;
  };
  value = behind(value);
  Operation *op = value.getDefiningOp();
  if (!op || !isa<SubOp, AddOp>(op))
    return false;
  std::optional<double> one = getSplatNumber(op->getOperand(1));
  if (!one || *one != (isa<SubOp>(op) ? 1 : -1))
    return false;
  auto sum = behind(op->getOperand(0)).getDefiningOp<ReduceOp>();
  return sum && sum.getKind() == ReductionKind::sum &&
         sum.getAxes().size() == 1 && tensorOf(sum.getInput()).getRank() == 2 &&
         normalizeAxis(sum.getAxes()[0], 2) == 1 &&
         isa<BlockArgument>(behind(sum.getInput()));
}

LogicalResult Recognizer::readGroupQuery(GroupQueryAttentionOp op,
                                         CachedAttention &out) {
  out.query = op.getQuery();
  out.key = op.getKey();
  out.value = op.getValue();
  out.pastKey = op.getPastKey();
  out.pastValue = op.getPastValue();
  out.sink = op.getHeadSink();
  out.smooth = op.getSmoothSoftmax();
  out.cosTable = op.getCosTable();
  out.sinTable = op.getSinTable();
  out.interleaved = op.getInterleaved();
  out.numHeads = op.getNumHeads();
  out.kvHeads = op.getKvHeads();
  out.scale = op.getScale().convertToDouble();
  out.softcap = op.getSoftcap().convertToDouble();
  out.window = op.getWindow();
  out.keysRotated =
      out.cosTable || isa_and_nonnull<RopeOp>(op.getKey().getDefiningOp());
  if (op.getAttentionBias())
    return refuse(op, "it adds a bias to its scores");
  if (out.sink && !isConstant(out.sink))
    return refuse(op, "its sink is no weight");
  if (!isCountLessOne(op.getSeqlensK()))
    return refuse(op, "its sequence lengths are not the number of ones in each "
                      "row of a mask input");
  if (failed(readCache(out, op.getPresent())))
    return failure();
  SymbolicExpr total = graph.seq;
  if (out.pastKey)
    total = total + shapes.getDim(out.pastKey, 2);
  std::optional<SymbolicExpr> given =
      shapes.getScalar(op.getTotalSequenceLength());
  if (!given || *given != total)
    return refuse(op, "its total sequence length is not past and new together");
  if (out.cosTable) {
    if (failed(readPositions(op, op.getPositionIds(), out.cosTable, false)) ||
        failed(readPositions(op, Value(), out.sinTable, false)))
      return failure();
  }
  return success();
}

void Recognizer::assignGroups() {
  struct Key {
    int64_t kvHeads, keySize, valueSize;
    bool rotated;
    bool operator==(const Key &) const = default;
  };
  SmallVector<std::pair<Key, int64_t>> groups; // With the number of layers.
  for (auto &[op, attention] : graph.attentions) {
    Key key{attention.kvHeads, attention.keySize, attention.valueSize,
            attention.keysRotated};
    auto it = llvm::find_if(groups, [&](auto &g) { return g.first == key; });
    if (it == groups.end())
      it = groups.insert(groups.end(), {key, 0});
    attention.group = it - groups.begin();
    attention.layer = it->second++;
  }
  MLIRContext *context = func.getContext();
  Type f32 = Float32Type::get(context);
  for (auto &[key, layers] : groups) {
    kv::PlaneAttr planes[] = {
        kv::PlaneAttr::get(context, "k", f32, {key.kvHeads, key.keySize},
                           kv::Granularity::token),
        kv::PlaneAttr::get(context, "v", f32, {key.kvHeads, key.valueSize},
                           kv::Granularity::token)};
    graph.groups.push_back(kv::GroupAttr::get(context, layers, key.kvHeads,
                                              planes, /*page_size=*/0,
                                              key.rotated, /*window=*/0));
  }
}

LogicalResult Recognizer::run() {
  graph.func = func;
  for (Operation &op : func.getBody().front())
    if (isa<GetWeightOp, ConstantOp>(op) ||
        (op.getNumOperands() > 0 && op.getNumRegions() == 0 &&
         isMemoryEffectFree(&op) &&
         llvm::all_of(op.getOperands(),
                      [&](Value v) { return isConstant(v); })))
      graph.constants.insert_range(op.getResults());
  if (failed(classifyResults()) || failed(collect()))
    return failure();
  for (auto &[op, attention] : graph.attentions) {
    LogicalResult read =
        isa<AttentionOp>(op)
            ? readAttention(cast<AttentionOp>(op), attention)
            : readGroupQuery(cast<GroupQueryAttentionOp>(op), attention);
    if (failed(read))
      return failure();
  }
  for (Operation &op : func.getBody().front())
    if (auto rope = dyn_cast<RopeOp>(op); rope && graph.reachable.contains(&op))
      if (failed(readPositions(rope, rope.getPositions(), rope.getCosTable(),
                               true)) ||
          failed(readPositions(rope, Value(), rope.getSinTable(), false)))
        return failure();
  if (failed(findTokens()))
    return failure();
  for (EmbeddingOp lookup : lookups)
    if (skipIntCasts(lookup.getIndices()) != graph.tokens &&
        failed(readPositions(lookup, lookup.getIndices(), lookup.getTable(),
                             true)))
      return failure();
  if (graph.positions.contains(graph.tokens))
    return refuse(nullptr, "the token ids serve as positions");
  assignGroups();
  return success();
}

LogicalResult mlir::llm::recognizeDecoder(func::FuncOp func,
                                          SymbolicShape &shapes,
                                          DecoderGraph &graph,
                                          Refusal &refusal) {
  return Recognizer(func, shapes, graph, refusal).run();
}
