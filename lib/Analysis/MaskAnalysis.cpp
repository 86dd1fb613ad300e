//===- MaskAnalysis.cpp - What attention masks and positions mean ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/MaskAnalysis.h"

#include <bitset>

using namespace mlir;
using namespace mlir::llm;
using Kind = Element::Kind;

/// Added to a score, this is as good as minus infinity: float16's lowest number
/// is -65504, and exporters have used -1e4 and -1e9.
static constexpr double kHides = -1e4;

namespace {

/// Conditions that a mask may combine; more are not a mask that we know.
constexpr unsigned kMaxAtoms = 8;
/// A function of the atoms, as the set of their assignments where it holds.
using Table = std::bitset<1u << kMaxAtoms>;
using Result = std::optional<Table>;

/// Turns conditions and additive masks into functions of atoms: inequalities of
/// indices, and elements of tensors that are zero or one.
class Reader {
public:
  explicit Reader(const ElementAnalysis &elements) : elements(elements) {}

  /// Where the condition holds.
  Result when(const Element *condition);
  /// Where the number is zero.
  Result whenZero(const Element *number);
  /// Where the additive mask lets a score pass: 0 there, hidden elsewhere.
  Result whenVisible(const Element *number);

  /// An atom and whether it holds.
  struct Literal {
    SymbolicExpr nonNegative; ///< Or, where `load` is set, that it is not zero.
    const Element *load = nullptr;
    bool holds = true;
  };
  /// The literals that `table` is the conjunction of, or nullopt.
  std::optional<SmallVector<Literal>> conjunction(const Table &table) const;

  std::string reason;

private:
  Result constant(bool holds) const { return holds ? Table().set() : Table(); }
  Result atom(unsigned index) const;
  Result atLeastZero(const SymbolicExpr &expr);
  /// Zero or one, whatever the data.
  bool isIndicator(const Element *e) const;

  const ElementAnalysis &elements;
  SmallVector<Literal> atoms;
};

} // namespace

Result Reader::atom(unsigned index) const {
  Table table;
  for (unsigned i = 0; i < table.size(); ++i)
    table[i] = (i >> index) & 1;
  return table;
}

Result Reader::atLeastZero(const SymbolicExpr &expr) {
  if (!expr.isKnown())
    return std::nullopt;
  SymbolicExpr complement = -expr - SymbolicExpr(1);
  if (elements.isNonNegative(expr))
    return constant(true);
  if (elements.isNonNegative(complement))
    return constant(false);
  for (auto [i, literal] : llvm::enumerate(atoms)) {
    if (literal.load)
      continue;
    if (literal.nonNegative == expr)
      return atom(i);
    if (literal.nonNegative == complement)
      return ~*atom(i);
  }
  if (atoms.size() == kMaxAtoms)
    return std::nullopt;
  atoms.push_back({expr, nullptr, true});
  return atom(atoms.size() - 1);
}

std::optional<SmallVector<Reader::Literal>>
Reader::conjunction(const Table &table) const {
  SmallVector<Literal> literals;
  Table product = *constant(true);
  for (auto [i, literal] : llvm::enumerate(atoms)) {
    Table holds = *atom(i);
    Literal out = literal;
    if ((table & ~holds).none())
      product &= holds;
    else if ((table & holds).none()) {
      product &= ~holds;
      out.holds = false;
    } else {
      continue;
    }
    literals.push_back(out);
  }
  if (product != table)
    return std::nullopt;
  return literals;
}

static Result both(Result a, Result b) {
  return a && b ? Result(*a & *b) : std::nullopt;
}
static Result either(Result a, Result b) {
  return a && b ? Result(*a | *b) : std::nullopt;
}
static Result negation(Result a) { return a ? Result(~*a) : std::nullopt; }

Result Reader::when(const Element *e) {
  switch (e->kind) {
  case Kind::logicalNot:
    return negation(when(e->lhs));
  case Kind::logicalAnd:
    return both(when(e->lhs), when(e->rhs));
  case Kind::logicalOr:
    return either(when(e->lhs), when(e->rhs));
  case Kind::nonZero:
    return negation(whenZero(e->lhs));
  case Kind::integer:
  case Kind::load:
    return negation(whenZero(e));
  case Kind::less:
  case Kind::lessEqual: {
    bool strict = e->is(Kind::less);
    if (e->lhs->is(Kind::integer) && e->rhs->is(Kind::integer)) {
      SymbolicExpr gap = e->rhs->expr - e->lhs->expr;
      return atLeastZero(strict ? gap - SymbolicExpr(1) : gap);
    }
    // 0 < x, x < 1 and so on, for masks of zeros and ones.
    std::optional<double> low = e->lhs->getNumber(), high = e->rhs->getNumber();
    if (low && isIndicator(e->rhs) &&
        (strict ? *low >= 0 && *low < 1 : *low > 0 && *low <= 1))
      return negation(whenZero(e->rhs));
    if (high && isIndicator(e->lhs) &&
        (strict ? *high > 0 && *high <= 1 : *high >= 0 && *high < 1))
      return whenZero(e->lhs);
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
      return whenZero(other);
    if (number && *number == 1 && isIndicator(other))
      return negation(whenZero(other));
    return std::nullopt;
  }
  case Kind::select: {
    Result c = when(e->condition);
    return either(both(c, when(e->lhs)), both(negation(c), when(e->rhs)));
  }
  default:
    return std::nullopt;
  }
}

bool Reader::isIndicator(const Element *e) const {
  if (std::optional<double> number = e->getNumber())
    return *number == 0 || *number == 1;
  switch (e->kind) {
  case Kind::load: // Padding masks are; nothing else passes analyzeMask.
    return true;
  case Kind::sub:
    return e->lhs->getNumber() == 1.0 && isIndicator(e->rhs);
  case Kind::mul:
  case Kind::select:
    return isIndicator(e->lhs) && isIndicator(e->rhs);
  default:
    return false;
  }
}

Result Reader::whenZero(const Element *e) {
  if (std::optional<double> number = e->getNumber())
    return constant(*number == 0);
  switch (e->kind) {
  case Kind::integer:
    return both(atLeastZero(e->expr), atLeastZero(-e->expr));
  case Kind::load: {
    for (auto [i, literal] : llvm::enumerate(atoms))
      if (literal.load && *literal.load == *e)
        return negation(atom(i));
    if (atoms.size() == kMaxAtoms)
      return std::nullopt;
    atoms.push_back({SymbolicExpr(), e, true});
    return negation(atom(atoms.size() - 1));
  }
  case Kind::sub:
    // 1 - x, for x of zeros and ones.
    if (e->lhs->getNumber() == 1.0 && isIndicator(e->rhs))
      return negation(whenZero(e->rhs));
    return std::nullopt;
  case Kind::mul:
    return either(whenZero(e->lhs), whenZero(e->rhs));
  case Kind::add: {
    // Nothing cancels between what hides and zeros or ones, nor among either.
    auto known = [&](const Element *part) {
      return isIndicator(part) || whenVisible(part).has_value();
    };
    if (!known(e->lhs) || !known(e->rhs))
      return std::nullopt;
    return both(whenZero(e->lhs), whenZero(e->rhs));
  }
  case Kind::select: {
    Result c = when(e->condition);
    return either(both(c, whenZero(e->lhs)),
                  both(negation(c), whenZero(e->rhs)));
  }
  default:
    return std::nullopt;
  }
}

Result Reader::whenVisible(const Element *e) {
  if (std::optional<double> number = e->getNumber()) {
    if (*number == 0 || *number <= kHides)
      return constant(*number == 0);
    reason = "it adds " + std::to_string(*number) + " to scores";
    return std::nullopt;
  }
  switch (e->kind) {
  case Kind::add:
  case Kind::min:
    return both(whenVisible(e->lhs), whenVisible(e->rhs));
  case Kind::max: // max(mask, lowest) guards against overflow of sums.
    return either(whenVisible(e->lhs), whenVisible(e->rhs));
  case Kind::mul:
    // (zero or one) * -large.
    for (auto [factor, other] :
         {std::pair(e->lhs, e->rhs), std::pair(e->rhs, e->lhs)}) {
      std::optional<double> number = factor->getNumber();
      if (number && *number <= kHides && isIndicator(other))
        return whenZero(other);
      // A mask kept or made 0.
      if (!number && isIndicator(factor))
        if (Result visible = whenVisible(other))
          return either(visible, whenZero(factor));
    }
    return std::nullopt;
  case Kind::select: {
    // x != 0 ? hidden : x, where x is 0 whenever it is taken.
    const Element *c = e->condition;
    std::optional<double> number = e->lhs->getNumber();
    if (c->is(Kind::nonZero) && *c->lhs == *e->rhs && number &&
        *number <= kHides)
      return negation(when(c));
    Result holds = when(c);
    return either(both(holds, whenVisible(e->lhs)),
                  both(negation(holds), whenVisible(e->rhs)));
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
  Reader reader(elements);
  Result visible = isa<FloatType>(type.getElementType())
                       ? reader.whenVisible(element)
                       : reader.when(element);
  std::optional<SmallVector<Reader::Literal>> literals;
  if (visible && visible->any())
    literals = reader.conjunction(*visible);
  if (!literals) {
    reason = visible && visible->none() ? "it hides everything"
             : reader.reason.empty()
                 ? "its elements are no conjunction of conditions on positions "
                   "and padding"
                 : reader.reason;
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
  for (const Reader::Literal &literal : *literals) {
    if (literal.load)
      continue;
    SymbolicExpr expr =
        rewrite(literal.holds ? literal.nonNegative
                              : -literal.nonNegative - SymbolicExpr(1));
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
  for (const Reader::Literal &literal : *literals) {
    const Element *load = literal.load;
    if (!load)
      continue;
    auto argument = dyn_cast<BlockArgument>(load->tensor);
    bool padding =
        literal.holds && argument && load->indices.size() == 2 &&
        load->indices[1] == j &&
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
  if (e->is(Kind::select) &&
      e->lhs->getNumber().has_value() != e->rhs->getNumber().has_value()) {
    bool countFirst = !e->lhs->getNumber();
    Reader reader(elements);
    Result counted = reader.when(e->condition);
    if (!countFirst)
      counted = negation(counted);
    auto literals = counted ? reader.conjunction(*counted) : std::nullopt;
    if (literals && literals->size() == 1 && literals->front().load &&
        literals->front().holds)
      e = countFirst ? e->lhs : e->rhs;
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
