//===- MaskAnalysis.cpp - What attention masks and positions mean ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/MaskAnalysis.h"

using namespace mlir;
using namespace mlir::llm;
using Kind = Element::Kind;

/// Added to a score, this is as good as minus infinity: float16's lowest number
/// is -65504, and exporters have used -1e4 and -1e9.
static constexpr double kHides = -1e4;

namespace {

/// A conjunction of conditions on the indices.
struct Conditions {
  bool never = false;
  SmallVector<SymbolicExpr> nonNegative;
  SmallVector<const Element *> nonZero;

  void add(const Conditions &other) {
    never |= other.never;
    llvm::append_range(nonNegative, other.nonNegative);
    llvm::append_range(nonZero, other.nonZero);
  }
  bool always() const {
    return !never && nonNegative.empty() && nonZero.empty();
  }
};
using Result = std::optional<Conditions>;

/// Turns conditions and additive masks into conjunctions.
struct Reader {
  /// When the condition is `value`; nullopt where that is no conjunction.
  Result when(const Element *condition, bool value);
  /// When the number is not zero (or is).
  Result whenNonZero(const Element *number, bool value);
  /// When the additive mask lets a score pass: 0 there, hidden elsewhere.
  Result whenVisible(const Element *number);

  std::string reason;
};

} // namespace

/// a and b as they are, or one of them decided. Disjunctions are taken only
/// where one side decides.
static Result conjunction(Result a, Result b) {
  if (!a || !b)
    return std::nullopt;
  a->add(*b);
  return a;
}

static Result disjunction(Result a, Result b) {
  if (!a || !b)
    return std::nullopt;
  if (a->never)
    return b;
  if (b->never || a->always())
    return a;
  if (b->always())
    return b;
  return std::nullopt;
}

static Result constant(bool holds) {
  Conditions conditions;
  conditions.never = !holds;
  return conditions;
}

static Result atLeastZero(const SymbolicExpr &expr) {
  if (!expr.isKnown())
    return std::nullopt;
  Conditions conditions;
  if (std::optional<int64_t> number = expr.getConstant())
    conditions.never = *number < 0;
  else
    conditions.nonNegative.push_back(expr);
  return conditions;
}

Result Reader::when(const Element *e, bool value) {
  switch (e->kind) {
  case Kind::integer:
    return whenNonZero(e, value);
  case Kind::load:
    if (!value)
      return std::nullopt;
    return whenNonZero(e, true);
  case Kind::logicalNot:
    return when(e->lhs, !value);
  case Kind::logicalAnd:
  case Kind::logicalOr: {
    Result a = when(e->lhs, value), b = when(e->rhs, value);
    return e->is(Kind::logicalAnd) == value ? conjunction(a, b)
                                            : disjunction(a, b);
  }
  case Kind::nonZero:
    return whenNonZero(e->lhs, value);
  case Kind::less:
  case Kind::lessEqual: {
    if (e->lhs->is(Kind::integer) && e->rhs->is(Kind::integer)) {
      SymbolicExpr gap = e->rhs->expr - e->lhs->expr;
      if (e->is(Kind::less))
        gap = gap - SymbolicExpr(1);
      return atLeastZero(value ? gap : -gap - SymbolicExpr(1));
    }
    // 0 < x, x < 1 and so on, for masks of zeros and ones.
    std::optional<double> low = e->lhs->getNumber(), high = e->rhs->getNumber();
    bool strict = e->is(Kind::less);
    if (low && (strict ? *low >= 0 && *low < 1 : *low > 0 && *low <= 1))
      return whenNonZero(e->rhs, value);
    if (high && (strict ? *high > 0 && *high <= 1 : *high >= 0 && *high < 1))
      return whenNonZero(e->lhs, !value);
    return std::nullopt;
  }
  case Kind::equal: {
    const Element *other = e->rhs;
    std::optional<double> number = e->lhs->getNumber();
    if (!number) {
      number = e->rhs->getNumber();
      other = e->lhs;
    }
    if (number && *number == 0)
      return whenNonZero(other, !value);
    if (number && *number == 1)
      return whenNonZero(other, value);
    return std::nullopt;
  }
  case Kind::select: {
    // c ? a : b is (c and a) or (not c and b), read where a or b is constant.
    Result a = when(e->lhs, value), b = when(e->rhs, value);
    if (a && a->never)
      return conjunction(when(e->condition, false), b);
    if (b && b->never)
      return conjunction(when(e->condition, true), a);
    if (a && b && a->always() && b->always())
      return a;
    return std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

Result Reader::whenNonZero(const Element *e, bool value) {
  if (std::optional<double> number = e->getNumber())
    return constant((*number != 0) == value);
  switch (e->kind) {
  case Kind::integer: // Of indices: not zero is no single inequality.
    return std::nullopt;
  case Kind::load: {
    if (!value)
      return std::nullopt;
    Conditions conditions;
    conditions.nonZero.push_back(e);
    return conditions;
  }
  case Kind::sub:
    // 1 - x, for x of zeros and ones.
    if (std::optional<double> one = e->lhs->getNumber(); one && *one == 1)
      return whenNonZero(e->rhs, !value);
    return std::nullopt;
  case Kind::mul: {
    Result a = whenNonZero(e->lhs, value), b = whenNonZero(e->rhs, value);
    return value ? conjunction(a, b) : disjunction(a, b);
  }
  case Kind::select: {
    Result a = whenNonZero(e->lhs, value), b = whenNonZero(e->rhs, value);
    if (a && a->never)
      return conjunction(when(e->condition, false), b);
    if (b && b->never)
      return conjunction(when(e->condition, true), a);
    if (a && b && a->always() && b->always())
      return a;
    return std::nullopt;
  }
  default:
    return when(e, value);
  }
}

Result Reader::whenVisible(const Element *e) {
  if (std::optional<double> number = e->getNumber()) {
    if (*number == 0)
      return constant(true);
    if (*number <= kHides)
      return constant(false);
    reason = "it adds " + std::to_string(*number) + " to scores";
    return std::nullopt;
  }
  switch (e->kind) {
  case Kind::add:
    return conjunction(whenVisible(e->lhs), whenVisible(e->rhs));
  case Kind::min:
    return conjunction(whenVisible(e->lhs), whenVisible(e->rhs));
  case Kind::max: {
    // max(mask, lowest) guards against overflow of sums.
    Result a = whenVisible(e->lhs), b = whenVisible(e->rhs);
    return disjunction(a, b);
  }
  case Kind::mul: {
    // (zero or one) * -large.
    for (auto [factor, other] :
         {std::pair(e->lhs, e->rhs), std::pair(e->rhs, e->lhs)})
      if (std::optional<double> number = factor->getNumber();
          number && *number <= kHides)
        return whenNonZero(other, false);
    return std::nullopt;
  }
  case Kind::select: {
    // x != 0 ? hidden : x is hidden or 0.
    const Element *c = e->condition;
    std::optional<double> number = e->lhs->getNumber();
    if (c->is(Kind::nonZero) && *c->lhs == *e->rhs && number &&
        *number <= kHides)
      return when(c, false);
    Result a = whenVisible(e->lhs), b = whenVisible(e->rhs);
    if (a && a->never)
      return conjunction(when(c, false), b);
    if (b && b->never)
      return conjunction(when(c, true), a);
    if (a && b && a->always() && b->always())
      return a;
    return std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

std::optional<MaskMeaning>
mlir::llm::analyzeMask(SymbolicShape &shapes, Value mask,
                       const SymbolicExpr &queries, const SymbolicExpr &keys,
                       const SymbolicExpr &past, std::string &reason) {
  auto type = cast<RankedTensorType>(mask.getType());
  SmallVector<SymbolicExpr> dims(shapes.getDims(mask));
  if (dims.size() > 4 || dims.empty()) {
    reason = "it has more than four dimensions";
    return std::nullopt;
  }
  ElementAnalysis elements(shapes);
  SymbolicExpr b = elements.index(dims.size() == 4 ? dims[0] : 1);
  SymbolicExpr h = elements.index(dims.size() >= 3 ? dims[dims.size() - 3] : 1);
  SymbolicExpr i = elements.index(queries), j = elements.index(keys);
  SymbolicExpr all[] = {b, h, i, j};
  SmallVector<SymbolicExpr> indices;
  for (auto [dim, index] :
       llvm::zip(dims, ArrayRef(all).take_back(dims.size())))
    indices.push_back(dim == SymbolicExpr(1) ? SymbolicExpr(0) : index);

  const Element *element = elements.at(mask, indices);
  Reader reader;
  Result visible = isa<FloatType>(type.getElementType())
                       ? reader.whenVisible(element)
                       : reader.when(element, true);
  if (!visible) {
    reason = reader.reason.empty() ? "its elements are no conjunction of "
                                     "conditions on positions and padding"
                                   : reader.reason;
    return std::nullopt;
  }
  if (visible->never) {
    reason = "it hides everything";
    return std::nullopt;
  }

  // A mask as wide as the scores has their sizes, whatever they are called.
  llvm::DenseMap<Symbol, SymbolicExpr> equal;
  auto equate = [&](size_t fromEnd, const SymbolicExpr &size) {
    if (dims.size() < fromEnd)
      return;
    if (std::optional<Symbol> symbol = dims[dims.size() - fromEnd].getSymbol())
      if (!size.contains(*symbol))
        equal.try_emplace(*symbol, size);
  };
  equate(1, keys);
  equate(2, queries);
  auto rewrite = [&](const SymbolicExpr &expr) {
    return expr.substitute([&](Symbol symbol) {
      auto it = equal.find(symbol);
      return it == equal.end() ? SymbolicExpr::symbol(symbol) : it->second;
    });
  };

  MaskMeaning meaning;
  for (const SymbolicExpr &atom : visible->nonNegative) {
    SymbolicExpr expr = rewrite(atom);
    if (elements.isNonNegative(expr))
      continue;
    SymbolicExpr own = past + i; // The query's own slot.
    if (expr == own - j) {
      meaning.causal = true;
      continue;
    }
    // j > own - window.
    std::optional<int64_t> window =
        (expr - (j - own) + SymbolicExpr(1)).getConstant();
    if (window && *window > 0) {
      meaning.window =
          meaning.window ? std::min(meaning.window, *window) : *window;
      continue;
    }
    reason = "it requires " + shapes.str(expr) + " >= 0, where s" +
             std::to_string(*i.getSymbol()) + " is the query and s" +
             std::to_string(*j.getSymbol()) + " the key";
    return std::nullopt;
  }
  for (const Element *load : visible->nonZero) {
    auto argument = dyn_cast<BlockArgument>(load->tensor);
    bool padding =
        argument && load->indices.size() == 2 && load->indices[1] == j &&
        (load->indices[0] == b || load->indices[0] == SymbolicExpr(0));
    if (!padding || (meaning.padding && meaning.padding != load->tensor)) {
      reason = "it depends on data other than a [batch, slots] argument";
      return std::nullopt;
    }
    meaning.padding = load->tensor;
  }
  return meaning;
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// Whether `e` is the number of ones of a [batch, slots] argument in row b up
/// to and including slot `own`.
static bool countsUpTo(const Element *e, const SymbolicExpr &b,
                       const SymbolicExpr &own) {
  if (!e->is(Kind::prefixSum) || e->expr != own)
    return false;
  const Element *one = e->lhs;
  // A cast of a bool, or of x != 0, to a number.
  if (one->is(Kind::select) && one->condition)
    one = one->condition;
  if (one->is(Kind::nonZero))
    one = one->lhs;
  return one->is(Kind::load) && isa<BlockArgument>(one->tensor) &&
         one->indices.size() == 2 && one->indices[1] == own &&
         (one->indices[0] == b || one->indices[0] == SymbolicExpr(0));
}

Positions mlir::llm::analyzePositions(SymbolicShape &shapes, Value positions,
                                      const SymbolicExpr &past) {
  Positions result;
  SmallVector<SymbolicExpr> dims(shapes.getDims(positions));
  if (dims.empty() || dims.size() > 2)
    return result;
  ElementAnalysis elements(shapes);
  SymbolicExpr i = elements.index(dims.back());
  SymbolicExpr b = elements.index(dims.size() == 2 ? dims[0] : 1);
  SmallVector<SymbolicExpr> indices;
  if (dims.size() == 2)
    indices.push_back(dims[0] == SymbolicExpr(1) ? SymbolicExpr(0) : b);
  indices.push_back(i);
  const Element *e = elements.at(positions, indices);

  // Padding tokens get some other number (1, say); nothing reads their rows.
  auto paddingOnly = [&](const Element *condition) {
    Reader reader;
    Result r = reader.when(condition, true);
    return r && !r->never && r->nonNegative.empty() && r->nonZero.size() == 1;
  };
  if (e->is(Kind::select)) {
    // mask == 0 ? 1 : count, or mask != 0 ? count : 1.
    if (e->lhs->getNumber() && !e->rhs->getNumber()) {
      Reader reader;
      Result r = reader.when(e->condition, false);
      if (r && !r->never && r->nonNegative.empty() && r->nonZero.size() == 1)
        e = e->rhs;
    } else if (e->rhs->getNumber() && !e->lhs->getNumber() &&
               paddingOnly(e->condition)) {
      e = e->lhs;
    }
  }
  if (e->is(Kind::max)) // Positions are not negative.
    for (auto [bound, other] :
         {std::pair(e->lhs, e->rhs), std::pair(e->rhs, e->lhs)})
      if (std::optional<double> zero = bound->getNumber(); zero && *zero == 0) {
        e = other;
        break;
      }

  SymbolicExpr own = past + i;
  if (e->is(Kind::load) && isa<BlockArgument>(e->tensor) &&
      e->indices == indices) {
    result.meaning = PositionMeaning::input;
    result.argument = e->tensor;
  } else if (e->is(Kind::integer) && e->expr == own) {
    result.meaning = PositionMeaning::counted;
  } else if (e->is(Kind::sub) || e->is(Kind::add)) {
    std::optional<double> one = e->rhs->getNumber();
    bool minusOne = one && *one == (e->is(Kind::sub) ? 1 : -1);
    if (minusOne && countsUpTo(e->lhs, b, own))
      result.meaning = PositionMeaning::counted;
  }
  return result;
}
