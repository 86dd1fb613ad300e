//===- KVDialect.td - Cache attributes and types ---*- tablegen -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef KV_DIALECT
#define KV_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def KV_Dialect : Dialect {
  let name = "kv";
  let cppNamespace = "::mlir::kv";
  let summary = "The key-value cache as a typed value with a policy";
  let description = [{
    A cache is a list of groups: layers and heads that share one block table
    and one policy. A group is a list of planes (keys, values, scales, ...).
    Ops that change the cache consume a value and return the next; each value is
    consumed at most once, and read only before that, so that the storage can
    be updated in place. `kv.fork` alone makes two sequences share pages.

    A decoder function reads the step (`include/llm/ABI/step.h`) through a
    `!kv.step` value.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes and types
//===----------------------------------------------------------------------===//

def KV_Granularity : I32EnumAttr<"Granularity", "what a row of a plane belongs to", [
    I32EnumAttrCase<"token", 0>, I32EnumAttrCase<"page", 1>, I32EnumAttrCase<"sequence", 2>]> {
  let cppNamespace = "::mlir::kv";
  let genSpecializedAttr = 0;
}

def KV_PlaneAttr : AttrDef<KV_Dialect, "Plane"> {
  let mnemonic = "plane";
  let summary = "One stored array of a cache group";
  let description = [{
    `shape` is that of one token, page or sequence.

    ```mlir
    #kv.plane<"k", f32, [3, 64], token>
    ```
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "::mlir::Type":$element_type,
                        ArrayRefParameter<"int64_t">:$shape,
                        EnumParameter<KV_Granularity>:$granularity);
  let assemblyFormat = "`<` $name `,` $element_type `,` `[` $shape `]` `,` $granularity `>`";
  let genVerifyDecl = 1;
}

def KV_GroupAttr : AttrDef<KV_Dialect, "Group"> {
  let mnemonic = "group";
  let summary = "Layers and heads that share a block table and a policy";
  let description = [{
    Every layer has its own copy of each plane. `page_size` is in slots; 0 is
    contiguous (one run of slots a sequence). `keys_rotated`: keys are stored
    after their rotary embedding. `window` 0 keeps the whole context.

    ```mlir
    #kv.group<layers = 30, kv_heads = 3, planes = [#kv.plane<"k", f32, [3, 64], token>,
      #kv.plane<"v", f32, [3, 64], token>], page_size = 64, keys_rotated = true, window = 0>
    ```
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$kv_heads,
                        ArrayRefParameter<"::mlir::kv::PlaneAttr">:$planes,
                        "int64_t":$page_size, "bool":$keys_rotated, "int64_t":$window);
  let assemblyFormat = [{
    `<` `layers` `=` $layers `,` `kv_heads` `=` $kv_heads `,` `planes` `=` `[` $planes `]` `,`
    `page_size` `=` $page_size `,` `keys_rotated` `=` $keys_rotated `,` `window` `=` $window `>`
  }];
  let genVerifyDecl = 1;
}

def KV_CacheType : TypeDef<KV_Dialect, "Cache"> {
  let mnemonic = "cache";
  let summary = "A cache: its groups";
  let description = [{
    ```mlir
    !kv.cache<#kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 8], token>,
      #kv.plane<"v", f32, [1, 8], token>], page_size = 0, keys_rotated = true, window = 0>>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::kv::GroupAttr">:$groups);
  let assemblyFormat = "`<` $groups `>`";
}

def KV_StepType : TypeDef<KV_Dialect, "Step"> {
  let mnemonic = "step";
  let summary = "The step struct of include/llm/ABI/step.h";
  let description = [{
    ```mlir
    !kv.step
    ```
  }];
}

#endif // KV_DIALECT
