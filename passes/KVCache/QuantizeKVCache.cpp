//===- QuantizeKVCache.cpp - Store the cache in 8 bits --------------------===//
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
#define GEN_PASS_DEF_QUANTIZEKVCACHEPASS
#include "passes/KVCache/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;

/// `group` with keys and values stored as `element`, and their scales behind
/// all planes that it has.
static kv::GroupAttr quantize(kv::GroupAttr group, Type element,
                              unsigned &changed) {
  MLIRContext *context = group.getContext();
  SmallVector<kv::PlaneAttr> planes(group.getPlanes());
  for (StringRef name : {"k", "v"}) {
    std::optional<unsigned> index = kv::findTokenPlane(group, name);
    if (!index || planes[*index].getElementType() == element)
      continue;
    ++changed;
    planes[*index] =
        kv::PlaneAttr::get(context, name, element, planes[*index].getShape(),
                           kv::Granularity::token);
    if (!kv::scaleOfPlane(group, *index))
      planes.push_back(kv::PlaneAttr::get(
          context, (name + "_scale").str(), Float32Type::get(context),
          {group.getKvHeads()}, kv::Granularity::token));
  }
  return kv::GroupAttr::get(context, group.getLayers(), group.getKvHeads(),
                            planes, group.getPageSize(), group.getKeysRotated(),
                            group.getWindow());
}

namespace {
struct QuantizeKVCache
    : mlir::llm::impl::QuantizeKVCachePassBase<QuantizeKVCache> {
  using QuantizeKVCachePassBase::QuantizeKVCachePassBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    Type element = llvm::StringSwitch<Type>(type.getValue())
                       .Case("int8", builder.getI8Type())
                       .Case("f8E4M3FN", Float8E4M3FNType::get(&getContext()))
                       .Case("f8E5M2", Float8E5M2Type::get(&getContext()))
                       .Default(Type());
    if (!element) {
      emitError(getOperation().getLoc(),
                "type must be int8, f8E4M3FN or f8E5M2, got '")
          << type.getValue() << "'";
      return signalPassFailure();
    }
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](kv::GroupAttr group) -> Attribute {
      unsigned changed = 0;
      kv::GroupAttr result = quantize(group, element, changed);
      numPlanes += changed;
      return result;
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};
} // namespace
