//===- Shape.cpp - Constants and shapes
//-------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

#include <cmath>

using namespace mlir;

namespace llm::importer {

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// Constants of nodes are mostly small and stay readable; the rest is stored
/// data like an initializer.
static LogicalResult constantOf(Node &n, const ::onnx::TensorProto &proto) {
  FailureOr<Tensor> tensor =
      n.graph.reader.read(proto, [&] { return n.error() << "its value: "; });
  if (failed(tensor))
    return failure();
  constexpr int64_t kSmall = 64;
  if (tensor->count() <= kSmall)
    n.set(0, n.make<ir::ConstantOp>(tensor->type,
                                    n.graph.reader.elements(*tensor)));
  n.setTensor(0, std::move(*tensor));
  return success();
}

template <typename T>
static Value constantOf(Node &n, ArrayRef<T> values, bool scalar,
                        Type element) {
  Shape shape;
  if (!scalar)
    shape.push_back(static_cast<int64_t>(values.size()));
  auto type = n.makeType(shape, element);
  return n.make<ir::ConstantOp>(type, DenseElementsAttr::get(type, values));
}

static LogicalResult constant(Node &n) {
  int given = 0;
  Type i64 = n.builder.getI64Type(), f32 = n.builder.getF32Type();
  if (const ::onnx::TensorProto *value = n.tensorAttr("value")) {
    ++given;
    if (failed(constantOf(n, *value)))
      return failure();
  }
  if (n.hasAttr("value_int")) {
    ++given;
    n.set(0, n.constantInt(n.intAttr("value_int", 0)));
  }
  if (n.hasAttr("value_float")) {
    ++given;
    float value = static_cast<float>(n.floatAttr("value_float", 0));
    n.set(0, constantOf<float>(n, value, true, f32));
  }
  if (std::optional<SmallVector<int64_t>> ints = n.intsAttr("value_ints")) {
    ++given;
    n.set(0, constantOf<int64_t>(n, *ints, false, i64));
  }
  if (std::optional<SmallVector<float>> floats = n.floatsAttr("value_floats")) {
    ++given;
    n.set(0, constantOf<float>(n, *floats, false, f32));
  }
  if (given != 1)
    return n.error() << "needs one of value, value_int, value_ints, "
                        "value_float and value_floats";
  return success();
}

static LogicalResult constantOfShape(Node &n) {
  DenseElementsAttr value;
  Type element = n.builder.getF32Type();
  if (const ::onnx::TensorProto *proto = n.tensorAttr("value")) {
    FailureOr<Tensor> tensor =
        n.graph.reader.read(*proto, [&] { return n.error() << "its value: "; });
    if (failed(tensor))
      return failure();
    if (tensor->count() != 1)
      return n.error() << "its value has " << tensor->count()
                       << " elements instead of one";
    element = tensor->type.getElementType();
    value = n.graph.reader.elements(*tensor).reshape(
        RankedTensorType::get({1}, element));
  } else {
    value = DenseElementsAttr::get(RankedTensorType::get({1}, element), 0.0f);
  }
  if (!n.isInteger(0) || !n.hasRank(0, 1, 1))
    return failure();
  FailureOr<Shape> shape = n.shapeFrom(0);
  if (failed(shape))
    return failure();
  n.set(0, n.make<ir::ConstantOfShapeOp>(n.makeType(*shape, element), n.in(0),
                                         value));
  return success();
}

static LogicalResult identity(Node &n) {
  // Integer data may only be a part of a quantized weight: it becomes a value
  // when something computes with it.
  const Tensor *tensor = n.tensor(0);
  if (tensor && tensor->type.getElementType().isInteger() &&
      tensor->count() > 1) {
    n.setTensor(0, *tensor);
    return success();
  }
  n.set(0, n.in(0));
  if ((tensor = n.tensor(0)))
    n.setTensor(0, *tensor);
  return success();
}

static LogicalResult range(Node &n) {
  if (!n.isNumeric(0) || !n.sameElements(0, 1) || !n.sameElements(0, 2) ||
      !n.hasRank(0, 0, 0) || !n.hasRank(1, 0, 0) || !n.hasRank(2, 0, 0))
    return failure();
  Value start = n.in(0), limit = n.in(1), delta = n.in(2);
  std::optional<double> a = n.constantScalar(start),
                        b = n.constantScalar(limit),
                        d = n.constantScalar(delta);
  if (d && *d == 0)
    return n.error() << "a step of zero has no end";
  int64_t size = ShapedType::kDynamic;
  if (a && b && d) {
    double count = std::max(0.0, std::ceil((*b - *a) / *d));
    // Not a number fails this too.
    if (!(count <= static_cast<double>(kMaxElements)))
      return n.error() << "the range has too many elements";
    size = static_cast<int64_t>(count);
  }
  n.set(0, n.make<ir::RangeOp>(n.makeType({size}, Node::element(start)), start,
                               limit, delta));
  return success();
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static LogicalResult shape(Node &n) {
  int64_t start = n.version >= 15 ? n.intAttr("start", 0) : 0;
  bool ends = n.version >= 15 && n.hasAttr("end");
  int64_t end = ends ? n.intAttr("end", 0) : 0;
  Value x = n.in(0);
  int64_t rank = Node::type(x).getRank();
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t size =
      std::max<int64_t>(0, (ends ? clamp(end) : rank) - clamp(start));
  n.set(0,
        n.make<ir::ShapeOp>(n.makeType({size}, n.builder.getI64Type()), x,
                            n.i64(start), ends ? n.i64(end) : IntegerAttr()));
  return success();
}

static Value product(Node &n, Value dims, bool keepdims) {
  Shape shape;
  if (keepdims)
    shape.push_back(1);
  return n.make<ir::ReduceOp>(
      n.makeType(shape, n.builder.getI64Type()),
      ir::ReductionKindAttr::get(n.graph.context, ir::ReductionKind::prod),
      dims, n.builder.getDenseI64ArrayAttr({0}), n.unit(keepdims));
}

static LogicalResult size(Node &n) {
  Value x = n.in(0);
  Value dims = n.make<ir::ShapeOp>(
      n.makeType({Node::type(x).getRank()}, n.builder.getI64Type()), x,
      n.i64(0), IntegerAttr());
  n.set(0, product(n, dims, false));
  return success();
}

/// The static product of some sizes, or kDynamic.
static int64_t productOf(ArrayRef<int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims)
    if (ShapedType::isDynamic(dim) ||
        __builtin_mul_overflow(product, dim, &product))
      return ShapedType::kDynamic;
  return product;
}

Value Node::flatten(Value x, int64_t axis) {
  ArrayRef<int64_t> dims = shape(x);
  int64_t rows = productOf(dims.take_front(axis));
  int64_t columns = productOf(dims.drop_front(axis));
  if (!ShapedType::isDynamic(rows))
    return reshape(x, {rows, ShapedType::isDynamic(columns) ? -1 : columns},
                   {rows, columns});
  if (!ShapedType::isDynamic(columns))
    return reshape(x, {-1, columns}, {rows, columns});
  Value head = make<ir::ShapeOp>(makeType({axis}, builder.getI64Type()), x,
                                 i64(0), i64(axis));
  Value rowCount = product(*this, head, true);
  Value sizes =
      make<ir::ConcatOp>(makeType({2}, builder.getI64Type()),
                         ValueRange{rowCount, constantInts({-1})}, i64(0));
  return make<ir::ReshapeOp>(makeType({rows, columns}, element(x)), x, sizes,
                             UnitAttr());
}

static LogicalResult flattenNode(Node &n) {
  int64_t axis = n.intAttr("axis", 1);
  int64_t rank = Node::type(n.in(0)).getRank();
  // The axis may lie behind the last one.
  axis = axis == rank ? rank : n.axis(axis, rank);
  if (n.hasFailed())
    return failure();
  n.set(0, n.flatten(n.in(0), axis));
  return success();
}

/// The result shape of a Reshape whose target is known in part.
static FailureOr<Shape> reshaped(Node &n, ArrayRef<int64_t> input,
                                 const KnownInts &target, bool allowzero) {
  Shape out;
  // What must match: the sizes that are not copied one to one.
  Shape rest(input);
  std::optional<size_t> inferred;
  bool known = true, zero = false;
  int64_t given = 1;
  for (auto [i, size] : llvm::enumerate(target)) {
    if (!size) {
      known = false;
      out.push_back(ShapedType::kDynamic);
    } else if (*size == 0 && !allowzero) {
      if (i >= input.size())
        return n.error() << "copies size " << i << " of a tensor of rank "
                         << input.size();
      out.push_back(input[i]);
      rest[i] = 1;
    } else if (*size == -1) {
      if (inferred)
        return n.error() << "infers more than one size";
      inferred = i;
      out.push_back(ShapedType::kDynamic);
    } else if (*size < 0) {
      return n.error() << "the size " << *size << " is negative";
    } else {
      zero |= *size == 0;
      out.push_back(*size);
      if (__builtin_mul_overflow(given, *size, &given))
        return n.error() << "the result has too many elements";
    }
  }
  int64_t total = productOf(rest);
  if (inferred && zero)
    return n.error() << "infers a size beside a size of zero";
  if (!known || ShapedType::isDynamic(total))
    return out;
  bool fits = inferred ? given != 0 && total % given == 0 : total == given;
  if (!fits)
    return n.error() << "an input of type " << n.in(0).getType()
                     << " does not fit the shape";
  if (inferred)
    out[*inferred] = total / given;
  return out;
}

static LogicalResult reshape(Node &n) {
  bool allowzero = n.version >= 14 && n.flag("allowzero");
  if (!n.isInteger(1) || !n.hasRank(1, 1, 1))
    return failure();
  Value target = n.in(1);
  std::optional<KnownInts> known = n.known(target);
  if (!known)
    return n.error() << "rank of '" << printable(n.proto.output(0))
                     << "' is not known: its shape '"
                     << printable(n.inputName(1)) << "' has type "
                     << target.getType();
  // A stored tensor only changes its type.
  const Tensor *tensor = n.tensor(0);
  std::optional<SmallVector<int64_t>> sizes = n.constantInts(target);
  FailureOr<Shape> shape =
      reshaped(n, tensor ? tensor->type.getShape() : Node::shape(n.in(0)),
               *known, allowzero);
  if (failed(shape))
    return failure();
  if (tensor && sizes && countElements(*shape)) {
    Tensor result = *tensor;
    result.type = n.makeType(*shape, tensor->type.getElementType());
    n.setTensor(0, std::move(result));
    return success();
  }
  Value x = n.in(0);
  n.set(0, n.make<ir::ReshapeOp>(n.makeType(*shape, Node::element(x)), x,
                                 target, n.unit(allowzero)));
  return success();
}

static LogicalResult squeeze(Node &n) {
  std::optional<SmallVector<int64_t>> given = n.axesSince(13, 1);
  if (n.hasFailed())
    return failure();
  Value x = n.in(0);
  ArrayRef<int64_t> dims = Node::shape(x);
  SmallVector<int64_t> axes;
  if (given) {
    axes = n.axes(*given, dims.size());
  } else {
    for (auto [i, dim] : llvm::enumerate(dims)) {
      if (ShapedType::isDynamic(dim))
        return n.error() << "rank of '" << printable(n.proto.output(0))
                         << "' is not known: it has no axes, and the input is "
                         << x.getType();
      if (dim == 1)
        axes.push_back(i);
    }
  }
  llvm::sort(axes);
  Shape shape;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(i)))
      shape.push_back(dim);
    else if (!ShapedType::isDynamic(dim) && dim != 1)
      return n.error() << "axis " << i << " of " << x.getType()
                       << " is not of size 1";
  }
  n.set(0, n.make<ir::SqueezeOp>(n.makeType(shape, Node::element(x)), x,
                                 n.builder.getDenseI64ArrayAttr(axes)));
  return success();
}

static LogicalResult unsqueeze(Node &n) {
  if (n.version >= 13 && !n.has(1))
    return n.error() << "input 1, the axes, is required";
  std::optional<SmallVector<int64_t>> given = n.axesSince(13, 1);
  if (!given && !n.hasFailed())
    return n.error() << "the attribute 'axes' is required";
  if (n.hasFailed())
    return failure();
  Value x = n.in(0);
  int64_t rank = Node::type(x).getRank() + given->size();
  if (rank > kMaxRank)
    return n.error() << "the result would have " << rank << " dimensions";
  SmallVector<int64_t> axes = n.axes(*given, rank);
  if (n.hasFailed())
    return failure();
  llvm::sort(axes);
  Shape shape(Node::shape(x));
  for (int64_t axis : axes)
    shape.insert(shape.begin() + axis, 1);
  n.set(0, n.make<ir::UnsqueezeOp>(n.makeType(shape, Node::element(x)), x,
                                   n.builder.getDenseI64ArrayAttr(axes)));
  return success();
}

FailureOr<Shape> Node::shapeFrom(unsigned i) {
  std::optional<KnownInts> ints = known(in(i));
  if (!ints)
    return error() << "rank of '" << printable(proto.output(0))
                   << "' is not known: its shape '" << printable(inputName(i))
                   << "' has type " << in(i).getType();
  Shape shape;
  for (std::optional<int64_t> size : *ints) {
    if (size && *size < 0)
      return error() << "the size " << *size << " is negative";
    shape.push_back(size.value_or(ShapedType::kDynamic));
  }
  return shape;
}

void registerShape(Registry &r) {
  r.add("Constant", {constant, 0, 0});
  r.add("ConstantOfShape", {constantOfShape, 1, 1, 1, 9});
  r.add("Flatten", {flattenNode, 1, 1});
  r.add("Identity", {identity, 1, 1});
  r.add("Range", {range, 3, 3, 1, 11});
  r.add("Reshape", {reshape, 2, 2});
  r.add("Shape", {shape, 1, 1});
  r.add("Size", {size, 1, 1});
  r.add("Squeeze", {squeeze, 1, 2});
  r.add("Unsqueeze", {unsqueeze, 1, 2});
}

} // namespace llm::importer
