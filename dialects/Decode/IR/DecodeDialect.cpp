//===- DecodeDialect.cpp - The decode dialect ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/Decode/IR/DecodeDialect.h"

#include "lib/Support/DraftCosts.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::decode;

#include "dialects/Decode/IR/DecodeDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Decode/IR/DecodeTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Decode/IR/DecodeOps.cpp.inc"

void DecodeDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Decode/IR/DecodeTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Decode/IR/DecodeOps.cpp.inc"
      >();
}

/// That a loop which drafts computes the drafts, picks from what came of them,
/// and goes on with the cache that this leaves.
static LogicalResult verifyDrafts(LoopOp loop, YieldOp yield) {
  AcceptOp accept;
  VerifyOp verify;
  for (Operation &op : loop.getBody().front()) {
    if (accept && isa<AcceptOp>(op))
      return op.emitOpError("comes twice in a loop");
    if (verify && isa<VerifyOp>(op))
      return op.emitOpError("comes twice in a loop");
    if (auto found = dyn_cast<AcceptOp>(op))
      accept = found;
    else if (auto found = dyn_cast<VerifyOp>(op))
      verify = found;
  }
  if (!accept && !verify)
    return success();
  if (!accept || !verify || accept.getDrafts() != verify.getDrafts())
    return loop.emitOpError("verifies and accepts the same drafts");
  Operation *model = accept.getLogits().getDefiningOp();
  if (!model || !::llvm::is_contained(model->getOperands(), verify.getResult()))
    return accept.emitOpError("takes logits of the step that decode.verify "
                              "gives");
  auto rollback = yield.getCache().getDefiningOp<kv::RollbackOp>();
  if (yield.getIds() != accept.getIds() || !rollback ||
      rollback.getLength() != accept.getLength() ||
      rollback.getCache().getDefiningOp() != model)
    return yield.emitOpError("yields the tokens of decode.accept, and the "
                             "model's cache rolled back to its lengths");
  return success();
}

/// Looks into the body, so it runs once the body is verified.
LogicalResult LoopOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getNumArguments() != 3 ||
      !isa<kv::StepType>(block.getArgument(0).getType()) ||
      !isa<kv::CacheType>(block.getArgument(1).getType()) ||
      !isa<SamplingType>(block.getArgument(2).getType()))
    return emitOpError("the block takes a !kv.step, a !kv.cache and a "
                       "!decode.sampling");
  auto yield = dyn_cast_or_null<YieldOp>(
      block.mightHaveTerminator() ? block.getTerminator() : nullptr);
  if (!yield)
    return emitOpError("the body ends in decode.yield");
  if (yield.getCache().getType() != block.getArgument(1).getType())
    return yield.emitOpError("yields a cache of another type than the loop's");
  if (failed(verifyDrafts(*this, yield)))
    return failure();
  return kv::verifyLinearUse(*this);
}

LogicalResult DraftsType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t tokens) {
  if (tokens < 1 || tokens > LLM_MAX_DRAFT)
    return emitError() << "drafts have 1 to " << LLM_MAX_DRAFT
                       << " tokens, not " << tokens;
  return success();
}

LogicalResult AcceptOp::verify() {
  if (cast<RankedTensorType>(getLogits().getType()).getRank() != 2 ||
      cast<RankedTensorType>(getIds().getType()).getRank() != 1 ||
      cast<RankedTensorType>(getLength().getType()).getRank() != 1)
    return emitOpError("logits are [rows, vocabulary], ids [tokens], lengths "
                       "[sequences]");
  return success();
}

LogicalResult DraftOp::verify() {
  if (getLookup() < 1 || getLookup() > LLM_MAX_LOOKUP)
    return emitOpError("looks up 1 to ")
           << LLM_MAX_LOOKUP << " tokens, not " << getLookup();
  ArrayRef<int64_t> costs = getCosts();
  int64_t tokens = cast<DraftsType>(getDrafts().getType()).getTokens();
  if (static_cast<int64_t>(costs.size()) != tokens + 1)
    return emitOpError("has costs for ")
           << static_cast<int64_t>(costs.size()) - 1 << " tokens and drafts "
           << tokens;
  if (!::llm::areDraftCosts(costs, tokens))
    return emitOpError("costs ascend from ")
           << LLM_DRAFT_COST_UNIT << ", to " << LLM_MAX_DRAFT_COST
           << " at most";
  return success();
}

LogicalResult SampleOp::verify() {
  auto logits = cast<RankedTensorType>(getLogits().getType());
  auto ids = cast<RankedTensorType>(getIds().getType());
  if (logits.getRank() != 2 || ids.getRank() != 1)
    return emitOpError("logits are [rows, vocabulary], ids [rows]");
  if (!logits.isDynamicDim(0) && !ids.isDynamicDim(0) &&
      logits.getDimSize(0) != ids.getDimSize(0))
    return emitOpError("picks ") << ids.getDimSize(0) << " tokens from "
                                 << logits.getDimSize(0) << " rows of logits";
  return success();
}
