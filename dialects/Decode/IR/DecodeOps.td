//===- DecodeOps.td - Generation as a loop ---*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef DECODE_OPS
#define DECODE_OPS

include "dialects/KV/IR/KVDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Decode_Dialect : Dialect {
  let name = "decode";
  let cppNamespace = "::mlir::decode";
  let summary = "Generation as a loop over iterations of a batch";
  let description = [{
    The body of `decode.loop` is one iteration over a batch of sequences: it
    runs the model on a step and picks each sequence's next token. Which
    sequences take part, and when one ends, is the scheduler's affair.
  }];
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::kv::KVDialect"];
}

def Decode_SamplingType : TypeDef<Decode_Dialect, "Sampling"> {
  let mnemonic = "sampling";
  let summary = "One llm_sampling (include/llm/ABI/step.h) per row of logits";
  let description = [{
    ```mlir
    !decode.sampling
    ```
  }];
}

class Decode_Op<string mnemonic, list<Trait> traits = []> : Op<Decode_Dialect, mnemonic, traits>;

def Decode_LoopOp : Decode_Op<"loop", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "One iteration, repeated until every sequence has ended";
  let description = [{
    The block takes the step, the cache and the sampling parameters; it ends in
    `decode.yield` with the picked tokens and the next cache. `#g` is a
    `#kv.group`.

    ```mlir
    decode.loop @generate {
    ^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
      %logits, %next = func.call @target(%step, %cache)
        : (!kv.step, !kv.cache<#g>) -> (tensor<?x512xf32>, !kv.cache<#g>)
      %ids = decode.sample %logits, %sampling : tensor<?x512xf32> -> tensor<?xi32>
      decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Decode_SampleOp : Decode_Op<"sample", [Pure]> {
  let summary = "Pick a token per row of logits";
  let description = [{
    Penalties, then temperature, top-k, top-p and min-p; a draw is keyed by
    (seed, position, stream). Temperature 0 takes the largest logit, the lowest
    id among equals.

    ```mlir
    %ids = decode.sample %logits, %sampling : tensor<?x512xf32> -> tensor<?xi32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$logits, Decode_SamplingType:$sampling);
  let results = (outs RankedTensorOf<[I32]>:$ids);
  let assemblyFormat = "$logits `,` $sampling attr-dict `:` type($logits) `->` type($ids)";
  let hasVerifier = 1;
}

def Decode_YieldOp : Decode_Op<"yield", [Pure, Terminator, HasParent<"LoopOp">]> {
  let summary = "End an iteration";
  let description = [{
    ```mlir
    decode.loop @pick {
    ^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
      %ids = kv.read_step %step "token" : tensor<?xi32>
      decode.yield %ids, %cache : tensor<?xi32>, !kv.cache<#g>
    }
    ```
  }];
  let arguments = (ins RankedTensorOf<[I32]>:$ids, KV_CacheType:$cache);
  let assemblyFormat = "$ids `,` $cache attr-dict `:` type($ids) `,` type($cache)";
}

#endif // DECODE_OPS
