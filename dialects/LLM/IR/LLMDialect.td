//===- LLMDialect.td - The model as a graph of tensors -----*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_DIALECT
#define LLM_DIALECT

include "mlir/IR/OpBase.td"

def LLM_Dialect : Dialect {
  let name = "llm";
  let cppNamespace = "::mlir::llm";
  let summary = "A language model as a graph of tensors";
  let description = [{
    Value semantics throughout. Primitive ops follow the ONNX operator of the
    same name, in its newest version; composites (`llm.linear`,
    `llm.rms_norm`, `llm.rope`, `llm.attention`, ...) name what exporters
    decompose. Weights are symbols with a logical type and a format, so that a
    compression pass changes `llm.weight` and nothing that uses it.

    Function arguments and results carry `llm.name` (the ONNX name) and
    `llm.dims` (an array of symbol names, empty where a dimension is static or
    anonymous). ONNX unsigned integers are `ui8`, ...; signed ones are signless.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

#endif // LLM_DIALECT
