// RUN: llm-opt %s --llm-form-dispatches --convert-llm-to-rt --llm-fuse-dispatches --split-input-file | FileCheck %s

llm.weight @w : tensor<8x8xf32> = #llm.dense<#llm.component<"data", tensor<8x8xf32>, dense<1.0> : tensor<8x8xf32>>>

// The observed tensor's own buffer is handed out, and nothing is fused into it; a
// second observation, and one of the logits, is a copy.
// CHECK-LABEL: rt.program @target
// CHECK-DAG: %[[SUM:.*]] = rt.buffer io "tap.sum"[<T * 8>] : <f32>
// CHECK-DAG: %[[AGAIN:.*]] = rt.buffer io "tap.again"[<T * 8>] : <f32>
// CHECK-DAG: %[[LOGITS:.*]] = rt.buffer io "logits"[<R * 8>] : <f32>
// CHECK-DAG: %[[ROWS:.*]] = rt.buffer io "tap.rows"[<R * 8>] : <f32>
// CHECK: rt.dispatch @elementwise_0 {{.*}} writes(%[[SUM]]
// CHECK: rt.dispatch @columns_0 grid <T> sizes [#rt.expr<T>] reads(%[[SUM]] {{.*}} writes(%[[AGAIN]]
// CHECK: rt.dispatch @columns_0 grid <R> sizes [#rt.expr<R>] reads(%[[LOGITS]] {{.*}} writes(%[[ROWS]]
func.func @target(%step: !kv.step) -> tensor<?x8xf32> attributes {llm.model = "target"} {
  %t = kv.read_step %step "token" : tensor<?xi32>
  %w = llm.get_weight @w : tensor<8x8xf32>
  %h = llm.embedding %t, %w : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %s = llm.silu %h : tensor<?x8xf32>
  kv.observe %step, %s "sum" : tensor<?x8xf32>
  kv.observe %step, %s "again" : tensor<?x8xf32>
  %n = llm.neg %s : tensor<?x8xf32>
  %row = kv.read_step %step "logit_row" : tensor<?xi32>
  %x = llm.gather %n, %row {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  %l = llm.linear %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  kv.observe %step, %l "rows" : tensor<?x8xf32>
  return %l : tensor<?x8xf32>
}

// -----

// A part takes rows in, and what it returns are no logits.
// CHECK-LABEL: rt.program @target
// CHECK-NOT: "logits"
// CHECK: %[[IN:.*]] = rt.buffer io "feed.hidden"[<T * 8>] : <f32>
// CHECK: %[[OUT:.*]] = rt.buffer io "tap.hidden"[<T * 8>] : <f32>
// CHECK: rt.dispatch @elementwise_0 {{.*}} reads(%[[IN]] {{.*}} writes(%[[OUT]]
// CHECK: rt.iteration @part {
// CHECK-NEXT: rt.call @target
// CHECK-NEXT: }
func.func @target(%step: !kv.step) -> tensor<?x8xf32> attributes {llm.model = "target", llm.part} {
  %h = kv.supply %step "hidden" : tensor<?x8xf32>
  %s = llm.silu %h : tensor<?x8xf32>
  kv.observe %step, %s "hidden" : tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}
