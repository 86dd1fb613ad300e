//===- Passes.td - From the decoder form to a planned schedule ------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Filing rule: passes that decide what one dispatch is and where its buffers
// lie. What turns a dispatch into code is in passes/Kernels.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_DISPATCH
#define LLM_PASSES_DISPATCH

include "mlir/Pass/PassBase.td"

def FormDispatchesPass : Pass<"llm-form-dispatches", "::mlir::ModuleOp"> {
  let summary = "Inline layers and group elementwise ops, one op per dispatch";
  let description = [{
    Works on decoder functions (those with `llm.model`). Layer functions are
    inlined into the model's function, then trees of elementwise ops over rows
    become `llm.fused_elementwise`, so that what remains is one op per
    dispatch.

    ```mlir
    // before
    %s = llm.silu %g : tensor<?x8xf32>
    %y = llm.mul %s, %u : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    // after
    %y = llm.fused_elementwise %g, %u ["in0", "silu", "in1", "mul"]
      : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
  }];
  let statistics = [
    Statistic<"numInlined", "layers-inlined", "Number of layer functions inlined">,
    Statistic<"numFused", "ops-fused", "Number of elementwise ops put into groups">
  ];
}

def FormPhasesPass : Pass<"llm-form-phases", "::mlir::ModuleOp"> {
  let summary = "Let dispatches that do not depend on each other share a barrier";
  let description = [{
    A dispatch moves up to the first phase after all those that it depends on:
    that write what it reads or writes, or read what it writes. Within a phase
    the order stays; all but the first are marked `concurrent`. The query, key
    and value products of a layer thus cost one barrier.

    ```mlir
    // before
    rt.dispatch @q grid ... reads(%x, %wq) writes(%q)
    rt.dispatch @rope grid ... reads(%q) writes(%qr)
    rt.dispatch @k grid ... reads(%x, %wk) writes(%k)
    // after
    rt.dispatch @q grid ... reads(%x, %wq) writes(%q)
    rt.dispatch concurrent @k grid ... reads(%x, %wk) writes(%k)
    rt.dispatch @rope grid ... reads(%q) writes(%qr)
    ```
  }];
  let dependentDialects = ["::mlir::rt::RTDialect"];
  let statistics = [
    Statistic<"numDispatches", "dispatches", "Number of dispatches">,
    Statistic<"numPhases", "phases", "Number of phases they form">
  ];
}

def PlanMemoryPass : Pass<"llm-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Place the transient buffers of each program in one arena";
  let description = [{
    Buffers that live in the same phase get disjoint parts of the arena, at
    multiples of 64 bytes. Offsets and the arena's size are expressions over the
    program's symbols, so that the peak is known at compile time as a function of
    them. A part is reused by a later buffer whose rows are counted by the same
    symbols.

    ```mlir
    // before
    %a = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
    // after
    %a = rt.buffer transient "" [#rt.expr<T * 16>] {offset = #rt.expr<0>} : !rt.buffer<f32>
    ```
  }];
  let dependentDialects = ["::mlir::rt::RTDialect"];
  let statistics = [
    Statistic<"numBuffers", "buffers", "Number of transient buffers">,
    Statistic<"numParts", "parts", "Number of parts of the arena they share">
  ];
}

#endif // LLM_PASSES_DISPATCH
