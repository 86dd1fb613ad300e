// Each op, attribute, type and optional form, there and back: as it is printed
// and in the generic form.
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt %s --mlir-print-op-generic | llm-opt | FileCheck %s

// CHECK-LABEL: rt.program @empty
// CHECK-SAME: target "cpu" symbols [] {
rt.program @empty target "cpu" symbols [] {
}

// CHECK-LABEL: rt.program @target
// CHECK-SAME: target "cpu" symbols ["T", "R", "B", "C"] attributes {arena_bytes = #rt.expr<T * 4096 + 64>, row_invariant} {
rt.program @target target "cpu" symbols ["T", "R", "B", "C"] attributes {arena_bytes = #rt.expr<T * 4096 + 64>, row_invariant} {
  // CHECK-NEXT: rt.kernel @open family "elementwise" params {} {
  rt.kernel @open family "elementwise" params {} {
  // CHECK-NEXT: }
  }
  // CHECK-NEXT: rt.kernel @norm family "rms_norm" params {dim = 576 : i64, epsilon = 1.000000e-05 : f64} attributes {sym_visibility = "private"} {
  rt.kernel @norm family "rms_norm" params {dim = 576 : i64, epsilon = 1.000000e-05 : f64} attributes {sym_visibility = "private"} {
    // CHECK-NEXT: rt.variant "norm_v0" code @cpu
    rt.variant "norm_v0" code @cpu
  // CHECK-NEXT: }
  }
  // CHECK-NEXT: rt.kernel @linear family "linear" params {n = 8 : i64} {
  rt.kernel @linear family "linear" params {n = 8 : i64} {
    // CHECK-NEXT: rt.variant "linear_m1" code @gpu ranges [#rt.range<T, 1, 1>]
    rt.variant "linear_m1" code @gpu ranges [#rt.range<T, 1, 1>]
    // CHECK-NEXT: rt.variant "linear_m8" code @gpu ranges [#rt.range<T, 2, 8>] {block_threads = 128 : i64, registers = 40 : i64, shared_bytes = 1024 : i64, spill_bytes = 0 : i64}
    rt.variant "linear_m8" code @gpu ranges [#rt.range<T, 2, 8>] {block_threads = 128 : i64, registers = 40 : i64, shared_bytes = 1024 : i64, spill_bytes = 0 : i64}
    // CHECK-NEXT: rt.variant "linear_r" code @gpu ranges [#rt.range<T, 2, 8>, #rt.range<R, 0, 4>]
    rt.variant "linear_r" code @gpu ranges [#rt.range<T, 2, 8>, #rt.range<R, 0, 4>]
    // CHECK-NEXT: rt.variant "linear_mn" code @gpu ranges [#rt.range<T, 9, -1>]
    rt.variant "linear_mn" code @gpu ranges [#rt.range<T, 9, -1>]
  // CHECK-NEXT: }
  }
  // CHECK-NEXT: %0 = rt.buffer io "token"[<T>] : <i32>
  %0 = rt.buffer io "token" [#rt.expr<T>] : !rt.buffer<i32>
  // CHECK-NEXT: %1 = rt.buffer constant "model.norm"[<576>] {layout = {name = "rows"}} : <f32>
  %1 = rt.buffer constant "model.norm" [#rt.expr<576>] {layout = {name = "rows"}} : !rt.buffer<f32>
  // CHECK-NEXT: %2 = rt.buffer transient ""[<T * 576>] {offset = #rt.expr<T * 64 + 64>} : <bf16>
  %2 = rt.buffer transient "" [#rt.expr<T * 576>] {offset = #rt.expr<T * 64 + 64>} : !rt.buffer<bf16>
  // CHECK-NEXT: %3 = rt.buffer state "cache.0.0.k"[<C * 192>] {group = 0 : i64, layer = 0 : i64, plane = 1 : i64} : <f16>
  %3 = rt.buffer state "cache.0.0.k" [#rt.expr<C * 192>] {group = 0 : i64, layer = 0 : i64, plane = 1 : i64} : !rt.buffer<f16>
  // CHECK-NEXT: rt.dispatch @open grid <T> sizes [#rt.expr<T>, #rt.expr<B>] reads(%0, %1 : !rt.buffer<i32>, !rt.buffer<f32>) writes(%2, %3 : !rt.buffer<bf16>, !rt.buffer<f16>)
  rt.dispatch @open grid #rt.expr<T> sizes [#rt.expr<T>, #rt.expr<B>] reads(%0, %1 : !rt.buffer<i32>, !rt.buffer<f32>) writes(%2, %3 : !rt.buffer<bf16>, !rt.buffer<f16>)
  // CHECK-NEXT: rt.dispatch @norm grid <ceildiv(T, 16)> sizes [] writes(%2 : !rt.buffer<bf16>) {note = "kept"}
  rt.dispatch @norm grid #rt.expr<ceildiv(T, 16)> sizes [] writes(%2 : !rt.buffer<bf16>) {note = "kept"}
  // CHECK-NEXT: rt.dispatch concurrent @norm grid <T> sizes [] writes(%3 : !rt.buffer<f16>)
  rt.dispatch concurrent @norm grid #rt.expr<T> sizes [] writes(%3 : !rt.buffer<f16>)
}

// CHECK-LABEL: rt.iteration @generate
// CHECK-SAME: {
rt.iteration @generate {
  // CHECK-NEXT: rt.call @target
  rt.call @target
  // CHECK-NEXT: rt.sample
  rt.sample
}

// CHECK-LABEL: rt.iteration @speculate
// CHECK-SAME: {
rt.iteration @speculate {
  // CHECK-NEXT: rt.draft lookup 3 tokens 2 costs [1000, 1100, 1200]
  rt.draft lookup 3 tokens 2 costs [1000, 1100, 1200]
  // CHECK-NEXT: rt.call @target
  rt.call @target
  // CHECK-NEXT: rt.accept
  rt.accept
}

// CHECK-LABEL: rt.iteration @score
// CHECK-SAME: attributes {sym_visibility = "private"} {
rt.iteration @score attributes {sym_visibility = "private"} {
  // CHECK-NEXT: rt.call @target
  rt.call @target
  // CHECK-NEXT: rt.call @empty
  rt.call @empty
}

// CHECK: rt.host_function @main entry "main" code @cpu : (tensor<?x4xf32>) -> tensor<?x4xf32> {constants = ["w"], input_dims = {{\[\[}}"batch", ""]], input_names = ["x"], output_dims = {{\[\[}}"batch", ""]], output_names = ["y"]}
rt.host_function @main entry "main" code @cpu : (tensor<?x4xf32>) -> tensor<?x4xf32> {constants = ["w"], input_dims = [["batch", ""]], input_names = ["x"], output_dims = [["batch", ""]], output_names = ["y"]}

// CHECK: rt.host_function @nothing entry "nothing" code @cpu : () -> () {constants = [], input_names = [], output_names = []}
rt.host_function @nothing entry "nothing" code @cpu : () -> () {constants = [], input_names = [], output_names = []}

// CHECK-LABEL: func.func private @expressions
// CHECK-SAME: () attributes {a = #rt.expr<7>, b = #rt.expr<0>, c = #rt.expr<T + R + 1>, d = #rt.expr<T + (R + 1)>, e = #rt.expr<(T + 1) * R>, f = #rt.expr<T * (R * S)>, g = #rt.expr<T * R * S>, h = #rt.expr<ceildiv(T, 16) + max(R, 1) * min(P, C)>, i = #rt.expr<max(min(T, 4), ceildiv(R + 1, 2))>, k = #rt.expr<9223372036854775807>, l = #rt.expr<9223372036854775807 * 2>}
func.func private @expressions() attributes {a = #rt.expr<7>, b = #rt.expr<0>, c = #rt.expr<T + R + 1>, d = #rt.expr<T + (R + 1)>, e = #rt.expr<(T + 1) * R>, f = #rt.expr<T * (R * S)>, g = #rt.expr<T * R * S>, h = #rt.expr<ceildiv(T, 16) + max(R, 1) * min(P, C)>, i = #rt.expr<max(min(T, 4), ceildiv(R + 1, 2))>, k = #rt.expr<9223372036854775807>, l = #rt.expr<9223372036854775807 * 2>}
