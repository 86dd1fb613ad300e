//===- Quantization.cpp - Quantized weights and tensors
//---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

using namespace mlir;

namespace llm::importer {

/// A stored byte tensor seen as rows of bytes.
static std::optional<Tensor> asRows(Node &n, const Tensor &tensor,
                                    int64_t rows) {
  auto byte = IntegerType::get(n.graph.context, 8, IntegerType::Unsigned);
  int64_t bytes = static_cast<int64_t>(tensor.bytes.size());
  if (rows <= 0 || bytes % rows != 0)
    return std::nullopt;
  Tensor result = tensor;
  result.type = RankedTensorType::get({rows, bytes / rows}, byte);
  return result;
}

static bool isPacked(const Tensor &tensor) {
  Type element = tensor.type.getElementType();
  return element.isUnsignedInteger() && element.getIntOrFloatBitWidth() <= 8;
}

namespace {
/// The parts of a weight [rows, columns] in affine groups.
struct Affine {
  int64_t rows, columns, bits, groupSize;
  const Tensor *data, *scales, *zeros;
  /// Where no zero points are stored: 0 rather than 2^(bits-1).
  bool zeroIsZero = false;
};
} // namespace

/// Adds the weight under the name of input `i`, or reports what does not fit.
static Value affineWeight(Node &n, unsigned i, const Affine &affine) {
  auto wrong = [&](StringRef what, const Tensor &tensor) {
    n.error() << "the " << what << " of type " << tensor.type
              << " do not fit a weight [" << affine.rows << ", "
              << affine.columns << "] in groups of " << affine.groupSize
              << " with " << affine.bits << " bits";
    return Value();
  };
  auto group = static_cast<uint64_t>(affine.groupSize);
  int64_t groups =
      llvm::divideCeil(static_cast<uint64_t>(affine.columns), group);
  int64_t rowBytes, zeroBytes = llvm::divideCeil(groups * affine.bits, 8);
  std::optional<Tensor> data = asRows(n, *affine.data, affine.rows);
  if (__builtin_mul_overflow(groups, affine.groupSize * affine.bits / 8,
                             &rowBytes) ||
      !isPacked(*affine.data) || !data || data->type.getDimSize(1) != rowBytes)
    return wrong("data", *affine.data);
  Tensor scales = *affine.scales;
  Type element = scales.type.getElementType();
  if (scales.count() != affine.rows * groups ||
      !(element.isF32() || element.isF16() || element.isBF16()))
    return wrong("scales", scales);
  scales.type = RankedTensorType::get({affine.rows, groups}, element);

  MLIRContext *context = n.graph.context;
  ir::ComponentAttr zeros;
  if (affine.zeros) {
    Tensor stored = *affine.zeros;
    if (stored.type.getElementType() == element &&
        stored.count() == affine.rows * groups) {
      stored.type = scales.type;
    } else {
      std::optional<Tensor> packed = asRows(n, stored, affine.rows);
      if (!isPacked(stored) || !packed ||
          packed->type.getDimSize(1) != zeroBytes)
        return wrong("zero points", stored);
      stored = *packed;
    }
    zeros = n.graph.reader.component(stored, "zeros");
  } else if (affine.zeroIsZero) {
    auto type = RankedTensorType::get(
        {affine.rows, zeroBytes},
        IntegerType::get(context, 8, IntegerType::Unsigned));
    zeros = ir::ComponentAttr::get(context, "zeros", type,
                                   DenseElementsAttr::get(type, APInt(8, 0)));
  }
  auto format = ir::AffineGroupsFormatAttr::get(
      context, static_cast<unsigned>(affine.bits), affine.groupSize,
      n.graph.reader.component(*data, "data"),
      n.graph.reader.component(scales, "scales"), zeros, /*factor_group=*/0,
      /*factors=*/ir::ComponentAttr());
  auto type = n.makeType({affine.rows, affine.columns}, element);
  return n.graph.weightValue(n.graph.addWeight(n.inputName(i), type, format));
}

static bool checkBits(Node &n, int64_t bits, int64_t groupSize) {
  if (bits != 2 && bits != 4 && bits != 8)
    n.error() << "bits is 2, 4 or 8, not " << bits;
  else if (groupSize < 16 || groupSize > (1 << 20) ||
           (groupSize & (groupSize - 1)) != 0)
    n.error() << "block_size is a power of two from 16 on, not " << groupSize;
  return !n.hasFailed();
}

/// The stored tensor of a required input, or null with an error.
static const Tensor *stored(Node &n, unsigned i, StringRef what) {
  const Tensor *tensor = n.tensor(i);
  if (!tensor)
    n.error() << "the " << what << " (input " << i
              << ") must be stored in the model";
  return tensor;
}

/// com.microsoft MatMulNBits.
static LogicalResult matmulNBits(Node &n) {
  int64_t columns = n.requiredInt("K"), rows = n.requiredInt("N");
  int64_t bits = n.intAttr("bits", 4), groupSize = n.requiredInt("block_size");
  int64_t accuracy = n.intAttr("accuracy_level", 0);
  if (n.intAttr("weight_prepacked", 0) != 0)
    return n.error() << "weight_prepacked is not supported: the layout is "
                        "private to the tool that made it";
  if (n.has(4))
    return n.error() << "g_idx (input 4) is not supported";
  if (n.hasFailed() || !checkBits(n, bits, groupSize) || !n.isFloat(0))
    return failure();
  if (columns <= 0 || rows <= 0 || !countElements({rows, columns}))
    return n.error() << "K (" << columns << ") and N (" << rows
                     << ") are not the sizes of a matrix";
  if (accuracy < 0 || accuracy > 4)
    return n.error() << "accuracy_level is 0 to 4, not " << accuracy;
  Affine affine = {rows, columns, bits, groupSize, nullptr, nullptr, nullptr};
  affine.data = stored(n, 1, "weight");
  affine.scales = affine.data ? stored(n, 2, "scales") : nullptr;
  if (affine.scales && n.has(3))
    affine.zeros = stored(n, 3, "zero points");
  if (n.hasFailed())
    return failure();
  Value x = n.in(0);
  ArrayRef<int64_t> dims = Node::shape(x);
  if (dims.empty() ||
      (!ShapedType::isDynamic(dims.back()) && dims.back() != columns))
    return n.error() << "an input of type " << x.getType() << " has no "
                     << columns << " columns";
  if (affine.scales->type.getElementType() != Node::element(x))
    return n.error() << "scales of type " << affine.scales->type
                     << " do not fit an input of type " << x.getType();
  Value bias = n.has(5) ? n.in(5) : Value();
  if (bias && (!n.sameElements(0, 5) || !n.hasRank(5, 1, 1)))
    return failure();
  Value weight = affineWeight(n, 1, affine);
  if (!weight)
    return failure();
  Shape shape(dims);
  shape.back() = rows;
  n.set(0, n.make<ir::LinearOp>(n.makeType(shape, Node::element(x)), x, weight,
                                bias, UnitAttr(), n.i64(accuracy)));
  return success();
}

/// com.microsoft GatherBlockQuantized of a table of rows.
static LogicalResult gatherBlockQuantized(Node &n) {
  int64_t bits = n.intAttr("bits", 4), groupSize = n.intAttr("block_size", 128);
  int64_t gatherAxis = n.intAttr("gather_axis", 0);
  int64_t quantizeAxis = n.intAttr("quantize_axis", 1);
  const Tensor *data = stored(n, 0, "data");
  const Tensor *scales = data ? stored(n, 2, "scales") : nullptr;
  const Tensor *zeros =
      scales && n.has(3) ? stored(n, 3, "zero points") : nullptr;
  if (n.hasFailed() || !n.isInteger(1))
    return failure();
  if (data->type.getRank() != 2 || !isPacked(*data))
    return n.error() << "data of type " << data->type
                     << " is not supported; a matrix of unsigned codes is";
  unsigned width = data->type.getElementTypeBitWidth();
  if (width < 8)
    bits = width;
  if (!checkBits(n, bits, groupSize))
    return failure();
  if (n.axis(gatherAxis, 2) != 0 || n.axis(quantizeAxis, 2) != 1)
    return n.error() << "only rows quantized along their length can be "
                        "gathered";
  if (n.hasFailed())
    return failure();
  int64_t rows = data->type.getDimSize(0);
  int64_t columns = data->type.getDimSize(1) * (width / bits);
  if (rows <= 0 || columns <= 0 || columns % groupSize != 0)
    return n.error() << "rows of " << columns
                     << " codes are no whole blocks of " << groupSize;
  // Bytes of codes are centred by default, typed codes are not.
  Affine affine = {rows, columns, bits,  groupSize,
                   data, scales,  zeros, width < 8};
  Value weight = affineWeight(n, 0, affine);
  if (!weight)
    return failure();
  Value indices = n.in(1);
  Shape shape(Node::shape(indices));
  shape.push_back(columns);
  n.set(0, n.make<ir::EmbeddingOp>(n.makeType(shape, Node::element(weight)),
                                   indices, weight));
  return success();
}

//===----------------------------------------------------------------------===//
// DequantizeLinear, QuantizeLinear
//===----------------------------------------------------------------------===//

/// Scale or zero point brought to broadcast with `x`: a scalar, a vector along
/// `axis`, or one element for `block` elements of the axis. `blocked` is the
/// shape of x with the axis split into [blocks, block].
static Value spread(Node &n, Value parameter, ArrayRef<int64_t> x, int64_t axis,
                    int64_t block) {
  int64_t rank = static_cast<int64_t>(x.size());
  if (block > 0) {
    Shape shape(Node::shape(parameter));
    shape.insert(shape.begin() + axis + 1, 1);
    return n.make<ir::UnsqueezeOp>(n.makeType(shape, Node::element(parameter)),
                                   parameter,
                                   n.builder.getDenseI64ArrayAttr({axis + 1}));
  }
  if (Node::type(parameter).getRank() == 0 || rank - 1 == axis)
    return rank == 0 && Node::type(parameter).getRank() == 1
               ? n.reshape(parameter, {}, {})
               : parameter;
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(1, rank - axis));
  Shape shape(Node::shape(parameter));
  shape.append(rank - 1 - axis, 1);
  return n.make<ir::UnsqueezeOp>(n.makeType(shape, Node::element(parameter)),
                                 parameter,
                                 n.builder.getDenseI64ArrayAttr(axes));
}

/// Checks scale and zero point against x; false with an error.
static bool checkScales(Node &n, ArrayRef<int64_t> x, int64_t &axis,
                        int64_t block) {
  Value scale = n.in(1);
  int64_t rank = static_cast<int64_t>(x.size());
  int64_t scaleRank = Node::type(scale).getRank();
  if (!n.isFloat(1))
    return false;
  if (block < 0) {
    n.error() << "block_size is not negative";
    return false;
  }
  auto single = [](Value value) {
    return llvm::all_of(Node::shape(value),
                        [](int64_t size) { return size == 1; });
  };
  if (n.has(2) && Node::shape(n.in(2)) != Node::shape(scale) &&
      !(block == 0 && single(scale) && single(n.in(2)) &&
        Node::type(n.in(2)).getRank() <= 1)) {
    n.error() << "the zero point of type " << n.in(2).getType()
              << " does not fit the scale of type " << scale.getType();
    return false;
  }
  // One element serves all, whatever the axis.
  if (block == 0 && (scaleRank == 0 || (scaleRank == 1 && rank > 0 &&
                                        Node::shape(scale)[0] == 1))) {
    axis = rank - 1;
    return true;
  }
  axis = n.axis(axis, rank);
  if (n.hasFailed())
    return false;
  if (block == 0) {
    int64_t size = Node::shape(scale)[0];
    if (scaleRank != 1 || (size != 1 && !ShapedType::isDynamic(size) &&
                           !ShapedType::isDynamic(x[axis]) && size != x[axis]))
      n.error() << "a scale of type " << scale.getType()
                << " does not fit axis " << axis;
    return !n.hasFailed();
  }
  bool fits = scaleRank == rank;
  for (int64_t i = 0; fits && i < rank; ++i) {
    int64_t size = Node::shape(scale)[i];
    if (ShapedType::isDynamic(size) || ShapedType::isDynamic(x[i]))
      fits = i != axis;
    else
      fits =
          i == axis ? x[i] % block == 0 && x[i] / block == size : size == x[i];
  }
  if (!fits)
    n.error() << "a scale of type " << scale.getType()
              << " does not fit whole blocks of " << block << " along axis "
              << axis;
  return fits;
}

/// x with `axis` split into [blocks, block], for block > 0.
static Value splitAxis(Node &n, Value x, int64_t axis, int64_t block) {
  if (block == 0)
    return x;
  Shape shape(Node::shape(x)), sizes;
  int64_t blocks = shape[axis] / block;
  shape[axis] = block;
  shape.insert(shape.begin() + axis, blocks);
  for (int64_t size : shape)
    sizes.push_back(ShapedType::isDynamic(size) ? 0 : size);
  // Dimensions behind the split cannot be copied by position.
  for (size_t i = axis + 2; i < sizes.size(); ++i)
    if (sizes[i] == 0)
      n.error() << "blocks need static sizes behind their axis";
  return n.reshape(x, sizes, shape);
}

static Value joinAxis(Node &n, Value x, ArrayRef<int64_t> shape) {
  if (Node::shape(x) == shape)
    return x;
  Shape sizes;
  for (int64_t size : shape)
    sizes.push_back(ShapedType::isDynamic(size) ? 0 : size);
  return n.reshape(x, sizes, shape);
}

/// A stored matrix in unsigned codes with a scale per block of its rows is a
/// weight in affine groups.
static Value dequantizedWeight(Node &n, int64_t axis, int64_t block,
                               Type result) {
  const Tensor *data = n.tensor(0), *scales = n.tensor(1);
  const Tensor *zeros = n.has(2) ? n.tensor(2) : nullptr;
  if (!data || !scales || (n.has(2) && !zeros) || data->type.getRank() != 2 ||
      !isPacked(*data) || block < 8 || block % 8 != 0 ||
      (axis != 1 && axis != -1) || scales->type.getRank() != 2 ||
      scales->type.getElementType() != result ||
      !(result.isF32() || result.isF16() || result.isBF16()))
    return {};
  int64_t bits = data->type.getElementTypeBitWidth();
  int64_t rows = data->type.getDimSize(0), columns = data->type.getDimSize(1);
  int64_t groups = scales->type.getDimSize(1);
  if (rows <= 0 || columns <= 0 || columns % block != 0 ||
      columns / block != groups || scales->type.getDimSize(0) != rows)
    return {};
  // Zero points are stored without padding between rows.
  if (zeros && (zeros->type.getShape() != scales->type.getShape() ||
                zeros->type.getElementType() != data->type.getElementType() ||
                groups * bits % 8 != 0))
    return {};
  return affineWeight(n, 0,
                      {rows, columns, bits, block, data, scales, zeros, true});
}

static LogicalResult dequantizeLinear(Node &n) {
  int64_t axis = n.version >= 13 ? n.intAttr("axis", 1) : 1;
  int64_t block = n.version >= 21 ? n.intAttr("block_size", 0) : 0;
  int64_t dtype = n.version >= 23 ? n.intAttr("output_dtype", 0) : 0;
  if (n.hasFailed() || !n.isFloat(1))
    return failure();
  Type result = dtype ? n.elementTypeOf(dtype) : Node::element(n.in(1));
  if (n.hasFailed())
    return failure();
  if (Value weight = dequantizedWeight(n, axis, block, result)) {
    n.set(0, weight);
    return success();
  }
  if (n.hasFailed())
    return failure();
  if (n.has(2) && !n.sameElements(0, 2))
    return failure();
  Value x = n.in(0), scale = n.in(1);
  Shape shape(Node::shape(x));
  if (!checkScales(n, shape, axis, block))
    return failure();
  // Integers of 32 bits do not fit a narrow float: computed in the scale's
  // type, at least f32.
  Type type = Node::element(scale);
  if (type.getIntOrFloatBitWidth() < 32)
    type = n.builder.getF32Type();
  Value y = n.cast(splitAxis(n, x, axis, block), type);
  if (n.has(2))
    y = n.binary<ir::SubOp>(
        y, spread(n, n.cast(n.in(2), type), shape, axis, block));
  y = n.binary<ir::MulOp>(y,
                          spread(n, n.cast(scale, type), shape, axis, block));
  n.set(0, joinAxis(n, n.cast(y, result), shape));
  return success();
}

/// y = saturate(round(x / scale) + zero point).
static LogicalResult quantizeLinear(Node &n) {
  int64_t axis = n.version >= 13 ? n.intAttr("axis", 1) : 1;
  int64_t block = n.version >= 21 ? n.intAttr("block_size", 0) : 0;
  int64_t dtype = n.version >= 21 ? n.intAttr("output_dtype", 0) : 0;
  bool saturate = n.version >= 19 ? n.flag("saturate", true) : true;
  if (n.version >= 23 && n.intAttr("precision", 0) > 1)
    return n.error() << "only the precision of float is supported";
  if (n.hasFailed() || !n.isNumeric(0))
    return failure();
  Type result = n.has(2) ? Node::element(n.in(2))
                : dtype  ? n.elementTypeOf(dtype)
                         : n.elementTypeOf(::onnx::TensorProto::UINT8);
  if (n.hasFailed())
    return failure();
  auto integer = dyn_cast<IntegerType>(result);
  bool fits = integer ? integer.getWidth() <= 16 && integer.getWidth() >= 2
                      : result.getIntOrFloatBitWidth() <= 8 &&
                            !isa<Float8E8M0FNUType>(result);
  if (!fits)
    return n.error() << "quantizing to " << result << " is not supported";
  Value x = n.in(0);
  Shape shape(Node::shape(x));
  if (!checkScales(n, shape, axis, block))
    return failure();
  Type f32 = n.builder.getF32Type();
  Value y = n.cast(splitAxis(n, x, axis, block), f32);
  y = n.binary<ir::DivOp>(y,
                          spread(n, n.cast(n.in(1), f32), shape, axis, block));
  if (integer)
    y = n.unary<ir::RoundOp>(y);
  if (n.has(2))
    y = n.binary<ir::AddOp>(
        y, spread(n, n.cast(n.in(2), f32), shape, axis, block));
  if (!integer) {
    // The conversion to a small float rounds, and saturates where it is to.
    y = n.make<ir::CastOp>(Node::type(y).clone(result), y,
                           n.builder.getBoolAttr(saturate));
    n.set(0, joinAxis(n, y, shape));
    return success();
  }
  bool isUnsigned = integer.isUnsigned();
  int64_t steps = int64_t(1) << integer.getWidth();
  Value low = n.constantScalar(f32, isUnsigned ? 0.0 : -steps / 2.0);
  Value high =
      n.constantScalar(f32, isUnsigned ? steps - 1.0 : steps / 2.0 - 1.0);
  y = n.make<ir::ClipOp>(y.getType(), y, low, high);
  n.set(0, joinAxis(n, n.cast(y, result), shape));
  return success();
}

/// To uint8 over the range of x and 0.
static LogicalResult dynamicQuantizeLinear(Node &n) {
  Value x = n.in(0);
  Type f32 = n.builder.getF32Type();
  if (Node::element(x) != f32)
    return n.error() << "input 0 is of float, not " << x.getType();
  Value zero = n.constantScalar(f32, 0), top = n.constantScalar(f32, 255);
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(Node::type(x).getRank()));
  auto extreme = [&](ir::ReductionKind kind) {
    return n.make<ir::ReduceOp>(
        zero.getType(), ir::ReductionKindAttr::get(n.graph.context, kind), x,
        n.builder.getDenseI64ArrayAttr(axes), UnitAttr());
  };
  Value low = n.binary<ir::MinOp>(extreme(ir::ReductionKind::min), zero);
  Value high = n.binary<ir::MaxOp>(extreme(ir::ReductionKind::max), zero);
  Value scale = n.binary<ir::DivOp>(n.binary<ir::SubOp>(high, low), top);
  // All zeros: any scale will do, but 0 divides.
  auto truth = RankedTensorType::get({}, n.builder.getI1Type());
  Value divisor = n.make<ir::WhereOp>(scale.getType(),
                                      n.make<ir::EqualOp>(truth, scale, zero),
                                      n.constantScalar(f32, 1), scale);
  auto round = [&](Value value) {
    return n.unary<ir::RoundOp>(n.binary<ir::DivOp>(value, divisor));
  };
  auto saturate = [&](Value value) {
    return n.make<ir::ClipOp>(value.getType(), value, zero, top);
  };
  Value zeroPoint = saturate(round(n.unary<ir::NegOp>(low)));
  Value y = saturate(n.binary<ir::AddOp>(round(x), zeroPoint));
  Type ui8 = n.elementTypeOf(::onnx::TensorProto::UINT8);
  n.set(0, n.cast(y, ui8));
  n.set(1, divisor);
  n.set(2, n.cast(zeroPoint, ui8));
  return success();
}

void registerQuantization(Registry &r) {
  r.add("DequantizeLinear", {dequantizeLinear, 2, 3, 1, 10});
  r.add("DynamicQuantizeLinear", {dynamicQuantizeLinear, 1, 1, 3, 11});
  r.add("QuantizeLinear", {quantizeLinear, 2, 3, 1, 10});
  r.add(kMicrosoft, "GatherBlockQuantized", {gatherBlockQuantized, 3, 4});
  r.add(kMicrosoft, "MatMulNBits", {matmulNBits, 3, 6});
}

} // namespace llm::importer
