// RUN: llm-opt %s --llm-cast-kv-cache=type=bf16 | FileCheck %s

// Float planes of tokens change; codes and what is kept by page do not.
// CHECK: planes = [<"k", bf16, [1, 4], token>, <"v", bf16, [1, 4], token>, <"codes", i8, [4], token>, <"scores", f32, [16], page>]
#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f16, [1, 4], token>,
  #kv.plane<"codes", i8, [4], token>, #kv.plane<"scores", f32, [16], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @f(%cache: !kv.cache<#g>) -> !kv.cache<#g> {
  return %cache : !kv.cache<#g>
}
