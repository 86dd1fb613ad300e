// RUN: llm-opt %s --llm-verify-raise --split-input-file --verify-diagnostics

// expected-error@+1 {{is no decoder, and 'llm.not_decoder' does not say why}}
func.func @main() {
  return
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
// expected-error@+1 {{a decoder takes (step, cache) and returns (logits, cache)}}
func.func @target(%step: !kv.step) attributes {llm.model = "target", llm.vocab = 4 : i64} {
  return
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
// expected-error@+1 {{a layer takes (hidden, step, cache) and returns (hidden, cache)}}
func.func private @target.layer0(%step: !kv.step, %cache: !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  return
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
}
// expected-error@+1 {{has no 'llm.vocab'}}
func.func @target(%step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.model = "target"} {
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
}
// expected-error@+1 {{the function of model 'target' is one, public and of that name}}
func.func @other(%step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.model = "target", llm.vocab = 4 : i64} {
  %w = llm.constant dense<1.0> : tensor<4x4xf32>
  %ids = kv.read_step %step "token" : tensor<?xi32>
  %h = llm.embedding %ids, %w : (tensor<?xi32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %y, %next = call @target.layer0(%h, %step, %cache) : (tensor<?x4xf32>, !kv.step, !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>)
  return %y, %next : tensor<?x4xf32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
}
// expected-error@+1 {{no decode.loop runs it}}
func.func @target(%step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.model = "target", llm.vocab = 4 : i64} {
  %w = llm.constant dense<1.0> : tensor<4x4xf32>
  %ids = kv.read_step %step "token" : tensor<?xi32>
  %h = llm.embedding %ids, %w : (tensor<?xi32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %y, %next = call @target.layer0(%h, %step, %cache) : (tensor<?x4xf32>, !kv.step, !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>)
  return %y, %next : tensor<?x4xf32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
}
// expected-error@+1 {{calls 1 of its 2 layers}}
func.func @target(%step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.model = "target", llm.vocab = 4 : i64} {
  %w = llm.constant dense<1.0> : tensor<4x4xf32>
  %ids = kv.read_step %step "token" : tensor<?xi32>
  %h = llm.embedding %ids, %w : (tensor<?xi32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %y, %next = call @target.layer0(%h, %step, %cache) : (tensor<?x4xf32>, !kv.step, !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>)
  return %y, %next : tensor<?x4xf32>, !kv.cache<#g>
}
func.func private @target.layer1(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 1 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
}
decode.loop @generate {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %l, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>)
  %ids = decode.sample %l, %sampling : tensor<?x4xf32> -> tensor<?xi32>
  decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
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
// expected-error@+1 {{is layer 0, as @target.layer0 is}}
func.func private @target.layer1(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
}
decode.loop @generate {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %l, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>)
  %ids = decode.sample %l, %sampling : tensor<?x4xf32> -> tensor<?xi32>
  decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
// expected-error@+1 {{layer number -1 is out of range}}
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = -1 : i64, llm.model = "target"} {
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 1 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
}
// expected-error@+1 {{has no layer 0}}
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
}
func.func private @target.layer1(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 1 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %next : tensor<?x4xf32>, !kv.cache<#g>
}
func.func @target(%step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.model = "target", llm.vocab = 4 : i64} {
  %w = llm.constant dense<1.0> : tensor<4x4xf32>
  %ids = kv.read_step %step "token" : tensor<?xi32>
  %h = llm.embedding %ids, %w : (tensor<?xi32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  // expected-error@+1 {{'func.call' op calls @target.layer1 where layer 0, @target.layer0, is due}}
  %y, %next = call @target.layer1(%h, %step, %cache) : (tensor<?x4xf32>, !kv.step, !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>)
  return %y, %next : tensor<?x4xf32>, !kv.cache<#g>
}
decode.loop @generate {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %l, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>)
  %ids = decode.sample %l, %sampling : tensor<?x4xf32> -> tensor<?xi32>
  decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  // expected-note@+1 {{the first}}
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  // expected-error@+1 {{layer 0 of group 0 is appended to a second time}}
  %again = kv.append %next, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  return %h, %again : tensor<?x4xf32>, !kv.cache<#g>
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  // expected-error@+1 {{attends to layer 0 of group 0 before this step's tokens are appended to it}}
  %y = kv.attend %h, %cache, %step {group = 0 : i64, layer = 0 : i64, num_heads = 1 : i64, scale = 0.5 : f64} : tensor<?x4xf32>, !kv.cache<#g> -> tensor<?x4xf32>
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  return %h, %cache : tensor<?x4xf32>, !kv.cache<#g>
}
// expected-error@+1 {{never appends to layer 0 of cache group 0}}
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  %s = llm.constant dense<[0, -1, 2]> : tensor<3xi64>
  // expected-error@+1 {{in a decoder only the first dimension, tokens, is dynamic}}
  %b = llm.reshape %h, %s : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<?x?x2xf32>
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  %x = llm.constant dense<1.0> : tensor<1x2x4xf32>
  // expected-error@+1 {{is left in a decoder, where kv.attend takes its place}}
  %b = llm.attention %x, %x, %x {causal, num_heads = 1 : i64, kv_heads = 1 : i64, scale = 0.5 : f64} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target.layer0(%h: tensor<?x4xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x4xf32>, !kv.cache<#g>) attributes {llm.layer = 0 : i64, llm.model = "target"} {
  // expected-note@+1 {{consumed here}}
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x4xf32>, tensor<?x4xf32>
  // expected-error@+1 {{reads a cache value after it was consumed}}
  %y = kv.attend %h, %cache, %step {group = 0 : i64, layer = 0 : i64, num_heads = 1 : i64, scale = 0.5 : f64} : tensor<?x4xf32>, !kv.cache<#g> -> tensor<?x4xf32>
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

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 4], token>, #kv.plane<"v", f32, [1, 4], token>], page_size = 16, keys_rotated = true, window = 0>
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
// expected-error@+1 {{is public beside a decoder and no part of it}}
func.func @main() {
  return
}
