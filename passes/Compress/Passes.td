//===- Passes.td - Passes that make weights and arithmetic smaller -*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Filing rule: passes that change how weights are stored, or how a product may
// compute, and with it the results; alphabetical. They run on any module of the
// llm dialect; `where` needs one that --llm-raise-decoder has split into layers.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_COMPRESS
#define LLM_PASSES_COMPRESS

include "mlir/Pass/PassBase.td"

class SelectionOptions {
  list<Option> options = [
    Option<"where", "where", "std::string", "\"all\"",
           "all; layers: products inside a decoder's layers; head: those "
           "outside, such as the product with the vocabulary">,
    Option<"match", "match", "std::string", "\"\"",
           "Weights by name: patterns with * and ?, separated by |">
  ];
}
def Selection : SelectionOptions;

class CalibrationTextOptions {
  list<Option> options = [
    Option<"text", "text", "std::string", "\"\"",
           "A text in UTF-8; where neither it nor tokens is given, what llm-compile was given">,
    Option<"tokens", "tokens", "std::string", "\"\"",
           "Token ids in its place, one sequence per line">,
    Option<"tokenizer", "tokenizer", "std::string", "\"\"",
           "The text's tokenizer; else the one beside or above the model">,
    Option<"numSamples", "samples", "int64_t", "128", "Sequences at most">,
    Option<"context", "context", "int64_t", "512", "Tokens of a sequence at most">
  ];
}
def CalibrationText : CalibrationTextOptions;

def CalibratePass : Pass<"llm-calibrate", "::mlir::ModuleOp"> {
  let summary = "Gather statistics about products' inputs on a text";
  let description = [{
    Runs the decoder on the samples of a text and writes, for every dense float
    weight NAME that `llm.linear` reads, f32 tensors about the inputs x that it is
    multiplied with to a safetensors file:

    | kind | tensors |
    |---|---|
    | gram | NAME.gram [inputs, inputs], the mean of x xᵀ |
    | norms | NAME.abs_mean, NAME.square_mean [inputs], the means of \|x\| and x² |
    | ranges | NAME.min, NAME.max [inputs] |

    Products that share an input share the work. Samples are disjoint windows of
    `context` tokens, evenly out of the text. A part of as many layers as `memory`
    holds the sums of is compiled, run by the runtime on all samples, and forgotten;
    hidden states wait in a file for the next part. All this lies in
    STATISTICS.partial until the end, so that a run that was killed goes on with the
    part it was at; the result is the same. Statistics that are there already, of the
    same weights, samples and options, are left.

    The module names the file in `llm.statistics`, where `--llm-quantize-weights`
    finds it. It is otherwise unchanged:

    ```
    llm-opt model --llm-import-pipeline \
      --llm-calibrate="text=text.txt statistics=model.statistics" \
      --llm-quantize-weights="method=gptq" -o quantized.mlir
    ```
    ```mlir
    // after
    module attributes {llm.statistics = "model.statistics", ...}
    ```
  }];
  let options = CalibrationText.options # [
    Option<"statistics", "statistics", "std::string", "\"\"",
           "The file to write; llm-compile has a place for it">,
    Option<"kinds", "kinds", "std::string", "\"gram\"",
           "Of gram, norms and ranges those to gather, separated by |">,
    Option<"memory", "memory", "int64_t", "256",
           "MiB of sums that are kept at once; a layer's are at least">
  ] # Selection.options;
  let dependentDialects = ["::mlir::kv::KVDialect", "::mlir::func::FuncDialect"];
  let statistics = [Statistic<"numInputs", "inputs", "Inputs observed">];
}

def CastWeightsPass : Pass<"llm-cast-weights", "::mlir::ModuleOp"> {
  let summary = "Store dense weights of products and embeddings in 16 bits";
  let description = [{
    Rounds the elements (to nearest, ties to even) of every dense f32 or f64 weight
    that only `llm.linear` and `llm.embedding` read; the logical type stays, and
    with it the users. Norms, biases and tables of angles are left: they are small,
    and precision is worth more there. A finite element that f16 cannot hold is an
    error.

    Before:
    ```mlir
    llm.weight @w : tensor<64x48xf32> = #llm.dense<#llm.component<"data", tensor<64x48xf32>, ...>>
    ```
    After, with `type=bf16`:
    ```mlir
    llm.weight @w : tensor<64x48xf32> = #llm.dense<#llm.component<"data", tensor<64x48xbf16>, ...>>
    ```
  }];
  let options = [
    Option<"type", "type", "std::string", "\"bf16\"", "bf16 or f16">
  ] # Selection.options;
  let statistics = [Statistic<"numCast", "cast", "Weights cast">];
}

def CompressLayersPass : Pass<"llm-compress-layers", "::mlir::ModuleOp"> {
  let summary = "Compress one layer after the other, each on what those before it give";
  let description = [{
    Walks the layers of the decoder. For each it gathers statistics (`kinds`, as
    `--llm-calibrate` does) from the hidden states that the layers before it, already
    compressed, give on the samples; runs `pipeline` on a module that holds the layer
    and its weights and names these statistics; puts what has become of the layer in
    its place; and runs it once more, to have the hidden states for the next. What a
    layer loses so is seen, and made up for as far as it can be, by those behind it.

    `state` is a directory for hidden states and finished layers. A run that was
    killed goes on with the layer it was at, and the result is the same; after the
    last layer the finished ones stay there, because the module may name weights in
    it.

    ```
    llm-opt model --llm-import-pipeline \
      --llm-compress-layers="text=text.txt state=model.layers
        pipeline=llm-quantize-weights{method=gptq}" -o quantized.mlir
    ```
  }];
  let options = [
    Option<"pipeline", "pipeline", "std::string", "\"\"",
           "Passes for a module with one layer">,
    Option<"stateDirectory", "state", "std::string", "\"\"",
           "A directory; llm-compile has a place for it">,
    Option<"kinds", "kinds", "std::string", "\"gram\"",
           "Of gram, norms and ranges those to gather, separated by |">
  ] # CalibrationText.options;
  let dependentDialects = ["::mlir::kv::KVDialect", "::mlir::func::FuncDialect"];
  let statistics = [Statistic<"numLayers", "layers", "Layers compressed">];
}

def QuantizeActivationsPass : Pass<"llm-quantize-activations", "::mlir::ModuleOp"> {
  let summary = "Let products read their input in fewer bits";
  let description = [{
    Sets `accuracy_level` of `llm.linear`. It is a permission, a lower bound as in
    com.microsoft.MatMulNBits: a kernel that does not know the narrower arithmetic
    for a weight's format computes in f32. int8 has one scale per token and weight
    group, found while the model runs; no calibration is needed. With
    `group-size=N` the whole weight groups of N inputs share one: of the operations
    that are no dot products a kernel saves one in three, for twice the error that
    int8 adds (docs/rationale/compression.md).

    Before:
    ```mlir
    %y = llm.linear %x, %w : (tensor<?x64xf32>, tensor<48x64xf32>) -> tensor<?x48xf32>
    ```
    After, with `type=int8`:
    ```mlir
    %y = llm.linear %x, %w {accuracy_level = 4 : i64} : (tensor<?x64xf32>, tensor<48x64xf32>) -> tensor<?x48xf32>
    ```
  }];
  let options = [
    Option<"type", "type", "std::string", "\"int8\"", "f32, f16, bf16 or int8">,
    Option<"groupSize", "group-size", "unsigned", "0",
      "int8: inputs that share a scale, rounded down to whole weight groups; 0: one group">
  ] # Selection.options;
  let statistics = [Statistic<"numProducts", "products", "Products changed">];
}

def QuantizeWeightsPass : Pass<"llm-quantize-weights", "::mlir::ModuleOp"> {
  let summary = "Store the weights of products as small integers in groups";
  let description = [{
    Every dense float weight that `llm.linear` reads, and nothing but `llm.linear`
    and `llm.embedding`, becomes `#llm.affine`: along its inputs, groups of
    `group-size` integers share a scale. A weight stored [inputs, outputs] is turned
    around. What is quantized already is left, so that a later run takes the rest.

    `method=rtn` rounds to the nearest integer, without looking at data;
    `method=gptq` (Frantar et al., 2023) takes one input after the other, and
    changes the inputs that have no code yet so that the product loses least on
    the inputs that calibration saw. It reads their Gram matrices from
    `statistics`, a safetensors file with the mean of x xᵀ, f32 or f64 [inputs,
    inputs], as NAME.gram for the weight NAME (`--llm-calibrate` writes such). Inputs that were always zero get the
    value zero.
    - symmetric: the element of largest magnitude becomes -2^(bits-1), so that no
      code is unused; the scale takes the sign that this needs.
    - otherwise: the group's range, widened to hold 0, is spread over all codes,
      and a zero point (a code, too) is stored with each group.
    - `search=N`: tries scales around that one, N finer and N coarser, fits each to
      its codes by least squares and keeps the one of least squared error.
      Symmetric only.
    - `factor-group=M`: scales have two levels, as in VS-Quant (Dai et al., 2021).
      Every M inputs of a group have the scale that they would have as a group of
      their own, rounded to a multiple, -15 to 15 times, of a scale of the group:
      of that one from which they differ least, in squares. A group of 128 in four takes no more than a scale in f16
      for every 64, and its products are summed in integers. 4 bits, symmetric.

    Scales are rounded to f16 before the codes are chosen. Where this would move an
    element by more than an eighth of its row's largest step (overflow, rows of
    tiny values), that weight keeps scales in f32. Scales beside factors have 6
    bits behind the first one, from 2^-30 to 2^32; where that is too narrow, the
    weight gets groups of `factor-group` inputs with scales in f32 instead. An element that is not finite is
    an error, as are sizes that no kernel reads.

    Before:
    ```mlir
    llm.weight @w : tensor<64x48xf32> = #llm.dense<...>
    %y = llm.linear %x, %w {transposed} : (tensor<?x64xf32>, tensor<64x48xf32>) -> tensor<?x48xf32>
    ```
    After, with `bits=4 group-size=32`:
    ```mlir
    llm.weight @w : tensor<48x64xf32> = #llm.affine<bits = 4, group_size = 32,
      data = #llm.component<"data", tensor<48x32xui8>, ...>,
      scales = #llm.component<"scales", tensor<48x2xf16>, ...>>
    %y = llm.linear %x, %w : (tensor<?x64xf32>, tensor<48x64xf32>) -> tensor<?x48xf32>
    ```
  }];
  let options = [
    Option<"method", "method", "std::string", "\"rtn\"", "gptq or rtn">,
    Option<"bits", "bits", "unsigned", "4", "2, 4 or 8">,
    Option<"groupSize", "group-size", "std::string", "\"32\"",
           "Inputs that share a scale, or row for all of an output">,
    Option<"factorGroup", "factor-group", "unsigned", "0",
           "Inputs that share a multiple of their group's scale; 0: none">,
    Option<"symmetric", "symmetric", "bool", "true", "Without zero points">,
    Option<"search", "search", "unsigned", "0",
           "Scales to try on either side of the plain one">,
    Option<"statistics", "statistics", "std::string", "\"\"",
           "gptq: a safetensors file about the inputs; else the module's llm.statistics">,
    Option<"damping", "damping", "double", "0.01",
           "gptq: of the mean square of the inputs, added to each">,
    Option<"actOrder", "act-order", "bool", "true",
           "gptq: inputs of large squares first">
  ] # Selection.options;
  let statistics = [
    Statistic<"numQuantized", "quantized", "Weights quantized">,
    Statistic<"numWideScales", "wide-scales", "Weights that keep scales in f32">
  ];
}

#endif // LLM_PASSES_COMPRESS
