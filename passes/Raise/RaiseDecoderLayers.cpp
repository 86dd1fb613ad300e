//===- RaiseDecoderLayers.cpp - One function for each layer ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Raise/Decoder.h"

using namespace mlir;
using namespace mlir::llm;

namespace {
/// A place in the list of ops where one tensor carries everything on.
struct Cut {
  size_t position; ///< Number of ops before it.
  Value hidden;
};
} // namespace

/// Ops that each function can have its own copy of: weights, constants, arrays
/// of the step, and what only moves or casts these.
static llvm::DenseSet<Operation *> sharedOps(ArrayRef<Operation *> ops) {
  llvm::DenseSet<Operation *> shared;
  for (Operation *op : ops) {
    bool source = isa<GetWeightOp, ConstantOp, kv::ReadStepOp>(op);
    bool moves =
        isa<CastOp, ReshapeOp, TransposeOp, UnsqueezeOp, SqueezeOp>(op);
    if (source || (moves && llvm::all_of(op->getOperands(), [&](Value v) {
                     return v.getDefiningOp() &&
                            shared.contains(v.getDefiningOp());
                   })))
      shared.insert(op);
  }
  return shared;
}

/// For each position, the live tensors that are not shared; more than two are
/// not told apart.
static SmallVector<SmallVector<Value, 2>>
liveTensors(ArrayRef<Operation *> ops, Operation *terminator,
            const llvm::DenseSet<Operation *> &shared) {
  llvm::DenseMap<Operation *, size_t> order;
  for (auto [i, op] : llvm::enumerate(ops))
    order[op] = i;
  order[terminator] = ops.size();
  SmallVector<SmallVector<Value, 2>> live(ops.size() + 1);
  for (auto [i, op] : llvm::enumerate(ops)) {
    if (shared.contains(op))
      continue;
    for (Value result : op->getResults()) {
      if (isa<kv::CacheType>(result.getType()))
        continue;
      size_t last = i;
      for (Operation *user : result.getUsers())
        last = std::max(last, order.lookup(user));
      for (size_t p = i + 1; p <= last; ++p)
        if (live[p].size() < 3)
          live[p].push_back(result);
    }
  }
  return live;
}

/// Where the last layer ends: before the final norm, or before the product with
/// the vocabulary where there is none.
static size_t endOfLayers(ArrayRef<Operation *> ops, size_t lastAttend,
                          ArrayRef<SmallVector<Value, 2>> live) {
  for (size_t p = ops.size(); p > lastAttend + 1; --p) {
    auto gather = dyn_cast<GatherOp>(ops[p - 1]);
    if (!gather)
      continue;
    Value value = gather.getInput();
    if (Operation *norm = value.getDefiningOp();
        norm && isa<RMSNormOp, LayerNormOp>(norm))
      value = norm->getOperand(0);
    for (size_t q = p; q > lastAttend; --q)
      if (live[q].size() == 1 && live[q].front() == value)
        return q;
    break;
  }
  // Behind the attention something always is one tensor: the logits, say.
  size_t last = lastAttend + 1;
  for (size_t p = lastAttend + 1; p <= ops.size(); ++p)
    if (live[p].size() == 1)
      return p;
  return last;
}

LogicalResult mlir::llm::outlineLayers(func::FuncOp target, StringRef model,
                                       Refusal &refusal) {
  Block &body = target.getBody().front();
  sortByNeed(body);
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  llvm::DenseSet<Operation *> shared = sharedOps(ops);
  auto live = liveTensors(ops, body.getTerminator(), shared);
  SmallVector<size_t> attends;
  for (auto [i, op] : llvm::enumerate(ops))
    if (isa<kv::AttendOp>(op))
      attends.push_back(i);

  // Layer n is what lies between cuts n and n + 1.
  SmallVector<Cut> cuts;
  for (size_t n = 0; n < attends.size(); ++n) {
    size_t begin = n == 0 ? 0 : attends[n - 1] + 1;
    std::optional<size_t> found;
    for (size_t p = attends[n]; p > begin && !found; --p)
      if (live[p].size() == 1)
        found = p;
    if (!found) {
      refusal.op = ops[attends[n]];
      refusal.reason = "before this attention more than one tensor is carried "
                       "on from the layer before, so layers are no functions "
                       "of one hidden state";
      return failure();
    }
    cuts.push_back({*found, live[*found].front()});
  }
  size_t end = endOfLayers(ops, attends.back(), live);
  if (live[end].size() != 1) {
    refusal.op = ops[attends.back()];
    refusal.reason = "behind this attention more than one tensor is carried on";
    return failure();
  }
  cuts.push_back({end, live[end].front()});
  for (Cut &cut : cuts)
    if (auto type = tensorOf(cut.hidden); type.getRank() != 2) {
      refusal.op = cut.hidden.getDefiningOp();
      refusal.reason = "the tensor between layers is not [tokens, features]";
      return failure();
    }

  OpBuilder builder(target);
  Value step = target.getArgument(0), cache = target.getArgument(1);
  MLIRContext *context = target.getContext();
  for (size_t n = 0; n + 1 < cuts.size(); ++n) {
    Value hidden = cuts[n].hidden, result = cuts[n + 1].hidden;
    builder.setInsertionPoint(target);
    auto layer = func::FuncOp::create(
        builder, ops[attends[n]]->getLoc(), (model + ".layer" + Twine(n)).str(),
        builder.getFunctionType(
            {hidden.getType(), step.getType(), cache.getType()},
            {result.getType(), cache.getType()}));
    layer.setPrivate();
    layer->setAttr("llm.layer", builder.getI64IntegerAttr(n));
    layer->setAttr("llm.model", StringAttr::get(context, model));
    Block *entry = layer.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    IRMapping map;
    map.map(hidden, entry->getArgument(0));
    map.map(step, entry->getArgument(1));
    map.map(cache, entry->getArgument(2));
    Value next = cache;
    // Shared ops are pulled in by their users, wherever they stand.
    auto copy = [&](Operation *op) {
      SmallVector<Operation *> stack{op};
      while (!stack.empty()) {
        Operation *current = stack.back();
        size_t before = stack.size();
        for (Value operand : current->getOperands())
          if (Operation *producer = operand.getDefiningOp();
              producer && !map.contains(operand) && shared.contains(producer))
            stack.push_back(producer);
        if (stack.size() != before)
          continue;
        stack.pop_back();
        if (current->getNumResults() && map.contains(current->getResult(0)))
          continue;
        builder.clone(*current, map);
      }
    };
    Operation *last = nullptr;
    for (size_t i = cuts[n].position; i < cuts[n + 1].position; ++i) {
      if (shared.contains(ops[i]))
        continue;
      copy(ops[i]);
      last = ops[i];
      for (Value value : ops[i]->getResults())
        if (isa<kv::CacheType>(value.getType()))
          next = value;
    }
    func::ReturnOp::create(builder, target.getLoc(),
                           ValueRange{map.lookup(result), map.lookup(next)});
    sortByNeed(*entry);

    // The call takes the place of the layer's ops, which die.
    builder.setInsertionPointAfter(last);
    auto call = func::CallOp::create(builder, layer.getLoc(), layer,
                                     ValueRange{hidden, step, cache});
    auto later = [&](OpOperand &use) {
      Operation *owner = use.getOwner();
      return owner != call.getOperation() && !owner->isBeforeInBlock(call);
    };
    result.replaceUsesWithIf(call.getResult(0), later);
    next.replaceUsesWithIf(call.getResult(1), later);
    // The next layer starts from this one's results.
    for (size_t k = n + 1; k < cuts.size(); ++k)
      if (cuts[k].hidden == result)
        cuts[k].hidden = call.getResult(0);
    cache = call.getResult(1);
  }
  eraseDeadOps(target);
  return success();
}
