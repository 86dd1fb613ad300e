// RUN: llm-opt %s --llm-generate-kernels=arch=sm_80,sm_90 | FileCheck %s

// A program for the GPU gets one gpu.module per architecture, one for the
// emulator gets one without; grids become numbers of blocks: a row each for
// rms_norm, a panel of 8 outputs and a row each for linear.

// CHECK-LABEL: rt.program @real target "cuda"
rt.program @real target "cuda" symbols ["T", "R"] {
  // CHECK: rt.kernel @norm
  // CHECK-NEXT: rt.variant "norm" code @cuda_sm_80 {block_threads = 32 : i64}
  // CHECK-NEXT: rt.variant "norm" code @cuda_sm_90 {block_threads = 32 : i64}
  rt.kernel @norm family "rms_norm" params {dim = 64 : i64, epsilon = 1.0e-5 : f64} { }
  // CHECK: rt.kernel @head
  // CHECK-NEXT: rt.variant "head" code @cuda_sm_80 {block_threads = 32 : i64}
  // CHECK-NEXT: rt.variant "head" code @cuda_sm_90 {block_threads = 32 : i64}
  rt.kernel @head family "linear" params {n = 17 : i64, k = 64 : i64, bias = false, accuracy_level = 0 : i64, rows = "R",
    layout = {kind = "gpu_affine", n = 17 : i64, k = 64 : i64, bits = 4 : i64, group_size = 32 : i64,
              scale_type = f32}} { }
  %x = rt.buffer io "x" [#rt.expr<T * 64>] : !rt.buffer<f32>
  %s = rt.buffer constant "s" [#rt.expr<64>] : !rt.buffer<f32>
  %w = rt.buffer constant "w" [#rt.expr<2304>] : !rt.buffer<i8>
  %h = rt.buffer io "h" [#rt.expr<T * 64>] : !rt.buffer<f32>
  %y = rt.buffer io "y" [#rt.expr<R * 17>] : !rt.buffer<f32>
  // CHECK: rt.dispatch @norm grid <T>
  rt.dispatch @norm grid #rt.expr<1> sizes [#rt.expr<T>]
    reads(%x, %s : !rt.buffer<f32>, !rt.buffer<f32>) writes(%h : !rt.buffer<f32>)
  // CHECK: rt.dispatch @head grid <R * 3>
  rt.dispatch @head grid #rt.expr<1> sizes [#rt.expr<R>]
    reads(%h, %w : !rt.buffer<f32>, !rt.buffer<i8>) writes(%y : !rt.buffer<f32>)
}

// CHECK-LABEL: rt.program @emulated target "cuda-emulator"
rt.program @emulated target "cuda-emulator" symbols ["T"] {
  // CHECK: rt.variant "norm" code @cuda_emulator {block_threads = 256 : i64}
  rt.kernel @norm family "rms_norm" params {dim = 4096 : i64, epsilon = 1.0e-5 : f64} { }
  // Kernels that are the same share a function.
  // CHECK: rt.variant "norm" code @cuda_emulator {block_threads = 256 : i64}
  rt.kernel @same family "rms_norm" params {dim = 4096 : i64, epsilon = 1.0e-5 : f64} { }
}

// CHECK: gpu.module @cuda_sm_80 [#nvvm.target<O = 3, chip = "sm_80">]
// CHECK: gpu.func @norm(%{{.*}}: memref<{{[0-9]+}}xf32, #gpu.address_space<global>> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}
// CHECK-SAME: kernel attributes {known_block_size = array<i32: 32, 1, 1>}
// CHECK: gpu.func @head
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : {{.*}} vector<4xi32>
// CHECK: gpu.barrier
// CHECK: gpu.module @cuda_sm_90 [#nvvm.target<O = 3, chip = "sm_90">]
// CHECK: gpu.module @cuda_emulator {
// CHECK: gpu.func @norm
// CHECK-NOT: gpu.func
