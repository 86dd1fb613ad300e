//===- KVOps.td - The cache as a typed value ---*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef KV_OPS
#define KV_OPS

include "dialects/KV/IR/KVDialect.td"

def KV_Count : ConfinedAttr<I64Attr, [IntNonNegative]>;

class KV_Op<string mnemonic, list<Trait> traits = []> : Op<KV_Dialect, mnemonic, traits>;

def KV_AppendOp : KV_Op<"append", [Pure, AllTypesMatch<["cache", "result"]>]> {
  let summary = "Store this step's tokens in the cache";
  let description = [{
    One operand per token plane of the group, in order, each [tokens, elements
    of the plane's shape]; row t goes to slot[group][t]. Rows with seq -1 are
    not stored. A token plane "x_scale" beside "x" takes no operand: it holds
    what the codes stored in "x" are to be multiplied by.

    ```mlir
    %next = kv.append %cache, %step, %k, %v {group = 0 : i64, layer = 1 : i64}
      : !kv.cache<#g>, tensor<?x192xf32>, tensor<?x192xf32>
    ```
  }];
  let arguments = (ins KV_CacheType:$cache, KV_StepType:$step,
    Variadic<RankedTensorOf<[AnyFloat]>>:$rows, KV_Count:$group, KV_Count:$layer);
  let results = (outs KV_CacheType:$result);
  let assemblyFormat = "$cache `,` $step `,` $rows attr-dict `:` type($cache) `,` type($rows)";
  let hasVerifier = 1;
}

def KV_AttendOp : KV_Op<"attend", [Pure]> {
  let summary = "Causal attention of this step's queries over the cache";
  let description = [{
    query [tokens, num_heads * size] gives [tokens, num_heads * value size].
    Token t of sequence s sees its sequence's slots up to its own. Partial
    results of aligned parts of them are merged in ascending order, whatever
    shares the step (see "Row invariance" in docs/rationale). `mass`, where
    present, is the attention mass of each block-table slot, [tokens, slots].
    `sink` [num_heads] adds a logit per head without a value.

    ```mlir
    %y = kv.attend %q, %cache, %step {group = 0 : i64, layer = 1 : i64, num_heads = 9 : i64,
      scale = 0.125 : f64} : tensor<?x576xf32>, !kv.cache<#g> -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$query, KV_CacheType:$cache,
    KV_StepType:$step, Optional<RankedTensorOf<[AnyFloat]>>:$sink,
    KV_Count:$group, KV_Count:$layer, I64Attr:$num_heads, F64Attr:$scale,
    DefaultValuedAttr<F64Attr, "0.0">:$softcap, DefaultValuedAttr<KV_Count, "0">:$window);
  let results = (outs RankedTensorOf<[AnyFloat]>:$output, Optional<RankedTensorOf<[AnyFloat]>>:$mass);
  let assemblyFormat = [{
    $query `,` $cache `,` $step (`sink` `(` $sink^ `:` type($sink) `)`)? attr-dict `:`
    type($query) `,` type($cache) `->` type($output) (`,` type($mass)^)?
  }];
  let hasVerifier = 1;
}

def KV_ForkOp : KV_Op<"fork", [Pure, AllTypesMatch<["cache", "result"]>, AllTypesMatch<["parent", "child"]>]> {
  let summary = "Let sequences continue from others' slots, sharing pages";
  let description = [{
    Sequence child[i] starts as parent[i] is; pages are shared until written.

    ```mlir
    %next = kv.fork %cache, %parent, %child : !kv.cache<#g>, tensor<?xi32>
    ```
  }];
  let arguments = (ins KV_CacheType:$cache, RankedTensorOf<[I32]>:$parent, RankedTensorOf<[I32]>:$child);
  let results = (outs KV_CacheType:$result);
  let assemblyFormat = "$cache `,` $parent `,` $child attr-dict `:` type($cache) `,` type($parent)";
  let hasVerifier = 1;
}

def KV_ObserveOp : KV_Op<"observe"> {
  let summary = "Hand rows out with the step";
  let description = [{
    Whoever runs the step is given the rows of `rows`, [tokens, width] or [rows of
    logits, width], under `name`, when it has run (`llm_probe` in llm/runtime.h).
    Nothing else changes: the op has no result, and what it reads is computed as it
    would be without it.

    ```mlir
    kv.observe %step, %x "layers.0.q" : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins KV_StepType:$step, RankedTensorOf<[F32]>:$rows, StrAttr:$name);
  let assemblyFormat = "$step `,` $rows $name attr-dict `:` type($rows)";
  let hasVerifier = 1;
}

def KV_ReadStepOp : KV_Op<"read_step", [Pure]> {
  let summary = "An array of the step";
  let description = [{
    `field` is one of token, position, seq, role, logit_row, q_begin,
    state_slot, adapter.

    ```mlir
    %ids = kv.read_step %step "token" : tensor<?xi32>
    ```
  }];
  let arguments = (ins KV_StepType:$step, StrAttr:$field);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = "$step $field attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def KV_RollbackOp : KV_Op<"rollback", [Pure, AllTypesMatch<["cache", "result"]>]> {
  let summary = "Drop the slots of each sequence past a length";
  let description = [{
    length[s] is at most the present length of sequence s.

    ```mlir
    %next = kv.rollback %cache, %length : !kv.cache<#g>, tensor<?xi32>
    ```
  }];
  let arguments = (ins KV_CacheType:$cache, RankedTensorOf<[I32]>:$length);
  let results = (outs KV_CacheType:$result);
  let assemblyFormat = "$cache `,` $length attr-dict `:` type($cache) `,` type($length)";
  let hasVerifier = 1;
}

def KV_SupplyOp : KV_Op<"supply", [Pure]> {
  let summary = "Rows that come with the step";
  let description = [{
    [tokens, width], given under `name` by whoever runs the step (`llm_probe` in
    llm/runtime.h): a part of a decoder runs with it on hidden states that were kept.

    ```mlir
    %hidden = kv.supply %step "hidden" : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins KV_StepType:$step, StrAttr:$name);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = "$step $name attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // KV_OPS
