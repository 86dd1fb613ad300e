// RUN: llm-opt %s --llm-page-kv-cache | FileCheck %s --check-prefixes=CHECK,P64
// RUN: llm-opt %s --llm-page-kv-cache=page-size=7 | FileCheck %s --check-prefixes=CHECK,P7
// RUN: llm-opt %s --llm-page-kv-cache --llm-page-kv-cache=page-size=0 | FileCheck %s --check-prefixes=CHECK,P0

// The type changes everywhere, in every group: arguments, results, ops, loop.
#a = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
#b = #kv.group<layers = 1, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>], page_size = 0, keys_rotated = false, window = 5>
// CHECK-NOT: page_size = 16
// CHECK-LABEL: func.func @target(
// P64-COUNT-9: <layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 4], token>, <"v", f32, [1, 4], token>], page_size = 64, keys_rotated = true, window = 0>, <layers = 1, kv_heads = 2, planes = [<"k", f32, [2, 4], token>, <"v", f32, [2, 4], token>], page_size = 64, keys_rotated = false, window = 5>
// P7-COUNT-18: page_size = 7,
// P0-COUNT-18: page_size = 0,
// CHECK-NOT: page_size
func.func @target(%step: !kv.step, %cache: !kv.cache<#a, #b>) -> (tensor<?x4xf32>, !kv.cache<#a, #b>) {
  %w = llm.constant dense<1.0> : tensor<32x4xf32>
  %ids = kv.read_step %step "token" : tensor<?xi32>
  %x = llm.embedding %ids, %w : (tensor<?xi32>, tensor<32x4xf32>) -> tensor<?x4xf32>
  %next = kv.append %cache, %step, %x, %x {group = 0 : i64, layer = 0 : i64} : !kv.cache<#a, #b>, tensor<?x4xf32>, tensor<?x4xf32>
  %y = kv.attend %x, %next, %step {group = 0 : i64, layer = 0 : i64, num_heads = 1 : i64, scale = 0.5 : f64} : tensor<?x4xf32>, !kv.cache<#a, #b> -> tensor<?x4xf32>
  return %y, %next : tensor<?x4xf32>, !kv.cache<#a, #b>
}
decode.loop @generate {
^bb0(%step: !kv.step, %cache: !kv.cache<#a, #b>, %sampling: !decode.sampling):
  %l, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#a, #b>) -> (tensor<?x4xf32>, !kv.cache<#a, #b>)
  %ids = decode.sample %l, %sampling : tensor<?x4xf32> -> tensor<?xi32>
  decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#a, #b>
}
