// What ptxas says of both kernels on both architectures: no register spills,
// and machine code beside the PTX.
// REQUIRES: ptxas
// RUN: rm -rf %t && mkdir %t
// RUN: llm-opt %s --llm-generate-kernels=arch=sm_80,sm_90 --llm-compile-gpu-kernels=dump-dir=%t | FileCheck %s
// RUN: head -c 4 %t/cuda_sm_80.cubin | FileCheck %s --check-prefix=ELF
// RUN: head -c 4 %t/cuda_sm_90.cubin | FileCheck %s --check-prefix=ELF

// ELF: ELF

// CHECK: rt.kernel @norm
// CHECK-NEXT: rt.variant "norm" code @cuda_sm_80 {block_threads = 160 : i64, registers = {{[1-9][0-9]*}} : i64, shared_bytes = 20 : i64, spill_bytes = 0 : i64}
// CHECK-NEXT: rt.variant "norm" code @cuda_sm_90 {block_threads = 160 : i64, registers = {{[1-9][0-9]*}} : i64, shared_bytes = 20 : i64, spill_bytes = 0 : i64}
// CHECK: rt.kernel @proj
// CHECK-NEXT: rt.variant "proj" code @cuda_sm_80 {block_threads = 128 : i64, registers = {{[1-9][0-9]*}} : i64, shared_bytes = 128 : i64, spill_bytes = 0 : i64}
// CHECK-NEXT: rt.variant "proj" code @cuda_sm_90 {block_threads = 128 : i64, registers = {{[1-9][0-9]*}} : i64, shared_bytes = 128 : i64, spill_bytes = 0 : i64}
// CHECK: gpu.binary @cuda_sm_80
// CHECK-SAME: chip = "sm_80">, bin = "\7FELF
// CHECK: gpu.binary @cuda_sm_90
// CHECK-SAME: chip = "sm_90">, bin = "\7FELF
rt.program @target target "cuda" symbols ["T"] {
  rt.kernel @norm family "rms_norm" params {dim = 576 : i64, epsilon = 1.0e-5 : f64} { }
  rt.kernel @proj family "linear" params {n = 576 : i64, k = 1536 : i64, bias = false, accuracy_level = 0 : i64,
    layout = {kind = "gpu_affine", n = 576 : i64, k = 1536 : i64, bits = 4 : i64, group_size = 32 : i64,
              scale_type = f32, zero_type = f32}} { }
}
