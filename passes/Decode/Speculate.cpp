//===- Speculate.cpp - Propose several tokens, and verify them ------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Support/DraftCosts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/Decode/Passes.h"

namespace mlir::llm {
#define GEN_PASS_DEF_SPECULATEPASS
#include "passes/Decode/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;

namespace {
/// What a loop that runs a model and picks a token per row consists of.
struct PlainLoop {
  func::CallOp call;
  decode::SampleOp sample;
  decode::YieldOp yield;
};
} // namespace

/// The parts of `loop`, which has nothing else; an error where it has.
static FailureOr<PlainLoop> matchLoop(decode::LoopOp loop) {
  PlainLoop parts;
  for (Operation &op : loop.getBody().front()) {
    if (auto call = dyn_cast<func::CallOp>(op); call && !parts.call)
      parts.call = call;
    else if (auto sample = dyn_cast<decode::SampleOp>(op);
             sample && !parts.sample)
      parts.sample = sample;
    else if (auto yield = dyn_cast<decode::YieldOp>(op))
      parts.yield = yield;
    else
      return op.emitOpError("keeps the loop from speculating: it must call one "
                            "model and sample once");
  }
  if (!parts.call || !parts.sample ||
      parts.sample.getLogits().getDefiningOp() != parts.call ||
      parts.yield.getIds() != parts.sample.getIds() ||
      parts.yield.getCache().getDefiningOp() != parts.call)
    return loop.emitOpError("cannot speculate: it must sample from the "
                            "logits of the model that it calls, and yield "
                            "these tokens and the model's cache");
  return parts;
}

/// Dropped tokens must leave nothing behind.
static LogicalResult verifyRollback(decode::LoopOp loop) {
  auto cache = cast<kv::CacheType>(loop.getBody().getArgument(1).getType());
  for (kv::GroupAttr group : cache.getGroups())
    for (kv::PlaneAttr plane : group.getPlanes())
      if (plane.getGranularity() != kv::Granularity::token)
        return loop.emitOpError("cannot speculate: cache plane '")
               << plane.getName()
               << "' is not kept token by token, so that rejected tokens "
                  "cannot be dropped from it";
  return success();
}

namespace {
struct Speculate : mlir::llm::impl::SpeculatePassBase<Speculate> {
  using SpeculatePassBase::SpeculatePassBase;

  void runOnOperation() override {
    FailureOr<SmallVector<int64_t>> table = costTable();
    if (failed(table))
      return signalPassFailure();
    bool found = false;
    for (auto loop : getOperation().getOps<decode::LoopOp>()) {
      found = true;
      if (failed(rewrite(loop, *table)))
        return signalPassFailure();
      ++numLoops;
    }
    if (!found) {
      emitError(getOperation().getLoc(),
                "no decode.loop can speculate: the module has none");
      signalPassFailure();
    }
  }

private:
  InFlightDiagnostic wrongOption() {
    return emitError(getOperation().getLoc());
  }

  FailureOr<SmallVector<int64_t>> costTable() {
    if (lookup < 1 || lookup > LLM_MAX_LOOKUP)
      return wrongOption() << "lookup must be 1 to " << LLM_MAX_LOOKUP
                           << " tokens, got " << lookup.getValue();
    if (tokens < 1 || tokens > LLM_MAX_DRAFT)
      return wrongOption() << "tokens must be 1 to " << LLM_MAX_DRAFT
                           << ", got " << tokens.getValue();
    SmallVector<int64_t> table(costs.begin(), costs.end());
    if (table.empty()) {
      if (tokenCost < 0 || tokenCost > LLM_DRAFT_COST_UNIT)
        return wrongOption()
               << "token-cost must be 0 to " << LLM_DRAFT_COST_UNIT << ", got "
               << tokenCost.getValue();
      for (int64_t count = 0; count <= tokens; ++count)
        table.push_back(LLM_DRAFT_COST_UNIT + count * tokenCost);
    }
    if (!::llm::areDraftCosts(table, tokens))
      return wrongOption() << "costs must be " << tokens.getValue() + 1
                           << " numbers, ascending from " << LLM_DRAFT_COST_UNIT
                           << " to " << LLM_MAX_DRAFT_COST << " at most";
    return table;
  }

  LogicalResult rewrite(decode::LoopOp loop, ArrayRef<int64_t> table) {
    FailureOr<PlainLoop> parts = matchLoop(loop);
    if (failed(parts) || failed(verifyRollback(loop)))
      return failure();
    auto [call, sample, yield] = *parts;
    Value step = loop.getBody().getArgument(0);
    OpBuilder builder(call);
    Value drafts = decode::DraftOp::create(
        builder, loop.getLoc(), decode::DraftsType::get(&getContext(), tokens),
        step, builder.getI64IntegerAttr(lookup),
        builder.getDenseI64ArrayAttr(table));
    Value longer = decode::VerifyOp::create(builder, loop.getLoc(),
                                            step.getType(), step, drafts);
    call->replaceUsesOfWith(step, longer);
    builder.setInsertionPoint(sample);
    Type ids = sample.getIds().getType();
    auto accept = decode::AcceptOp::create(builder, sample.getLoc(), ids, ids,
                                           sample.getLogits(), drafts,
                                           sample.getSampling());
    builder.setInsertionPoint(yield);
    Value kept = kv::RollbackOp::create(builder, yield.getLoc(),
                                        yield.getCache().getType(),
                                        yield.getCache(), accept.getLength());
    yield.getIdsMutable().assign(accept.getIds());
    yield.getCacheMutable().assign(kept);
    sample.erase();
    return success();
  }
};
} // namespace
