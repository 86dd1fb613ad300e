//===- LLMAttrs.td - Weight formats ------------------------*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_ATTRS
#define LLM_ATTRS

include "dialects/LLM/IR/LLMDialect.td"
include "dialects/LLM/IR/LLMInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class LLM_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<LLM_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def LLM_SpanAttr : LLM_Attr<"Span", "span"> {
  let summary = "Bytes in a file";
  let description = [{
    `file` is a path as the tool was given it (relative to its working
    directory, or absolute). `hash` is the XXH3-64 of the bytes in 16 hex
    digits; it identifies the content, wherever it lies.

    ```mlir
    #llm.span<"model.onnx.data", 4096, 2304, "9f86d081884c7d65">
    ```
  }];
  let parameters = (ins StringRefParameter<"path">:$file, "uint64_t":$offset,
                        "uint64_t":$length, StringRefParameter<"XXH3-64">:$hash);
  let assemblyFormat = "`<` $file `,` $offset `,` $length `,` $hash `>`";
  let genVerifyDecl = 1;
}

def LLM_ComponentAttr : LLM_Attr<"Component", "component"> {
  let summary = "One stored part of a weight";
  let description = [{
    A named tensor, row major, low bits first where elements are narrower than
    a byte. `source` is an `#llm.span`, or an elements attribute for tests and
    small tensors.

    ```mlir
    #llm.component<"data", tensor<4x8xf32>, #llm.span<"m.data", 0, 128, "0123456789abcdef">>
    #llm.component<"scales", tensor<2xf32>, dense<1.0> : tensor<2xf32>>
    ```
  }];
  let parameters = (ins StringRefParameter<"name">:$name,
                        "::mlir::RankedTensorType":$type,
                        "::mlir::Attribute":$source);
  let assemblyFormat = "`<` $name `,` $type `,` $source `>`";
  let genVerifyDecl = 1;
}

def LLM_DenseFormatAttr : LLM_Attr<"DenseFormat", "dense",
    [DeclareAttrInterfaceMethods<LLM_WeightFormatInterface>]> {
  let summary = "Every element stored by itself";
  let description = [{
    `data` has the weight's logical type, or the same shape of a narrower float
    type, which is widened when read.

    ```mlir
    llm.weight @w : tensor<2x2xf32> = #llm.dense<
      #llm.component<"data", tensor<2x2xf32>, dense<1.0> : tensor<2x2xf32>>>
    ```
  }];
  let parameters = (ins "::mlir::llm::ComponentAttr":$data);
  let assemblyFormat = "`<` $data `>`";
}

def LLM_AffineGroupsFormatAttr : LLM_Attr<"AffineGroupsFormat", "affine",
    [DeclareAttrInterfaceMethods<LLM_WeightFormatInterface>]> {
  let summary = "Integers in groups along the last axis, with scale and zero";
  let description = [{
    The logical weight is [N, K]; W[n, k] = (q[n, k] - z[n, g]) * s[n, g] with
    g = k / group_size. The last group may be short. Codes are unsigned
    integers of `bits` (2, 4, 8), packed low bits first; each row holds
    `ceil(K / group_size) * group_size` codes, as com.microsoft.MatMulNBits
    has it. `data` is tensor<N x bytes x ui8>; `scales` is [N, groups] in f32,
    f16 or bf16. `zeros`, where present, is tensor<N x ceil(groups*bits/8) x
    ui8> of packed codes (each row padded to a byte) or [N, groups] in the type
    of the scales; where absent, z = 2^(bits-1).

    Where groups are split, `factor_group` inputs share an integer f that
    multiplies the scale: W[n, k] = (q[n, k] - 8) * f[n, k / factor_group] *
    s[n, g]. `factors` is tensor<N x (groups * group_size / factor_group) x i8>
    of values from -15 to 15. Up to 4 of them split a group of 4-bit codes,
    each of a multiple of 8 inputs, 32 at most, and there are no `zeros`. The
    scales are 0 or positive floats of 6 bits behind the first one, from 2^-30
    to less than 2^33, so that a scale and its factors are stored in 32 bits. A
    kernel sums integers over a whole group, for many tokens with q * f in a
    byte. Source of the two levels: Dai et al., "VS-Quant: Per-vector Scaled
    Quantization", MLSys 2021.

    ```mlir
    llm.weight @w : tensor<2x32xf32> = #llm.affine<bits = 4, group_size = 32,
      data = #llm.component<"data", tensor<2x16xui8>, #llm.span<"m.onnx", 64, 32, "0123456789abcdef">>,
      scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>
    llm.weight @v : tensor<2x64xf32> = #llm.affine<bits = 4, group_size = 64,
      data = #llm.component<"data", tensor<2x32xui8>, #llm.span<"m.bin", 96, 64, "0123456789abcdef">>,
      scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>,
      factor_group = 32,
      factors = #llm.component<"factors", tensor<2x2xi8>, dense<[[15, -7], [3, 15]]> : tensor<2x2xi8>>>
    ```
  }];
  let parameters = (ins "unsigned":$bits, "int64_t":$group_size,
                        "::mlir::llm::ComponentAttr":$data,
                        "::mlir::llm::ComponentAttr":$scales,
                        OptionalParameter<"::mlir::llm::ComponentAttr">:$zeros,
                        DefaultValuedParameter<"int64_t", "0">:$factor_group,
                        OptionalParameter<"::mlir::llm::ComponentAttr">:$factors);
  let extraClassDeclaration = [{
    /// Most factors that split a group, inputs of one, and a factor's magnitude.
    static constexpr int64_t kMaxFactors = 4;
    static constexpr int64_t kMaxFactorGroup = 32;
    static constexpr int64_t kMaxFactor = 15;
    /// Inputs that share a scale once factors are multiplied in.
    int64_t getFinestGroup() const {
      return getFactors() ? getFactorGroup() : getGroupSize();
    }
  }];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def LLM_GeluApproximation : I32EnumAttr<"GeluApproximation", "GELU spelling", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"tanh", 1>,
    I32EnumAttrCase<"sigmoid", 2>]> {
  let cppNamespace = "::mlir::llm";
}

#endif // LLM_ATTRS
