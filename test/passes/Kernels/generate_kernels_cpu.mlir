// RUN: not llm-opt %s --llm-generate-kernels=mcpu=x86-64-v2 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not llm-opt %s --llm-generate-kernels=mcpu=abacus 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: llm-opt %s --llm-generate-kernels=mcpu=znver4 | FileCheck %s --check-prefix=ZEN4
// RUN: llm-opt %s --llm-generate-kernels=mcpu=haswell | FileCheck %s --check-prefix=HASWELL

// OLD: error: processor 'x86-64-v2' lacks avx2; x86-64-v3 (AVX2, FMA, F16C, BMI2) is the least supported
// UNKNOWN: error: unknown processor 'abacus'; name one that LLVM knows, x86-64-v3, x86-64-v4 or native
// ZEN4: cpu = "znver4", features = ["avx2", "avx512bf16", "avx512bw", "avx512dq", "avx512f", "avx512vl", "avx512vnni", "bmi2", "f16c", "fma"], tune = "znver4"
// HASWELL: cpu = "haswell", features = ["avx2", "bmi2", "f16c", "fma"], tune = "haswell"
rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "gather_rows" params {dim = 8 : i64} {
  }
}
