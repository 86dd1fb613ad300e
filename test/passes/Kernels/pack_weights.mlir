// RUN: llm-opt %s --llm-pack-weights | FileCheck %s --enable-var-scope
llm.weight @emb : tensor<5x8xf32> = #llm.dense<#llm.component<"data", tensor<5x8xf32>, dense<1.0> : tensor<5x8xf32>>>
llm.weight @w : tensor<8x5xf16> = #llm.dense<#llm.component<"data", tensor<8x5xf16>, dense<1.0> : tensor<8x5xf16>>>
llm.weight @q : tensor<40x40xf32> = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<40x32xui8>, dense<1> : tensor<40x32xui8>>,
      scales = #llm.component<"scales", tensor<40x2xf16>, dense<0.5> : tensor<40x2xf16>>>
llm.weight @f : tensor<40x72xf32> = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<40x64xui8>, dense<1> : tensor<40x64xui8>>,
      scales = #llm.component<"scales", tensor<40x2xf32>, dense<0.5> : tensor<40x2xf32>>, factor_group = 16, factors = #llm.component<"factors", tensor<40x8xi8>, dense<-15> : tensor<40x8xi8>>>
llm.weight @norm : tensor<8xf16> = #llm.dense<#llm.component<"data", tensor<8xf16>, dense<1.0> : tensor<8xf16>>>
rt.program @target target "cpu" symbols ["T", "R"] {
  rt.kernel @emb_k family "embedding" params {vocab = 5 : i64, dim = 8 : i64} { }
  rt.kernel @lin family "linear" params {n = 5 : i64, k = 8 : i64, bias = false, accuracy_level = 0 : i64} { }
  rt.kernel @lint family "linear" params {n = 5 : i64, k = 8 : i64, bias = false, transposed = true} { }
  rt.kernel @norm_k family "rms_norm" params {dim = 8 : i64, epsilon = 1.0e-5 : f64} { }
  rt.kernel @linq family "linear" params {n = 40 : i64, k = 40 : i64, accuracy_level = 4 : i64} { }
  rt.kernel @linf family "linear" params {n = 40 : i64, k = 72 : i64, accuracy_level = 4 : i64, activation_group = 128 : i64} { }
  rt.kernel @wide family "linear" params {n = 40 : i64, k = 40 : i64, accuracy_level = 4 : i64, activation_group = 100 : i64} { }
  %t = rt.buffer io "token" [#rt.expr<T>] : !rt.buffer<i32>
  %emb = rt.buffer constant "emb" [#rt.expr<40>] : !rt.buffer<f32>
  %w = rt.buffer constant "w" [#rt.expr<40>] : !rt.buffer<f16>
  %q = rt.buffer constant "q" [#rt.expr<1600>] : !rt.buffer<f32>
  %f = rt.buffer constant "f" [#rt.expr<2880>] : !rt.buffer<f32>
  %af = rt.buffer transient "" [#rt.expr<T * 72>] : !rt.buffer<f32>
  %n = rt.buffer constant "norm" [#rt.expr<8>] : !rt.buffer<f16>
  %x = rt.buffer transient "" [#rt.expr<T * 8>] : !rt.buffer<f32>
  %x2 = rt.buffer transient "" [#rt.expr<T * 8>] : !rt.buffer<f32>
  %y = rt.buffer transient "" [#rt.expr<T * 5>] : !rt.buffer<f32>
  %a = rt.buffer transient "" [#rt.expr<T * 40>] : !rt.buffer<f32>
  %b = rt.buffer transient "" [#rt.expr<T * 40>] : !rt.buffer<f32>
  rt.dispatch @emb_k grid #rt.expr<T> sizes [#rt.expr<T>] reads(%t, %emb : !rt.buffer<i32>, !rt.buffer<f32>) writes(%x : !rt.buffer<f32>)
  rt.dispatch @norm_k grid #rt.expr<T> sizes [#rt.expr<T>] reads(%x, %n : !rt.buffer<f32>, !rt.buffer<f16>) writes(%x2 : !rt.buffer<f32>)
  rt.dispatch @lin grid #rt.expr<1> sizes [#rt.expr<T>] reads(%x2, %emb : !rt.buffer<f32>, !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
  rt.dispatch @lint grid #rt.expr<1> sizes [#rt.expr<T>] reads(%x2, %w : !rt.buffer<f32>, !rt.buffer<f16>) writes(%y : !rt.buffer<f32>)
  rt.dispatch @linq grid #rt.expr<1> sizes [#rt.expr<T>] reads(%a, %q : !rt.buffer<f32>, !rt.buffer<f32>) writes(%b : !rt.buffer<f32>)
  rt.dispatch @linq grid #rt.expr<1> sizes [#rt.expr<T>] reads(%a, %q : !rt.buffer<f32>, !rt.buffer<f32>) writes(%b : !rt.buffer<f32>)
  rt.dispatch @wide grid #rt.expr<1> sizes [#rt.expr<T>] reads(%a, %q : !rt.buffer<f32>, !rt.buffer<f32>) writes(%b : !rt.buffer<f32>)
  rt.dispatch @linf grid #rt.expr<1> sizes [#rt.expr<T>] reads(%af, %f : !rt.buffer<f32>, !rt.buffer<f32>) writes(%b : !rt.buffer<f32>)
}
// A table that a linear reads too lies in its panels; the bytes of the symbol
// are counted in whole panels of 32 outputs.
// A scale is for whole groups of the weight.
// CHECK-DAG: rt.kernel @wide family "linear" params {accuracy_level = 4 : i64, activation_group = 96 : i64
// CHECK-DAG: rt.kernel @[[WIDE:quantize_rows_.*]] family "quantize_rows" params {group_size = 32 : i64, k = 40 : i64, scale_group = 96 : i64, zero = 8 : i64}
// Sums for each part of a group, scales for whole ones.
// CHECK-DAG: rt.kernel @[[PARTS:quantize_rows_.*]] family "quantize_rows" params {group_size = 16 : i64, k = 72 : i64, scale_group = 128 : i64, zero = 8 : i64}
// CHECK-DAG: rt.kernel @emb_k {{.*}}layout = {k = 8 : i64, kind = "panel", n = 5 : i64, type = f32}
// CHECK-DAG: rt.kernel @lin family "linear" params {accuracy_level = 0 : i64, bias = false, k = 8 : i64, layout = {k = 8 : i64, kind = "panel", n = 5 : i64, type = f32}, n = 5 : i64}
// CHECK: %[[EMB:.*]] = rt.buffer constant "emb"[<256>] {layout = {k = 8 : i64, kind = "panel", n = 5 : i64, type = f32}} : <f32>
// `transposed` is how the symbol lies; the kernel reads panels either way.
// CHECK: rt.buffer constant "w"[<256>] {layout = {k = 8 : i64, kind = "panel", n = 5 : i64, transposed = true, type = f16}} : <f16>
// 2 panels, padded to 64 bytes, of a group of 32 (512 + 64 bytes) and one of 8
// (128 + 64).
// CHECK: rt.buffer constant "q"[<1536>] {layout = {bits = 4 : i64, group_size = 32 : i64, k = 40 : i64, kind = "panel_affine", n = 40 : i64, scale_type = f16}} : <i8>
// Factors: 2 panels of a group of 64 (1024 + 128 bytes) and one of 8 (128 + 128).
// CHECK: rt.buffer constant "f"[<2816>] {layout = {bits = 4 : i64, factor_group = 16 : i64, group_size = 64 : i64, k = 72 : i64, kind = "panel_affine", n = 40 : i64, scale_type = f32}} : <i8>
// CHECK: rt.buffer constant "norm"[<8>] {layout = {k = 8 : i64, kind = "rows", n = 1 : i64, type = f32}} : <f32>
// CHECK: rt.dispatch @emb_k {{.*}}reads(%{{.*}}, %[[EMB]]
// CHECK: rt.dispatch @lin grid <1> {{.*}}reads(%{{.*}}, %[[EMB]]
// One quantization serves both readers.
// CHECK: %[[CODES:.*]] = rt.buffer transient ""[<T * 64>] : <i8>
// CHECK: rt.dispatch @quantize_rows grid <T> sizes [#rt.expr<T>] reads(%[[A:.*]] : !rt.buffer<f32>) writes(%[[CODES]], %[[SCALES:.*]], %[[SUMS:.*]] :
// CHECK: rt.dispatch @linq grid <2> sizes [#rt.expr<T>] reads(%[[CODES]], %[[SCALES]], %[[SUMS]], %
// CHECK-NOT: rt.dispatch @quantize_rows
// CHECK: rt.dispatch @linq grid <2> sizes [#rt.expr<T>] reads(%[[CODES]], %[[SCALES]], %[[SUMS]], %
// CHECK: rt.dispatch @[[WIDE]] grid <T> {{.*}}writes(%[[CODES2:.*]], %[[SCALES2:.*]], %[[SUMS2:.*]] :
// CHECK: rt.dispatch @wide grid <2> {{.*}}reads(%[[CODES2]], %[[SCALES2]], %[[SUMS2]], %
