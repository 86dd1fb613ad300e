//===- Passes.td - From the llm dialect to linalg ----------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Filing rule: the one conversion of this directory.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_CONVERSION_LLMTOLINALG_PASSES
#define LLM_CONVERSION_LLMTOLINALG_PASSES

include "mlir/Pass/PassBase.td"

def ConvertLLMToLinalgPass : Pass<"convert-llm-to-linalg", "ModuleOp"> {
  let summary = "Lower llm ops to loops on tensors";
  let description = [{
    Every llm op becomes a `linalg.generic` (or a loop) over its result, on
    ranked tensors whose sizes may be known at run time alone. What only the run
    can tell (that sizes broadcast, that an index is in range) is checked by
    `cf.assert`, its message naming the ONNX node, before anything is read.

    Elements are stored signless; floats of 8 bits and fewer, and integers below
    8 bits, take a byte each inside the function. At its boundary they are
    packed bytes (`tensor<?xi8>`, low bits first), followed by one index for
    each dynamic size; a result of such a type is followed by all its sizes.

    A weight becomes arguments, one per stored part, with the attribute
    `llm.constant` = "weight:part". Formats other than dense are dequantised at
    the use. The function's former type is kept in `llm.logical_type`.

    ```mlir
    %z = llm.add %x, %y : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    ```
    becomes
    ```mlir
    %e = tensor.empty() : tensor<4xf32>
    %z = linalg.generic {indexing_maps = [#id, #scalar, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<4xf32>, tensor<f32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

#endif // LLM_CONVERSION_LLMTOLINALG_PASSES
