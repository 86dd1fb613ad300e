//===- Control.cpp - Control flow
//-------------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace llm::importer {

/// The sizes on which two types of one rank agree.
static RankedTensorType join(RankedTensorType a, RankedTensorType b) {
  Shape shape(a.getShape());
  for (auto [dim, other] : llvm::zip(shape, b.getShape()))
    if (dim != other)
      dim = ShapedType::kDynamic;
  return RankedTensorType::get(shape, a.getElementType());
}

static Value castTo(Node &n, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return tensor::CastOp::create(n.builder, n.loc, type, value);
}

/// A condition, which may be a vector of one element, as i1.
static Value conditionOf(Node &n, Value value) {
  SmallVector<Value> zeros;
  for (int64_t i = 0; i < Node::type(value).getRank(); ++i)
    zeros.push_back(arith::ConstantIndexOp::create(n.builder, n.loc, 0));
  return tensor::ExtractOp::create(n.builder, n.loc, value, zeros);
}

static bool isCondition(Node &n, unsigned i) {
  return n.isBool(i) && n.hasRank(i, 0, 1);
}

/// If: an scf.if over tensors. Where the branches differ in sizes, so much as
/// they share is known of the result.
static LogicalResult ifNode(Node &n) {
  const ::onnx::GraphProto *branches[] = {n.graphAttr("then_branch"),
                                          n.graphAttr("else_branch")};
  if (n.hasFailed() || !isCondition(n, 0))
    return failure();
  Value condition = conditionOf(n, n.in(0));
  // The result types come from the branches: they are imported into an op
  // without results, and the final one takes them over.
  auto draft = scf::IfOp::create(n.builder, n.loc, TypeRange{}, condition,
                                 /*addThenBlock=*/false,
                                 /*addElseBlock=*/false);
  SmallVector<Value> results[2];
  for (int i : {0, 1}) {
    OpBuilder::InsertionGuard guard(n.builder);
    n.builder.createBlock(&draft->getRegion(i));
    FailureOr<SmallVector<Value>> values =
        n.graph.importSubgraph(*branches[i], n.scope, {}, n.loc);
    if (failed(values))
      return failure();
    results[i] = std::move(*values);
    if (results[i].size() != n.numOutputs())
      return n.error() << "has " << n.numOutputs() << " outputs, a branch has "
                       << results[i].size();
  }
  SmallVector<Type> types;
  for (auto [a, b] : llvm::zip(results[0], results[1])) {
    if (Node::element(a) != Node::element(b))
      return n.error() << "the branches give " << a.getType() << " and "
                       << b.getType();
    if (Node::type(a).getRank() != Node::type(b).getRank())
      return n.error() << "rank of '" << printable(n.proto.output(types.size()))
                       << "' is not known: the branches give " << a.getType()
                       << " and " << b.getType();
    types.push_back(join(Node::type(a), Node::type(b)));
  }
  auto op = scf::IfOp::create(n.builder, n.loc, types, condition,
                              /*addThenBlock=*/false, /*addElseBlock=*/false);
  for (int i : {0, 1})
    op->getRegion(i).takeBody(draft->getRegion(i));
  draft.erase();
  for (int i : {0, 1}) {
    OpBuilder::InsertionGuard guard(n.builder);
    n.builder.setInsertionPointToEnd(&op->getRegion(i).front());
    for (auto [value, type] : llvm::zip(results[i], types))
      value = castTo(n, value, type);
    scf::YieldOp::create(n.builder, n.loc, results[i]);
  }
  for (auto [i, value] : llvm::enumerate(op.getResults()))
    n.set(i, value);
  return success();
}

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

/// A scalar, which may come as a vector of one element.
static Value asScalar(Node &n, Value value) {
  return Node::type(value).getRank() == 0 ? value : n.reshape(value, {}, {});
}

namespace {
/// A Loop while its types are being found.
struct LoopState {
  Value limit;                ///< null: none
  SmallVector<Value> initial; ///< counter, condition, carried
  SmallVector<RankedTensorType> carried, scanned;
};
} // namespace

/// Builds the scf.while for `state` and imports the body into it. The body's
/// outputs without the condition, or failure.
static FailureOr<SmallVector<Value>> loopBody(Node &n,
                                              const ::onnx::GraphProto &body,
                                              const LoopState &state,
                                              scf::WhileOp loop) {
  OpBuilder::InsertionGuard guard(n.builder);
  SmallVector<Type> types = llvm::to_vector(loop.getResultTypes());
  SmallVector<Location> locs(types.size(), n.loc);
  Block *before = n.builder.createBlock(&loop.getBefore(), {}, types, locs);
  Value go = before->getArgument(1);
  if (state.limit) {
    Value below =
        n.make<ir::LessOp>(go.getType(), before->getArgument(0), state.limit);
    go = n.make<ir::AndOp>(go.getType(), below, go);
  }
  scf::ConditionOp::create(n.builder, n.loc, conditionOf(n, go),
                           before->getArguments());
  Block *after = n.builder.createBlock(&loop.getAfter(), {}, types, locs);
  size_t carried = state.carried.size();
  FailureOr<SmallVector<Value>> results = n.graph.importSubgraph(
      body, n.scope, after->getArguments().take_front(2 + carried), n.loc);
  if (failed(results))
    return failure();
  Value one = n.constantInt(1);
  Value next = n.binary<ir::AddOp>(after->getArgument(0), one);
  if (results->size() < 1 + carried || results->size() - 1 != n.numOutputs())
    return n.error() << "has " << n.numOutputs() << " outputs and " << carried
                     << " carried values, its body has " << results->size()
                     << " outputs";
  Value condition = results->front();
  if (!Node::element(condition).isInteger(1) ||
      Node::type(condition).getRank() > 1)
    return n.error() << "the condition is of bool, not " << condition.getType();
  SmallVector<Value> yields = {next, asScalar(n, condition)};
  results->erase(results->begin());
  for (size_t i = 0; i < carried; ++i) {
    Value value = (*results)[i];
    if (Node::element(value) != state.carried[i].getElementType() ||
        Node::type(value).getRank() != state.carried[i].getRank())
      return n.error() << "carries " << state.carried[i]
                       << " into its body and " << value.getType()
                       << " out of it";
    yields.push_back(
        castTo(n, value, join(state.carried[i], Node::type(value))));
  }
  // Scan outputs, one row of them for each time round.
  for (size_t i = carried; i < results->size(); ++i) {
    Value row = (*results)[i];
    if (!Node::type(row).hasStaticShape())
      return n.error() << "the scan output '" << printable(n.proto.output(i))
                       << "' has rows of type " << row.getType()
                       << "; only static ones are supported";
    if (2 + i >= types.size()) {
      yields.push_back(row);
      continue;
    }
    Shape shape(Node::shape(row));
    shape.insert(shape.begin(), 1);
    Value wide =
        n.make<ir::UnsqueezeOp>(n.makeType(shape, Node::element(row)), row,
                                n.builder.getDenseI64ArrayAttr({0}));
    yields.push_back(n.make<ir::ConcatOp>(
        types[2 + i], ValueRange{after->getArgument(2 + i), wide}, n.i64(0)));
  }
  scf::YieldOp::create(n.builder, n.loc, yields);
  return yields;
}

/// Loop: an scf.while over counter, condition, carried values and the rows of
/// scan outputs so far. Sizes that a time round changes are dynamic, which is
/// found by importing the body until its types stand still.
static LogicalResult loopNode(Node &n) {
  const ::onnx::GraphProto *body = n.graphAttr("body");
  if (n.hasFailed())
    return failure();
  LoopState state;
  if (n.has(0)) {
    if (!n.isInteger(0) || !n.hasRank(0, 0, 1))
      return failure();
    state.limit = n.cast(asScalar(n, n.in(0)), n.builder.getI64Type());
  }
  state.initial.push_back(n.constantInt(0));
  if (n.has(1)) {
    if (!isCondition(n, 1))
      return failure();
    state.initial.push_back(asScalar(n, n.in(1)));
  } else {
    state.initial.push_back(
        n.constantScalar(n.builder.getI1Type(), /*value=*/1.0));
  }
  for (unsigned i = 2; i < n.numInputs(); ++i) {
    if (!n.has(i))
      return n.error() << "input " << i << " is required";
    state.initial.push_back(n.in(i));
    state.carried.push_back(Node::type(n.in(i)));
  }
  size_t carried = state.carried.size();
  if (n.numOutputs() < carried)
    return n.error() << "has " << n.numOutputs() << " outputs for " << carried
                     << " carried values";
  // Each round either stands still or makes a size dynamic; after a few, all
  // of them are.
  constexpr int kRounds = 4;
  for (int round = 0;; ++round) {
    SmallVector<Value> inits;
    SmallVector<Type> types;
    for (auto [i, value] : llvm::enumerate(state.initial)) {
      types.push_back(i < 2 ? value.getType() : Type(state.carried[i - 2]));
      inits.push_back(castTo(n, value, types.back()));
    }
    for (RankedTensorType row : state.scanned) {
      Shape shape(row.getShape());
      shape.insert(shape.begin(), 0);
      Value none = n.make<ir::ConstantOfShapeOp>(
          n.makeType(shape, row.getElementType()), n.constantInts(shape),
          DenseElementsAttr::get(
              RankedTensorType::get({1}, row.getElementType()),
              n.builder.getZeroAttr(row.getElementType())));
      shape.front() = ShapedType::kDynamic;
      types.push_back(n.makeType(shape, row.getElementType()));
      inits.push_back(castTo(n, none, types.back()));
    }
    auto loop = scf::WhileOp::create(n.builder, n.loc, types, inits);
    FailureOr<SmallVector<Value>> yields = loopBody(n, *body, state, loop);
    if (failed(yields))
      return failure();
    bool stands = yields->size() == types.size();
    for (size_t i = 0; i < carried; ++i) {
      auto type = Node::type((*yields)[2 + i]);
      if (type == state.carried[i])
        continue;
      stands = false;
      state.carried[i] = round < kRounds
                             ? type
                             : RankedTensorType::get(
                                   Shape(type.getRank(), ShapedType::kDynamic),
                                   type.getElementType());
    }
    if (stands) {
      for (auto [i, result] : llvm::enumerate(loop.getResults().drop_front(2)))
        n.set(i, result);
      return success();
    }
    state.scanned.clear();
    for (size_t i = 2 + carried; i < yields->size(); ++i) {
      RankedTensorType type = Node::type((*yields)[i]);
      state.scanned.push_back(
          yields->size() == types.size()
              ? RankedTensorType::get(type.getShape().drop_front(),
                                      type.getElementType())
              : type);
    }
    n.graph.shapeValues.forget(loop);
    loop.erase();
  }
}

void registerControl(Registry &r) {
  r.add("If", {ifNode, 1, 1, kAny});
  r.add("Loop", {loopNode, 0, kAny, kAny});
}

} // namespace llm::importer
