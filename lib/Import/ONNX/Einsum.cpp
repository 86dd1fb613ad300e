//===- Einsum.cpp - Sums of products over named axes ----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands are joined from left to right, each time by one matrix product: the
// axes of both that are still wanted are its batch, those of both that are not
// are summed over, and the rest are its rows and columns.
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Matmul.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace llm::importer {

namespace {
/// A letter's code, or kEllipsis plus the distance from the last axis that an
/// ellipsis stands for.
using Labels = SmallVector<int64_t>;
constexpr int64_t kEllipsis = 256;

/// A tensor whose axes have names.
struct Term {
  Value value;
  Labels labels;
};
} // namespace

static bool has(ArrayRef<int64_t> labels, int64_t label) {
  return llvm::is_contained(labels, label);
}

/// The labels that `text` gives to the axes of a tensor with `rank` of them;
/// for the result `rank` is negative, and an ellipsis stands for `ellipsis`.
static FailureOr<Labels> parseLabels(Node &n, StringRef text, int64_t rank,
                                     int64_t ellipsis) {
  auto [before, after] = text.split("...");
  bool dots = before.size() != text.size();
  for (char c : (before + after).str())
    if (!llvm::isAlpha(c))
      return n.error() << "'" << printable(text)
                       << "' in the equation is not of letters and one '...'";
  int64_t letters = static_cast<int64_t>(before.size() + after.size());
  if (rank >= 0) {
    ellipsis = rank - letters;
    if (ellipsis < 0 || (!dots && ellipsis != 0))
      return n.error() << "'" << printable(text)
                       << "' in the equation does not name " << rank << " axes";
  }
  Labels labels(before.begin(), before.end());
  for (int64_t i = dots ? ellipsis : 0; i-- > 0;)
    labels.push_back(kEllipsis + i);
  labels.append(after.begin(), after.end());
  return labels;
}

static Value vectorOf(Node &n, int64_t element) {
  return n.constantInts(ArrayRef<int64_t>(element));
}

/// Size `axis` of `value` as a vector of one element.
static Value sizeOf(Node &n, Value value, int64_t axis) {
  int64_t size = Node::shape(value)[axis];
  if (!ShapedType::isDynamic(size))
    return vectorOf(n, size);
  return n.make<ir::ShapeOp>(RankedTensorType::get({1}, n.builder.getI64Type()),
                             value, n.i64(axis), n.i64(axis + 1));
}

/// `value` with sizes that are vectors of one element, `shape` where known.
static Value reshapeTo(Node &n, Value value, ArrayRef<Value> sizes,
                       ArrayRef<int64_t> shape) {
  if (sizes.empty())
    return n.make<ir::ReshapeOp>(n.makeType({}, Node::element(value)), value,
                                 n.constantInts(ArrayRef<int64_t>()),
                                 n.unit(true));
  auto type = RankedTensorType::get({static_cast<int64_t>(sizes.size())},
                                    n.builder.getI64Type());
  Value list = n.make<ir::ConcatOp>(type, sizes, n.i64(0));
  return n.make<ir::ReshapeOp>(n.makeType(shape, Node::element(value)), value,
                               list, n.unit(true));
}

/// The axes of `value` in groups of the given sizes, each group as one axis; an
/// empty one has size 1.
static Value mergeAxes(Node &n, Value value, ArrayRef<size_t> groups) {
  if (llvm::all_of(groups, [](size_t count) { return count == 1; }))
    return value;
  SmallVector<Value> sizes;
  Shape shape;
  int64_t axis = 0;
  for (size_t count : groups) {
    Value size = vectorOf(n, 1);
    int64_t known = 1;
    for (size_t i = 0; i < count; ++i, ++axis) {
      int64_t dim = Node::shape(value)[axis];
      size = i ? n.binary<ir::MulOp>(size, sizeOf(n, value, axis))
               : sizeOf(n, value, axis);
      if (ShapedType::isDynamic(dim) || ShapedType::isDynamic(known))
        known = ShapedType::kDynamic;
      else if (__builtin_mul_overflow(known, dim, &known))
        n.error() << "the product of the axes is too large";
    }
    sizes.push_back(size);
    shape.push_back(known);
  }
  if (n.hasFailed())
    return value;
  return reshapeTo(n, value, sizes, shape);
}

/// `term` with its axes in the order of `labels`, which are the same ones.
static Value ordered(Node &n, const Term &term, ArrayRef<int64_t> labels) {
  SmallVector<int64_t> perm;
  for (int64_t label : labels)
    perm.push_back(llvm::find(term.labels, label) - term.labels.begin());
  return llvm::is_sorted(perm) ? term.value : n.transpose(term.value, perm);
}

/// Sums over the axes that are not in `wanted`.
static void sumOthers(Node &n, Term &term,
                      llvm::function_ref<bool(int64_t)> wanted) {
  SmallVector<int64_t> axes;
  Labels labels;
  Shape shape;
  for (auto [axis, label] : llvm::enumerate(term.labels)) {
    if (!wanted(label)) {
      axes.push_back(axis);
      continue;
    }
    labels.push_back(label);
    shape.push_back(Node::shape(term.value)[axis]);
  }
  if (axes.empty())
    return;
  term.value = n.make<ir::ReduceOp>(
      n.makeType(shape, Node::element(term.value)),
      ir::ReductionKindAttr::get(n.graph.context, ir::ReductionKind::sum),
      term.value, n.builder.getDenseI64ArrayAttr(axes), UnitAttr());
  term.labels = labels;
}

/// Keeps the diagonal where a label names two axes.
static void takeDiagonals(Node &n, Term &term) {
  for (size_t i = 0; i < term.labels.size() && !n.hasFailed(); ++i) {
    auto *again = std::find(term.labels.begin() + i + 1, term.labels.end(),
                            term.labels[i]);
    if (again == term.labels.end())
      continue;
    int64_t first = i, second = again - term.labels.begin();
    int64_t rank = term.labels.size();
    SmallVector<int64_t> perm;
    Labels labels;
    for (int64_t axis = 0; axis < rank; ++axis)
      if (axis != first && axis != second) {
        perm.push_back(axis);
        labels.push_back(term.labels[axis]);
      }
    labels.push_back(term.labels[i]);
    perm.append({first, second});
    Value x = n.transpose(term.value, perm);
    int64_t rows = Node::shape(x)[rank - 2], columns = Node::shape(x)[rank - 1];
    if (rows != columns && !ShapedType::isDynamic(rows) &&
        !ShapedType::isDynamic(columns)) {
      n.error() << "a label names axes of sizes " << rows << " and " << columns;
      return;
    }
    // The axes as one of n * n, of which every (n + 1)th element is wanted. The
    // reshape fails where they differ at run time.
    Value size = sizeOf(n, x, rank - 2);
    int64_t known = rows;
    Value square = n.binary<ir::MulOp>(size, size);
    int64_t count = known;
    if (!ShapedType::isDynamic(known) &&
        __builtin_mul_overflow(known, known, &count)) {
      n.error() << "the product of the axes is too large";
      return;
    }
    SmallVector<Value> sizes;
    Shape shape;
    for (int64_t axis = 0; axis < rank - 2; ++axis) {
      sizes.push_back(sizeOf(n, x, axis));
      shape.push_back(Node::shape(x)[axis]);
    }
    sizes.push_back(square);
    shape.push_back(count);
    Value flat = reshapeTo(n, x, sizes, shape);
    Value step = n.binary<ir::AddOp>(size, vectorOf(n, 1));
    Value places = n.make<ir::RangeOp>(
        RankedTensorType::get({known}, n.builder.getI64Type()),
        n.constantInt(0), n.reshape(square, {}, {}), n.reshape(step, {}, {}));
    shape.back() = known;
    term.value =
        n.make<ir::GatherOp>(n.makeType(shape, Node::element(flat)), flat,
                             places, n.i64(static_cast<int64_t>(rank) - 2));
    term.labels = labels;
    i = static_cast<size_t>(-1); // Others may be named twice as well.
  }
}

/// The sum of products of two terms over the axes that are not `wanted`.
static Term join(Node &n, Term a, Term b,
                 llvm::function_ref<bool(int64_t)> wanted) {
  sumOthers(n, a, [&](int64_t l) { return wanted(l) || has(b.labels, l); });
  sumOthers(n, b, [&](int64_t l) { return wanted(l) || has(a.labels, l); });
  Labels batch, summed, rows, columns;
  for (int64_t label : a.labels)
    (!has(b.labels, label) ? rows
     : wanted(label)       ? batch
                           : summed)
        .push_back(label);
  for (int64_t label : b.labels)
    if (!has(a.labels, label))
      columns.push_back(label);
  auto concat = [](ArrayRef<int64_t> x, ArrayRef<int64_t> y,
                   ArrayRef<int64_t> z) {
    Labels all(x);
    llvm::append_range(all, y);
    llvm::append_range(all, z);
    return all;
  };
  Value left = ordered(n, a, concat(batch, rows, summed));
  Value right = ordered(n, b, concat(batch, summed, columns));
  SmallVector<size_t> groups(batch.size(), 1), rightGroups = groups;
  groups.append({rows.size(), summed.size()});
  rightGroups.append({summed.size(), columns.size()});
  Value product =
      matmulOf(n, mergeAxes(n, left, groups), mergeAxes(n, right, rightGroups));
  Term result{product, concat(batch, rows, columns)};
  if (n.hasFailed() || (rows.size() == 1 && columns.size() == 1))
    return result;
  SmallVector<Value> sizes;
  Shape shape;
  auto addSize = [&](Value from, int64_t axis) {
    sizes.push_back(sizeOf(n, from, axis));
    shape.push_back(Node::shape(from)[axis]);
  };
  for (size_t i = 0; i < batch.size(); ++i)
    addSize(product, i);
  for (size_t i = 0; i < rows.size(); ++i)
    addSize(left, batch.size() + i);
  for (size_t i = 0; i < columns.size(); ++i)
    addSize(right, batch.size() + summed.size() + i);
  result.value = reshapeTo(n, product, sizes, shape);
  return result;
}

LogicalResult einsum(Node &n) {
  std::string text = n.stringAttr("equation", "");
  llvm::erase(text, ' ');
  if (n.hasFailed())
    return failure();
  bool isExplicit = StringRef(text).contains("->");
  auto [inputs, output] = StringRef(text).split("->");
  SmallVector<StringRef> operands;
  inputs.split(operands, ',');
  if (operands.size() != n.numInputs())
    return n.error() << "the equation has " << operands.size()
                     << " operands, the node has " << n.numInputs();
  SmallVector<Term> terms;
  Labels all;
  int64_t ellipsis = 0;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (!n.has(i))
      return n.error() << "input " << i << " is required";
    if (!n.isNumeric(i) || !n.sameElements(0, i))
      return failure();
    FailureOr<Labels> labels =
        parseLabels(n, operand, Node::type(n.in(i)).getRank(), 0);
    if (failed(labels))
      return failure();
    for (int64_t label : *labels)
      ellipsis = std::max(ellipsis, label - kEllipsis + 1);
    llvm::append_range(all, *labels);
    terms.push_back({n.in(i), *labels});
    takeDiagonals(n, terms.back());
    if (n.hasFailed())
      return failure();
  }
  Labels wanted;
  if (isExplicit) {
    FailureOr<Labels> labels = parseLabels(n, output, -1, ellipsis);
    if (failed(labels))
      return failure();
    wanted = *labels;
    if (ellipsis > 0 && !has(wanted, kEllipsis))
      return n.error() << "the equation's result lacks the '...' of an operand";
  } else {
    for (int64_t i = ellipsis; i-- > 0;)
      wanted.push_back(kEllipsis + i);
    Labels letters;
    for (int64_t label : all)
      if (label < kEllipsis && llvm::count(all, label) == 1)
        letters.push_back(label);
    llvm::sort(letters);
    llvm::append_range(wanted, letters);
  }
  for (int64_t label : wanted)
    if (!has(all, label) || llvm::count(wanted, label) > 1)
      return n.error() << "the equation's result names an axis that no operand "
                          "has, or one twice";
  Term result = terms.front();
  for (size_t i = 1; i < terms.size() && !n.hasFailed(); ++i)
    result = join(n, result, terms[i], [&](int64_t label) {
      return has(wanted, label) ||
             llvm::any_of(
                 ArrayRef(terms).drop_front(i + 1),
                 [&](const Term &term) { return has(term.labels, label); });
    });
  if (n.hasFailed())
    return failure();
  sumOthers(n, result, [&](int64_t label) { return has(wanted, label); });
  n.set(0, ordered(n, result, wanted));
  return success();
}

} // namespace llm::importer
