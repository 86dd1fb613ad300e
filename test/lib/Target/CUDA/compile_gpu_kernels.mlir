// Both families become PTX for both architectures: 16-byte loads through the
// read-only path, nothing called, and a barrier between the warps.
// RUN: rm -rf %t && mkdir %t
// RUN: llm-opt %s --llm-generate-kernels=arch=sm_80,sm_90 --llm-compile-gpu-kernels=dump-dir=%t -o %t/out.mlir
// RUN: FileCheck %s --check-prefixes=PTX,SM80 --implicit-check-not='call' --implicit-check-not='.extern .func' < %t/cuda_sm_80.ptx
// RUN: FileCheck %s --check-prefixes=PTX,SM90 --implicit-check-not='call' --implicit-check-not='.extern .func' < %t/cuda_sm_90.ptx
// RUN: FileCheck %s --check-prefix=OBJECTS < %t/out.mlir

// The same module gives the same bytes.
// RUN: mkdir %t/again
// RUN: llm-opt %s --llm-generate-kernels=arch=sm_80,sm_90 --llm-compile-gpu-kernels=dump-dir=%t/again -o %t/again/out.mlir
// RUN: diff -r %t/again/cuda_sm_80.ptx %t/cuda_sm_80.ptx
// RUN: cmp %t/again/out.mlir %t/out.mlir

// SM80: .target sm_80
// SM90: .target sm_90

// PTX-LABEL: .entry norm(
// PTX: .maxntid 160, 1, 1
// PTX: ld.global.nc.v4.b32
// PTX: shfl.sync.bfly
// PTX: bar.sync
// PTX: sqrt.rn.f32
// PTX: ld.global.nc.v4.b32
// PTX: ld.global.nc.v4.b32
// PTX: st.global.v4.b32

// PTX-LABEL: .entry proj(
// PTX: .maxntid 128, 1, 1
// One load of x, one of the codes, two of scales and two of zeros a tile.
// PTX-COUNT-6: ld.global.nc.v4.b32
// PTX: fma.rn.f32
// PTX: bar.sync
// PTX: st.global.b32

// PTX-LABEL: .entry symmetric(
// PTX-COUNT-4: ld.global.nc.v4.b32
// PTX: bar.sync
// PTX: st.global.b32

// OBJECTS: gpu.binary @cuda_sm_80
// OBJECTS-SAME: #gpu.object<#nvvm.target<O = 3, chip = "sm_80">, assembly =
// OBJECTS: gpu.binary @cuda_sm_90
// OBJECTS-SAME: #gpu.object<#nvvm.target<O = 3, chip = "sm_90">, assembly =
rt.program @target target "cuda" symbols ["T"] {
  rt.kernel @norm family "rms_norm" params {dim = 576 : i64, epsilon = 1.0e-5 : f64} { }
  rt.kernel @proj family "linear" params {n = 576 : i64, k = 1536 : i64, bias = false, accuracy_level = 0 : i64,
    layout = {kind = "gpu_affine", n = 576 : i64, k = 1536 : i64, bits = 4 : i64, group_size = 32 : i64,
              scale_type = f32, zero_type = f32}} { }
  rt.kernel @symmetric family "linear" params {n = 65 : i64, k = 1000 : i64, bias = true, accuracy_level = 0 : i64,
    layout = {kind = "gpu_affine", n = 65 : i64, k = 1000 : i64, bits = 4 : i64, group_size = 128 : i64,
              scale_type = f32}} { }
}
