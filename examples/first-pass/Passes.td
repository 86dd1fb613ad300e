//===- Passes.td - The passes of the example ---------------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
include "mlir/Pass/PassBase.td"

def SkipLayersPass : Pass<"skip-layers", "::mlir::ModuleOp"> {
  let summary = "Remove layers of a decoder";
  let description = [{
    A layer adds something to the hidden state that it is given; without the
    layer, the hidden state goes on as it was. Calls of the named layers are
    replaced by the hidden state and the cache that they were given. The cache
    keeps its size: the slots of a removed layer are not used.

    ```mlir
    %h1:2 = call @target.layer1(%h0#0, %step, %h0#1) : ...
    %h2:2 = call @target.layer2(%h1#0, %step, %h1#1) : ...
    ```
    becomes, with `layers=1`,
    ```mlir
    %h2:2 = call @target.layer2(%h0#0, %step, %h0#1) : ...
    ```
  }];
  let options = [
    ListOption<"layers", "layers", "int64_t", "Layers to remove, counted from 0">,
    Option<"model", "model", "std::string", "\"target\"", "Which model">
  ];
  let statistics = [
    Statistic<"numSkipped", "skipped", "Layers removed">
  ];
}
