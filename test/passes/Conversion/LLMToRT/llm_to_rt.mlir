// RUN: llm-opt %s --llm-form-dispatches | FileCheck %s --check-prefix=FORM
// RUN: llm-opt %s --llm-form-dispatches --convert-llm-to-rt | FileCheck %s
// RUN: llm-opt %s --llm-form-dispatches --convert-llm-to-rt --llm-plan-memory | FileCheck %s --check-prefix=PLAN
// RUN: llm-opt %s --llm-quantize-kv-cache --llm-form-dispatches --convert-llm-to-rt | FileCheck %s --check-prefix=CODES
// RUN: llm-opt %s --llm-page-kv-cache=page-size=24 --llm-form-dispatches --convert-llm-to-rt | FileCheck %s --check-prefix=ROWS
// RUN: llm-opt %s --llm-form-dispatches --convert-llm-to-rt=targets=cuda | FileCheck %s --check-prefix=ROWS
// RUN: llm-opt %s --llm-speculate=tokens=2 --llm-form-dispatches --convert-llm-to-rt | FileCheck %s --check-prefix=SPECULATE

#span = #llm.span<"m.data", 0, 256, "0123456789abcdef">
#span32 = #llm.span<"m.data", 256, 32, "0123456789abcdee">
#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 8], token>, #kv.plane<"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>
llm.weight @embed : tensor<8x8xf32> = #llm.dense<#llm.component<"data", tensor<8x8xf32>, #span>>
llm.weight @wk : tensor<8x8xf32> = #llm.dense<#llm.component<"data", tensor<8x8xf32>, #span>>
llm.weight @norm : tensor<8xf32> = #llm.dense<#llm.component<"data", tensor<8xf32>, #span32>>

// The layer is inlined and its elementwise ops form one dispatch.
// FORM-LABEL: func.func @target(
// FORM-NOT: call
// FORM: llm.fused_elementwise {{.*}} ["in0", "neg"]
// FORM: llm.fused_elementwise {{.*}} ["in0", "silu", "in1", "mul", "in2", "add"]
// FORM-NOT: llm.silu
// FORM-NOT: func.func private

// CHECK-LABEL: rt.program @target target "cpu" symbols ["T", "S", "R", "P", "B", "C"]
// CHECK-SAME: row_invariant
// CHECK-DAG: rt.kernel @embedding_0 family "embedding" params {dim = 8 : i64, vocab = 8 : i64
// CHECK-DAG: rt.kernel @attention_0 family "attention" params {cache_type = f32, head_groups = 1 : i64, heads = 1 : i64, kv_heads = 1 : i64, page_size = 16 : i64, planes = "blocks", scale = 5.000000e-01 : f64, size = 8 : i64, softcap = 0.000000e+00 : f64, split = 8 : i64, tile = 32 : i64
// CHECK-DAG: rt.kernel @kv_append_0 family "kv_append" params {cache_type = f32, heads = 1 : i64, plane = "key_blocks", width = 8 : i64}
// CHECK-DAG: rt.kernel @kv_append_1 family "kv_append" params {cache_type = f32, heads = 1 : i64, plane = "value_blocks", width = 8 : i64}
// CHECK-DAG: rt.kernel @linear_1 family "linear" params {{.*}} rows = "R"
// CHECK-DAG: %[[TOKEN:.*]] = rt.buffer io "token"[<T>] : <i32>
// CHECK-DAG: rt.buffer state "cache.0.0.k"[<C * 8>] {group = 0 : i64, layer = 0 : i64, plane = 0 : i64} : <f32>
// CHECK-DAG: rt.buffer io "block_table.0"[<S * B>] : <i32>
// CHECK-DAG: %[[LOGITS:.*]] = rt.buffer io "logits"[<R * 8>] : <f32>
// CHECK: rt.dispatch @embedding_0 grid <T> sizes [#rt.expr<T>] reads(%[[TOKEN]]
// CHECK: rt.dispatch @rms_norm_0
// CHECK: rt.dispatch @kv_append_0
// CHECK: rt.dispatch @kv_append_1
// A tile of tokens is an item; parts of few tokens' slots are merged behind it.
// CHECK: rt.dispatch @attention_0 grid <max(ceildiv(T, 32), 32)> sizes [#rt.expr<T>, #rt.expr<B>, #rt.expr<S>
// CHECK: rt.dispatch @attention_merge_0 grid <min(T, 8)> sizes [#rt.expr<T>, #rt.expr<ceildiv(B * 16, 256)>]
// CHECK: rt.dispatch @gather_rows_0 grid <R>
// CHECK: rt.dispatch @linear_1 {{.*}} writes(%[[LOGITS]]
// CHECK: rt.iteration @generate
// CHECK-NEXT: rt.call @target
// CHECK-NEXT: rt.sample

// Pages of other sizes, and other targets, keep rows; one kernel stores both.
// ROWS-DAG: rt.kernel @kv_append_0 family "kv_append" params {cache_type = f32, width = 8 : i64}
// ROWS-DAG: rt.kernel @attention_0 family "attention" params {{{.*}}page_size = {{[0-9]+}} : i64, scale
// ROWS: rt.dispatch @kv_append_0
// ROWS: rt.dispatch @kv_append_0

// Codes and their scales are written, and read, together.
// CODES-DAG: rt.kernel @kv_append_0 family "kv_append" params {cache_type = i8, heads = 1 : i64, plane = "key_blocks", width = 8 : i64}
// CODES-DAG: %[[K:.*]] = rt.buffer state "cache.0.0.k"[<C * 8>] {group = 0 : i64, layer = 0 : i64, plane = 0 : i64} : <i8>
// CODES-DAG: %[[V:.*]] = rt.buffer state "cache.0.0.v"[<C * 8>] {group = 0 : i64, layer = 0 : i64, plane = 1 : i64} : <i8>
// CODES-DAG: %[[KS:.*]] = rt.buffer state "cache.0.0.k_scale"[<C>] {group = 0 : i64, layer = 0 : i64, plane = 2 : i64} : <f32>
// CODES-DAG: %[[VS:.*]] = rt.buffer state "cache.0.0.v_scale"[<C>] {group = 0 : i64, layer = 0 : i64, plane = 3 : i64} : <f32>
// CODES: rt.dispatch @kv_append_0 {{.*}} writes(%[[K]], %[[KS]] :
// CODES: rt.dispatch @kv_append_1 {{.*}} writes(%[[V]], %[[VS]] :
// CODES: rt.dispatch @attention_0 {{.*}} reads(%{{[^,]*}}, %[[K]], %[[V]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[KS]], %[[VS]] :

// Offsets are multiples of 64, the arena is their sum, parts are shared.
// PLAN: arena_bytes = #rt.expr<ceildiv(T * 32, 64) * 256 + ceildiv(min(T, 8) * ceildiv(B * 16, 256) * 40, 64) * 64 + ceildiv(R * 32, 64) * 64>
// PLAN: rt.buffer transient ""[<T * 8>] {offset = #rt.expr<0>}
// PLAN: rt.buffer transient ""[<T * 8>] {offset = #rt.expr<ceildiv(T * 32, 64) * 64>}
// PLAN: rt.buffer transient ""[<T * 8>] {offset = #rt.expr<ceildiv(T * 32, 64) * 128>}
// PLAN: rt.buffer transient ""[<T * 8>] {offset = #rt.expr<0>}

func.func private @target.layer0(%h: tensor<?x8xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>) attributes {llm.model = "target", llm.layer = 0 : i64} {
  %s = llm.get_weight @norm : tensor<8xf32>
  %w = llm.get_weight @wk : tensor<8x8xf32>
  %n = llm.rms_norm %h, %s {epsilon = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %k = llm.linear %n, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %next = kv.append %cache, %step, %k, %k {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x8xf32>, tensor<?x8xf32>
  %q = llm.linear %n, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %qq = llm.fused_elementwise %q ["in0", "neg"] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %act = llm.silu %qq : tensor<?x8xf32>
  %m = llm.mul %act, %k : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = llm.add %m, %h : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r, %next : tensor<?x8xf32>, !kv.cache<#g>
}
func.func @target(%step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>) attributes {llm.model = "target"} {
  %t = kv.read_step %step "token" : tensor<?xi32>
  %e = llm.get_weight @embed : tensor<8x8xf32>
  %h = llm.embedding %t, %e : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %h1, %c1 = call @target.layer0(%h, %step, %cache) : (tensor<?x8xf32>, !kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %two = llm.get_weight @wk : tensor<8x8xf32>
  %a = kv.attend %h1, %c1, %step {group = 0 : i64, layer = 0 : i64, num_heads = 1 : i64, scale = 0.5 : f64} : tensor<?x8xf32>, !kv.cache<#g> -> tensor<?x8xf32>
  %row = kv.read_step %step "logit_row" : tensor<?xi32>
  %x = llm.gather %a, %row {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  %l = llm.linear %x, %two : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %l, %c1 : tensor<?x8xf32>, !kv.cache<#g>
}
// SPECULATE: rt.iteration @generate {
// SPECULATE-NEXT: rt.draft lookup 3 tokens 2 costs [1000, 1100, 1200]
// SPECULATE-NEXT: rt.call @target
// SPECULATE-NEXT: rt.accept
// SPECULATE-NEXT: }
decode.loop @generate {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %logits, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids = decode.sample %logits, %sampling : tensor<?x8xf32> -> tensor<?xi32>
  decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
}
