//===- Indexing.cpp - Gather and scatter ----------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

using namespace mlir;

namespace llm::importer {

/// Reports a constant index outside [-size, size).
static bool indicesFit(Node &n, Value indices, int64_t size) {
  std::optional<KnownInts> known = n.known(indices);
  if (!known || ShapedType::isDynamic(size))
    return true;
  for (std::optional<int64_t> index : *known)
    if (index && !ir::normalizeAxis(*index, size)) {
      n.error() << "the index " << *index << " is outside an axis of size "
                << size;
      return false;
    }
  return true;
}

static LogicalResult gather(Node &n) {
  int64_t axis = n.intAttr("axis", 0);
  if (!n.isInteger(1))
    return failure();
  Value x = n.in(0), indices = n.in(1);
  ArrayRef<int64_t> dims = Node::shape(x);
  axis = n.axis(axis, dims.size());
  if (n.hasFailed() || !indicesFit(n, indices, dims[axis]))
    return failure();
  Shape shape(dims.take_front(axis));
  llvm::append_range(shape, Node::shape(indices));
  llvm::append_range(shape, dims.drop_front(axis + 1));
  n.set(0, n.make<ir::GatherOp>(n.makeType(shape, Node::element(x)), x, indices,
                                n.i64(axis)));
  return success();
}

/// Whether `indices` may replace the coordinate along `axis` of the elements of
/// input 0.
static bool elementIndicesFit(Node &n, int64_t axis) {
  Value x = n.in(0), indices = n.in(1);
  int64_t rank = Node::type(x).getRank();
  bool fits = Node::type(indices).getRank() == rank;
  for (int64_t i = 0; fits && i < rank; ++i) {
    int64_t from = Node::shape(x)[i], size = Node::shape(indices)[i];
    fits = i == axis || ShapedType::isDynamic(from) ||
           ShapedType::isDynamic(size) || size <= from;
  }
  if (!fits)
    n.error() << "indices of type " << indices.getType() << " do not fit "
              << x.getType() << " beside axis " << axis;
  return fits && indicesFit(n, indices, Node::shape(x)[axis]);
}

static LogicalResult gatherElements(Node &n) {
  int64_t axis = n.intAttr("axis", 0);
  if (!n.isInteger(1))
    return failure();
  Value x = n.in(0), indices = n.in(1);
  axis = n.axis(axis, Node::type(x).getRank());
  if (n.hasFailed() || !elementIndicesFit(n, axis))
    return failure();
  n.set(0, n.make<ir::GatherElementsOp>(
               n.makeType(Node::shape(indices), Node::element(x)), x, indices,
               n.i64(axis)));
  return success();
}

static FailureOr<std::string> reductionOf(Node &n, int64_t since) {
  std::string reduction =
      n.version >= since ? n.stringAttr("reduction", "none") : "none";
  static constexpr StringRef kKnown[] = {"none", "add", "mul", "max", "min"};
  if (!llvm::is_contained(kKnown, reduction))
    return n.error() << "the reduction '" << printable(reduction)
                     << "' is not known";
  return reduction;
}

static bool sizesFit(ArrayRef<int64_t> sizes, ArrayRef<int64_t> expected) {
  return sizes.size() == expected.size() &&
         llvm::all_of(llvm::zip(sizes, expected), [](const auto &pair) {
           auto [a, b] = pair;
           return a == b || ShapedType::isDynamic(a) ||
                  ShapedType::isDynamic(b);
         });
}

static LogicalResult scatterElements(Node &n) {
  int64_t axis = n.intAttr("axis", 0);
  FailureOr<std::string> reduction = reductionOf(n, 16);
  if (failed(reduction) || !n.isInteger(1) || !n.sameElements(0, 2))
    return failure();
  Value x = n.in(0), indices = n.in(1), updates = n.in(2);
  axis = n.axis(axis, Node::type(x).getRank());
  if (n.hasFailed() || !elementIndicesFit(n, axis))
    return failure();
  if (!sizesFit(Node::shape(updates), Node::shape(indices)))
    return n.error() << "updates of type " << updates.getType()
                     << " do not fit indices " << indices.getType();
  n.set(0, n.make<ir::ScatterElementsOp>(x.getType(), x, indices, updates,
                                         n.i64(axis),
                                         n.builder.getStringAttr(*reduction)));
  return success();
}

/// The shape of what the index tuples of input 1 point to.
static FailureOr<Shape> tupleShape(Node &n, int64_t batch) {
  Value x = n.in(0), indices = n.in(1);
  int64_t rank = Node::type(x).getRank(), q = Node::type(indices).getRank();
  if (q < 1 || rank < 1)
    return n.error() << "input and indices are at least vectors";
  if (batch < 0 || batch >= std::min(rank, q))
    return n.error() << "batch_dims " << batch << " is out of range";
  int64_t depth = Node::shape(indices).back();
  if (ShapedType::isDynamic(depth) || depth > rank - batch || depth < 1)
    return n.error() << "indices of type " << indices.getType()
                     << " are no tuples into " << x.getType();
  if (!sizesFit(Node::shape(x).take_front(batch),
                Node::shape(indices).take_front(batch)))
    return n.error() << "the leading axes of " << x.getType() << " and "
                     << indices.getType() << " differ";
  Shape shape(Node::shape(indices).drop_back());
  llvm::append_range(shape, Node::shape(x).drop_front(batch + depth));
  return shape;
}

static LogicalResult gatherND(Node &n) {
  int64_t batch = n.version >= 12 ? n.intAttr("batch_dims", 0) : 0;
  if (!n.isInteger(1))
    return failure();
  FailureOr<Shape> shape = tupleShape(n, batch);
  if (failed(shape))
    return failure();
  Value x = n.in(0);
  n.set(0, n.make<ir::GatherNDOp>(n.makeType(*shape, Node::element(x)), x,
                                  n.in(1), n.i64(batch)));
  return success();
}

static LogicalResult scatterND(Node &n) {
  FailureOr<std::string> reduction = reductionOf(n, 16);
  if (failed(reduction) || !n.isInteger(1) || !n.sameElements(0, 2))
    return failure();
  FailureOr<Shape> shape = tupleShape(n, 0);
  if (failed(shape))
    return failure();
  Value x = n.in(0), updates = n.in(2);
  if (!sizesFit(Node::shape(updates), *shape))
    return n.error() << "updates of type " << updates.getType()
                     << " do not fit indices " << n.in(1).getType() << " into "
                     << x.getType();
  n.set(0, n.make<ir::ScatterNDOp>(x.getType(), x, n.in(1), updates,
                                   n.builder.getStringAttr(*reduction)));
  return success();
}

/// `value` of `axis` alone, among `rank` axes of size 1.
static Value alongAxis(Node &n, Value value, int64_t axis, int64_t rank) {
  SmallVector<int64_t> others;
  Shape shape(rank, 1);
  shape[axis] = Node::shape(value)[0];
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      others.push_back(i);
  return n.make<ir::UnsqueezeOp>(n.makeType(shape, Node::element(value)), value,
                                 n.builder.getDenseI64ArrayAttr(others));
}

/// A write of the update at each sequence's index along an axis.
static LogicalResult tensorScatter(Node &n) {
  std::string mode = n.stringAttr("mode", "linear");
  int64_t axis = n.intAttr("axis", -2);
  if (mode != "linear" && mode != "circular")
    return n.error() << "the mode '" << printable(mode) << "' is not known";
  if (!n.sameElements(0, 1) ||
      (n.has(2) && (!n.isInteger(2) || !n.hasRank(2, 1, 1))))
    return failure();
  Value past = n.in(0), update = n.in(1);
  int64_t rank = Node::type(past).getRank();
  axis = n.axis(axis, rank);
  Shape expected(Node::shape(past));
  if (n.hasFailed() || axis == 0)
    return n.error() << "the axis is not that of the batch";
  expected[axis] = ShapedType::kDynamic;
  if (!sizesFit(Node::shape(update), expected))
    return n.error() << "an update of type " << update.getType()
                     << " does not fit the cache of type " << past.getType();
  Type i64 = n.builder.getI64Type();
  auto one = RankedTensorType::get({1}, i64);
  auto sizeOf = [&](Value value) {
    return n.make<ir::ShapeOp>(one, value, n.i64(axis), n.i64(axis + 1));
  };
  int64_t length = Node::shape(update)[axis];
  Value places = n.make<ir::RangeOp>(
      RankedTensorType::get({length}, i64), n.constantInt(0),
      n.reshape(sizeOf(update), {}, {}), n.constantInt(1));
  places = alongAxis(n, places, axis, rank);
  if (n.has(2))
    places = n.binary<ir::AddOp>(alongAxis(n, n.cast(n.in(2), i64), 0, rank),
                                 places);
  if (mode == "circular")
    places =
        n.make<ir::ModOp>(places.getType(), places, sizeOf(past), UnitAttr());
  auto list = RankedTensorType::get({rank}, i64);
  Value shape = n.make<ir::ShapeOp>(list, update, n.i64(0),
                                    n.builder.getI64IntegerAttr(rank));
  places =
      n.make<ir::ExpandOp>(n.makeType(Node::shape(update), i64), places, shape);
  n.set(0, n.make<ir::ScatterElementsOp>(past.getType(), past, places, update,
                                         n.i64(axis),
                                         n.builder.getStringAttr("none")));
  return success();
}

void registerIndexing(Registry &r) {
  r.add("Gather", {gather, 2, 2});
  r.add("GatherElements", {gatherElements, 2, 2, 1, 11});
  r.add("GatherND", {gatherND, 2, 2, 1, 11});
  r.add("Scatter", {scatterElements, 3, 3, 1, 9, 10});
  r.add("ScatterElements", {scatterElements, 3, 3, 1, 11});
  r.add("ScatterND", {scatterND, 3, 3, 1, 11});
  r.add("TensorScatter", {tensorScatter, 2, 3, 1, 24});
}

} // namespace llm::importer
