// RUN: llm-opt %s --verify-diagnostics --llm-generate-kernels

rt.program @p target "cuda" symbols ["T"] {
  // expected-error @below {{is for target 'cuda', but no architecture is given (arch=sm_80,...)}}
  rt.kernel @k family "rms_norm" params {dim = 8 : i64, epsilon = 1.0e-5 : f64} { }
}
