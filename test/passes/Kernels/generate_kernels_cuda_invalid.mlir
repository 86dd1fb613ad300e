// RUN: llm-opt %s --split-input-file --verify-diagnostics --llm-generate-kernels=arch=sm_80

rt.program @p target "cuda" symbols ["T"] {
  // expected-error @below {{target 'cuda' has no kernel family 'conv'}}
  rt.kernel @k family "conv" params {} { }
}

// -----

rt.program @p target "cuda" symbols ["T"] {
  // expected-error @below {{has no layout; --llm-pack-weights sets it}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64, accuracy_level = 0 : i64} { }
}

// -----

rt.program @p target "cuda" symbols ["T"] {
  // expected-error @below {{the GPU's linear reads 'gpu_affine'}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64, accuracy_level = 0 : i64,
    layout = {kind = "panel", n = 8 : i64, k = 8 : i64, type = f32}} { }
}

// -----

rt.program @p target "cuda" symbols ["T"] {
  // expected-error @below {{layout gpu_affine needs bits = 4, a group_size that is a power of two of at least 16, and f32 scales and zeros}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64, accuracy_level = 0 : i64,
    layout = {kind = "gpu_affine", n = 8 : i64, k = 8 : i64, bits = 4 : i64, group_size = 48 : i64, scale_type = f32}} { }
}

// -----

rt.program @p target "cuda" symbols ["T"] {
  // expected-error @below {{is 8 x 8, its layout 8 x 16}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64, accuracy_level = 0 : i64,
    layout = {kind = "gpu_affine", n = 8 : i64, k = 16 : i64, bits = 4 : i64, group_size = 32 : i64, scale_type = f32}} { }
}

// -----

rt.program @p target "cuda" symbols ["T"] {
  // expected-error @below {{accuracy_level 4 reads int8 activations, for which the GPU has no kernel}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64, accuracy_level = 4 : i64,
    layout = {kind = "gpu_affine", n = 8 : i64, k = 8 : i64, bits = 4 : i64, group_size = 32 : i64, scale_type = f32}} { }
}
