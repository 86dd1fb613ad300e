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
  // The result types come from the branches: they are imported into regions
  // that the op then takes over.
  Region regions[2];
  SmallVector<Value> results[2];
  for (int i : {0, 1}) {
    OpBuilder::InsertionGuard guard(n.builder);
    n.builder.createBlock(&regions[i]);
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
  op.getThenRegion().takeBody(regions[0]);
  op.getElseRegion().takeBody(regions[1]);
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

void registerControl(Registry &r) { r.add("If", {ifNode, 1, 1, kAny}); }

} // namespace llm::importer
