// RUN: llm-opt %s --llm-pack-weights --split-input-file --verify-diagnostics

rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "linear" params {n = 8 : i64, k = 4 : i64} {
  }
  %x = rt.buffer transient "" [#rt.expr<T * 4>] : !rt.buffer<f32>
  %y = rt.buffer transient "" [#rt.expr<T * 8>] : !rt.buffer<f32>
  // expected-error @below {{no llm.weight is named 'w'}}
  %w = rt.buffer constant "w" [#rt.expr<32>] : !rt.buffer<f32>
  rt.dispatch @k grid #rt.expr<1> sizes [#rt.expr<T>]
    reads(%x, %w : !rt.buffer<f32>, !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
}

// -----

// expected-note @below {{the weight is 'tensor<4x8xf32>'}}
llm.weight @w : tensor<4x8xf32> = #llm.dense<#llm.component<"data", tensor<4x8xf32>, dense<1.0> : tensor<4x8xf32>>>
rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "linear" params {n = 8 : i64, k = 4 : i64} {
  }
  %x = rt.buffer transient "" [#rt.expr<T * 4>] : !rt.buffer<f32>
  %y = rt.buffer transient "" [#rt.expr<T * 8>] : !rt.buffer<f32>
  %w = rt.buffer constant "w" [#rt.expr<32>] : !rt.buffer<f32>
  // expected-error @below {{multiplies by 8 x 4}}
  rt.dispatch @k grid #rt.expr<1> sizes [#rt.expr<T>]
    reads(%x, %w : !rt.buffer<f32>, !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
}

// -----

// expected-error @below {{is packed, and read by a kernel other than linear and embedding}}
llm.weight @w : tensor<2x32xf32> = #llm.affine<bits = 4, group_size = 32,
  data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>,
  scales = #llm.component<"scales", tensor<2x1xf32>, dense<1.0> : tensor<2x1xf32>>>
rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "rms_norm" params {dim = 64 : i64, epsilon = 1.0e-5 : f64} {
  }
  %x = rt.buffer transient "" [#rt.expr<T * 64>] : !rt.buffer<f32>
  %y = rt.buffer transient "" [#rt.expr<T * 64>] : !rt.buffer<f32>
  // expected-note @below {{read here}}
  %w = rt.buffer constant "w" [#rt.expr<64>] : !rt.buffer<f32>
  rt.dispatch @k grid #rt.expr<T> sizes [#rt.expr<T>]
    reads(%x, %w : !rt.buffer<f32>, !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
}

// -----

// expected-error @below {{a kernel cannot read elements of type 'i8'}}
llm.weight @w : tensor<8x4xi8> = #llm.dense<#llm.component<"data", tensor<8x4xi8>, dense<1> : tensor<8x4xi8>>>
rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "embedding" params {vocab = 8 : i64, dim = 4 : i64} {
  }
  %t = rt.buffer io "token" [#rt.expr<T>] : !rt.buffer<i32>
  %y = rt.buffer transient "" [#rt.expr<T * 4>] : !rt.buffer<f32>
  %w = rt.buffer constant "w" [#rt.expr<32>] : !rt.buffer<i8>
  rt.dispatch @k grid #rt.expr<T> sizes [#rt.expr<T>]
    reads(%t, %w : !rt.buffer<i32>, !rt.buffer<i8>) writes(%y : !rt.buffer<f32>)
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{has a layout already}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 4 : i64,
    layout = {kind = "panel", n = 8 : i64, k = 4 : i64, type = f32}} {
  }
  %x = rt.buffer transient "" [#rt.expr<T * 4>] : !rt.buffer<f32>
  %y = rt.buffer transient "" [#rt.expr<T * 8>] : !rt.buffer<f32>
  rt.dispatch @k grid #rt.expr<1> sizes [#rt.expr<T>]
    reads(%x, %x : !rt.buffer<f32>, !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
}
