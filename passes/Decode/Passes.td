//===- Passes.td - Passes that rewrite how tokens are generated -*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Filing rule: passes that rewrite decode.loop; alphabetical.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_DECODE
#define LLM_PASSES_DECODE

include "mlir/Pass/PassBase.td"

def SpeculatePass : Pass<"llm-speculate", "::mlir::ModuleOp"> {
  let summary = "Propose several tokens, and verify them in one step";
  let description = [{
    Rewrites the `decode.loop` of the target: an iteration proposes up to `tokens`
    tokens for each sequence, computes them together with the sequence's own token,
    keeps those that sampling agrees with, and drops the others from the cache. What
    is generated has the distribution of the loop that was there; with `lookup` it is
    the same text.

    `lookup=N` proposes what followed where the last N tokens of the sequence (its
    prompt counts) occurred before: it costs nothing to ask, and finds much where an
    answer repeats its prompt. `costs` lists what a step with 0, 1, ..., `tokens`
    proposed tokens takes, in thousandths of one with none; by it, drafting pauses for
    a request that would lose. Without it, each token is taken to cost `token-cost`.

    Cache planes that are not kept token by token cannot be rolled back, and are
    refused. Pages, contiguous caches and every element type can.

    Before:
    ```mlir
    decode.loop @generate {
    ^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
      %logits, %next = func.call @target(%step, %cache)
        : (!kv.step, !kv.cache<#g>) -> (tensor<?x512xf32>, !kv.cache<#g>)
      %ids = decode.sample %logits, %sampling : tensor<?x512xf32> -> tensor<?xi32>
      decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
    }
    ```
    After, with `lookup=3 tokens=2`:
    ```mlir
    decode.loop @generate {
    ^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
      %drafts = decode.draft %step lookup 3 costs [1000, 1100, 1200] : !decode.drafts<2>
      %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<2>
      %logits, %next = func.call @target(%longer, %cache)
        : (!kv.step, !kv.cache<#g>) -> (tensor<?x512xf32>, !kv.cache<#g>)
      %ids, %length = decode.accept %logits, %drafts, %sampling
        : tensor<?x512xf32>, !decode.drafts<2> -> tensor<?xi32>, tensor<?xi32>
      %kept = kv.rollback %next, %length : !kv.cache<#g>, tensor<?xi32>
      decode.yield %ids, %kept : tensor<?xi32>, !kv.cache<#g>
    }
    ```
  }];
  let dependentDialects = ["::mlir::decode::DecodeDialect", "::mlir::kv::KVDialect"];
  let options = [
    Option<"lookup", "lookup", "int64_t", "3", "Tokens at the end that are looked up">,
    Option<"tokens", "tokens", "int64_t", "4", "Tokens proposed for a sequence at most">,
    Option<"tokenCost", "token-cost", "int64_t", "100",
           "What a proposed token adds to a step, in thousandths, where `costs` is empty">,
    ListOption<"costs", "costs", "int64_t",
               "Of a step with 0, 1, ... proposed tokens, in thousandths of the first">
  ];
  let statistics = [Statistic<"numLoops", "loops", "Loops rewritten">];
}

#endif // LLM_PASSES_DECODE
