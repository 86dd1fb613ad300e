//===- Movement.cpp - Moving data about
//-------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

using namespace mlir;

namespace llm::importer {

static LogicalResult concat(Node &n) {
  int64_t axis = n.requiredInt("axis");
  if (n.hasFailed())
    return failure();
  Shape shape(Node::shape(n.in(0)));
  axis = n.axis(axis, shape.size());
  if (n.hasFailed())
    return failure();
  int64_t sum = 0;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    if (!n.has(i))
      return n.error() << "input " << i << " is required";
    if (!n.sameElements(0, i) || !n.hasRank(i, shape.size(), shape.size()))
      return failure();
    ArrayRef<int64_t> dims = Node::shape(n.in(i));
    for (auto [k, dim] : llvm::enumerate(dims)) {
      if (static_cast<int64_t>(k) == axis || ShapedType::isDynamic(dim))
        continue;
      if (ShapedType::isDynamic(shape[k]))
        shape[k] = dim;
      else if (shape[k] != dim)
        return n.error() << "input " << i << " of type " << n.in(i).getType()
                         << " does not fit beside axis " << axis;
    }
    if (ShapedType::isDynamic(sum) || ShapedType::isDynamic(dims[axis]))
      sum = ShapedType::kDynamic;
    else if (__builtin_add_overflow(sum, dims[axis], &sum))
      return n.error() << "the result is too large";
  }
  shape[axis] = sum;
  auto type = n.makeType(shape, Node::element(n.in(0)));
  n.set(0, n.make<ir::ConcatOp>(type, n.allInputs(), n.i64(axis)));
  return success();
}

static LogicalResult expand(Node &n) {
  if (!n.isInteger(1) || !n.hasRank(1, 1, 1))
    return failure();
  FailureOr<Shape> target = n.shapeFrom(1);
  if (failed(target))
    return failure();
  Value x = n.in(0);
  n.set(0, n.make<ir::ExpandOp>(n.makeType(n.broadcast(Node::shape(x), *target),
                                           Node::element(x)),
                                x, n.in(1)));
  return success();
}

/// The pads of `axes` for all axes: the others get none.
static Value padsOfAll(Node &n, Value pads, ArrayRef<int64_t> axes,
                       int64_t rank) {
  int64_t count = static_cast<int64_t>(axes.size());
  auto longer = RankedTensorType::get({2 * count + 1}, Node::element(pads));
  Value zero =
      n.cast(n.constantInts(ArrayRef<int64_t>(0)), Node::element(pads));
  Value all = n.make<ir::ConcatOp>(longer, ValueRange{pads, zero}, n.i64(0));
  SmallVector<int64_t> from(2 * rank, 2 * count);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    from[axis] = static_cast<int64_t>(i);
    from[rank + axis] = count + static_cast<int64_t>(i);
  }
  return n.make<ir::GatherOp>(
      RankedTensorType::get({2 * rank}, Node::element(pads)), all,
      n.constantInts(from), n.i64(0));
}

static LogicalResult pad(Node &n) {
  std::string mode = n.stringAttr("mode", "constant");
  static constexpr StringRef kKnown[] = {"constant", "edge", "reflect", "wrap"};
  if (!llvm::is_contained(kKnown, mode) || (mode == "wrap" && n.version < 19))
    return n.error() << "the mode '" << printable(mode) << "' is not known";
  Value x = n.in(0), pads, value;
  int64_t rank = Node::type(x).getRank();
  if (n.version < 11) {
    std::optional<SmallVector<int64_t>> attribute = n.intsAttr("pads");
    double number = n.floatAttr("value", 0);
    if (n.numInputs() > 1)
      return n.error() << "the pads are an attribute before version 11";
    if (!attribute)
      return n.error() << "the attribute 'pads' is required";
    if (!n.isFloat(0))
      return failure();
    pads = n.constantInts(*attribute);
    value = n.constantScalar(Node::element(x), number);
  } else {
    if (!n.has(1))
      return n.error() << "input 1 is required";
    if (!n.isInteger(1) || !n.hasRank(1, 1, 1) ||
        (n.has(2) && !n.sameElements(0, 2)))
      return failure();
    pads = n.in(1);
    value = n.has(2) ? n.in(2) : Value();
  }
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(rank));
  if (n.has(3)) {
    std::optional<SmallVector<int64_t>> given = n.constantInts(n.in(3));
    if (!given)
      return n.error() << "only constant axes are supported";
    axes = n.axes(*given, rank);
  }
  int64_t count = Node::shape(pads)[0], wanted = 2 * axes.size();
  if (n.hasFailed() || (count != wanted && !ShapedType::isDynamic(count)))
    return n.error() << "pads of type " << pads.getType()
                     << " are not two for each of " << axes.size() << " axes";
  if (n.has(3))
    pads = padsOfAll(n, pads, axes, rank);
  Shape shape(Node::shape(x));
  std::optional<KnownInts> known = n.known(pads);
  for (int64_t i = 0; i < rank; ++i) {
    auto number = [&](int64_t at) {
      return known ? (*known)[at] : std::optional<int64_t>();
    };
    std::optional<int64_t> before = number(i), behind = number(rank + i);
    int64_t &dim = shape[i];
    if (!before || !behind) {
      dim = ShapedType::kDynamic;
    } else if (*before != 0 || *behind != 0) {
      if (!ShapedType::isDynamic(dim) &&
          (__builtin_add_overflow(dim, *before, &dim) ||
           __builtin_add_overflow(dim, *behind, &dim) || dim < 0))
        return n.error() << "pads of " << *before << " and " << *behind
                         << " do not fit axis " << i << " of " << x.getType();
    }
  }
  n.set(0, n.make<ir::PadOp>(n.makeType(shape, Node::element(x)), x, pads,
                             value, n.builder.getStringAttr(mode)));
  return success();
}

/// The size of `dim` between two bounds with a step; kDynamic where it depends
/// on what is only known at run time.
static int64_t slicedSize(int64_t dim, std::optional<int64_t> start,
                          std::optional<int64_t> end,
                          std::optional<int64_t> step) {
  if (!start || !end || !step)
    return ShapedType::kDynamic;
  if (ShapedType::isDynamic(dim)) {
    // All of it, or nothing, whatever the size.
    return ShapedType::kDynamic;
  }
  auto clamp = [&](int64_t at, int64_t low, int64_t high) {
    return std::clamp<int64_t>(at < 0 ? at + dim : at, low, high);
  };
  int64_t from, to, span, stride;
  if (*step > 0) {
    from = clamp(*start, 0, dim);
    to = clamp(*end, 0, dim);
    span = to - from;
    stride = *step;
  } else {
    from = clamp(*start, -1, dim - 1);
    to = clamp(*end, -1, dim - 1);
    span = from - to;
    stride = *step == INT64_MIN ? INT64_MAX : -*step;
  }
  return span <= 0 ? 0 : (span - 1) / stride + 1;
}

static LogicalResult slice(Node &n) {
  Value starts, ends, axesValue, steps;
  if (n.version < 10) {
    std::optional<SmallVector<int64_t>> a = n.intsAttr("starts"),
                                        b = n.intsAttr("ends"),
                                        c = n.intsAttr("axes");
    if (n.hasFailed())
      return failure();
    if (!a || !b)
      return n.error() << "the attributes 'starts' and 'ends' are required";
    starts = n.constantInts(*a);
    ends = n.constantInts(*b);
    if (c)
      axesValue = n.constantInts(*c);
  } else {
    for (unsigned i = 1; i < 5; ++i)
      if (i < 3 || n.has(i)) {
        if (!n.has(i))
          return n.error() << "input " << i << " is required";
        if (!n.isInteger(i) || !n.hasRank(i, 1, 1))
          return failure();
      }
    starts = n.in(1);
    ends = n.in(2);
    axesValue = n.has(3) ? n.in(3) : Value();
    steps = n.has(4) ? n.in(4) : Value();
  }
  Value x = n.in(0);
  int64_t rank = Node::type(x).getRank();
  std::optional<KnownInts> from = n.known(starts), to = n.known(ends), by;
  if (steps)
    by = n.known(steps);
  Shape shape(Node::shape(x));
  std::optional<SmallVector<int64_t>> axes;
  if (axesValue)
    axes = n.constantInts(axesValue);
  else if (from)
    axes = llvm::to_vector(llvm::seq<int64_t>(from->size()));
  if (!axes) {
    // Which axes are cut is only known at run time.
    for (int64_t &dim : shape)
      dim = ShapedType::kDynamic;
  } else {
    SmallVector<int64_t> normal = n.axes(*axes, rank);
    if (n.hasFailed())
      return failure();
    if ((from && from->size() != normal.size()) ||
        (to && to->size() != normal.size()) ||
        (by && by->size() != normal.size()))
      return n.error() << "starts, ends, axes and steps differ in length";
    for (auto [i, axis] : llvm::enumerate(normal)) {
      std::optional<int64_t> step = 1;
      if (steps)
        step = by ? (*by)[i] : std::nullopt;
      if (step && *step == 0)
        return n.error() << "a step is zero";
      shape[axis] = slicedSize(shape[axis], from ? (*from)[i] : std::nullopt,
                               to ? (*to)[i] : std::nullopt, step);
    }
  }
  n.set(0, n.make<ir::SliceOp>(n.makeType(shape, Node::element(x)), x, starts,
                               ends, axesValue, steps));
  return success();
}

static LogicalResult split(Node &n) {
  int64_t axis = n.intAttr("axis", 0);
  int64_t parts = n.numOutputs();
  bool counted = n.version >= 18 && n.hasAttr("num_outputs");
  if (counted && n.intAttr("num_outputs", 0) != parts)
    return n.error() << "num_outputs is not the number of outputs, " << parts;
  std::optional<SmallVector<int64_t>> attribute;
  if (n.version < 13)
    attribute = n.intsAttr("split");
  if (n.hasFailed())
    return failure();
  Value x = n.in(0), sizes;
  axis = n.axis(axis, Node::type(x).getRank());
  if (n.version < 13) {
    if (n.has(1))
      return n.error() << "the sizes are an attribute before version 13";
    if (attribute)
      sizes = n.constantInts(*attribute);
  } else if (n.has(1)) {
    if (counted)
      return n.error() << "has both sizes and num_outputs";
    if (!n.isInteger(1) || !n.hasRank(1, 1, 1))
      return failure();
    sizes = n.in(1);
  }
  if (n.hasFailed())
    return failure();
  int64_t dim = Node::shape(x)[axis];
  SmallVector<int64_t> each(parts, ShapedType::kDynamic);
  if (sizes) {
    if (std::optional<KnownInts> known = n.known(sizes)) {
      if (static_cast<int64_t>(known->size()) != parts)
        return n.error() << "has " << known->size() << " sizes for " << parts
                         << " outputs";
      int64_t sum = 0;
      bool all = true;
      for (auto [i, size] : llvm::enumerate(*known)) {
        all &= size.has_value();
        if (!size)
          continue;
        if (*size < 0 || __builtin_add_overflow(sum, *size, &sum))
          return n.error() << "the size " << *size << " is out of range";
        each[i] = *size;
      }
      if (!ShapedType::isDynamic(dim) && (all ? sum != dim : sum > dim))
        return n.error() << "sizes of " << sum << " do not fit an axis of "
                         << dim;
    }
  } else if (!ShapedType::isDynamic(dim)) {
    int64_t size = llvm::divideCeil(dim, parts);
    if (!counted && dim % parts != 0)
      return n.error() << "an axis of " << dim << " has no " << parts
                       << " equal parts";
    for (int64_t &part : each) {
      part = std::min(size, dim);
      dim -= part;
    }
  }
  SmallVector<Type> types;
  for (int64_t size : each) {
    Shape shape(Node::shape(x));
    shape[axis] = size;
    types.push_back(n.makeType(shape, Node::element(x)));
  }
  auto op = n.create<ir::SplitOp>(types, x, sizes, n.i64(axis));
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    n.set(i, result);
  return success();
}

static LogicalResult tile(Node &n) {
  if (!n.isInteger(1) || !n.hasRank(1, 1, 1))
    return failure();
  Value x = n.in(0);
  Shape shape(Node::shape(x));
  std::optional<KnownInts> repeats = n.known(n.in(1));
  if (repeats && repeats->size() != shape.size())
    return n.error() << "has " << repeats->size() << " repeats for "
                     << x.getType();
  for (auto [i, dim] : llvm::enumerate(shape)) {
    std::optional<int64_t> count = repeats ? (*repeats)[i] : std::nullopt;
    if (count && *count < 0)
      return n.error() << "repeats " << *count << " times";
    if (!count || ShapedType::isDynamic(dim))
      dim = count && *count == 1 ? dim : ShapedType::kDynamic;
    else if (__builtin_mul_overflow(dim, *count, &dim))
      return n.error() << "the result is too large";
  }
  n.set(0, n.make<ir::TileOp>(n.makeType(shape, Node::element(x)), x, n.in(1)));
  return success();
}

static LogicalResult transpose(Node &n) {
  std::optional<SmallVector<int64_t>> perm = n.intsAttr("perm");
  if (n.hasFailed())
    return failure();
  Value x = n.in(0);
  int64_t rank = Node::type(x).getRank();
  SmallVector<int64_t> axes;
  if (perm) {
    if (static_cast<int64_t>(perm->size()) != rank)
      return n.error() << "perm has " << perm->size() << " axes for "
                       << x.getType();
    axes = n.axes(*perm, rank);
  } else {
    axes = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(rank)));
  }
  if (n.hasFailed())
    return failure();
  n.set(0, n.transpose(x, axes));
  return success();
}

static LogicalResult trilu(Node &n) {
  bool upper = n.flag("upper", true);
  if (n.has(1) && (!n.isInteger(1) || Node::type(n.in(1)).getRank() > 1))
    return n.error() << "the diagonal is an integer scalar";
  Value x = n.in(0), k = n.has(1) ? n.in(1) : Value();
  if (Node::type(x).getRank() < 2)
    return n.error() << "input 0 is at least a matrix";
  n.set(0, n.make<ir::TriluOp>(x.getType(), x, k, n.unit(upper)));
  return success();
}

void registerMovement(Registry &r) {
  r.add("Concat", {concat, 1, kAny});
  r.add("Expand", {expand, 2, 2, 1, 8});
  r.add("Pad", {pad, 1, 4});
  r.add("Slice", {slice, 1, 5});
  r.add("Split", {split, 1, 2, kAny});
  r.add("Tile", {tile, 2, 2});
  r.add("Transpose", {transpose, 1, 1});
  r.add("Trilu", {trilu, 1, 2, 1, 14});
}

} // namespace llm::importer
