// RUN: llm-opt %s --llm-form-phases | FileCheck %s
// RUN: llm-opt %s --llm-form-phases --llm-plan-memory | FileCheck %s --check-prefix=PLAN

// The three products read the same rows: they share the first phase, and so do
// the ropes of two of them and the third one's append. What reads a result
// stays behind it, in the order of the program.
// CHECK-LABEL: rt.program @layer
// CHECK: rt.dispatch @linear {{.*}}reads(%[[X:.*]], %[[WQ:.*]] : {{.*}}writes(%[[Q:[a-z0-9]+]] :
// CHECK-NEXT: rt.dispatch concurrent @linear {{.*}}writes(%[[K:[a-z0-9]+]] :
// CHECK-NEXT: rt.dispatch concurrent @linear {{.*}}writes(%[[V:[a-z0-9]+]] :
// CHECK-NEXT: rt.dispatch @rope {{.*}}reads(%[[Q]] :
// CHECK-NEXT: rt.dispatch concurrent @rope {{.*}}reads(%[[K]] : {{.*}}writes(%[[R:[a-z0-9]+]] :
// CHECK-NEXT: rt.dispatch concurrent @append {{.*}}reads(%[[V]] :
// CHECK-NEXT: rt.dispatch @append {{.*}}reads(%[[R]] :
// CHECK-NOT: concurrent

// The buffers of a phase do not share memory.
// PLAN-LABEL: rt.program @layer
// PLAN-SAME: arena_bytes = #rt.expr<T * 320>
// PLAN-COUNT-5: offset = #rt.expr<{{(T \* (64|128|192|256))|0}}>
rt.program @layer target "cpu" symbols ["T"] {
  rt.kernel @linear family "f" params {} {
  }
  rt.kernel @rope family "f" params {} {
  }
  rt.kernel @append family "f" params {} {
  }
  %x = rt.buffer io "x" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %w = rt.buffer constant "w" [#rt.expr<256>] : !rt.buffer<f32>
  %q = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %k = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %v = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %qr = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %kr = rt.buffer transient "" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %ks = rt.buffer io "k" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %vs = rt.buffer io "v" [#rt.expr<T * 16>] : !rt.buffer<f32>
  %out = rt.buffer io "out" [#rt.expr<T * 16>] : !rt.buffer<f32>
  rt.dispatch @linear grid #rt.expr<T> sizes [] reads(%x, %w : !rt.buffer<f32>, !rt.buffer<f32>) writes(%q : !rt.buffer<f32>)
  rt.dispatch @rope grid #rt.expr<T> sizes [] reads(%q : !rt.buffer<f32>) writes(%qr : !rt.buffer<f32>)
  rt.dispatch @linear grid #rt.expr<T> sizes [] reads(%x, %w : !rt.buffer<f32>, !rt.buffer<f32>) writes(%k : !rt.buffer<f32>)
  rt.dispatch @linear grid #rt.expr<T> sizes [] reads(%x, %w : !rt.buffer<f32>, !rt.buffer<f32>) writes(%v : !rt.buffer<f32>)
  rt.dispatch @rope grid #rt.expr<T> sizes [] reads(%k : !rt.buffer<f32>) writes(%kr : !rt.buffer<f32>)
  rt.dispatch @append grid #rt.expr<T> sizes [] reads(%kr : !rt.buffer<f32>) writes(%ks : !rt.buffer<f32>)
  rt.dispatch @append grid #rt.expr<T> sizes [] reads(%v : !rt.buffer<f32>) writes(%vs : !rt.buffer<f32>)
  rt.dispatch @append grid #rt.expr<T> sizes [] reads(%qr, %ks, %vs : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>) writes(%out : !rt.buffer<f32>)
}

// A buffer that is written again waits for those that read it.
// CHECK-LABEL: rt.program @hazards
// CHECK: rt.dispatch @k {{.*}}writes(%[[A:[a-z0-9]+]] :
// CHECK-NEXT: rt.dispatch @k {{.*}}reads(%[[A]] :
// CHECK-NEXT: rt.dispatch @k {{.*}}writes(%[[A]] :
// CHECK-NEXT: }
rt.program @hazards target "cpu" symbols ["T"] {
  rt.kernel @k family "f" params {} {
  }
  %x = rt.buffer io "x" [#rt.expr<T>] : !rt.buffer<f32>
  %a = rt.buffer transient "" [#rt.expr<T>] : !rt.buffer<f32>
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%x : !rt.buffer<f32>) writes(%a : !rt.buffer<f32>)
  // Buffers may stand between dispatches.
  %b = rt.buffer io "b" [#rt.expr<T>] : !rt.buffer<f32>
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%a : !rt.buffer<f32>) writes(%b : !rt.buffer<f32>)
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%x : !rt.buffer<f32>) writes(%a : !rt.buffer<f32>)
}
