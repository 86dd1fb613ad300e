//===- SymbolicShape.cpp - Sizes and shape vectors as symbols -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/SymbolicShape.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::llm;

static RankedTensorType tensorOf(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static bool isIdentifier(StringRef text) {
  return !text.empty() && !llvm::isDigit(text.front()) &&
         llvm::all_of(text, [](char c) {
           return llvm::isAlnum(c) || c == '_' || c == '.' || c == '-';
         });
}

SymbolicExpr SymbolicShape::parse(StringRef name) {
  auto symbolOf = [&](StringRef text) {
    auto [it, inserted] = symbols.try_emplace(text, names.size());
    if (inserted)
      names.push_back(text.str());
    auto found = substitutions.find(it->second);
    return found == substitutions.end() ? SymbolicExpr::symbol(it->second)
                                        : found->second;
  };
  // Sums of products of names and numbers; anything else is one opaque name.
  SymbolicExpr sum;
  SmallVector<StringRef> summands;
  name.split(summands, '+');
  for (StringRef summand : summands) {
    SymbolicExpr product(1);
    SmallVector<StringRef> factors;
    summand.split(factors, '*');
    for (StringRef factor : factors) {
      factor = factor.trim();
      int64_t number;
      if (!factor.getAsInteger(10, number) && number >= 0)
        product = product * SymbolicExpr(number);
      else if (isIdentifier(factor))
        product = product * symbolOf(factor);
      else
        return symbolOf(name);
    }
    sum = sum + product;
  }
  return sum.isKnown() ? sum : symbolOf(name);
}

std::string SymbolicShape::getName(Symbol symbol) const {
  return names[symbol].empty() ? "s" + std::to_string(symbol) : names[symbol];
}

std::string SymbolicShape::str(const SymbolicExpr &expr) const {
  return expr.str([this](Symbol symbol) { return getName(symbol); });
}

SymbolicExpr SymbolicShape::fresh() {
  names.emplace_back();
  return SymbolicExpr::symbol(names.size() - 1);
}

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

SymbolicShape::SymbolicShape(func::FuncOp func) : func(func) {
  if (func.isDeclaration())
    return;
  auto run = [&] {
    infos.clear();
    for (BlockArgument argument : func.getArguments())
      getInfo(argument);
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != func.getOperation() && op->getNumResults() > 0 &&
          !infos.contains(op->getResult(0)))
        analyze(op);
    });
  };
  run();
  if (learnFromResults())
    run();
}

bool SymbolicShape::learnFromResults() {
  Operation *terminator = func.getBody().front().getTerminator();
  // Only names that arguments use are worth replacing.
  llvm::DenseSet<Symbol> used;
  for (BlockArgument argument : func.getArguments())
    if (tensorOf(argument))
      for (const SymbolicExpr &dim : getDims(argument))
        if (std::optional<Symbol> symbol = dim.getSymbol())
          used.insert(*symbol);
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    auto dims = func.getResultAttrOfType<ArrayAttr>(i, kDimsAttr);
    RankedTensorType type = tensorOf(value);
    if (!dims || !type || type.getRank() != static_cast<int64_t>(dims.size()))
      continue;
    for (auto [attr, computed] : llvm::zip(dims, getDims(value))) {
      auto name = dyn_cast<StringAttr>(attr);
      if (!name || name.empty())
        continue;
      std::optional<Symbol> symbol = parse(name).getSymbol();
      if (!symbol || !used.contains(*symbol) || computed.contains(*symbol))
        continue;
      // Replace by named symbols only, and never in a circle.
      bool usable = true;
      for (Symbol other = 0; other < names.size(); ++other)
        if (computed.contains(other) &&
            (names[other].empty() || substitutions.contains(other)))
          usable = false;
      for (auto &entry : substitutions)
        if (entry.second.contains(*symbol))
          usable = false;
      if (usable)
        substitutions.try_emplace(*symbol, computed);
    }
  }
  return !substitutions.empty();
}

const SymbolicShape::Info &SymbolicShape::getInfo(Value value) {
  auto it = infos.find(value);
  if (it != infos.end())
    return *it->second;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    analyzeArgument(argument);
    return *infos.find(value)->second;
  }
  // New ops may stand on other new ops: operands first, without recursion.
  SmallVector<Operation *> stack{value.getDefiningOp()};
  while (!stack.empty()) {
    Operation *op = stack.back();
    size_t before = stack.size();
    for (Value operand : op->getOperands()) {
      if (infos.contains(operand))
        continue;
      if (auto argument = dyn_cast<BlockArgument>(operand))
        analyzeArgument(argument);
      else
        stack.push_back(operand.getDefiningOp());
    }
    if (stack.size() != before)
      continue;
    stack.pop_back();
    if (!infos.contains(op->getResult(0)))
      analyze(op);
  }
  return *infos.find(value)->second;
}

void SymbolicShape::analyzeArgument(BlockArgument argument) {
  Info info;
  if (RankedTensorType type = tensorOf(argument)) {
    ArrayAttr dims;
    if (argument.getOwner() == &func.getBody().front())
      dims =
          func.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), kDimsAttr);
    for (int64_t i = 0; i < type.getRank(); ++i) {
      StringAttr name;
      if (dims && i < static_cast<int64_t>(dims.size()))
        name = dyn_cast<StringAttr>(dims[i]);
      if (!type.isDynamicDim(i))
        info.dims.push_back(type.getDimSize(i));
      else
        info.dims.push_back(name && !name.empty() ? parse(name) : fresh());
    }
  }
  setInfo(argument, std::move(info));
}

void SymbolicShape::analyze(Operation *op) {
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Info info;
    if (RankedTensorType type = tensorOf(result)) {
      Exprs inferred = inferDims(op, i);
      bool usable = static_cast<int64_t>(inferred.size()) == type.getRank();
      for (int64_t d = 0; d < type.getRank(); ++d) {
        if (!type.isDynamicDim(d))
          info.dims.push_back(type.getDimSize(d));
        else if (usable && inferred[d].isKnown())
          info.dims.push_back(inferred[d]);
        else
          info.dims.push_back(fresh());
      }
    }
    setInfo(result, std::move(info));
  }
  if (op->getNumResults() != 1)
    return;
  RankedTensorType type = tensorOf(op->getResult(0));
  if (!type || !isa<IntegerType>(type.getElementType()))
    return;
  int64_t count = 1;
  for (const SymbolicExpr &dim : infos[op->getResult(0)]->dims) {
    std::optional<int64_t> size = dim.getConstant();
    if (!size || *size < 0 || *size > kMaxElements)
      return;
    count *= *size;
    if (count > kMaxElements)
      return;
  }
  std::optional<Exprs> elements = inferElements(op);
  if (elements && static_cast<int64_t>(elements->size()) == count &&
      llvm::all_of(*elements, [](const auto &e) { return e.isKnown(); }))
    infos[op->getResult(0)]->elements = std::move(elements);
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

ArrayRef<SymbolicExpr> SymbolicShape::getDims(Value value) {
  return getInfo(value).dims;
}

const SymbolicShape::Exprs *SymbolicShape::getElements(Value value) {
  const Info &info = getInfo(value);
  return info.elements ? &*info.elements : nullptr;
}

std::optional<SymbolicExpr> SymbolicShape::getScalar(Value value) {
  const Exprs *elements = getElements(value);
  if (!elements || elements->size() != 1)
    return std::nullopt;
  return elements->front();
}

std::optional<SmallVector<int64_t>> SymbolicShape::getConstants(Value value) {
  const Exprs *elements = getElements(value);
  if (!elements)
    return std::nullopt;
  SmallVector<int64_t> constants;
  for (const SymbolicExpr &element : *elements) {
    std::optional<int64_t> constant = element.getConstant();
    if (!constant)
      return std::nullopt;
    constants.push_back(*constant);
  }
  return constants;
}

bool SymbolicShape::sameShape(Value a, Value b) {
  Exprs dims(getDims(a));
  return ArrayRef<SymbolicExpr>(dims) == getDims(b);
}

SliceBounds mlir::llm::clampSlice(const SymbolicExpr &start,
                                  const SymbolicExpr &end,
                                  const SymbolicExpr &size) {
  auto clamp = [&](const SymbolicExpr &bound) -> SymbolicExpr {
    std::optional<int64_t> constant = bound.getConstant();
    SymbolicExpr value = bound;
    if (constant && *constant < 0) {
      // Counted from the end; "as far as it goes" is the beginning.
      if (*constant == INT64_MIN)
        return SymbolicExpr(0);
      value = size + bound;
      if (std::optional<int64_t> v = value.getConstant())
        return SymbolicExpr(std::max<int64_t>(*v, 0));
      // size - c: not known to be within the dimension, unless c is 1 and the
      // dimension not empty; take the usual reading only where it is proven.
      return value.isNonNegative() ? value : SymbolicExpr::unknown();
    }
    // Past the end: the end.  INT32_MAX and above are exporters' infinity.
    if (constant && *constant >= INT32_MAX)
      return size;
    // -S for a size S, which counts from the end (an empty S selects nothing
    // that matters).
    if (!constant && (-value).isNonNegative())
      value = size + value;
    SymbolicExpr above = value - size;
    if (above.isNonNegative())
      return size;
    if ((size - value).isNonNegative() && value.isNonNegative())
      return value;
    return SymbolicExpr::unknown();
  };
  return {clamp(start), clamp(end)};
}
