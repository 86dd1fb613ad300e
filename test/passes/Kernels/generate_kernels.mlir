// RUN: llm-opt %s --llm-generate-kernels=mcpu=x86-64-v3 | FileCheck %s --enable-var-scope
// RUN: llm-opt %s --llm-generate-kernels=mcpu=x86-64-v4 | FileCheck %s --enable-var-scope --check-prefix=V4
// Generated twice, the kernels that have variants stay as they are.
// RUN: llm-opt %s --llm-generate-kernels=mcpu=x86-64-v3 -o %t.mlir
// RUN: llm-opt %t.mlir --llm-generate-kernels=mcpu=x86-64-v3 -o %t.again.mlir
// RUN: cmp %t.mlir %t.again.mlir

// CHECK-LABEL: rt.program @target
rt.program @target target "cpu" symbols ["T", "R"] {
  // CHECK: rt.kernel @norm
  // CHECK-NEXT: rt.variant "norm" code @cpu{{$}}
  rt.kernel @norm family "rms_norm" params {dim = 83 : i64, epsilon = 1.0e-5 : f64} {
  }
  // One token has a function of its own; the ranges cover every count.
  // CHECK: rt.kernel @lin
  // CHECK-NEXT: rt.variant "lin_m1" code @cpu ranges [#rt.range<T, 1, 1>]
  // CHECK-NEXT: rt.variant "lin_m8" code @cpu ranges [#rt.range<T, 2, 8>]
  // CHECK-NEXT: rt.variant "lin_mn" code @cpu ranges [#rt.range<T, 9, -1>]
  rt.kernel @lin family "linear" params {n = 100 : i64, k = 83 : i64, bias = true,
    layout = {kind = "panel", n = 100 : i64, k = 83 : i64, type = f32}} {
  }
  // Over rows of logits, R is what counts.
  // CHECK: rt.kernel @head
  // CHECK-NEXT: rt.variant "head_m1" code @cpu ranges [#rt.range<R, 1, 1>]
  // CHECK-NEXT: rt.variant "head_m8" code @cpu ranges [#rt.range<R, 2, 8>]
  // CHECK-NEXT: rt.variant "head_mn" code @cpu ranges [#rt.range<R, 9, -1>]
  rt.kernel @head family "linear" params {n = 100 : i64, k = 83 : i64, rows = "R",
    layout = {kind = "panel", n = 100 : i64, k = 83 : i64, type = f16}} {
  }
}
// Kernels of the same family and parameters share their functions.
// CHECK-LABEL: rt.program @draft
rt.program @draft target "cpu" symbols ["T", "R"] {
  // CHECK: rt.kernel @other_norm
  // CHECK-NEXT: rt.variant "norm" code @cpu
  rt.kernel @other_norm family "rms_norm" params {dim = 83 : i64, epsilon = 1.0e-5 : f64} {
  }
  // The name is taken: another one is found.
  // CHECK: rt.kernel @norm
  // CHECK-NEXT: rt.variant "norm_1" code @cpu
  rt.kernel @norm family "rms_norm" params {dim = 84 : i64, epsilon = 1.0e-5 : f64} {
  }
}

// CHECK: module @cpu attributes {llm.cpu_target = {cpu = "x86-64-v3", features = ["avx2", "bmi2", "f16c", "fma"], tune = "haswell"}}
// V4: features = ["avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "bmi2", "f16c", "fma"]
// Flat buffers, the static ones with their length; then sizes; then the items.
// CHECK: func.func @norm(%{{.*}}: memref<1099511627776xf32>, %{{.*}}: memref<83xf32>, %{{.*}}: memref<1099511627776xf32>, %{{.*}}: i64, %{{.*}}: index, %{{.*}}: index)
// CHECK: vector<8xf32>
// CHECK-NOT: vector<16xf32>
// CHECK: func.func @lin_m1(%{{.*}}: memref<83xf32>, %{{.*}}: memref<10624xf32>, %{{.*}}: memref<100xf32>, %{{.*}}: memref<100xf32>, %{{.*}}: i64, %{{.*}}: index, %{{.*}}: index)
// V4: func.func @norm
// V4: vector<16xf32>
