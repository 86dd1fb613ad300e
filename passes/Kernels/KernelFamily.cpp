//===- KernelFamily.cpp - Generators of kernels, by target and family -----===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/KernelFamily.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::llm {

bool KernelTarget::has(StringRef feature) const {
  return llvm::is_contained(features, feature);
}

bool KernelTarget::multipliesPairs() const {
  return has("avx512bf16") && !has("amx-bf16");
}

std::string KernelBuilder::functionName(StringRef suffix) const {
  std::string base = rt::KernelOp(kernelOp).getSymName().str();
  if (!suffix.empty())
    base += "_" + suffix.str();
  std::string name = base;
  for (int i = 1; SymbolTable::lookupSymbolIn(code, name); ++i)
    name = base + "_" + std::to_string(i);
  return name;
}

rt::VariantOp KernelBuilder::addVariant(StringRef entry,
                                        ArrayRef<rt::RangeAttr> ranges) {
  OpBuilder b = OpBuilder::atBlockEnd(&kernelOp.getVariants().front());
  ArrayAttr rangeAttr;
  if (!ranges.empty())
    rangeAttr =
        b.getArrayAttr(SmallVector<Attribute>(ranges.begin(), ranges.end()));
  auto module = SymbolTable::getSymbolName(code);
  return rt::VariantOp::create(b, kernelOp.getLoc(), b.getStringAttr(entry),
                               FlatSymbolRefAttr::get(module), rangeAttr,
                               IntegerAttr(), IntegerAttr(), IntegerAttr(),
                               IntegerAttr());
}

FailureOr<int64_t> KernelBuilder::getInt(StringRef name, int64_t low,
                                         int64_t high) const {
  rt::KernelOp op = kernelOp;
  auto attr = op.getParams().getAs<IntegerAttr>(name);
  if (!attr)
    return op.emitOpError("needs the integer parameter '") << name << "'";
  if (attr.getInt() < low || attr.getInt() > high)
    return op.emitOpError("parameter '")
           << name << "' = " << attr.getInt() << " is outside [" << low << ", "
           << high << "]";
  return attr.getInt();
}

FailureOr<double> KernelBuilder::getFloat(StringRef name) const {
  rt::KernelOp op = kernelOp;
  auto attr = op.getParams().getAs<FloatAttr>(name);
  if (!attr)
    return op.emitOpError("needs the float parameter '") << name << "'";
  return attr.getValueAsDouble();
}

FailureOr<Type> KernelBuilder::getFloatType(StringRef name) const {
  rt::KernelOp op = kernelOp;
  auto attr = op.getParams().getAs<TypeAttr>(name);
  Type type = attr ? attr.getValue() : Type();
  if (!type || !(type.isF32() || type.isF16() || type.isBF16()))
    return op.emitOpError("needs the parameter '")
           << name << "': f32, f16 or bf16";
  return type;
}

FailureOr<Type> KernelBuilder::getCacheType(StringRef name) const {
  rt::KernelOp op = kernelOp;
  auto attr = op.getParams().getAs<TypeAttr>(name);
  Type type = attr ? attr.getValue() : Type();
  if (!type || !(type.isF32() || type.isF16() || type.isBF16() ||
                 type.isSignlessInteger(8) ||
                 isa<Float8E4M3FNType, Float8E5M2Type>(type)))
    return op.emitOpError("needs the parameter '")
           << name << "': f32, f16, bf16, i8, f8E4M3FN or f8E5M2";
  return type;
}

bool KernelBuilder::getBool(StringRef name) const {
  auto attr = rt::KernelOp(kernelOp).getParams().getAs<BoolAttr>(name);
  return attr && attr.getValue();
}

StringRef KernelBuilder::rowSymbol() const {
  auto attr = rt::KernelOp(kernelOp).getParams().getAs<StringAttr>("rows");
  return attr ? attr.getValue() : StringRef("T");
}

void KernelRegistry::add(StringRef target, StringRef family,
                         KernelGenerator generator) {
  generators[target][family] = generator;
}

KernelGenerator KernelRegistry::lookup(StringRef target,
                                       StringRef family) const {
  auto it = generators.find(target);
  return it == generators.end() ? nullptr : it->second.lookup(family);
}

} // namespace mlir::llm
