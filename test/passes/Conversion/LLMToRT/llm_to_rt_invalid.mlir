// RUN: llm-opt %s --convert-llm-to-rt --split-input-file --verify-diagnostics

func.func @model(%step: !kv.step) -> tensor<?x8xf32> attributes {llm.model = "target"} {
  %t = kv.read_step %step "token" : tensor<?xi32>
  // expected-error@+1 {{has no kernel family in the decoder form}}
  %s = llm.cast %t : tensor<?xi32> -> tensor<?xf32>
  %w = llm.constant dense<1.0> : tensor<8xf32>
  %y = llm.unsqueeze %s axes [1] : tensor<?xf32> -> tensor<?x1xf32>
  %z = llm.mul %y, %w : (tensor<?x1xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %z : tensor<?x8xf32>
}

// -----

llm.weight @w : tensor<8x8xf32> = #llm.dense<#llm.component<"data", tensor<8x8xf32>, dense<1.0> : tensor<8x8xf32>>>
func.func @model(%step: !kv.step, %x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {llm.model = "target"} {
  %w = llm.get_weight @w : tensor<8x8xf32>
  // expected-error@+1 {{operand of type 'tensor<?x8xf32>' has no rows in the decoder form}}
  %y = llm.linear %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

llm.weight @w : tensor<8x8xf32> = #llm.dense<#llm.component<"data", tensor<8x8xf32>, dense<1.0> : tensor<8x8xf32>>>
func.func @model(%step: !kv.step) -> tensor<?x8xf32> attributes {llm.model = "target"} {
  %t = kv.read_step %step "token" : tensor<?xi32>
  %w = llm.get_weight @w : tensor<8x8xf32>
  %h = llm.embedding %t, %w : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %s = llm.constant dense<1.0> : tensor<8xf32>
  // expected-error@+1 {{needs a weight, not a computed tensor of type 'tensor<8xf32>'}}
  %y = llm.rms_norm %h, %s {epsilon = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

func.func @model(%step: !kv.step) -> tensor<?x8xf32> attributes {llm.model = "target"} {
  // expected-error@+1 {{step array 'q_begin' has no rows of tokens or logits}}
  %t = kv.read_step %step "q_begin" : tensor<?xi32>
  %w = llm.constant dense<1.0> : tensor<8x8xf32>
  %h = llm.embedding %t, %w : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %h : tensor<?x8xf32>
}

// -----

func.func @model(%step: !kv.step) -> tensor<?x8xf32> attributes {llm.model = "target"} {
  %h = kv.supply %step "hidden" : tensor<?x8xf32>
  // expected-note@+1 {{the other one}}
  kv.observe %step, %h "x" : tensor<?x8xf32>
  // expected-error@+1 {{'kv.observe' op has the name 'x' of another one}}
  kv.observe %step, %h "x" : tensor<?x8xf32>
  return %h : tensor<?x8xf32>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
decode.loop @forgets {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %logits, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids = decode.sample %logits, %sampling : tensor<?x8xf32> -> tensor<?xi32>
  // expected-error@+1 {{'kv.rollback' op has no place in an rt.iteration}}
  %kept = kv.rollback %next, %ids : !kv.cache<#g>, tensor<?xi32>
  decode.yield %ids, %kept : tensor<?xi32>, !kv.cache<#g>
}
