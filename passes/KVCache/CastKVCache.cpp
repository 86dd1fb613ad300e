//===- CastKVCache.cpp - Store the cache in a narrower float type ---------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
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
    replacer.addReplacement([&](kv::PlaneAttr plane) -> Attribute {
      if (plane.getGranularity() != kv::Granularity::token ||
          !isa<FloatType>(plane.getElementType()) ||
          plane.getElementType() == element)
        return plane;
      ++numPlanes;
      return kv::PlaneAttr::get(plane.getContext(), plane.getName(), element,
                                plane.getShape(), plane.getGranularity());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};
} // namespace
