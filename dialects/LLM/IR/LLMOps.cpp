//===- LLMOps.cpp - Verifiers and folders of the llm dialect --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/LLM/IR/LLMDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::llm;

#define GET_OP_CLASSES
#include "dialects/LLM/IR/LLMOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Shared checks
//===----------------------------------------------------------------------===//

std::optional<int64_t> mlir::llm::normalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

bool mlir::llm::isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || op->hasTrait<Broadcasting>();
}

FailureOr<SmallVector<int64_t>>
mlir::llm::broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  SmallVector<int64_t> out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    int64_t &r = out[out.size() - 1 - i];
    if (x == 1)
      r = y;
    else if (y == 1 || x == y)
      r = x;
    else if (ShapedType::isDynamic(x))
      r = y; // y > 1 is static or both are dynamic: y decides.
    else if (ShapedType::isDynamic(y))
      r = x;
    else
      return failure();
  }
  return out;
}

/// True when both sizes are known and differ.
static bool differ(int64_t a, int64_t b) {
  return !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b) && a != b;
}

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static LogicalResult verifyResultShape(Operation *op,
                                       ArrayRef<int64_t> expected) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  bool ok = result.getRank() == static_cast<int64_t>(expected.size());
  for (size_t i = 0; ok && i < expected.size(); ++i)
    ok = !differ(result.getDimSize(i), expected[i]);
  if (ok)
    return success();
  InFlightDiagnostic diag = op->emitOpError("operands give shape [");
  llvm::interleaveComma(expected, diag, [&](int64_t dim) {
    if (ShapedType::isDynamic(dim))
      diag << "?";
    else
      diag << dim;
  });
  return diag << "], the result is " << result;
}

LogicalResult mlir::llm::verifyBroadcast(Operation *op) {
  auto lhs = tensorOf(op->getOperand(0)), rhs = tensorOf(op->getOperand(1));
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  FailureOr<SmallVector<int64_t>> shape =
      broadcastShapes(lhs.getShape(), rhs.getShape());
  if (failed(shape))
    return op->emitOpError("shapes ")
           << lhs << " and " << rhs << " do not broadcast";
  if (!isa<PowOp>(op) && lhs.getElementType() != rhs.getElementType())
    return op->emitOpError("element types differ: ") << lhs << " and " << rhs;
  bool compares =
      isa<EqualOp, GreaterOp, GreaterEqualOp, LessOp, LessEqualOp>(op);
  Type expected =
      compares ? IntegerType::get(op->getContext(), 1) : lhs.getElementType();
  if (result.getElementType() != expected)
    return op->emitOpError("result elements must be ")
           << expected << ", got " << result;
  return verifyResultShape(op, *shape);
}

static LogicalResult verifyAxis(Operation *op, int64_t axis, int64_t rank) {
  if (normalizeAxis(axis, rank))
    return success();
  return op->emitOpError("axis ")
         << axis << " is outside a tensor of rank " << rank;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult WeightOp::verify() {
  if (!getTensorType().hasStaticShape())
    return emitOpError("a weight has a static shape, not ") << getType();
  return getFormat().verifyLogicalType(getTensorType(),
                                       [&] { return emitOpError(); });
}

LogicalResult
GetWeightOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto weight =
      symbolTable.lookupNearestSymbolFrom<WeightOp>(*this, getWeightAttr());
  if (!weight)
    return emitOpError("no llm.weight is named ") << getWeightAttr();
  if (weight.getType() != getType()) {
    InFlightDiagnostic diag = emitOpError("has type ")
                              << getType() << ", the weight "
                              << weight.getType();
    diag.attachNote(weight.getLoc()) << "the weight";
    return diag;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Composites
//===----------------------------------------------------------------------===//

/// Heads and sizes shared by the attention composites.
template <typename OpTy>
static LogicalResult verifyHeads(OpTy op, bool threeD) {
  int64_t heads = op.getNumHeads(), kvHeads = op.getKvHeads();
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads != 0)
    return op.emitOpError("num_heads (")
           << heads << ") must be a positive multiple of kv_heads (" << kvHeads
           << ")";
  auto check = [&](Value value, int64_t count,
                   StringRef name) -> LogicalResult {
    auto type = tensorOf(value);
    int64_t dim = type.getDimSize(threeD ? 2 : 1);
    if (ShapedType::isDynamic(dim))
      return success();
    if (threeD ? dim % count != 0 : dim != count)
      return op.emitOpError() << name << " of type " << type
                              << " does not hold " << count << " heads";
    return success();
  };
  if (failed(check(op.getQuery(), heads, "query")) ||
      failed(check(op.getKey(), kvHeads, "key")) ||
      failed(check(op.getValue(), kvHeads, "value")))
    return failure();
  if (!op.getPastKey() != !op.getPastValue())
    return op.emitOpError("past_key and past_value come together");
  for (Value past : {Value(op.getPastKey()), Value(op.getPastValue())})
    if (past && tensorOf(past).getRank() != 4)
      return op.emitOpError("a past is [batch, kv_heads, past, size], not ")
             << past.getType();
  if (op.getPresent().size() != 0 && op.getPresent().size() != 2)
    return op.emitOpError("present key and value come together, got ")
           << op.getPresent().size() << " of them";
  return success();
}

LogicalResult AttentionOp::verify() {
  int64_t rank = tensorOf(getQuery()).getRank();
  if ((rank != 3 && rank != 4) || tensorOf(getKey()).getRank() != rank ||
      tensorOf(getValue()).getRank() != rank ||
      tensorOf(getOutput()).getRank() != rank)
    return emitOpError("query, key, value and output are all of rank 3 or all "
                       "of rank 4");
  return verifyHeads(*this, rank == 3);
}

LogicalResult GroupQueryAttentionOp::verify() {
  if (tensorOf(getQuery()).getRank() != 3 ||
      tensorOf(getKey()).getRank() != 3 || tensorOf(getValue()).getRank() != 3)
    return emitOpError("query, key and value are of rank 3");
  if (!getCosTable() != !getSinTable())
    return emitOpError("cos and sin come together");
  return verifyHeads(*this, true);
}

LogicalResult EmbeddingOp::verify() {
  auto indices = tensorOf(getIndices()), table = tensorOf(getTable());
  if (table.getRank() != 2)
    return emitOpError("the table is a matrix, not ") << table;
  SmallVector<int64_t> shape(indices.getShape());
  shape.push_back(table.getDimSize(1));
  return verifyResultShape(*this, shape);
}

LogicalResult LinearOp::verify() {
  auto input = tensorOf(getInput()), weight = tensorOf(getWeight());
  if (weight.getRank() != 2)
    return emitOpError("the weight is a matrix, not ") << weight;
  if (input.getRank() < 1)
    return emitOpError("the input is at least a vector");
  int64_t n = weight.getDimSize(getTransposed() ? 1 : 0);
  int64_t k = weight.getDimSize(getTransposed() ? 0 : 1);
  if (differ(input.getShape().back(), k))
    return emitOpError("the input has ")
           << input.getShape().back() << " features, the weight takes " << k;
  if (getBias() && (tensorOf(getBias()).getRank() != 1 ||
                    differ(tensorOf(getBias()).getDimSize(0), n)))
    return emitOpError("the bias is a vector of ")
           << n << " elements, not " << getBias().getType();
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = n;
  return verifyResultShape(*this, shape);
}

template <typename OpTy> static LogicalResult verifyNorm(OpTy op) {
  auto input = tensorOf(op.getInput());
  if (op.getResult().getType() != op.getInput().getType() &&
      failed(verifyResultShape(op, input.getShape())))
    return failure();
  return verifyAxis(op, op.getAxis(), input.getRank());
}

LogicalResult LayerNormOp::verify() { return verifyNorm(*this); }
LogicalResult RMSNormOp::verify() { return verifyNorm(*this); }

LogicalResult RopeOp::verify() {
  int64_t rank = tensorOf(getInput()).getRank();
  if (rank < 2 || rank > 4)
    return emitOpError("the input is of rank 2, 3 or 4");
  if (rank < 4 && getNumHeads() <= 0)
    return emitOpError("num_heads says how many heads the last dimension has");
  auto cos = tensorOf(getCosTable()), sin = tensorOf(getSinTable());
  if (cos.getRank() != sin.getRank() || cos.getRank() != (getPositions() ? 2
                                                          : rank == 2    ? 2
                                                                         : 3))
    return emitOpError("the tables are [positions, rotary / 2] with positions, "
                       "[batch, seq, rotary / 2] without");
  int64_t half = cos.getShape().back();
  if (getRotaryDim() < 0 || getRotaryDim() % 2 != 0 ||
      (getRotaryDim() && differ(half, getRotaryDim() / 2)))
    return emitOpError("rotary_dim ")
           << getRotaryDim() << " does not fit tables of width " << half;
  return verifyResultShape(*this, tensorOf(getInput()).getShape());
}

//===----------------------------------------------------------------------===//
// Elementwise, reductions and products
//===----------------------------------------------------------------------===//

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? OpFoldResult(getInput())
                                           : OpFoldResult();
}

LogicalResult WhereOp::verify() {
  auto x = tensorOf(getX()), y = tensorOf(getY());
  if (x.getElementType() != y.getElementType() ||
      x.getElementType() != tensorOf(getResult()).getElementType())
    return emitOpError("x, y and the result share an element type");
  FailureOr<SmallVector<int64_t>> xy =
      broadcastShapes(x.getShape(), y.getShape());
  if (succeeded(xy))
    xy = broadcastShapes(*xy, tensorOf(getCondition()).getShape());
  if (failed(xy))
    return emitOpError("the operands do not broadcast");
  return verifyResultShape(*this, *xy);
}

int FusedElementwiseOp::arity(StringRef op) {
  return llvm::StringSwitch<int>(op)
      .Cases({"add", "sub", "mul", "div", "max", "min"}, 2)
      .Cases({"neg", "abs", "exp", "log", "sqrt", "reciprocal"}, 1)
      .Cases({"sigmoid", "tanh", "silu", "relu", "gelu", "gelu_tanh"}, 1)
      .Cases({"gelu_sigmoid", "softplus", "erf"}, 1)
      .Default(0);
}

LogicalResult FusedElementwiseOp::verify() {
  int64_t depth = 0;
  for (StringRef op : getOps().getAsValueRange<StringAttr>()) {
    unsigned index;
    StringRef rest = op;
    if (rest.consume_front("in")) {
      if (rest.getAsInteger(10, index) || index >= getInputs().size())
        return emitOpError("'") << op << "' names no operand";
      ++depth;
    } else if (rest.consume_front("const:0x")) {
      if (rest.size() != 8 || rest.getAsInteger(16, index))
        return emitOpError("'") << op << "' is no f32 in 8 hex digits";
      ++depth;
    } else {
      int count = arity(op);
      if (count == 0)
        return emitOpError("unknown operator '") << op << "'";
      if (depth < count)
        return emitOpError("'") << op << "' finds too few values";
      depth -= count - 1;
    }
  }
  if (depth != 1)
    return emitOpError("leaves ") << depth << " values, not one";
  auto result = tensorOf(getResult());
  if (result.getRank() != 2)
    return emitOpError("the result is [rows, width], not ") << result;
  for (Value input : getInputs()) {
    auto type = tensorOf(input);
    if (type.getRank() < 1 || type.getRank() > 2 ||
        differ(type.getShape().back(), result.getDimSize(1)))
      return emitOpError("operand ") << type << " has no rows like " << result;
  }
  return success();
}

LogicalResult ArgMaxOp::verify() {
  return verifyAxis(*this, getAxis(), tensorOf(getInput()).getRank());
}

LogicalResult MatMulOp::verify() {
  auto lhs = tensorOf(getLhs()), rhs = tensorOf(getRhs());
  if (lhs.getRank() < 1 || rhs.getRank() < 1)
    return emitOpError("operands are at least vectors");
  if (lhs.getElementType() != rhs.getElementType())
    return emitOpError("element types differ");
  SmallVector<int64_t> a(lhs.getShape()), b(rhs.getShape());
  if (a.size() == 1)
    a.insert(a.begin(), 1);
  if (b.size() == 1)
    b.push_back(1);
  if (differ(a.back(), b[b.size() - 2]))
    return emitOpError("inner dimensions differ: ") << lhs << " and " << rhs;
  FailureOr<SmallVector<int64_t>> shape = broadcastShapes(
      ArrayRef<int64_t>(a).drop_back(2), ArrayRef<int64_t>(b).drop_back(2));
  if (failed(shape))
    return emitOpError("batch dimensions do not broadcast");
  if (lhs.getRank() > 1)
    shape->push_back(a[a.size() - 2]);
  if (rhs.getRank() > 1)
    shape->push_back(b.back());
  return verifyResultShape(*this, *shape);
}

LogicalResult ReduceOp::verify() {
  auto input = tensorOf(getInput());
  SmallVector<bool> reduced(input.getRank(), false);
  for (int64_t axis : getAxes()) {
    std::optional<int64_t> a = normalizeAxis(axis, input.getRank());
    if (!a)
      return verifyAxis(*this, axis, input.getRank());
    if (reduced[*a])
      return emitOpError("axis ") << axis << " is named twice";
    reduced[*a] = true;
  }
  SmallVector<int64_t> shape;
  for (auto [dim, gone] : llvm::zip(input.getShape(), reduced)) {
    if (!gone)
      shape.push_back(dim);
    else if (getKeepdims())
      shape.push_back(1);
  }
  return verifyResultShape(*this, shape);
}

//===----------------------------------------------------------------------===//
// Shape and data movement
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError("needs an input");
  auto result = tensorOf(getResult());
  if (failed(verifyAxis(*this, getAxis(), result.getRank())))
    return failure();
  int64_t axis = *normalizeAxis(getAxis(), result.getRank()), sum = 0;
  for (Value input : getInputs()) {
    auto type = tensorOf(input);
    if (type.getRank() != result.getRank() ||
        type.getElementType() != result.getElementType())
      return emitOpError("input ") << type << " does not fit " << result;
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (i != axis && differ(type.getDimSize(i), result.getDimSize(i)))
        return emitOpError("input ")
               << type << " does not fit " << result << " beside axis " << axis;
    sum = ShapedType::isDynamic(sum) || type.isDynamicDim(axis)
              ? ShapedType::kDynamic
              : sum + type.getDimSize(axis);
  }
  if (differ(sum, result.getDimSize(axis)))
    return emitOpError("inputs add up to ") << sum << " along the axis";
  return success();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getInputs().size() == 1 && getInputs()[0].getType() == getType())
    return getInputs()[0];
  return {};
}

LogicalResult GatherOp::verify() {
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices());
  if (failed(verifyAxis(*this, getAxis(), input.getRank())))
    return failure();
  int64_t axis = *normalizeAxis(getAxis(), input.getRank());
  SmallVector<int64_t> shape(input.getShape().take_front(axis));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, input.getShape().drop_front(axis + 1));
  return verifyResultShape(*this, shape);
}

/// Gather of a constant vector by a constant scalar or vector of indices: the
/// commonest piece of shape arithmetic.
OpFoldResult GatherOp::fold(FoldAdaptor adaptor) {
  auto data = dyn_cast_or_null<DenseIntElementsAttr>(adaptor.getInput());
  auto indices = dyn_cast_or_null<DenseIntElementsAttr>(adaptor.getIndices());
  if (!data || !indices || tensorOf(getInput()).getRank() != 1 ||
      !getType().hasStaticShape())
    return {};
  SmallVector<APInt> values(data.getValues<APInt>()), out;
  for (const APInt &index : indices.getValues<APInt>()) {
    std::optional<int64_t> i =
        normalizeAxis(index.getSExtValue(), values.size());
    if (!i)
      return {};
    out.push_back(values[*i]);
  }
  return DenseIntElementsAttr::get(getType(), out);
}

LogicalResult ReshapeOp::verify() {
  auto shape = tensorOf(getShape());
  if (shape.getRank() != 1)
    return emitOpError("the shape is a vector, not ") << shape;
  if (differ(shape.getDimSize(0), tensorOf(getResult()).getRank()))
    return emitOpError("a shape of ")
           << shape.getDimSize(0) << " sizes gives no " << getType();
  return success();
}

OpFoldResult ShapeOp::fold(FoldAdaptor) {
  auto input = tensorOf(getInput());
  int64_t rank = input.getRank();
  int64_t start = getStart() < 0 ? getStart() + rank : getStart();
  int64_t end = getEnd().value_or(rank);
  end = end < 0 ? end + rank : end;
  start = std::clamp<int64_t>(start, 0, rank);
  end = std::clamp<int64_t>(end, start, rank);
  ArrayRef<int64_t> dims = input.getShape().slice(start, end - start);
  auto result = tensorOf(getResult());
  if (llvm::any_of(dims, ShapedType::isDynamic) || !result.hasStaticShape() ||
      result.getNumElements() != static_cast<int64_t>(dims.size()))
    return {};
  return DenseIntElementsAttr::get(result, dims);
}

LogicalResult TransposeOp::verify() {
  auto input = tensorOf(getInput());
  ArrayRef<int64_t> perm = getPerm();
  SmallVector<bool> seen(input.getRank(), false);
  if (static_cast<int64_t>(perm.size()) != input.getRank())
    return emitOpError("perm has ")
           << perm.size() << " axes, the input " << input.getRank();
  SmallVector<int64_t> shape;
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= input.getRank() || seen[axis])
      return emitOpError("perm is no permutation");
    seen[axis] = true;
    shape.push_back(input.getDimSize(axis));
  }
  return verifyResultShape(*this, shape);
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  bool identity = true;
  for (auto [i, axis] : llvm::enumerate(getPerm()))
    identity &= static_cast<int64_t>(i) == axis;
  if (identity && getInput().getType() == getType())
    return getInput();
  // transpose(transpose(x)) back to x.
  auto inner = getInput().getDefiningOp<TransposeOp>();
  if (!inner || inner.getInput().getType() != getType())
    return {};
  for (auto [i, axis] : llvm::enumerate(getPerm()))
    if (inner.getPerm()[axis] != static_cast<int64_t>(i))
      return {};
  return inner.getInput();
}

/// A constant keeps its elements when only dimensions of size 1 change.
static OpFoldResult foldReshaped(Attribute input, Type type) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(input);
  auto result = cast<RankedTensorType>(type);
  if (!elements || !result.hasStaticShape())
    return {};
  return elements.reshape(result);
}

OpFoldResult SqueezeOp::fold(FoldAdaptor adaptor) {
  return foldReshaped(adaptor.getInput(), getType());
}
OpFoldResult UnsqueezeOp::fold(FoldAdaptor adaptor) {
  return foldReshaped(adaptor.getInput(), getType());
}
