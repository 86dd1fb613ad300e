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

def Decode_DraftsType : TypeDef<Decode_Dialect, "Drafts"> {
  let mnemonic = "drafts";
  let summary = "Tokens proposed for each sequence of a step, `tokens` at most";
  let description = [{
    A sequence may have fewer, or none.

    ```mlir
    !decode.drafts<4>
    ```
  }];
  let parameters = (ins "int64_t":$tokens);
  let assemblyFormat = "`<` $tokens `>`";
  let genVerifyDecl = 1;
}

class Decode_Op<string mnemonic, list<Trait> traits = []> : Op<Decode_Dialect, mnemonic, traits>;

def Decode_AcceptOp : Decode_Op<"accept", [Pure]> {
  let summary = "Pick a token per row of logits, as far as the drafts were right";
  let description = [{
    Goes through the rows of each sequence in order. From a row, with the tokens
    before it as history, comes the distribution p that `decode.sample` would draw
    from. Where the draft at this place is x, drawn from q, x stays with probability
    min(1, p(x) / q(x)), and the next row follows; else the token is drawn from the
    normalised positive part of p - q, and the sequence's other rows do not count. A
    sequence whose drafts all stay gets one token more. So each token has the
    distribution p. Source: Leviathan, Kalman, Matias, "Fast Inference from
    Transformers via Speculative Decoding" (ICML 2023).

    `ids` are the tokens of all sequences, one after the other; `length[s]` is what
    sequence s keeps in the cache: all up to the token before the last of its ids.

    ```mlir
    %ids, %length = decode.accept %logits, %drafts, %sampling
      : tensor<?x512xf32>, !decode.drafts<4> -> tensor<?xi32>, tensor<?xi32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$logits, Decode_DraftsType:$drafts,
    Decode_SamplingType:$sampling);
  let results = (outs RankedTensorOf<[I32]>:$ids, RankedTensorOf<[I32]>:$length);
  let assemblyFormat = [{
    $logits `,` $drafts `,` $sampling attr-dict `:` type($logits) `,` type($drafts) `->`
    type($ids) `,` type($length)
  }];
  let hasVerifier = 1;
}

def Decode_DraftOp : Decode_Op<"draft", [Pure]> {
  let summary = "Propose what follows each sequence of the step, by looking it up";
  let description = [{
    Where the last `lookup` tokens of a sequence that generates have occurred in it
    before, proposes what followed them the last time. This draft is certain: q is 1
    for the proposed token.

    `costs[k]` is what a step with k proposed tokens for a sequence takes, in
    thousandths of one without. By it and by how many of a request's own proposals
    were accepted, proposing pauses for a request that loses
    (docs/rationale/speculation.md).

    ```mlir
    %drafts = decode.draft %step lookup 3 costs [1000, 1100, 1200, 1300, 1400] : !decode.drafts<4>
    ```
  }];
  let arguments = (ins KV_StepType:$step, I64Attr:$lookup, DenseI64ArrayAttr:$costs);
  let results = (outs Decode_DraftsType:$drafts);
  let assemblyFormat = "$step `lookup` $lookup `costs` $costs attr-dict `:` type($drafts)";
  let hasVerifier = 1;
}

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

def Decode_VerifyOp : Decode_Op<"verify", [Pure, AllTypesMatch<["step", "result"]>]> {
  let summary = "The step that computes the drafts, too";
  let description = [{
    The step with each sequence's drafts behind its last token, in the role of
    generated tokens, and with logits wanted of all of them: row i of a sequence says
    what follows its draft i - 1.

    ```mlir
    %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<4>
    ```
  }];
  let arguments = (ins KV_StepType:$step, Decode_DraftsType:$drafts);
  let results = (outs KV_StepType:$result);
  let assemblyFormat = "$step `,` $drafts attr-dict `:` type($step) `,` type($drafts)";
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
