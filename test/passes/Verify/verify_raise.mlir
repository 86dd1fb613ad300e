// RUN: llm-opt %s --llm-verify-raise --llm-verify-decode --split-input-file | FileCheck %s

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
// CHECK-LABEL: func.func private @target.layer0(
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  %y = kv.attend %h, %next, %step {group = 0 : i64, layer = 0 : i64, num_heads = 1 : i64, scale = 0.5 : f64} : tensor<?x4xf32>, !kv.cache<#g> -> tensor<?x4xf32>
  return %y, %next : tensor<?x4xf32>, !kv.cache<#g>
}
func.func @target(%step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.model = "target", llm.vocab = 4 : i64} {
  %w = llm.constant dense<1.0> : tensor<4x4xf32>
  %ids = kv.read_step %step "token" : tensor<?xi32>
  %h = llm.embedding %ids, %w : (tensor<?xi32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %y, %next = call @target.layer0(%h, %step, %cache) : (tensor<?x4xf32>, !kv.step, !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>)
  return %y, %next : tensor<?x4xf32>, !kv.cache<#g>
}
decode.loop @generate {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %l, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>)
  %ids = decode.sample %l, %sampling : tensor<?x4xf32> -> tensor<?xi32>
  decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
}

// -----

// CHECK-LABEL: func.func @main(
func.func @main() attributes {llm.not_decoder = "there is no attention"} {
  return
}
