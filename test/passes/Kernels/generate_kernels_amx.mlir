// RUN: llm-opt %s --llm-generate-kernels=mcpu=sapphirerapids | FileCheck %s
// RUN: llm-opt %s --llm-generate-kernels=mcpu=znver4 | FileCheck %s --check-prefix=ZEN4

// Where there are tiles, they multiply bf16; vectors do where there are none,
// and would not be faster than f32 beside them.
// CHECK: cpu = "sapphirerapids", features = ["amx-bf16", "amx-int8", "amx-tile", "avx2", "avx512bf16",
// CHECK-NOT: dpbf16ps.512
// ZEN4-NOT: llvm.x86.t
rt.program @p target "cpu" symbols ["T"] {
  // A score of 64 elements, and 4 by 16 slots: two products, keys as they lie in
  // memory.
  // CHECK-LABEL: func.func @blocks(
  // CHECK: llvm.x86.ldtilecfg
  // CHECK: llvm.x86.tdpbf16ps
  // CHECK: llvm.x86.tilerelease
  // ZEN4-LABEL: func.func @blocks(
  // ZEN4: dpbf16ps.512
  rt.kernel @blocks family "attention" params {heads = 6 : i64,
    kv_heads = 2 : i64, size = 64 : i64, value_size = 64 : i64,
    window = 0 : i64, page_size = 16 : i64, tile = 8 : i64,
    head_groups = 1 : i64, split = 8 : i64, scale = 0.125 : f64,
    softcap = 0.0 : f64, cache_type = bf16, planes = "blocks"} {
  }
  // CHECK-LABEL: func.func @rows(
  // CHECK: llvm.x86.tdpbf16ps
  // ZEN4-LABEL: func.func @rows(
  // ZEN4: dpbf16ps.512
  rt.kernel @rows family "attention" params {heads = 6 : i64,
    kv_heads = 2 : i64, size = 20 : i64, value_size = 36 : i64,
    window = 7 : i64, page_size = 5 : i64, tile = 8 : i64,
    head_groups = 1 : i64, split = 8 : i64, scale = 0.125 : f64,
    softcap = 0.0 : f64, cache_type = i8} {
  }
  // f32 has no tiles.
  // CHECK-LABEL: func.func @floats(
  // CHECK-NOT: llvm.x86.t
  rt.kernel @floats family "attention" params {heads = 6 : i64,
    kv_heads = 2 : i64, size = 20 : i64, value_size = 36 : i64,
    window = 7 : i64, page_size = 16 : i64, tile = 8 : i64,
    head_groups = 1 : i64, split = 8 : i64, scale = 0.125 : f64,
    softcap = 0.0 : f64, cache_type = f32, planes = "blocks"} {
  }
}
