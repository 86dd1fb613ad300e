//===- Reduction.cpp - Reductions, softmax and selections
//-------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

using namespace mlir;

namespace llm::importer {

template <ir::ReductionKind kind, int64_t axesInput = 18>
static LogicalResult reduce(Node &n) {
  bool keepdims = n.flag("keepdims", true);
  // The attribute came with the axes' becoming an input.
  bool noop = n.version >= axesInput && n.flag("noop_with_empty_axes");
  std::optional<SmallVector<int64_t>> given = n.axesSince(axesInput, 1);
  constexpr bool ordered =
      kind == ir::ReductionKind::max || kind == ir::ReductionKind::min;
  if (n.hasFailed())
    return failure();
  Value x = n.in(0);
  bool truth = ordered && n.version >= 20 && Node::element(x).isInteger(1);
  if (truth) // As bytes, of which none at all give false or true as well.
    x = n.cast(x, n.elementTypeOf(::onnx::TensorProto::UINT8));
  else if (!n.isNumeric(0))
    return failure();
  int64_t rank = Node::type(x).getRank();
  SmallVector<int64_t> axes;
  if (given && !given->empty())
    axes = n.axes(*given, rank);
  else if (!noop)
    axes = llvm::to_vector(llvm::seq<int64_t>(rank));
  llvm::sort(axes);
  Shape shape;
  for (auto [i, dim] : llvm::enumerate(Node::shape(x))) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(i)))
      shape.push_back(dim);
    else if (keepdims)
      shape.push_back(1);
  }
  if (noop && axes.empty()) {
    n.set(0, n.in(0));
    return success();
  }
  Value y = n.make<ir::ReduceOp>(
      n.makeType(shape, Node::element(x)),
      ir::ReductionKindAttr::get(n.graph.context, kind), x,
      n.builder.getDenseI64ArrayAttr(axes), n.unit(keepdims));
  n.set(0, n.cast(y, Node::element(n.in(0))));
  return success();
}

template <bool minimum> static LogicalResult argmax(Node &n) {
  int64_t axis = n.intAttr("axis", 0);
  bool keepdims = n.flag("keepdims", true);
  bool last = n.version >= 12 && n.flag("select_last_index");
  if (!n.isNumeric(0))
    return failure();
  Value x = n.in(0);
  axis = n.axis(axis, Node::type(x).getRank());
  if (n.hasFailed())
    return failure();
  Shape shape(Node::shape(x));
  if (keepdims)
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + axis);
  n.set(0, n.make<ir::ArgMaxOp>(n.makeType(shape, n.builder.getI64Type()), x,
                                n.i64(axis), n.unit(keepdims), n.unit(last),
                                n.unit(minimum)));
  return success();
}

static LogicalResult topk(Node &n) {
  int64_t axis = n.intAttr("axis", -1);
  bool largest = n.version < 11 || n.flag("largest", true);
  bool sorted = n.version < 11 || n.flag("sorted", true);
  int64_t count = n.version < 10 ? n.requiredInt("k") : 0;
  if (n.hasFailed() || !n.isNumeric(0))
    return failure();
  if (n.version >= 10 && (!n.has(1) || !n.isInteger(1)))
    return n.error() << "input 1, the number of elements, is required";
  Value x = n.in(0);
  Value k = n.version < 10 ? n.constantInts({count}) : n.in(1);
  axis = n.axis(axis, Node::type(x).getRank());
  if (n.hasFailed())
    return failure();
  std::optional<SmallVector<int64_t>> known = n.constantInts(k);
  Shape shape(Node::shape(x));
  if (known && known->size() == 1) {
    count = known->front();
    if (count < 0 ||
        (!ShapedType::isDynamic(shape[axis]) && count > shape[axis]))
      return n.error() << "takes " << count << " elements of " << shape[axis];
    shape[axis] = count;
  } else {
    shape[axis] = ShapedType::kDynamic;
  }
  auto op =
      n.create<ir::TopKOp>(TypeRange{n.makeType(shape, Node::element(x)),
                                     n.makeType(shape, n.builder.getI64Type())},
                           x, k, n.i64(axis), n.unit(largest), n.unit(sorted));
  n.set(0, op.getValues());
  n.set(1, op.getIndices());
  return success();
}

template <bool log> static LogicalResult softmax(Node &n) {
  int64_t axis = n.intAttr("axis", n.version < 13 ? 1 : -1);
  if (!n.isFloat(0))
    return failure();
  Value x = n.in(0);
  int64_t rank = Node::type(x).getRank();
  // Before version 13 the axes from `axis` on are one, and may be none.
  axis = n.version < 13 && axis == rank ? rank : n.axis(axis, rank);
  if (n.hasFailed())
    return failure();
  auto make = [&](Value value, int64_t over) {
    return n.make<ir::SoftmaxOp>(value.getType(), value, n.i64(over),
                                 n.unit(log));
  };
  if (n.version >= 13 || axis == rank - 1) {
    n.set(0, make(x, axis));
    return success();
  }
  Value shape = n.make<ir::ShapeOp>(n.makeType({rank}, n.builder.getI64Type()),
                                    x, n.i64(0), IntegerAttr());
  Value y = make(n.flatten(x, axis), 1);
  n.set(0, n.make<ir::ReshapeOp>(x.getType(), y, shape, n.unit(true)));
  return success();
}

static LogicalResult cumsum(Node &n) {
  bool exclusive = n.flag("exclusive"), reverse = n.flag("reverse");
  if (!n.isNumeric(0))
    return failure();
  std::optional<SmallVector<int64_t>> axis = n.constantInts(n.in(1));
  if (!axis || axis->size() != 1)
    return n.error() << "only a constant axis is supported";
  Value x = n.in(0);
  n.set(0, n.make<ir::CumSumOp>(
               x.getType(), x,
               n.i64(n.axis(axis->front(), Node::type(x).getRank())),
               n.unit(exclusive), n.unit(reverse)));
  return success();
}

void registerReduction(Registry &r) {
  using Kind = ir::ReductionKind;
  r.add("ReduceL1", {reduce<Kind::l1>, 1, 2});
  r.add("ReduceL2", {reduce<Kind::l2>, 1, 2});
  r.add("ReduceLogSum", {reduce<Kind::log_sum>, 1, 2});
  r.add("ReduceLogSumExp", {reduce<Kind::log_sum_exp>, 1, 2});
  r.add("ReduceMax", {reduce<Kind::max>, 1, 2});
  r.add("ReduceMean", {reduce<Kind::mean>, 1, 2});
  r.add("ReduceMin", {reduce<Kind::min>, 1, 2});
  r.add("ReduceProd", {reduce<Kind::prod>, 1, 2});
  r.add("ReduceSum", {reduce<Kind::sum, 13>, 1, 2});
  r.add("ReduceSumSquare", {reduce<Kind::sum_square>, 1, 2});
  r.add("ArgMax", {argmax<false>, 1, 1});
  r.add("ArgMin", {argmax<true>, 1, 1});
  r.add("CumSum", {cumsum, 2, 2, 1, 11});
  r.add("LogSoftmax", {softmax<true>, 1, 1});
  r.add("Softmax", {softmax<false>, 1, 1});
  r.add("TopK", {topk, 1, 2, 2});
}

} // namespace llm::importer
