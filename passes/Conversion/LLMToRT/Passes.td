//===- Passes.td - From decoder functions to programs ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_CONVERSION_LLMTORT
#define LLM_PASSES_CONVERSION_LLMTORT

include "mlir/Pass/PassBase.td"

def ConvertLLMToRTPass : Pass<"convert-llm-to-rt", "::mlir::ModuleOp"> {
  let summary = "Turn decoder functions into rt.program and decode.loop into rt.iteration";
  let description = [{
    Expects one op per dispatch (`--llm-form-dispatches`). Each decoder function
    becomes a program for each of `targets`; tensors become buffers, every op an
    `rt.dispatch` of a kernel in the family that docs/formats/kernel-families.md
    gives for it. Kernels of equal family and parameters are one. What `kv.observe`
    reads becomes an io buffer `tap.NAME`, what `kv.supply` gives one `feed.NAME`; a
    function with `llm.part` is run for these alone and has no logits.

    ```mlir
    // before
    func.func @target(%step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
        attributes {llm.model = "target"} {
      %t = kv.read_step %step "token" : tensor<?xi32>
      %w = llm.get_weight @table : tensor<8x8xf32>
      %h = llm.embedding %t, %w : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
      return %h, %cache : tensor<?x8xf32>, !kv.cache<#g>
    }
    // after
    rt.program @target target "cpu" symbols ["T", "S", "R", "P", "B", "C"] attributes {row_invariant} {
      rt.kernel @embedding_0 family "embedding" params {dim = 8 : i64, vocab = 8 : i64, ...} {}
      %token = rt.buffer io "token" [#rt.expr<T>] : !rt.buffer<i32>
      %table = rt.buffer constant "table" [#rt.expr<64>] : !rt.buffer<f32>
      %out = rt.buffer io "logits" [#rt.expr<T * 8>] : !rt.buffer<f32>
      rt.dispatch @embedding_0 grid #rt.expr<T> sizes [#rt.expr<T>]
        reads(%token, %table : !rt.buffer<i32>, !rt.buffer<f32>) writes(%out : !rt.buffer<f32>)
    }
    ```
  }];
  let options = [
    ListOption<"targets", "targets", "std::string", "Targets to make programs for; cpu if empty">
  ];
  let dependentDialects = ["::mlir::rt::RTDialect"];
  let statistics = [
    Statistic<"numDispatches", "dispatches", "Number of dispatches made">,
    Statistic<"numKernels", "kernels", "Number of distinct kernels">
  ];
}

#endif // LLM_PASSES_CONVERSION_LLMTORT
