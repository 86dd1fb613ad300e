//===- Passes.td - Passes of the raise stage ---------------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Filing rule: passes that make the imported graph say more plainly what it
// computes, in the order in which they run.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_RAISE
#define LLM_PASSES_RAISE

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

def FoldShapesPass : Pass<"llm-fold-shapes", "::mlir::ModuleOp"> {
  let summary = "Evaluate shape arithmetic and small constant tensors";
  let description = [{
    Exporters leave Shape, Gather, Concat, Unsqueeze chains in front of each
    Reshape. The pass evaluates them over the dimension symbols of the
    arguments (`llm.dims`): a target becomes a constant that holds a number
    where the size is static, 0 where it is the input's at the same place, and
    one -1 at most. Result types become as static as what is known, shape-only
    ops that change nothing go, and small ops on constants are computed.

    Before:
    ```mlir
    %s = llm.shape %x : tensor<?x?x64xf32> -> tensor<3xi64>
    %b = llm.gather %s, %zero {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
    %l = llm.gather %s, %one {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
    %t = llm.concat %b, %l, %tail {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<2xi64>) -> tensor<4xi64>
    %y = llm.reshape %x, %t : (tensor<?x?x64xf32>, tensor<4xi64>) -> tensor<?x?x?x?xf32>
    ```
    After, with [-1, 16] in `%tail`:
    ```mlir
    %t = llm.constant dense<[0, 0, 4, 16]> : tensor<4xi64>
    %y = llm.reshape %x, %t : (tensor<?x?x64xf32>, tensor<4xi64>) -> tensor<?x?x4x16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::llm::LLMDialect"];
  let statistics = [
    Statistic<"numFolded", "folded", "Ops replaced by constants">,
    Statistic<"numTargets", "targets", "Reshape and expand targets made constant">,
    Statistic<"numRefined", "refined", "Values given a more static type">
  ];
}

//===----------------------------------------------------------------------===//
// Composites
//===----------------------------------------------------------------------===//

def RaiseIdiomsPass : Pass<"llm-raise-idioms", "::mlir::ModuleOp"> {
  let summary = "Recognise composites in what exporters decompose";
  let description = [{
    Matches by structure, never by name: commuted operands, casts and constants
    held as weights are looked through. Run `--llm-fold-shapes` first, so that
    shape arithmetic is out of the way.

    Canonical form: activations are [batch, seq, features]; `llm.attention` and
    `llm.rope` take heads inside the last dimension, so the reshapes and
    transposes around them go. A mask whose meaning is causal order, a window
    and padding becomes the attributes `causal` and `window` and an i1 mask
    [batch, 1, 1, slots] of the padding argument. (A query that sees nothing then
    yields 0, where an additive mask of large numbers averages all values;
    only padding rows are like that.) Ops are put in the order in which the
    results need them. Where a model computes cos and sin from positions, tables
    of `max-positions` rows take their place, computed in f32 as the model does;
    they bound the context. So a model gives the same text whether it was exported
    with composites or without.

    Before:
    ```mlir
    %y = llm.matmul %x, %w : (tensor<?x?x4xf32>, tensor<4x8xf32>) -> tensor<?x?x8xf32>
    %s = llm.sigmoid %y : tensor<?x?x8xf32>
    %z = llm.mul %y, %s : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
    ```
    After:
    ```mlir
    %y = llm.linear %x, %w {transposed} : (tensor<?x?x4xf32>, tensor<4x8xf32>) -> tensor<?x?x8xf32>
    %z = llm.silu %y : tensor<?x?x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::llm::LLMDialect"];
  let options = [
    Option<"maxPositions", "max-positions", "int64_t", "8192",
           "Rows of the cos and sin tables that are made where a model has none">
  ];
  let statistics = [
    Statistic<"numNorms", "norms", "RMS and layer norms found">,
    Statistic<"numActivations", "activations", "SiLU and GELU found">,
    Statistic<"numEmbeddings", "embeddings", "Embeddings found">,
    Statistic<"numLinears", "linears", "Products with a weight found">,
    Statistic<"numRopes", "ropes", "Rotary embeddings found">,
    Statistic<"numAttentions", "attentions", "Attentions found">,
    Statistic<"numMasks", "masks", "Masks understood">,
    Statistic<"numFlattened", "flattened", "Attentions and ropes put into canonical form">
  ];
}

//===----------------------------------------------------------------------===//
// The decoder
//===----------------------------------------------------------------------===//

def RaiseDecoderPass : Pass<"llm-raise-decoder", "::mlir::ModuleOp"> {
  let summary = "Turn a causal language model into a decoder over tokens";
  let description = [{
    Recognises, by structure and never by name: the input of token ids (the
    indices of an embedding); the caches (inputs used only as the past of an
    attention whose present is a result; a causal attention without past gets a
    cache); masks that say causal order, a window and padding and nothing else;
    positions that are an input, or the tokens' places in their sequences. The
    result beside the caches is the logits, one row for each token.

    Every tensor [batch, seq, ...] becomes [tokens, ...], so that prefill, decode
    and ragged batches are one program; attention becomes `kv.append` and
    `kv.attend`, whose visibility is the sequence's own slots up to the token's.
    Each layer becomes a function from hidden state, step and cache to hidden
    state and cache; the cut between two layers is the last place where a single
    tensor carries everything on. The logits are computed for the rows that the
    step wants. In models of f16 or bf16, weights keep their type and
    activations become f32, as the CPU's kernels compute; casts between float
    types go.

    Where anything does not fit, the module stays as it is, `llm.not_decoder` on
    the function holds the reason and the ONNX node, and a remark says the same.

    Before:
    ```mlir
    func.func @main(%ids: tensor<?x?xi64>, %mask: tensor<?x?xi64>, %positions: tensor<?x?xi64>,
        %pk: tensor<?x1x?x8xf32>, %pv: tensor<?x1x?x8xf32>)
        -> (tensor<?x?x512xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>) {
      %h = llm.embedding %ids, %table : (tensor<?x?xi64>, tensor<512x16xf32>) -> tensor<?x?x16xf32>
      ...
      %y, %present:2 = llm.attention %q, %k, %v past(%pk, %pv) mask(%m) {causal, ...} : ...
    ```
    After:
    ```mlir
    func.func private @target.layer0(%hidden: tensor<?x16xf32>, %step: !kv.step, %cache: !kv.cache<#g>)
        -> (tensor<?x16xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
      ...
      %next = kv.append %cache, %step, %k, %v {group = 0 : i64, layer = 0 : i64} : ...
      %y = kv.attend %q, %next, %step {group = 0 : i64, layer = 0 : i64, num_heads = 2 : i64, ...} : ...
      ...
    }
    func.func @target(%step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x512xf32>, !kv.cache<#g>)
        attributes {llm.max_context = 2048 : i64, llm.model = "target", llm.vocab = 512 : i64} {
      %ids = kv.read_step %step "token" : tensor<?xi32>
      %h = llm.embedding %ids, %table : (tensor<?xi32>, tensor<512x16xf32>) -> tensor<?x16xf32>
      %h0, %c0 = call @target.layer0(%h, %step, %cache) : ...
      ...
    }
    decode.loop @generate { ... }
    ```
  }];
  let dependentDialects = ["::mlir::decode::DecodeDialect",
                           "::mlir::kv::KVDialect", "::mlir::llm::LLMDialect"];
  let options = [
    Option<"model", "model", "std::string", "\"target\"",
           "Name of the decoder; only 'target' gets a decode.loop">
  ];
  let statistics = [
    Statistic<"numDecoders", "decoders", "Functions raised">,
    Statistic<"numLayers", "layers", "Layers outlined">
  ];
}

#endif // LLM_PASSES_RAISE
