//===- ShapeValues.cpp - What shape arithmetic is known to give -----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/ShapeValues.h"

#include "lib/Import/ONNX/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llm::importer {

using Element = std::optional<int64_t>;

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The number of elements of a tensor small enough to follow.
static std::optional<int64_t> smallCount(RankedTensorType type) {
  if (!type.getElementType().isInteger() || !type.hasStaticShape())
    return std::nullopt;
  std::optional<int64_t> count = countElements(type.getShape());
  if (!count || *count > ShapeValues::kMaxElements)
    return std::nullopt;
  return count;
}

std::optional<KnownInts> ShapeValues::get(Value value) const {
  auto it = values.find(value);
  if (it != values.end())
    return it->second;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return std::nullopt;
  if (std::optional<int64_t> count = smallCount(type))
    return KnownInts(*count);
  return std::nullopt;
}

static std::optional<KnownInts> constantValue(ElementsAttr attr) {
  auto elements = dyn_cast<DenseIntElementsAttr>(attr);
  if (!elements)
    return std::nullopt;
  bool isSigned = !elements.getElementType().isUnsignedInteger() &&
                  !elements.getElementType().isInteger(1);
  KnownInts out;
  for (const APInt &value : elements.getValues<APInt>()) {
    if (isSigned ? value.getSignificantBits() > 64 : value.getActiveBits() > 63)
      out.push_back(std::nullopt);
    else
      out.push_back(isSigned ? value.getSExtValue()
                             : static_cast<int64_t>(value.getZExtValue()));
  }
  return out;
}

static KnownInts shapeOf(ir::ShapeOp op) {
  auto input = tensorOf(op.getInput());
  int64_t rank = input.getRank();
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t start = clamp(op.getStart()), end = clamp(op.getEnd().value_or(rank));
  KnownInts out;
  for (int64_t i = start; i < end; ++i)
    out.push_back(input.isDynamicDim(i) ? Element()
                                        : Element(input.getDimSize(i)));
  return out;
}

static std::optional<KnownInts> gather(const KnownInts &input,
                                       const KnownInts &indices) {
  KnownInts out;
  for (Element index : indices) {
    Element value;
    if (index) {
      std::optional<int64_t> at =
          ir::normalizeAxis(*index, static_cast<int64_t>(input.size()));
      if (!at)
        return std::nullopt;
      value = input[*at];
    }
    out.push_back(value);
  }
  return out;
}

/// The part of a vector between constant bounds.
static std::optional<KnownInts> slice(const KnownInts &input, Element start,
                                      Element end, Element step) {
  if (!start || !end || !step || *step == 0 || *step == INT64_MIN)
    return std::nullopt;
  int64_t size = static_cast<int64_t>(input.size());
  auto clamp = [&](int64_t at, int64_t low, int64_t high) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, low, high);
  };
  KnownInts out;
  if (*step > 0) {
    int64_t stop = clamp(*end, 0, size);
    for (int64_t i = clamp(*start, 0, size); i < stop;) {
      out.push_back(input[i]);
      if (__builtin_add_overflow(i, *step, &i))
        break;
    }
  } else {
    int64_t stop = clamp(*end, -1, size - 1);
    for (int64_t i = clamp(*start, -1, size - 1); i > stop;) {
      out.push_back(input[i]);
      if (__builtin_add_overflow(i, *step, &i))
        break;
    }
  }
  return out;
}

static Element combine(Operation *op, int64_t a, int64_t b) {
  int64_t r;
  return llvm::TypeSwitch<Operation *, Element>(op)
      .Case([&](ir::AddOp) {
        return __builtin_add_overflow(a, b, &r) ? Element() : Element(r);
      })
      .Case([&](ir::SubOp) {
        return __builtin_sub_overflow(a, b, &r) ? Element() : Element(r);
      })
      .Case([&](ir::MulOp) {
        return __builtin_mul_overflow(a, b, &r) ? Element() : Element(r);
      })
      .Case([&](ir::DivOp) {
        if (b == 0 || (a == INT64_MIN && b == -1))
          return Element();
        return Element(a / b);
      })
      .Case([&](ir::ModOp mod) {
        if (b == 0 || b == -1)
          return Element();
        r = a % b;
        if (!mod.getFmod() && r != 0 && (r < 0) != (b < 0))
          r += b;
        return Element(r);
      })
      .Case([&](ir::MinOp) { return Element(std::min(a, b)); })
      .Case([&](ir::MaxOp) { return Element(std::max(a, b)); })
      .Case([&](ir::EqualOp) { return Element(a == b); })
      .Case([&](ir::LessOp) { return Element(a < b); })
      .Case([&](ir::LessEqualOp) { return Element(a <= b); })
      .Case([&](ir::GreaterOp) { return Element(a > b); })
      .Case([&](ir::GreaterEqualOp) { return Element(a >= b); })
      .Default(Element());
}

static std::optional<KnownInts> reduce(ir::ReduceOp op,
                                       const KnownInts &input) {
  if (tensorOf(op.getInput()).getRank() != 1 || op.getAxes().size() != 1)
    return std::nullopt;
  Element total;
  switch (op.getKind()) {
  case ir::ReductionKind::sum:
    total = 0;
    break;
  case ir::ReductionKind::prod:
    total = 1;
    break;
  case ir::ReductionKind::max:
  case ir::ReductionKind::min:
    total = input.empty() ? Element() : input[0];
    break;
  default:
    return std::nullopt;
  }
  for (Element value : input) {
    if (!total || !value)
      return std::nullopt;
    int64_t r = 0;
    bool overflow = false;
    switch (op.getKind()) {
    case ir::ReductionKind::sum:
      overflow = __builtin_add_overflow(*total, *value, &r);
      break;
    case ir::ReductionKind::prod:
      overflow = __builtin_mul_overflow(*total, *value, &r);
      break;
    case ir::ReductionKind::max:
      r = std::max(*total, *value);
      break;
    default:
      r = std::min(*total, *value);
    }
    total = overflow ? Element() : Element(r);
  }
  return KnownInts{total};
}

std::optional<KnownInts> ShapeValues::evaluate(Operation *op) const {
  std::optional<int64_t> count = smallCount(tensorOf(op->getResult(0)));
  if (!count)
    return std::nullopt;
  if (auto constant = dyn_cast<ir::ConstantOp>(op))
    return constantValue(constant.getValue());
  if (auto shape = dyn_cast<ir::ShapeOp>(op))
    return shapeOf(shape);
  if (auto fill = dyn_cast<ir::ConstantOfShapeOp>(op)) {
    std::optional<KnownInts> value = constantValue(fill.getValue());
    if (!value || value->size() != 1)
      return std::nullopt;
    return KnownInts(*count, value->front());
  }
  SmallVector<KnownInts> in;
  for (Value operand : op->getOperands()) {
    std::optional<KnownInts> value = get(operand);
    if (!value)
      return std::nullopt;
    in.push_back(std::move(*value));
  }
  if (isa<ir::UnsqueezeOp, ir::SqueezeOp, ir::ReshapeOp>(op))
    return in[0];
  if (auto cast = dyn_cast<ir::CastOp>(op)) {
    // Only conversions that keep every value that fits an index.
    unsigned from = tensorOf(cast.getInput()).getElementTypeBitWidth();
    unsigned to = cast.getType().getElementTypeBitWidth();
    if (to >= 32 || to >= from)
      return in[0];
    return std::nullopt;
  }
  if (auto concat = dyn_cast<ir::ConcatOp>(op)) {
    if (concat.getType().getRank() != 1)
      return std::nullopt;
    KnownInts out;
    for (const KnownInts &part : in)
      llvm::append_range(out, part);
    return out;
  }
  if (auto gatherOp = dyn_cast<ir::GatherOp>(op)) {
    if (tensorOf(gatherOp.getInput()).getRank() != 1)
      return std::nullopt;
    return gather(in[0], in[1]);
  }
  if (auto sliceOp = dyn_cast<ir::SliceOp>(op)) {
    if (tensorOf(sliceOp.getInput()).getRank() != 1 || in[1].size() != 1 ||
        in[2].size() != 1)
      return std::nullopt;
    Element step = sliceOp.getSteps() ? in.back().front() : Element(1);
    return slice(in[0], in[1].front(), in[2].front(), step);
  }
  if (auto reduceOp = dyn_cast<ir::ReduceOp>(op))
    return reduce(reduceOp, in[0]);
  if (isa<ir::ExpandOp>(op) && in[0].size() == 1)
    return KnownInts(*count, in[0].front());
  if (isa<ir::NegOp>(op)) {
    for (Element &value : in[0])
      value = value && *value != INT64_MIN ? Element(-*value) : Element();
    return in[0];
  }
  if (isa<ir::RangeOp>(op)) {
    KnownInts out;
    if (!in[0][0] || !in[2][0])
      return std::nullopt;
    int64_t value = *in[0][0];
    for (int64_t i = 0; i < *count; ++i) {
      out.push_back(value);
      if (__builtin_add_overflow(value, *in[2][0], &value))
        break;
    }
    return out;
  }
  // Elementwise, over equal shapes or with scalars.
  for (const KnownInts &part : in)
    if (part.empty() ||
        (part.size() != 1 && static_cast<int64_t>(part.size()) != *count))
      return std::nullopt;
  for (Value operand : op->getOperands())
    if (tensorOf(operand).getRank() > 1)
      return std::nullopt;
  auto at = [&](size_t operand, int64_t i) {
    return in[operand].size() == 1 ? in[operand][0] : in[operand][i];
  };
  KnownInts out(*count);
  if (isa<ir::WhereOp>(op)) {
    for (int64_t i = 0; i < *count; ++i) {
      Element condition = at(0, i), x = at(1, i), y = at(2, i);
      if (condition)
        out[i] = *condition ? x : y;
      else if (x && y && *x == *y)
        out[i] = x;
    }
    return out;
  }
  if (in.size() != 2)
    return std::nullopt;
  for (int64_t i = 0; i < *count; ++i)
    if (at(0, i) && at(1, i))
      out[i] = combine(op, *at(0, i), *at(1, i));
  return out;
}

void ShapeValues::notifyOperationInserted(Operation *op,
                                          OpBuilder::InsertPoint) {
  for (Value result : op->getResults())
    values.erase(result);
  if (op->getNumResults() != 1 || !isa<ir::LLMDialect>(op->getDialect()) ||
      !isa<RankedTensorType>(op->getResult(0).getType()))
    return;
  std::optional<KnownInts> value = evaluate(op);
  // A result of another length comes from operands that do not verify.
  if (value && static_cast<int64_t>(value->size()) ==
                   tensorOf(op->getResult(0)).getNumElements())
    values[op->getResult(0)] = std::move(*value);
}

void ShapeValues::forget(Operation *op) {
  op->walk([&](Operation *inner) {
    for (Value result : inner->getResults())
      values.erase(result);
    for (Region &region : inner->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          values.erase(argument);
  });
}

} // namespace llm::importer
