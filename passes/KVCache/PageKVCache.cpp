//===- PageKVCache.cpp - Keep the cache in pages --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/AttrTypeSubElements.h"
#include "passes/KVCache/Passes.h"

namespace mlir::llm {
#define GEN_PASS_DEF_PAGEKVCACHEPASS
#include "passes/KVCache/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;

namespace {
struct PageKVCache : mlir::llm::impl::PageKVCachePassBase<PageKVCache> {
  using PageKVCachePassBase::PageKVCachePassBase;

  void runOnOperation() override {
    // Slots are int32 in the step, and a page's slots are numbered within it.
    if (pageSize < 0 || pageSize > INT32_MAX) {
      emitError(getOperation().getLoc(), "page-size must be 0 (contiguous) or "
                                         "a positive number of slots, got ")
          << pageSize.getValue();
      return signalPassFailure();
    }
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](kv::GroupAttr group) -> Attribute {
      if (group.getPageSize() != pageSize)
        ++numGroups;
      return kv::GroupAttr::get(group.getContext(), group.getLayers(),
                                group.getKvHeads(), group.getPlanes(), pageSize,
                                group.getKeysRotated(), group.getWindow());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};
} // namespace
