// RUN: llm-opt %s --split-input-file --verify-diagnostics

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
// expected-error@+1 {{'decode.loop' op the block takes a !kv.step, a !kv.cache and a !decode.sampling}}
decode.loop @few_arguments {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>):
  %ids = kv.read_step %step "token" : tensor<?xi32>
  decode.yield %ids, %cache : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
// expected-error@+1 {{'decode.loop' op the block takes a !kv.step, a !kv.cache and a !decode.sampling}}
decode.loop @no_step {
^bb0(%step: i32, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %ids = llm.constant dense<0> : tensor<1xi32>
  decode.yield %ids, %cache : tensor<1xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
// expected-error@+1 {{'decode.loop' op the block takes a !kv.step, a !kv.cache and a !decode.sampling}}
decode.loop @no_cache {
^bb0(%step: !kv.step, %cache: i32, %sampling: !decode.sampling):
  llvm.unreachable
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
// expected-error@+1 {{'decode.loop' op the block takes a !kv.step, a !kv.cache and a !decode.sampling}}
decode.loop @no_sampling {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: i32):
  %ids = kv.read_step %step "token" : tensor<?xi32>
  decode.yield %ids, %cache : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
// expected-error@+1 {{'decode.loop' op region #0 ('body') failed to verify constraint: region with 1 blocks}}
"decode.loop"() <{sym_name = "no_block"}> ({
}) : () -> ()

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
// expected-error@+1 {{'decode.loop' op the body ends in decode.yield}}
decode.loop @no_end {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  llvm.unreachable
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
// expected-error@+1 {{'decode.loop' op expects a non-empty block}}
decode.loop @empty {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
#h = #kv.group<layers = 2, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @make() -> !kv.cache<#h>
decode.loop @other_cache {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %ids = kv.read_step %step "token" : tensor<?xi32>
  %other = func.call @make() : () -> !kv.cache<#h>
  // expected-error@+1 {{'decode.yield' op yields a cache of another type than the loop's}}
  decode.yield %ids, %other : tensor<?xi32>, !kv.cache<#h>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
decode.loop @consumed_twice {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %ids = kv.read_step %step "token" : tensor<?xi32>
  // expected-note@+1 {{the other consumer}}
  %a = kv.rollback %cache, %ids : !kv.cache<#g>, tensor<?xi32>
  // expected-error@+1 {{'kv.rollback' op consumes a cache value that is consumed already; only kv.fork shares a cache}}
  %b = kv.rollback %cache, %ids : !kv.cache<#g>, tensor<?xi32>
  decode.yield %ids, %b : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @query() -> tensor<?x8xf32>
decode.loop @read_late {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %ids = kv.read_step %step "token" : tensor<?xi32>
  %q = func.call @query() : () -> tensor<?x8xf32>
  // expected-note@+1 {{consumed here}}
  %a = kv.rollback %cache, %ids : !kv.cache<#g>, tensor<?xi32>
  // expected-error@+1 {{'kv.attend' op reads a cache value after it was consumed}}
  %y = kv.attend %q, %cache, %step {group = 0 : i64, layer = 0 : i64, num_heads = 1 : i64, scale = 1.0 : f64} : tensor<?x8xf32>, !kv.cache<#g> -> tensor<?x8xf32>
  decode.yield %ids, %a : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
decode.loop @bare_yield {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  // expected-error@+1 {{expected 2 operands, but found 0}}
  "decode.yield"() : () -> ()
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func @yield_outside(%ids: tensor<?xi32>, %cache: !kv.cache<#g>) {
  // expected-error@+1 {{'decode.yield' op expects parent op 'decode.loop'}}
  decode.yield %ids, %cache : tensor<?xi32>, !kv.cache<#g>
}

// -----

func.func @sample_logits(%l: tensor<512xf32>, %s: !decode.sampling) {
  // expected-error@+1 {{'decode.sample' op logits are [rows, vocabulary], ids [rows]}}
  %0 = decode.sample %l, %s : tensor<512xf32> -> tensor<?xi32>
  return
}

// -----

func.func @sample_ids(%l: tensor<?x512xf32>, %s: !decode.sampling) {
  // expected-error@+1 {{'decode.sample' op logits are [rows, vocabulary], ids [rows]}}
  %0 = decode.sample %l, %s : tensor<?x512xf32> -> tensor<?x1xi32>
  return
}

// -----

func.func @sample_rows(%l: tensor<4x512xf32>, %s: !decode.sampling) {
  // expected-error@+1 {{'decode.sample' op picks 3 tokens from 4 rows of logits}}
  %0 = decode.sample %l, %s : tensor<4x512xf32> -> tensor<3xi32>
  return
}

// -----

// expected-error@+1 {{drafts have 1 to 16 tokens, not 0}}
func.func private @no_drafts(!decode.drafts<0>)

// -----

// expected-error@+1 {{drafts have 1 to 16 tokens, not 17}}
func.func private @many_drafts(!decode.drafts<17>)

// -----

func.func @lookup_none(%step: !kv.step) {
  // expected-error@+1 {{'decode.draft' op looks up 1 to 16 tokens, not 0}}
  %0 = decode.draft %step lookup 0 costs [1000, 1100] : !decode.drafts<1>
  return
}

// -----

func.func @few_costs(%step: !kv.step) {
  // expected-error@+1 {{'decode.draft' op has costs for 1 tokens and drafts 2}}
  %0 = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<2>
  return
}

// -----

func.func @first_cost(%step: !kv.step) {
  // expected-error@+1 {{'decode.draft' op costs ascend from 1000, to 1000000 at most}}
  %0 = decode.draft %step lookup 3 costs [900, 1100] : !decode.drafts<1>
  return
}

// -----

func.func @costs_descend(%step: !kv.step) {
  // expected-error@+1 {{'decode.draft' op costs ascend from 1000, to 1000000 at most}}
  %0 = decode.draft %step lookup 3 costs [1000, 1100, 1050] : !decode.drafts<2>
  return
}

// -----

func.func @cost_endless(%step: !kv.step) {
  // expected-error@+1 {{'decode.draft' op costs ascend from 1000, to 1000000 at most}}
  %0 = decode.draft %step lookup 3 costs [1000, 1000001] : !decode.drafts<1>
  return
}

// -----

func.func @accept_logits(%l: tensor<512xf32>, %d: !decode.drafts<2>, %s: !decode.sampling) {
  // expected-error@+1 {{'decode.accept' op logits are [rows, vocabulary], ids [tokens], lengths [sequences]}}
  %0, %1 = decode.accept %l, %d, %s : tensor<512xf32>, !decode.drafts<2> -> tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @accept_lengths(%l: tensor<?x512xf32>, %d: !decode.drafts<2>, %s: !decode.sampling) {
  // expected-error@+1 {{'decode.accept' op logits are [rows, vocabulary], ids [tokens], lengths [sequences]}}
  %0, %1 = decode.accept %l, %d, %s : tensor<?x512xf32>, !decode.drafts<2> -> tensor<?xi32>, tensor<?x1xi32>
  return
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
// expected-error@+1 {{'decode.loop' op verifies and accepts the same drafts}}
decode.loop @never_accepted {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %drafts = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<1>
  %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<1>
  %logits, %next = func.call @target(%longer, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids = decode.sample %logits, %sampling : tensor<?x8xf32> -> tensor<?xi32>
  decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
// expected-error@+1 {{'decode.loop' op verifies and accepts the same drafts}}
decode.loop @other_drafts {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %drafts = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<1>
  %other = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<1>
  %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<1>
  %logits, %next = func.call @target(%longer, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids, %length = decode.accept %logits, %other, %sampling : tensor<?x8xf32>, !decode.drafts<1> -> tensor<?xi32>, tensor<?xi32>
  %kept = kv.rollback %next, %length : !kv.cache<#g>, tensor<?xi32>
  decode.yield %ids, %kept : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
decode.loop @verified_twice {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %drafts = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<1>
  %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<1>
  // expected-error@+1 {{'decode.verify' op comes twice in a loop}}
  %more = decode.verify %step, %drafts : !kv.step, !decode.drafts<1>
  %logits, %next = func.call @target(%longer, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids, %length = decode.accept %logits, %drafts, %sampling : tensor<?x8xf32>, !decode.drafts<1> -> tensor<?xi32>, tensor<?xi32>
  %kept = kv.rollback %next, %length : !kv.cache<#g>, tensor<?xi32>
  decode.yield %ids, %kept : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
decode.loop @accepted_twice {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %drafts = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<1>
  %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<1>
  %logits, %next = func.call @target(%longer, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids, %length = decode.accept %logits, %drafts, %sampling : tensor<?x8xf32>, !decode.drafts<1> -> tensor<?xi32>, tensor<?xi32>
  // expected-error@+1 {{'decode.accept' op comes twice in a loop}}
  %more, %other = decode.accept %logits, %drafts, %sampling : tensor<?x8xf32>, !decode.drafts<1> -> tensor<?xi32>, tensor<?xi32>
  %kept = kv.rollback %next, %length : !kv.cache<#g>, tensor<?xi32>
  decode.yield %ids, %kept : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
decode.loop @not_computed {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %drafts = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<1>
  %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<1>
  %logits, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  // expected-error@+1 {{'decode.accept' op takes logits of the step that decode.verify gives}}
  %ids, %length = decode.accept %logits, %drafts, %sampling : tensor<?x8xf32>, !decode.drafts<1> -> tensor<?xi32>, tensor<?xi32>
  %kept = kv.rollback %next, %length : !kv.cache<#g>, tensor<?xi32>
  decode.yield %ids, %kept : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
decode.loop @keeps_drafts {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %drafts = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<1>
  %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<1>
  %logits, %next = func.call @target(%longer, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids, %length = decode.accept %logits, %drafts, %sampling : tensor<?x8xf32>, !decode.drafts<1> -> tensor<?xi32>, tensor<?xi32>
  // expected-error@+1 {{'decode.yield' op yields the tokens of decode.accept, and the model's cache rolled back to its lengths}}
  decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
decode.loop @other_lengths {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %drafts = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<1>
  %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<1>
  %logits, %next = func.call @target(%longer, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids, %length = decode.accept %logits, %drafts, %sampling : tensor<?x8xf32>, !decode.drafts<1> -> tensor<?xi32>, tensor<?xi32>
  %kept = kv.rollback %next, %ids : !kv.cache<#g>, tensor<?xi32>
  // expected-error@+1 {{'decode.yield' op yields the tokens of decode.accept, and the model's cache rolled back to its lengths}}
  decode.yield %ids, %kept : tensor<?xi32>, !kv.cache<#g>
}

// -----

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
decode.loop @yields_lengths {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %drafts = decode.draft %step lookup 3 costs [1000, 1100] : !decode.drafts<1>
  %longer = decode.verify %step, %drafts : !kv.step, !decode.drafts<1>
  %logits, %next = func.call @target(%longer, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids, %length = decode.accept %logits, %drafts, %sampling : tensor<?x8xf32>, !decode.drafts<1> -> tensor<?xi32>, tensor<?xi32>
  %kept = kv.rollback %next, %length : !kv.cache<#g>, tensor<?xi32>
  // expected-error@+1 {{'decode.yield' op yields the tokens of decode.accept, and the model's cache rolled back to its lengths}}
  decode.yield %length, %kept : tensor<?xi32>, !kv.cache<#g>
}
