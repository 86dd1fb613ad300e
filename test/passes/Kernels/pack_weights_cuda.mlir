// RUN: llm-opt %s --llm-pack-weights | FileCheck %s --enable-var-scope

// A program for the GPU gets its own layout, with scales and zeros in f32, and
// computes in f32 whatever the accuracy level asks for at least.
llm.weight @q : tensor<40x40xf32> = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<40x32xui8>, dense<1> : tensor<40x32xui8>>,
      scales = #llm.component<"scales", tensor<40x2xf16>, dense<0.5> : tensor<40x2xf16>>>
llm.weight @z : tensor<40x40xf32> = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<40x32xui8>, dense<1> : tensor<40x32xui8>>,
      scales = #llm.component<"scales", tensor<40x2xf32>, dense<0.5> : tensor<40x2xf32>>,
      zeros = #llm.component<"zeros", tensor<40x1xui8>, dense<3> : tensor<40x1xui8>>>
llm.weight @f : tensor<40x40xf32> = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<40x32xui8>, dense<1> : tensor<40x32xui8>>,
      scales = #llm.component<"scales", tensor<40x1xf32>, dense<0.5> : tensor<40x1xf32>>, factor_group = 32, factors = #llm.component<"factors", tensor<40x2xi8>, dense<-15> : tensor<40x2xi8>>>
rt.program @target target "cuda-emulator" symbols ["T"] {
  rt.kernel @linear family "linear" params {n = 40 : i64, k = 40 : i64, accuracy_level = 4 : i64} { }
  %q = rt.buffer constant "q" [#rt.expr<1600>] : !rt.buffer<f32>
  %z = rt.buffer constant "z" [#rt.expr<1600>] : !rt.buffer<f32>
  %f = rt.buffer constant "f" [#rt.expr<1600>] : !rt.buffer<f32>
  %d = rt.buffer transient "" [#rt.expr<T * 40>] : !rt.buffer<f32>
  %a = rt.buffer io "a" [#rt.expr<T * 40>] : !rt.buffer<f32>
  %b = rt.buffer transient "" [#rt.expr<T * 40>] : !rt.buffer<f32>
  %c = rt.buffer io "c" [#rt.expr<T * 40>] : !rt.buffer<f32>
  rt.dispatch @linear grid #rt.expr<1> sizes [#rt.expr<T>] reads(%a, %q : !rt.buffer<f32>, !rt.buffer<f32>) writes(%b : !rt.buffer<f32>)
  rt.dispatch @linear grid #rt.expr<1> sizes [#rt.expr<T>] reads(%b, %f : !rt.buffer<f32>, !rt.buffer<f32>) writes(%d : !rt.buffer<f32>)
  rt.dispatch @linear grid #rt.expr<1> sizes [#rt.expr<T>] reads(%d, %z : !rt.buffer<f32>, !rt.buffer<f32>) writes(%c : !rt.buffer<f32>)
}
// CHECK-DAG: rt.kernel @[[LINEAR:.*]] family "linear" params {accuracy_level = 0 : i64, k = 40 : i64, layout = {bits = 4 : i64, group_size = 32 : i64, k = 40 : i64, kind = "gpu_affine", n = 40 : i64, scale_type = f32}
// CHECK-DAG: rt.kernel @[[ZEROS:.*]] family "linear" params {accuracy_level = 0 : i64, k = 40 : i64, layout = {bits = 4 : i64, group_size = 32 : i64, k = 40 : i64, kind = "gpu_affine", n = 40 : i64, scale_type = f32, zero_type = f32}
// 5 panels of one tile of 512 bytes of codes and 4 x 8 scales, and as many zeros.
// CHECK: rt.buffer constant "q"[<3200>] {layout = {{.*}}kind = "gpu_affine"
// CHECK: rt.buffer constant "z"[<3840>] {layout = {{.*}}zero_type = f32
// Groups as factors split them, with scales of their own: the kernel is the first one.
// CHECK: rt.buffer constant "f"[<3200>] {layout = {bits = 4 : i64, group_size = 32 : i64, {{.*}}kind = "gpu_affine"
// CHECK-NOT: quantize_rows
// CHECK: rt.dispatch @[[LINEAR]]
// CHECK: rt.dispatch @[[LINEAR]]
// CHECK: rt.dispatch @[[ZEROS]]
