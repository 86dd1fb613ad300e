// RUN: not llm-opt %s --llm-generate-kernels=mcpu=abacus 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: llm-opt %s --llm-generate-kernels=mcpu=znver4 | FileCheck %s --check-prefix=ZEN4
// RUN: llm-opt %s --llm-generate-kernels=mcpu=haswell | FileCheck %s --check-prefix=HASWELL
// RUN: llm-opt %s --llm-generate-kernels=mcpu=ivybridge | FileCheck %s --check-prefix=IVY
// RUN: llm-opt %s --llm-generate-kernels=mcpu=x86-64-v2 | FileCheck %s --check-prefix=V2
// RUN: llm-opt %s --llm-generate-kernels=mcpu=core2 | FileCheck %s --check-prefix=CORE2
// RUN: llm-opt %s --llm-generate-kernels=mcpu=x86-64 | FileCheck %s --check-prefix=ANY

// UNKNOWN: error: unknown processor 'abacus'; name one that LLVM knows, x86-64, x86-64-v2, x86-64-v3, x86-64-v4 or native
// ZEN4: cpu = "znver4", features = ["avx2", "avx512bf16", "avx512bw", "avx512dq", "avx512f", "avx512vl", "avx512vnni", "bmi2", "f16c", "fma"], tune = "znver4"
// HASWELL: cpu = "haswell", features = ["avx2", "bmi2", "f16c", "fma"], tune = "haswell"
// IVY: cpu = "ivybridge", features = ["sse4.1", "ssse3"], tune = "ivybridge"
// V2: cpu = "x86-64-v2", features = ["sse4.1", "ssse3"], tune = "nehalem"
// CORE2: cpu = "core2", features = ["ssse3"], tune = "core2"
// ANY: cpu = "x86-64", features = [], tune = "x86-64"
rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "gather_rows" params {dim = 8 : i64} {
  }
}
