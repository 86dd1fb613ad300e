//===- LLMDialect.cpp - The llm dialect and its attributes ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/LLM/IR/LLMDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::llm;

#include "dialects/LLM/IR/LLMDialect.cpp.inc"
#include "dialects/LLM/IR/LLMEnums.cpp.inc"
#include "dialects/LLM/IR/LLMInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/LLM/IR/LLMAttrs.cpp.inc"

void LLMDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/LLM/IR/LLMAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/LLM/IR/LLMOps.cpp.inc"
      >();
}

Operation *LLMDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                           Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, cast<RankedTensorType>(type),
                            elements);
}

LogicalResult LLMDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attr) {
  StringRef name = attr.getName();
  if (name == kSourceAttr) {
    if (!isa<ModuleOp>(op) || !isa<DictionaryAttr>(attr.getValue()))
      return op->emitOpError("'llm.source' is a dictionary on the module");
    return success();
  }
  if (name == kNotDecoderAttr && !isa<StringAttr>(attr.getValue()))
    return op->emitOpError("'llm.not_decoder' is a string");
  return success();
}

/// What `llm.name` and `llm.dims` on an argument or a result may be.
static LogicalResult verifyValueAttribute(Operation *op, NamedAttribute attr) {
  if (attr.getName() == kNameAttr && !isa<StringAttr>(attr.getValue()))
    return op->emitOpError("'llm.name' is a string");
  if (attr.getName() == kDimsAttr) {
    auto dims = dyn_cast<ArrayAttr>(attr.getValue());
    if (!dims || !llvm::all_of(dims, llvm::IsaPred<StringAttr>))
      return op->emitOpError("'llm.dims' is an array of strings");
  }
  return success();
}

LogicalResult LLMDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned,
                                                   NamedAttribute attr) {
  return verifyValueAttribute(op, attr);
}

LogicalResult LLMDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                      unsigned,
                                                      NamedAttribute attr) {
  return verifyValueAttribute(op, attr);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// The bytes of a row-major tensor whose elements may be narrower than a byte.
static std::optional<uint64_t> storedBytes(RankedTensorType type) {
  if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return std::nullopt;
  uint64_t bits = type.getElementType().getIntOrFloatBitWidth();
  if (bits == 1)
    bits = 8;
  uint64_t count = 1;
  for (int64_t dim : type.getShape()) {
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count))
      return std::nullopt;
  }
  if (__builtin_mul_overflow(count, bits, &count))
    return std::nullopt;
  return llvm::divideCeil(count, 8);
}

LogicalResult SpanAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               StringRef file, uint64_t offset, uint64_t length,
                               StringRef hash) {
  uint64_t end;
  if (__builtin_add_overflow(offset, length, &end))
    return emitError() << "offset + length overflows";
  if (hash.size() != 16 || !llvm::all_of(hash, llvm::isHexDigit))
    return emitError() << "hash must be 16 hex digits, got '" << hash << "'";
  return success();
}

LogicalResult
ComponentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringRef name, RankedTensorType type, Attribute source) {
  std::optional<uint64_t> bytes = storedBytes(type);
  if (!bytes)
    return emitError() << "component '" << name
                       << "' needs a static shape of ints or floats, got "
                       << type;
  if (auto span = dyn_cast<SpanAttr>(source)) {
    if (span.getLength() != *bytes)
      return emitError() << "component '" << name << "' of type " << type
                         << " takes " << *bytes << " bytes, its span has "
                         << span.getLength();
    return success();
  }
  auto elements = dyn_cast<ElementsAttr>(source);
  if (!elements)
    return emitError() << "component '" << name
                       << "' needs an #llm.span or an elements attribute";
  if (elements.getType() != type)
    return emitError() << "component '" << name << "' of type " << type
                       << " has elements of type " << elements.getType();
  return success();
}

void DenseFormatAttr::getParts(SmallVectorImpl<ComponentAttr> &parts) const {
  parts.push_back(getData());
}

LogicalResult DenseFormatAttr::verifyLogicalType(
    RankedTensorType type, function_ref<InFlightDiagnostic()> emit) const {
  RankedTensorType stored = getData().getType();
  if (stored == type)
    return success();
  auto from = dyn_cast<FloatType>(stored.getElementType()),
       to = dyn_cast<FloatType>(type.getElementType());
  if (stored.getShape() != type.getShape() || !from || !to ||
      from.getWidth() >= to.getWidth())
    return emit() << "dense weight of type " << type << " stores " << stored
                  << "; only floats can be stored in another type, a narrower "
                     "one";
  return success();
}

double DenseFormatAttr::getBitsPerElement(RankedTensorType type) const {
  return getData().getType().getElementTypeBitWidth();
}

/// Checks the factors of groups whose data and scales are checked.
static LogicalResult verifyFactors(function_ref<InFlightDiagnostic()> emitError,
                                   unsigned bits, int64_t groupSize,
                                   RankedTensorType scaleType,
                                   ComponentAttr zeros, int64_t factorGroup,
                                   ComponentAttr factors) {
  if (bits != 4 || zeros)
    return emitError() << "factors split groups of 4 bits without zeros";
  constexpr int64_t kMost = AffineGroupsFormatAttr::kMaxFactors,
                    kMostInputs = AffineGroupsFormatAttr::kMaxFactorGroup;
  if (factorGroup < 8 || factorGroup % 8 != 0 || factorGroup > kMostInputs ||
      groupSize % factorGroup != 0 || groupSize / factorGroup > kMost)
    return emitError() << "factor_group must be a multiple of 8, at most "
                       << kMostInputs << ", of which at most " << kMost
                       << " make a group of " << groupSize << ", got "
                       << factorGroup;
  RankedTensorType type = factors.getType();
  int64_t width = scaleType.getDimSize(1) * (groupSize / factorGroup);
  if (type.getRank() != 2 || !type.getElementType().isSignlessInteger(8) ||
      type.getDimSize(0) != scaleType.getDimSize(0) ||
      type.getDimSize(1) != width)
    return emitError() << "factors must be [" << scaleType.getDimSize(0) << ", "
                       << width << "] of i8, got " << type;
  return success();
}

LogicalResult AffineGroupsFormatAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, unsigned bits,
    int64_t groupSize, ComponentAttr data, ComponentAttr scales,
    ComponentAttr zeros, int64_t factorGroup, ComponentAttr factors) {
  if (bits != 2 && bits != 4 && bits != 8)
    return emitError() << "bits must be 2, 4 or 8, got " << bits;
  if (groupSize < 8 || groupSize % 8 != 0)
    return emitError() << "group_size must be a positive multiple of 8, got "
                       << groupSize;
  RankedTensorType dataType = data.getType(), scaleType = scales.getType();
  if (dataType.getRank() != 2 || !dataType.getElementType().isInteger(8))
    return emitError() << "data must be a matrix of bytes, got " << dataType;
  if (scaleType.getRank() != 2 || !isa<FloatType>(scaleType.getElementType()))
    return emitError() << "scales must be a matrix of floats, got "
                       << scaleType;
  if (scaleType.getDimSize(0) != dataType.getDimSize(0))
    return emitError() << "data has " << dataType.getDimSize(0)
                       << " rows, scales have " << scaleType.getDimSize(0);
  // A group takes whole bytes: group_size / 8 of each bit.
  int64_t groups = scaleType.getDimSize(1), rowBytes;
  if (__builtin_mul_overflow(groupSize / 8, int64_t(bits), &rowBytes) ||
      __builtin_mul_overflow(rowBytes, groups, &rowBytes))
    return emitError() << groups << " groups of " << groupSize
                       << " are too large";
  if (rowBytes != dataType.getDimSize(1))
    return emitError() << "data has " << dataType.getDimSize(1)
                       << " bytes a row, " << groups << " groups of "
                       << groupSize << " take " << rowBytes;
  if (static_cast<bool>(factors) != (factorGroup != 0))
    return emitError() << "factors and factor_group come together";
  if (factors)
    return verifyFactors(emitError, bits, groupSize, scaleType, zeros,
                         factorGroup, factors);
  if (!zeros)
    return success();
  RankedTensorType zeroType = zeros.getType();
  bool packed = zeroType.getElementType().isInteger(8);
  int64_t width = packed
                      ? static_cast<int64_t>(llvm::divideCeil(groups * bits, 8))
                      : groups;
  if (zeroType.getRank() != 2 ||
      zeroType.getDimSize(0) != dataType.getDimSize(0) ||
      zeroType.getDimSize(1) != width ||
      (!packed && zeroType.getElementType() != scaleType.getElementType()))
    return emitError() << "zeros must be [" << dataType.getDimSize(0) << ", "
                       << width << "] of packed bytes or of the scales' type, "
                       << "got " << zeroType;
  return success();
}

void AffineGroupsFormatAttr::getParts(
    SmallVectorImpl<ComponentAttr> &parts) const {
  parts.append({getData(), getScales()});
  if (getZeros())
    parts.push_back(getZeros());
  if (getFactors())
    parts.push_back(getFactors());
}

LogicalResult AffineGroupsFormatAttr::verifyLogicalType(
    RankedTensorType type, function_ref<InFlightDiagnostic()> emit) const {
  if (type.getRank() != 2 || !isa<FloatType>(type.getElementType()))
    return emit() << "affine groups store a float matrix, not " << type;
  if (type.getDimSize(0) != getData().getType().getDimSize(0))
    return emit() << "weight of type " << type << " has "
                  << getData().getType().getDimSize(0) << " rows of data";
  int64_t groups = llvm::divideCeil(type.getDimSize(1), getGroupSize());
  if (getScales().getType().getDimSize(1) != groups)
    return emit() << "weight of type " << type << " needs " << groups
                  << " groups a row, has "
                  << getScales().getType().getDimSize(1);
  return success();
}

double AffineGroupsFormatAttr::getBitsPerElement(RankedTensorType type) const {
  double total = 0;
  SmallVector<ComponentAttr> parts;
  getParts(parts);
  for (ComponentAttr part : parts)
    total += 8.0 * storedBytes(part.getType()).value_or(0);
  int64_t count = type.getNumElements();
  return count ? total / count : 0;
}
