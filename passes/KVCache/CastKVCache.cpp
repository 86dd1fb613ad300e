//===- CastKVCache.cpp - Store the cache in a narrower float type ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/KV/IR/Planes.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "passes/KVCache/Passes.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::llm {
#define GEN_PASS_DEF_CASTKVCACHEPASS
#include "passes/KVCache/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;

namespace {
struct CastKVCache : mlir::llm::impl::CastKVCachePassBase<CastKVCache> {
  using CastKVCachePassBase::CastKVCachePassBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    Type element = llvm::StringSwitch<Type>(type.getValue())
                       .Case("f32", builder.getF32Type())
                       .Case("f16", builder.getF16Type())
                       .Case("bf16", builder.getBF16Type())
                       .Default(Type());
    if (!element) {
      emitError(getOperation().getLoc(), "type must be f32, f16 or bf16, got '")
          << type.getValue() << "'";
      return signalPassFailure();
    }
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](kv::GroupAttr group) -> Attribute {
      SmallVector<kv::PlaneAttr> planes;
      for (auto [i, plane] : llvm::enumerate(group.getPlanes())) {
        // Floats need no scale.
        if (kv::isScalePlane(group, i))
          continue;
        Type old = plane.getElementType();
        bool castable = old.isF32() || old.isF16() || old.isBF16() ||
                        kv::scaleOfPlane(group, i);
        if (plane.getGranularity() != kv::Granularity::token || !castable ||
            old == element) {
          planes.push_back(plane);
          continue;
        }
        ++numPlanes;
        planes.push_back(kv::PlaneAttr::get(plane.getContext(), plane.getName(),
                                            element, plane.getShape(),
                                            plane.getGranularity()));
      }
      return kv::GroupAttr::get(group.getContext(), group.getLayers(),
                                group.getKvHeads(), planes, group.getPageSize(),
                                group.getKeysRotated(), group.getWindow());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};
} // namespace
