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
  let summary = "Store the cache in another float type";
  let description = [{
    Changes the element type of the planes of token granularity in every group
    that hold f32, f16 or bf16, or the codes of `--llm-quantize-kv-cache`, whose
    scales go. `kv.append` rounds to it (to nearest, ties to even), `kv.attend` widens
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

def QuantizeKVCachePass : Pass<"llm-quantize-kv-cache", "::mlir::ModuleOp"> {
  let summary = "Store the cache in 8 bits, with a scale per token and kv head";
  let description = [{
    Changes the element type of the planes `k` and `v` of every group, and adds
    the planes `k_scale` and `v_scale`, f32 by token and kv head. `kv.append`
    divides a head's elements by their scale, the largest magnitude over the
    largest code (127, 448 for f8E4M3FN, 57344 for f8E5M2), and rounds to nearest,
    ties to even; `kv.attend` multiplies what it reads. A scale belongs to one
    token, so that rows do not depend on others, and dropped slots leave none
    behind. A head of 64 takes 68 bytes in place of 256 in f32.

    Before:
    ```mlir
    #kv.group<layers = 1, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 64], token>, ...], ...>
    ```
    After, with `type=int8`:
    ```mlir
    #kv.group<layers = 1, kv_heads = 2, planes = [#kv.plane<"k", i8, [2, 64], token>, ...,
      #kv.plane<"k_scale", f32, [2], token>, ...], ...>
    ```
  }];
  let dependentDialects = ["::mlir::kv::KVDialect"];
  let options = [
    Option<"type", "type", "std::string", "\"int8\"", "int8, f8E4M3FN or f8E5M2">
  ];
  let statistics = [Statistic<"numPlanes", "planes", "Planes changed">];
}

#endif // LLM_PASSES_KVCACHE
