//===- Passes.td - The contracts of the stages -------------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Filing rule: one pass for each stage, in the order of the stages. They change
// nothing.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_VERIFY
#define LLM_PASSES_VERIFY

include "mlir/Pass/PassBase.td"

def VerifyImportPass : Pass<"llm-verify-import", "::mlir::ModuleOp"> {
  let summary = "Check the contract of the import stage";
  let description = [{
    1. The module has one public function with a body, of one block, and ops of
       the llm dialect in it; control flow is scf with what it needs of tensor
       and arith.
    2. Its arguments and results are ranked tensors; arguments carry `llm.name`,
       all different; `llm.dims` has one string for each dimension.

    ```mlir
    func.func @main(%ids: tensor<?x?xi64> {llm.name = "input_ids", llm.dims = ["batch", "seq"]})
        -> (tensor<?x?x8xf32> {llm.name = "logits", llm.dims = ["batch", "seq", ""]}) { ... }
    ```
  }];
}

def VerifyRaisePass : Pass<"llm-verify-raise", "::mlir::ModuleOp"> {
  let summary = "Check the contract of the raise stage";
  let description = [{
    Either every public function says in `llm.not_decoder` why it is none, or the
    module holds decoders. For each model (`llm.model`):
    1. One public function (step, cache) -> (tensor<?xVOCAB>, cache) with
       `llm.vocab`, named as the model.
    2. Private functions (hidden, step, cache) -> (hidden, cache) numbered
       0, 1, ... by `llm.layer`, called by the model's function once each, in
       order.
    3. Only the first dimension of a tensor is dynamic; no attention of the
       imported kind is left.
    4. Each layer of each cache group is appended to once, and before it is
       attended to; cache values are used linearly.
    A `decode.loop` calls the target.
  }];
}

def VerifyDecodePass : Pass<"llm-verify-decode", "::mlir::ModuleOp"> {
  let summary = "Check the contract of the decode stage";
  let description = [{
    The contract of the raise stage, and: all caches of one model have one type
    in every function and in the loop, and that type's planes can be kept: in
    pages of a size that the step can number, with 'k' and 'v' of token
    granularity.
  }];
}

#endif // LLM_PASSES_VERIFY
