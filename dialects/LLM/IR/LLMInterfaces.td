//===- LLMInterfaces.td - What a weight format is ----------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_INTERFACES
#define LLM_INTERFACES

include "mlir/IR/OpBase.td"

def LLM_WeightFormatInterface : AttrInterface<"WeightFormatInterface"> {
  let cppNamespace = "::mlir::llm";
  let description = [{
    How the logical tensor of an `llm.weight` is stored. A further format is
    one attribute with this interface, plus a packer and a kernel.
  }];
  let methods = [
    InterfaceMethod<"Appends the stored parts.", "void", "getParts",
      (ins "::llvm::SmallVectorImpl<::mlir::llm::ComponentAttr> &":$parts)>,
    InterfaceMethod<"Whether `type` can be stored so; reports through `emit`.",
      "::llvm::LogicalResult", "verifyLogicalType",
      (ins "::mlir::RankedTensorType":$type,
           "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emit)>,
    InterfaceMethod<"Stored bits per logical element, scales included.",
      "double", "getBitsPerElement", (ins "::mlir::RankedTensorType":$type)>
  ];
}

#endif // LLM_INTERFACES
