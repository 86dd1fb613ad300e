// RUN: llm-opt %s --llm-plan-memory | FileCheck %s

// Two buffers that live together lie apart; a third one takes the place of the
// first, which has ended, and makes it as large as the larger of the two.
// CHECK-LABEL: rt.program @reuse
// CHECK-SAME: arena_bytes = #rt.expr<T * 192>
rt.program @reuse target "cpu" symbols ["T"] {
  rt.kernel @k family "f" params {} {
  }
  %in = rt.buffer io "token" [#rt.expr<T>] : !rt.buffer<i32>
  // CHECK: rt.buffer transient ""[<T * 16>] {offset = #rt.expr<0>}
  %a = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
  // CHECK: rt.buffer transient ""[<T * 32>] {offset = #rt.expr<T * 128>} : <f16>
  %b = rt.buffer transient "" [#rt.expr<T * 32>] : !rt.buffer<f16>
  // CHECK: rt.buffer transient ""[<T * 32>] {offset = #rt.expr<0>} : <f32>
  %c = rt.buffer transient "" [#rt.expr<T * 32>] : !rt.buffer<f32>
  // CHECK: rt.buffer transient ""[<T>] : <f32>
  %unused = rt.buffer transient "" [#rt.expr<T>] : !rt.buffer<f32>
  %out = rt.buffer io "logits" [#rt.expr<T * 32>] : !rt.buffer<f32>
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%in : !rt.buffer<i32>) writes(%a : !rt.buffer<f32>)
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%a : !rt.buffer<f32>) writes(%b : !rt.buffer<f16>)
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%b : !rt.buffer<f16>) writes(%c : !rt.buffer<f32>)
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%c : !rt.buffer<f32>) writes(%out : !rt.buffer<f32>)
}

// Buffers that grow with different symbols do not share; odd sizes are rounded
// up to 64 bytes.
// CHECK-LABEL: rt.program @symbols
// CHECK-SAME: arena_bytes = #rt.expr<ceildiv(T * 12, 64) * 64 + ceildiv(R * 12, 64) * 64>
rt.program @symbols target "cpu" symbols ["T", "R"] {
  rt.kernel @k family "f" params {} {
  }
  %in = rt.buffer io "token" [#rt.expr<T>] : !rt.buffer<i32>
  %a = rt.buffer transient "" [#rt.expr<T * 3>] : !rt.buffer<f32>
  %b = rt.buffer io "x" [#rt.expr<R * 3>] : !rt.buffer<f32>
  // CHECK: rt.buffer transient ""[<R * 3>] {offset = #rt.expr<ceildiv(T * 12, 64) * 64>}
  %c = rt.buffer transient "" [#rt.expr<R * 3>] : !rt.buffer<f32>
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%in : !rt.buffer<i32>) writes(%a : !rt.buffer<f32>)
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%a : !rt.buffer<f32>) writes(%b : !rt.buffer<f32>)
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%b : !rt.buffer<f32>) writes(%c : !rt.buffer<f32>)
}
