// RUN: llm-opt %s --llm-quantize-kv-cache | FileCheck %s
// RUN: llm-opt %s --llm-quantize-kv-cache=type=f8E4M3FN | FileCheck %s --check-prefix=E4M3
// RUN: llm-opt %s --llm-quantize-kv-cache=type=f8E5M2 | FileCheck %s --check-prefix=E5M2
// RUN: llm-opt %s --llm-quantize-kv-cache=type=int8 --llm-quantize-kv-cache=type=f8E5M2 | FileCheck %s --check-prefix=E5M2
// RUN: llm-opt %s --llm-quantize-kv-cache --llm-cast-kv-cache=type=bf16 | FileCheck %s --check-prefix=BACK

// Keys and values become codes; their scales come behind what there is.
// CHECK: planes = [<"k", i8, [2, 4], token>, <"v", i8, [2, 6], token>, <"scores", f32, [16], page>, <"k_scale", f32, [2], token>, <"v_scale", f32, [2], token>]
// CHECK: kv.append %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {group = 0 : i64, layer = 0 : i64}
// E4M3: planes = [<"k", f8E4M3FN, [2, 4], token>, <"v", f8E4M3FN, [2, 6], token>, <"scores", f32, [16], page>, <"k_scale", f32, [2], token>, <"v_scale", f32, [2], token>]
// E5M2: planes = [<"k", f8E5M2, [2, 4], token>, <"v", f8E5M2, [2, 6], token>, <"scores", f32, [16], page>, <"k_scale", f32, [2], token>, <"v_scale", f32, [2], token>]
// BACK: planes = [<"k", bf16, [2, 4], token>, <"v", bf16, [2, 6], token>, <"scores", f32, [16], page>]
#g = #kv.group<layers = 1, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f16, [2, 6], token>,
  #kv.plane<"scores", f32, [16], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @f(%step: !kv.step, %cache: !kv.cache<#g>, %k: tensor<?x8xf32>, %v: tensor<?x12xf32>) -> !kv.cache<#g> {
  %next = kv.append %cache, %step, %k, %v {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x8xf32>, tensor<?x12xf32>
  return %next : !kv.cache<#g>
}
