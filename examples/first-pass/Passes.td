//===- Passes.td - The passes of the example ---------------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
include "mlir/Pass/PassBase.td"

def SkipFeedForwardPass : Pass<"skip-feed-forward", "::mlir::ModuleOp"> {
  let summary = "Remove the feed-forward parts of layers";
  let description = [{
    A layer ends in adding what its feed-forward part made of the hidden state to
    the hidden state itself. In the named layers this addition is taken out, and the
    tidying passes (canonicalize, symbol-dce) remove what nothing reads any longer.

    ```mlir
    %h2 = llm.add %h1, %down : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    return %h2, %next : tensor<?x8xf32>, !kv.cache<#g>
    ```
    becomes
    ```mlir
    return %h1, %next : tensor<?x8xf32>, !kv.cache<#g>
    ```
  }];
  let options = [
    ListOption<"layers", "layers", "int64_t", "Which layers, counted from 0">,
    Option<"model", "model", "std::string", "\"target\"", "Which model">
  ];
  let statistics = [
    Statistic<"numSkipped", "skipped", "Feed-forward parts removed">
  ];
}
