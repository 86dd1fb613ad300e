//===- LLMOps.cpp - Verifiers and folders of the llm dialect --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/LLM/IR/LLMVerify.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::llm;
using namespace mlir::llm::detail;

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

bool mlir::llm::detail::compatible(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() == b.size() &&
         llvm::none_of(llvm::zip(a, b), [](const auto &dims) {
           return differ(std::get<0>(dims), std::get<1>(dims));
         });
}

std::optional<int64_t>
mlir::llm::detail::countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    if (ShapedType::isDynamic(dim) ||
        __builtin_mul_overflow(count, dim, &count))
      return std::nullopt;
  return count;
}

LogicalResult mlir::llm::detail::verifyResultShape(Operation *op,
                                                   ArrayRef<int64_t> expected,
                                                   unsigned index) {
  auto result = tensorOf(op->getResult(index));
  if (compatible(result.getShape(), expected))
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

LogicalResult mlir::llm::detail::verifySameElements(Operation *op,
                                                    unsigned index) {
  auto input = tensorOf(op->getOperand(0));
  auto result = tensorOf(op->getResult(index));
  if (input.getElementType() != result.getElementType())
    return op->emitOpError("result elements must be ")
           << input.getElementType() << ", got " << result;
  return success();
}

LogicalResult mlir::llm::detail::verifyAxis(Operation *op, int64_t axis,
                                            int64_t rank) {
  if (normalizeAxis(axis, rank))
    return success();
  return op->emitOpError("axis ")
         << axis << " is outside a tensor of rank " << rank;
}

LogicalResult mlir::llm::detail::verifyAxes(Operation *op,
                                            ArrayRef<int64_t> axes,
                                            int64_t rank,
                                            SmallVectorImpl<bool> &named) {
  named.assign(rank, false);
  for (int64_t axis : axes) {
    std::optional<int64_t> from0 = normalizeAxis(axis, rank);
    if (!from0)
      return verifyAxis(op, axis, rank);
    bool &seen = named[*from0];
    if (seen)
      return op->emitOpError("axis ") << axis << " is named twice";
    seen = true;
  }
  return success();
}

LogicalResult mlir::llm::detail::verifyVector(Operation *op, Value value,
                                              StringRef what) {
  if (tensorOf(value).getRank() == 1)
    return success();
  return op->emitOpError() << what << " must be a vector, not "
                           << value.getType();
}

LogicalResult mlir::llm::detail::verifyScalar(Operation *op, Value value,
                                              StringRef what) {
  auto type = tensorOf(value);
  if (type.getRank() == 0 ||
      (type.getRank() == 1 && !differ(type.getDimSize(0), 1)))
    return success();
  return op->emitOpError() << what << " must be a single element, not " << type;
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
  SmallVector<std::pair<Value, StringRef>> caches;
  for (Value past : {op.getPastKey(), op.getPastValue()})
    if (past)
      caches.emplace_back(past, "past");
  for (Value present : op.getPresent())
    caches.emplace_back(present, "present");
  for (auto [cache, name] : caches)
    if (tensorOf(cache).getRank() != 4)
      return op.emitOpError() << name << " is [batch, kv_heads, slots, size], "
                              << "not " << cache.getType();
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
      failed(check(op.getValue(), kvHeads, "value")) ||
      failed(check(op.getOutput(), heads, "output")))
    return failure();
  for (auto [cache, name] : caches)
    if (differ(tensorOf(cache).getDimSize(1), kvHeads))
      return op.emitOpError() << name << " of type " << cache.getType()
                              << " does not hold " << kvHeads << " heads";
  if (!op.getPastKey() != !op.getPastValue())
    return op.emitOpError("past_key and past_value come together");
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
  if (getMask() && tensorOf(getMask()).getRank() > 4)
    return emitOpError("the mask broadcasts to [batch, heads, seq, slots], it "
                       "is ")
           << getMask().getType();
  if (getNonpadKvSeqlen() &&
      failed(verifyVector(*this, getNonpadKvSeqlen(), "nonpad_kv_seqlen")))
    return failure();
  return verifyHeads(*this, rank == 3);
}

LogicalResult GroupQueryAttentionOp::verify() {
  if (tensorOf(getQuery()).getRank() != 3 ||
      tensorOf(getKey()).getRank() != 3 ||
      tensorOf(getValue()).getRank() != 3 ||
      tensorOf(getOutput()).getRank() != 3)
    return emitOpError("query, key, value and output are of rank 3");
  if (!getCosTable() != !getSinTable())
    return emitOpError("cos and sin come together");
  for (Value table : {getCosTable(), getSinTable()})
    if (table && tensorOf(table).getRank() != 2)
      return emitOpError("the tables are [positions, rotary / 2], not ")
             << table.getType();
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

/// A norm's scale or bias covers the last axes of its input.
static LogicalResult verifyNormOperand(Operation *op, Value value,
                                       StringRef what) {
  ArrayRef<int64_t> input = tensorOf(op->getOperand(0)).getShape();
  ArrayRef<int64_t> own = tensorOf(value).getShape();
  for (auto [a, b] : llvm::zip(llvm::reverse(own), llvm::reverse(input)))
    if (a != 1 && differ(a, b))
      return op->emitOpError()
             << what << " of type " << value.getType() << " does not fit "
             << op->getOperand(0).getType();
  return success();
}

template <typename OpTy> static LogicalResult verifyNorm(OpTy op) {
  auto input = tensorOf(op.getInput());
  if (failed(verifySameElements(op)) ||
      failed(verifyResultShape(op, input.getShape())) ||
      failed(verifyAxis(op, op.getAxis(), input.getRank())))
    return failure();
  return verifyNormOperand(op, op.getScale(), "the scale");
}

LogicalResult LayerNormOp::verify() {
  if (failed(verifyNorm(*this)))
    return failure();
  return getBias() ? verifyNormOperand(*this, getBias(), "the bias")
                   : success();
}

LogicalResult RMSNormOp::verify() { return verifyNorm(*this); }

LogicalResult RopeOp::verify() {
  int64_t rank = tensorOf(getInput()).getRank();
  if (rank < 2 || rank > 4)
    return emitOpError("the input is of rank 2, 3 or 4");
  int64_t heads = getNumHeads(), rotary = getRotaryDim();
  int64_t size = tensorOf(getInput()).getShape().back();
  if (rank < 4) {
    if (heads == 0)
      return emitOpError("num_heads says how many heads the last dimension "
                         "has");
    if (!ShapedType::isDynamic(size) && size % heads != 0)
      return emitOpError("the input ")
             << getInput().getType() << " does not hold " << heads << " heads";
    if (!ShapedType::isDynamic(size))
      size /= heads;
  }
  auto cos = tensorOf(getCosTable()), sin = tensorOf(getSinTable());
  if (cos.getRank() != sin.getRank() || cos.getRank() != (getPositions() ? 2
                                                          : rank == 2    ? 2
                                                                         : 3))
    return emitOpError("the tables are [positions, rotary / 2] with positions, "
                       "[batch, seq, rotary / 2] without");
  int64_t half = cos.getShape().back();
  if (rotary % 2 != 0 || (rotary && differ(half, rotary / 2)))
    return emitOpError("rotary_dim ")
           << rotary << " does not fit tables of width " << half;
  if (!ShapedType::isDynamic(size) && rotary > size)
    return emitOpError("rotary_dim ")
           << rotary << " is more than the head's size, " << size;
  if (failed(verifySameElements(*this)))
    return failure();
  return verifyResultShape(*this, tensorOf(getInput()).getShape());
}
