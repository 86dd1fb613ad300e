// RUN: llm-opt %s --llm-speculate --split-input-file --verify-diagnostics
// RUN: not llm-opt %s --split-input-file --llm-speculate=lookup=0 2>&1 | FileCheck %s --check-prefix=LOOKUP
// RUN: not llm-opt %s --split-input-file --llm-speculate=lookup=17 2>&1 | FileCheck %s --check-prefix=LOOKUP
// RUN: not llm-opt %s --split-input-file --llm-speculate=tokens=0 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: not llm-opt %s --split-input-file --llm-speculate=tokens=17 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: not llm-opt %s --split-input-file --llm-speculate=token-cost=-1 2>&1 | FileCheck %s --check-prefix=COST
// RUN: not llm-opt %s --split-input-file --llm-speculate=token-cost=1001 2>&1 | FileCheck %s --check-prefix=COST
// RUN: not llm-opt %s --split-input-file --llm-speculate=costs=1000,1100 2>&1 | FileCheck %s --check-prefix=COSTS
// RUN: not llm-opt %s --split-input-file --llm-speculate="tokens=1 costs=900,1100" 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: not llm-opt %s --split-input-file --llm-speculate="tokens=2 costs=1000,1100,1050" 2>&1 | FileCheck %s --check-prefix=DESCEND
// LOOKUP: error: lookup must be 1 to 16 tokens, got
// TOKENS: error: tokens must be 1 to 16, got
// COST: error: token-cost must be 0 to 1000, got
// COSTS: error: costs must be 5 numbers, ascending from 1000 to 1000000 at most
// FIRST: error: costs must be 2 numbers, ascending from 1000 to 1000000 at most
// DESCEND: error: costs must be 3 numbers, ascending from 1000 to 1000000 at most

// expected-error@+1 {{no decode.loop can speculate: the module has none}}
module {
}

// -----

// State that a sequence has as a whole is overwritten by the next token.
#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 8], token>, #kv.plane<"state", f32, [8], sequence>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
// expected-error@+1 {{cannot speculate: cache plane 'state' is not kept token by token, so that rejected tokens cannot be dropped from it}}
decode.loop @generate {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %logits, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids = decode.sample %logits, %sampling : tensor<?x8xf32> -> tensor<?xi32>
  decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
decode.loop @already {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  // expected-error@+1 {{keeps the loop from speculating: it must call one model and sample once}}
  %drafts = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<1>
  %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<1>
  %logits, %next = func.call @target(%longer, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids, %length = decode.accept %logits, %drafts, %sampling : tensor<?x8xf32>, !decode.drafts<1> -> tensor<?xi32>, tensor<?xi32>
  %kept = kv.rollback %next, %length : !kv.cache<#g>, tensor<?xi32>
  decode.yield %ids, %kept : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
decode.loop @twice {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %logits, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  // expected-error@+1 {{keeps the loop from speculating: it must call one model and sample once}}
  %more, %after = func.call @target(%step, %next) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids = decode.sample %more, %sampling : tensor<?x8xf32> -> tensor<?xi32>
  decode.yield %ids, %after : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, tensor<?xi32>, !kv.cache<#g>)
// expected-error@+1 {{cannot speculate: it must sample from the logits of the model that it calls, and yield these tokens and the model's cache}}
decode.loop @other_tokens {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %logits, %other, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, tensor<?xi32>, !kv.cache<#g>)
  %ids = decode.sample %logits, %sampling : tensor<?x8xf32> -> tensor<?xi32>
  decode.yield %other, %next : tensor<?xi32>, !kv.cache<#g>
}
