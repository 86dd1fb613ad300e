//===- RTDialect.cpp - The rt dialect ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/RT/IR/RTDialect.h"

#include "lib/Support/DraftCosts.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::rt;

#include "dialects/RT/IR/RTDialect.cpp.inc"
#include "dialects/RT/IR/RTEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/RT/IR/RTAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/RT/IR/RTTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/RT/IR/RTOps.cpp.inc"

void RTDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/RT/IR/RTAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/RT/IR/RTTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/RT/IR/RTOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

ExprAttr ExprAttr::constant(MLIRContext *context, int64_t value) {
  return get(context, ExprKind::constant, value, "", {}, {});
}

ExprAttr ExprAttr::symbol(MLIRContext *context, StringRef name) {
  return get(context, ExprKind::symbol, 0, name, {}, {});
}

std::optional<int64_t> ExprAttr::getConstant() const {
  if (getKind() == ExprKind::constant)
    return getValue();
  return std::nullopt;
}

static std::optional<int64_t> apply(ExprKind kind, int64_t a, int64_t b) {
  int64_t r;
  switch (kind) {
  case ExprKind::add:
    return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  case ExprKind::mul:
    return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  case ExprKind::ceildiv:
    if (b <= 0 || a < 0)
      return std::nullopt;
    return a / b + (a % b != 0);
  case ExprKind::min:
    return std::min(a, b);
  case ExprKind::max:
    return std::max(a, b);
  default:
    return std::nullopt;
  }
}

static ExprAttr binary(ExprKind kind, ExprAttr lhs, ExprAttr rhs);

/// x * n as (x, n), for a constant n.
static std::pair<ExprAttr, int64_t> splitFactor(ExprAttr expr) {
  if (expr.getKind() == ExprKind::mul)
    if (std::optional<int64_t> factor = expr.getRight().getConstant())
      return {expr.getLeft(), *factor};
  return {expr, 1};
}

/// x * a + x * b as x * (a + b), or null.
static ExprAttr addEqualTerms(ExprAttr lhs, ExprAttr rhs) {
  auto [x, a] = splitFactor(lhs);
  auto [y, b] = splitFactor(rhs);
  std::optional<int64_t> sum = apply(ExprKind::add, a, b);
  if (x != y || !sum)
    return {};
  return binary(ExprKind::mul, x, ExprAttr::constant(x.getContext(), *sum));
}

/// max(x * a, x * b) as x * max(a, b), and min alike; else null.
static ExprAttr mergeExtremum(ExprKind kind, ExprAttr lhs, ExprAttr rhs) {
  auto [x, a] = splitFactor(lhs);
  auto [y, b] = splitFactor(rhs);
  if (x != y || lhs.getConstant())
    return {};
  int64_t factor = kind == ExprKind::max ? std::max(a, b) : std::min(a, b);
  return binary(ExprKind::mul, x, ExprAttr::constant(x.getContext(), factor));
}

static ExprAttr binary(ExprKind kind, ExprAttr lhs, ExprAttr rhs) {
  std::optional<int64_t> a = lhs.getConstant(), b = rhs.getConstant();
  if (a && b)
    if (std::optional<int64_t> value = apply(kind, *a, *b))
      return ExprAttr::constant(lhs.getContext(), *value);
  bool add = kind == ExprKind::add, mul = kind == ExprKind::mul;
  if ((add && a == 0) || (mul && a == 1))
    return rhs;
  if ((add && b == 0) || (mul && b == 1) ||
      (kind == ExprKind::ceildiv && b == 1))
    return lhs;
  if (mul && (a == 0 || b == 0))
    return ExprAttr::constant(lhs.getContext(), 0);
  // x * a * b is x * (a * b), and equal terms of a sum are counted: arena
  // offsets stay short however many buffers there are.
  if (mul && b && lhs.getKind() == ExprKind::mul)
    if (std::optional<int64_t> factor = lhs.getRight().getConstant())
      if (std::optional<int64_t> both = apply(kind, *factor, *b))
        return binary(kind, lhs.getLeft(),
                      ExprAttr::constant(lhs.getContext(), *both));
  if (add) {
    if (ExprAttr sum = addEqualTerms(lhs, rhs))
      return sum;
    if (lhs.getKind() == ExprKind::add)
      if (ExprAttr sum = addEqualTerms(lhs.getRight(), rhs))
        return binary(kind, lhs.getLeft(), sum);
  }
  bool extremum = kind == ExprKind::min || kind == ExprKind::max;
  // Symbols are not negative: max(x * a, x * b) is x * max(a, b).
  if (extremum) {
    if (ExprAttr one = mergeExtremum(kind, lhs, rhs))
      return one;
    if (lhs.getKind() == kind)
      if (ExprAttr one = mergeExtremum(kind, lhs.getRight(), rhs))
        return binary(kind, lhs.getLeft(), one);
  }
  if (extremum && lhs == rhs)
    return lhs;
  return ExprAttr::get(lhs.getContext(), kind, 0, "", lhs, rhs);
}

ExprAttr ExprAttr::add(ExprAttr l, ExprAttr r) {
  return binary(ExprKind::add, l, r);
}
ExprAttr ExprAttr::mul(ExprAttr l, ExprAttr r) {
  return binary(ExprKind::mul, l, r);
}
ExprAttr ExprAttr::mul(ExprAttr l, int64_t r) {
  return mul(l, constant(l.getContext(), r));
}
ExprAttr ExprAttr::ceilDiv(ExprAttr l, ExprAttr r) {
  return binary(ExprKind::ceildiv, l, r);
}
ExprAttr ExprAttr::min(ExprAttr l, ExprAttr r) {
  return binary(ExprKind::min, l, r);
}
ExprAttr ExprAttr::max(ExprAttr l, ExprAttr r) {
  return binary(ExprKind::max, l, r);
}

ExprAttr ExprAttr::alignTo(int64_t alignment) {
  // (x * alignment) is aligned already: the common case of whole rows.
  if (getKind() == ExprKind::mul)
    if (std::optional<int64_t> factor = getRight().getConstant())
      if (*factor % alignment == 0)
        return *this;
  ExprAttr unit = constant(getContext(), alignment);
  return mul(ceilDiv(*this, unit), unit);
}

std::optional<int64_t> ExprAttr::evaluate(
    function_ref<std::optional<int64_t>(StringRef)> symbols) const {
  if (getKind() == ExprKind::constant)
    return getValue();
  if (getKind() == ExprKind::symbol)
    return symbols(getSymbol());
  std::optional<int64_t> a = getLeft().evaluate(symbols);
  std::optional<int64_t> b = getRight().evaluate(symbols);
  if (!a || !b)
    return std::nullopt;
  return apply(getKind(), *a, *b);
}

void ExprAttr::walkSymbols(function_ref<void(StringRef)> fn) const {
  if (getKind() == ExprKind::constant)
    return;
  if (getKind() == ExprKind::symbol)
    return fn(getSymbol());
  getLeft().walkSymbols(fn);
  getRight().walkSymbols(fn);
}

static void printExpr(raw_ostream &os, ExprAttr expr, bool factor) {
  switch (expr.getKind()) {
  case ExprKind::constant:
    os << expr.getValue();
    return;
  case ExprKind::symbol:
    os << expr.getSymbol();
    return;
  case ExprKind::add:
    if (factor)
      os << "(";
    printExpr(os, expr.getLeft(), false);
    os << " + ";
    printExpr(os, expr.getRight(), true);
    if (factor)
      os << ")";
    return;
  case ExprKind::mul:
    printExpr(os, expr.getLeft(), true);
    os << " * ";
    // A product on the right keeps its own parentheses, so that parsing gives
    // the same tree.
    if (expr.getRight().getKind() == ExprKind::mul) {
      os << "(";
      printExpr(os, expr.getRight(), false);
      os << ")";
    } else {
      printExpr(os, expr.getRight(), true);
    }
    return;
  default:
    os << stringifyExprKind(expr.getKind()) << "(";
    printExpr(os, expr.getLeft(), false);
    os << ", ";
    printExpr(os, expr.getRight(), false);
    os << ")";
  }
}

/// Bounds on the nesting of parentheses and on the numbers and symbols in an
/// expression (each may make the tree one deeper), so that a file cannot
/// exhaust the stack.
static constexpr int kMaxExprDepth = 64;
static constexpr int kMaxExprLeaves = 1024;

static ExprAttr parseExpr(AsmParser &parser, int depth, int &leaves);

static ExprAttr parseFactor(AsmParser &parser, int depth, int &leaves) {
  MLIRContext *context = parser.getContext();
  if (++leaves > kMaxExprLeaves) {
    parser.emitError(parser.getCurrentLocation(), "expression is too long");
    return {};
  }
  if (depth > kMaxExprDepth) {
    parser.emitError(parser.getCurrentLocation(), "expression nests too deep");
    return {};
  }
  if (succeeded(parser.parseOptionalLParen())) {
    ExprAttr inner = parseExpr(parser, depth + 1, leaves);
    return inner && succeeded(parser.parseRParen()) ? inner : ExprAttr();
  }
  int64_t value;
  SMLoc loc = parser.getCurrentLocation();
  OptionalParseResult number = parser.parseOptionalInteger(value);
  if (number.has_value()) {
    if (failed(*number))
      return {};
    if (value < 0) {
      parser.emitError(loc, "a size is not negative, as ") << value << " is";
      return {};
    }
    return ExprAttr::constant(context, value);
  }
  StringRef keyword;
  if (failed(parser.parseKeyword(&keyword)))
    return {};
  std::optional<ExprKind> kind = symbolizeExprKind(keyword);
  if (kind != ExprKind::ceildiv && kind != ExprKind::min &&
      kind != ExprKind::max)
    return ExprAttr::symbol(context, keyword);
  if (failed(parser.parseLParen()))
    return {};
  ExprAttr lhs = parseExpr(parser, depth + 1, leaves);
  if (!lhs || failed(parser.parseComma()))
    return {};
  ExprAttr rhs = parseExpr(parser, depth + 1, leaves);
  if (!rhs || failed(parser.parseRParen()))
    return {};
  return binary(*kind, lhs, rhs);
}

static ExprAttr parseExpr(AsmParser &parser, int depth, int &leaves) {
  auto product = [&]() -> ExprAttr {
    ExprAttr lhs = parseFactor(parser, depth, leaves);
    while (lhs && succeeded(parser.parseOptionalStar())) {
      ExprAttr rhs = parseFactor(parser, depth, leaves);
      lhs = rhs ? ExprAttr::mul(lhs, rhs) : rhs;
    }
    return lhs;
  };
  ExprAttr lhs = product();
  while (lhs && succeeded(parser.parseOptionalPlus())) {
    ExprAttr rhs = product();
    lhs = rhs ? ExprAttr::add(lhs, rhs) : rhs;
  }
  return lhs;
}

void ExprAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printExpr(printer.getStream(), *this, false);
  printer << ">";
}

Attribute ExprAttr::parse(AsmParser &parser, Type) {
  if (failed(parser.parseLess()))
    return {};
  int leaves = 0;
  ExprAttr expr = parseExpr(parser, 0, leaves);
  if (!expr || failed(parser.parseGreater()))
    return {};
  return expr;
}

void RangeAttr::print(AsmPrinter &printer) const {
  printer << "<" << getSymbol() << ", " << getLow() << ", " << getHigh() << ">";
}

Attribute RangeAttr::parse(AsmParser &parser, Type) {
  StringRef symbol;
  int64_t low = 0, high = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&symbol) ||
      parser.parseComma() || parser.parseInteger(low) || parser.parseComma() ||
      parser.parseInteger(high) || parser.parseGreater())
    return {};
  return parser.getChecked<RangeAttr>(loc, parser.getContext(), symbol, low,
                                      high);
}

LogicalResult RangeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef, int64_t low, int64_t high) {
  if (low < 0 || (high != -1 && high < low))
    return emitError() << "range [" << low << ", " << high << "] is empty";
  return success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 Type elementType) {
  if (!elementType.isIntOrFloat())
    return emitError() << "a buffer holds ints or floats, not " << elementType;
  return success();
}

/// A concurrent dispatch must not touch what another one of its phase writes.
static LogicalResult verifyPhases(ProgramOp program) {
  SmallVector<DispatchOp> phase;
  auto findShared = [](ValueRange written, DispatchOp other) -> Value {
    for (Value value : written)
      if (llvm::is_contained(other.getReads(), value) ||
          llvm::is_contained(other.getWrites(), value))
        return value;
    return {};
  };
  for (auto dispatch : program.getBody().getOps<DispatchOp>()) {
    if (!dispatch.getConcurrent())
      phase.clear();
    else if (phase.empty())
      return dispatch.emitOpError("is concurrent, but there is none before it");
    for (DispatchOp other : phase) {
      if (!findShared(dispatch.getWrites(), other) &&
          !findShared(other.getWrites(), dispatch))
        continue;
      InFlightDiagnostic error = dispatch.emitOpError(
          "is concurrent with a dispatch that it shares a written buffer with");
      error.attachNote(other.getLoc()) << "the other dispatch is here";
      return error;
    }
    phase.push_back(dispatch);
  }
  return success();
}

/// Looks into the body, so it runs once the body is verified.
LogicalResult ProgramOp::verifyRegions() {
  llvm::SmallDenseSet<StringRef> known;
  for (StringRef symbol : getSymbols().getAsValueRange<StringAttr>())
    if (!known.insert(symbol).second)
      return emitOpError("symbol '") << symbol << "' is listed twice";
  auto check = [&](Operation *op, ExprAttr expr) -> LogicalResult {
    LogicalResult result = success();
    expr.walkSymbols([&](StringRef symbol) {
      if (succeeded(result) && !known.contains(symbol))
        result = op->emitOpError("uses symbol '")
                 << symbol << "', which the program does not list";
    });
    return result;
  };
  if (getArenaBytes() && failed(check(*this, *getArenaBytes())))
    return failure();
  for (Operation &op : getBody().front()) {
    if (auto buffer = dyn_cast<BufferOp>(op)) {
      if (failed(check(&op, buffer.getElements())) ||
          (buffer.getOffset() && failed(check(&op, *buffer.getOffset()))))
        return failure();
    } else if (auto dispatch = dyn_cast<DispatchOp>(op)) {
      if (!lookupSymbol<KernelOp>(dispatch.getKernel()))
        return op.emitOpError("no rt.kernel is named @")
               << dispatch.getKernel();
      if (failed(check(&op, dispatch.getGrid())))
        return failure();
      for (ExprAttr size : dispatch.getSizes().getAsRange<ExprAttr>())
        if (failed(check(&op, size)))
          return failure();
      for (Value written : dispatch.getWrites()) {
        auto buffer = written.getDefiningOp<BufferOp>();
        if (buffer && buffer.getLifetime() == Lifetime::constant)
          return op.emitOpError("writes the constant '")
                 << buffer.getName() << "'";
      }
    } else if (!isa<KernelOp>(op)) {
      return op.emitOpError("a program holds kernels, buffers and dispatches");
    }
  }
  return verifyPhases(*this);
}

LogicalResult BufferOp::verify() {
  Lifetime lifetime = getLifetime();
  if ((lifetime == Lifetime::transient) != getName().empty())
    return emitOpError("io, constant and state buffers have a name, transient "
                       "ones have none");
  if (getOffset() && lifetime != Lifetime::transient)
    return emitOpError("only a transient buffer has an arena offset");
  if (getLayout() && lifetime != Lifetime::constant)
    return emitOpError("only a constant has a packed layout");
  bool all = getGroup() && getLayer() && getPlane();
  if (lifetime == Lifetime::state ? !all
                                  : getGroup() || getLayer() || getPlane())
    return emitOpError("a state buffer, and no other, names its group, layer "
                       "and plane");
  return success();
}

LogicalResult DispatchOp::verify() {
  if (getWrites().empty())
    return emitOpError("writes nothing");
  return success();
}

/// Whether the ranges of the variants in `code` cover every value >= 1 of each
/// symbol. Only ranges over one symbol are proven; that is what generators
/// emit.
static LogicalResult verifyCoverage(KernelOp kernel, StringRef code) {
  SmallVector<RangeAttr> ranges;
  for (VariantOp variant : kernel.getVariants().getOps<VariantOp>()) {
    if (variant.getCode() != code)
      continue;
    if (!variant.getRanges() || variant.getRanges()->empty())
      return success();
    if (variant.getRanges()->size() > 1)
      continue;
    ranges.push_back(cast<RangeAttr>((*variant.getRanges())[0]));
  }
  if (ranges.empty())
    return kernel.emitOpError("no variant is without ranges or has just one");
  llvm::sort(ranges, [](RangeAttr a, RangeAttr b) {
    return std::pair(a.getSymbol(), a.getLow()) <
           std::pair(b.getSymbol(), b.getLow());
  });
  StringRef symbol = ranges.front().getSymbol();
  int64_t next = 1;
  for (RangeAttr range : ranges) {
    if (range.getSymbol() != symbol)
      return kernel.emitOpError("variants range over '")
             << symbol << "' and '" << range.getSymbol() << "'";
    if (range.getLow() > next)
      return kernel.emitOpError("no variant covers ")
             << symbol << " = " << next;
    if (range.getHigh() == -1 || range.getHigh() == INT64_MAX)
      return success();
    next = std::max(next, range.getHigh() + 1);
  }
  return kernel.emitOpError("no variant covers ") << symbol << " = " << next;
}

LogicalResult KernelOp::verifyRegions() {
  for (Operation &op : getVariants().front())
    if (!isa<VariantOp>(op))
      return op.emitOpError("a kernel holds variants only");
  // Before --llm-generate-kernels a kernel has none. A machine runs those of
  // one code object.
  llvm::SmallSetVector<StringRef, 2> codes;
  for (auto variant : getVariants().getOps<VariantOp>())
    codes.insert(variant.getCode());
  for (StringRef code : codes)
    if (failed(verifyCoverage(*this, code)))
      return failure();
  return success();
}

LogicalResult DraftOp::verify() {
  if (getLookup() < 1 || getLookup() > LLM_MAX_LOOKUP || getTokens() < 1 ||
      getTokens() > LLM_MAX_DRAFT)
    return emitOpError("looks up 1 to ")
           << LLM_MAX_LOOKUP << " tokens and proposes 1 to " << LLM_MAX_DRAFT;
  if (!::llm::areDraftCosts(getCosts(), static_cast<int64_t>(getTokens())))
    return emitOpError("has ")
           << getTokens() + 1 << " costs, ascending from "
           << LLM_DRAFT_COST_UNIT << " to " << LLM_MAX_DRAFT_COST << " at most";
  return success();
}

LogicalResult IterationOp::verifyRegions() {
  bool called = false;
  Operation *draft = nullptr;
  for (Operation &op : getBody().front()) {
    if (!isa<CallOp, SampleOp, DraftOp, AcceptOp>(op))
      return op.emitOpError("an iteration holds calls only");
    if (isa<SampleOp>(op) && !called)
      return op.emitOpError("samples before a program ran");
    if (isa<DraftOp>(op) && (called || draft))
      return op.emitOpError("drafts come once, before the program that "
                            "verifies them");
    if (isa<AcceptOp>(op) && !(draft && called))
      return op.emitOpError("accepts what no program has verified");
    if (isa<DraftOp>(op))
      draft = &op;
    if (isa<AcceptOp>(op))
      return &op == &getBody().front().back()
                 ? success()
                 : op.emitOpError("ends an iteration");
    called |= isa<CallOp>(op);
  }
  if (draft)
    return draft->emitOpError("no rt.accept follows");
  return success();
}

LogicalResult HostFunctionOp::verify() {
  auto type = dyn_cast<FunctionType>(getType());
  if (!type)
    return emitOpError("type must be a function type");
  if (type.getNumInputs() != getInputNames().size() ||
      type.getNumResults() != getOutputNames().size())
    return emitOpError("needs a name for each input and output");
  auto describes = [](std::optional<ArrayAttr> dims, TypeRange types) {
    return !dims ||
           (dims->size() == types.size() &&
            llvm::all_of(*dims, [](Attribute each) {
              auto names = dyn_cast<ArrayAttr>(each);
              return names && llvm::all_of(names, llvm::IsaPred<StringAttr>);
            }));
  };
  if (!describes(getInputDims(), type.getInputs()) ||
      !describes(getOutputDims(), type.getResults()))
    return emitOpError("input_dims and output_dims have an array of strings "
                       "for each tensor");
  for (TypeRange types : {type.getInputs(), type.getResults()})
    for (Type each : types)
      if (!isa<RankedTensorType>(each))
        return emitOpError("takes and gives ranked tensors, not ") << each;
  return success();
}
