// RUN: llm-opt %s --llm-verify-decode --split-input-file --verify-diagnostics

// What holds is in verify_raise.mlir.

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 4294967296, keys_rotated = true, window = 0>
// expected-error@+1 {{pages of 4294967296 slots cannot be numbered by the step's int32}}
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"w", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
// expected-error@+1 {{a cache group has no plane 'v'}}
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"x", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], page>], page_size = 16, keys_rotated = true, window = 0>
// expected-error@+1 {{plane 'v' is not kept token by token}}
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
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

// expected-error@+1 {{is no decoder, and 'llm.not_decoder' does not say why}}
func.func @main() {
  return
}

// -----


#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", i8, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
// expected-error@+1 {{plane 'v' of 'i8' has no plane 'v_scale'}}
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
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


#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f8E5M2, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>, #kv.plane<"k_scale", f32, [4], token>], page_size = 16, keys_rotated = true, window = 0>
// expected-error@+1 {{plane 'k_scale' is not an f32 per kv head}}
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
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
