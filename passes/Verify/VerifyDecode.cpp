//===- VerifyDecode.cpp - The contract of the decode stage ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/KV/IR/Planes.h"
#include "passes/Verify/Contracts.h"
#include "passes/Verify/Passes.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::llm {
#define GEN_PASS_DEF_VERIFYDECODEPASS
#include "passes/Verify/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

static LogicalResult verifyGroup(func::FuncOp func, kv::GroupAttr group) {
  if (group.getPageSize() > INT32_MAX)
    return func.emitError() << "pages of " << group.getPageSize()
                            << " slots cannot be numbered by the step's int32";
  for (StringRef name : {"k", "v"}) {
    const kv::PlaneAttr *plane =
        llvm::find_if(group.getPlanes(),
                      [&](kv::PlaneAttr p) { return p.getName() == name; });
    if (plane == group.getPlanes().end())
      return func.emitError() << "a cache group has no plane '" << name << "'";
    if (plane->getGranularity() != kv::Granularity::token)
      return func.emitError()
             << "plane '" << name << "' is not kept token by token";
    // Codes mean nothing without their scale.
    if (plane->getElementType().getIntOrFloatBitWidth() > 8)
      continue;
    std::optional<unsigned> scale = kv::scaleOfPlane(
        group, static_cast<unsigned>(plane - group.getPlanes().begin()));
    if (!scale)
      return func.emitError()
             << "plane '" << name << "' of " << plane->getElementType()
             << " has no plane '" << name << "_scale'";
    kv::PlaneAttr scales = group.getPlanes()[*scale];
    if (!scales.getElementType().isF32() ||
        scales.getShape() != ArrayRef<int64_t>{group.getKvHeads()})
      return func.emitError()
             << "plane '" << scales.getName() << "' is not an f32 per kv head";
  }
  return success();
}

static LogicalResult verifyDecode(ModuleOp module) {
  if (failed(verifyDecoderForm(module)))
    return failure();
  ::llvm::StringMap<kv::CacheType> caches;
  for (func::FuncOp func : module.getOps<func::FuncOp>()) {
    auto model = func->getAttrOfType<StringAttr>("llm.model");
    if (!model)
      continue;
    auto type = cast<kv::CacheType>(func.getArgumentTypes().back());
    auto [it, inserted] = caches.try_emplace(model, type);
    if (it->second != type)
      return func.emitError()
             << "takes cache " << type << ", other functions of the model "
             << it->second;
    if (inserted)
      for (kv::GroupAttr group : type.getGroups())
        if (failed(verifyGroup(func, group)))
          return failure();
  }
  return success();
}

namespace {
struct VerifyDecode : mlir::llm::impl::VerifyDecodePassBase<VerifyDecode> {
  void runOnOperation() override {
    if (failed(verifyDecode(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
