//===- Passes.td - Passes that choose how the cache is kept -*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Filing rule: passes that change the policy or the storage in the cache's type;
// alphabetical.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KVCACHE
#define LLM_PASSES_KVCACHE

include "mlir/Pass/PassBase.td"

def CastKVCachePass : Pass<"llm-cast-kv-cache", "::mlir::ModuleOp"> {
  let summary = "Store the cache in a narrower float type";
  let description = [{
    Changes the element type of the float planes of token granularity in every
    group. `kv.append` rounds to it (to nearest, ties to even), `kv.attend` widens
    what it reads. A cache in f16 or bf16 takes half the memory of one in f32.

    Before:
    ```mlir
    #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 8], token>, ...], ...>
    ```
    After, with `type=bf16`:
    ```mlir
    #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", bf16, [1, 8], token>, ...], ...>
    ```
  }];
  let dependentDialects = ["::mlir::kv::KVDialect"];
  let options = [
    Option<"type", "type", "std::string", "\"f16\"", "f32, f16 or bf16">
  ];
  let statistics = [Statistic<"numPlanes", "planes", "Planes changed">];
}

def PageKVCachePass : Pass<"llm-page-kv-cache", "::mlir::ModuleOp"> {
  let summary = "Keep the cache in pages";
  let description = [{
    Sets `page_size` in the type of every cache. A page holds that many slots of
    one group, for all its layers; a sequence owns pages through its block table
    and shares those of a common prefix. 0 is contiguous: one run of slots for
    each sequence. Any size gives the same results: attention takes slots in
    aligned chunks of 64 whatever the pages are.

    Before:
    ```mlir
    func.func @target(%step: !kv.step, %cache: !kv.cache<#kv.group<..., page_size = 0, ...>>) ...
    ```
    After, with `page-size=64`:
    ```mlir
    func.func @target(%step: !kv.step, %cache: !kv.cache<#kv.group<..., page_size = 64, ...>>) ...
    ```
  }];
  let dependentDialects = ["::mlir::kv::KVDialect"];
  let options = [
    Option<"pageSize", "page-size", "int64_t", "64", "Slots a page; 0 is contiguous">
  ];
  let statistics = [Statistic<"numGroups", "groups", "Groups changed">];
}

#endif // LLM_PASSES_KVCACHE
