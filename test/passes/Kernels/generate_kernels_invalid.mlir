// RUN: llm-opt %s --llm-generate-kernels=mcpu=x86-64-v3 --split-input-file --verify-diagnostics

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{target 'cpu' has no kernel family 'fourier'}}
  rt.kernel @k family "fourier" params {} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{needs the integer parameter 'dim'}}
  rt.kernel @k family "rms_norm" params {epsilon = 1.0e-5 : f64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{parameter 'dim' = 0 is outside}}
  rt.kernel @k family "rms_norm" params {dim = 0 : i64, epsilon = 1.0e-5 : f64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{needs the float parameter 'epsilon'}}
  rt.kernel @k family "layer_norm" params {dim = 8 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{has no layout: run --llm-pack-weights first}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{layout is not a panel form of 8 x 9}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 9 : i64,
    layout = {kind = "panel", n = 8 : i64, k = 8 : i64, type = f32}} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{layout needs a kind}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64, layout = {kind = "heap"}} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{layout has bits = 3, not 2, 4 or 8}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64,
    layout = {kind = "panel_affine", n = 8 : i64, k = 8 : i64, bits = 3 : i64,
              group_size = 32 : i64, scale_type = f32}} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{int8 inputs need groups of a multiple of 8 inputs, of at most 65536, not 12}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 24 : i64, accuracy_level = 4 : i64,
    layout = {kind = "panel_affine", n = 8 : i64, k = 24 : i64, bits = 4 : i64,
              group_size = 12 : i64, scale_type = f32}} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{int8 inputs need groups of a multiple of 4 inputs, of at most 65536, not 131072}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 131072 : i64, accuracy_level = 4 : i64,
    layout = {kind = "panel_affine", n = 8 : i64, k = 131072 : i64, bits = 8 : i64,
              group_size = 131072 : i64, scale_type = f32}} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{layout panel_pairs is of bf16, not 'f32'}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64,
    layout = {kind = "panel_pairs", n = 8 : i64, k = 8 : i64, type = f32}} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{scale_group 48 is not a multiple of the groups of 32}}
  rt.kernel @k family "quantize_rows" params {k = 70 : i64, group_size = 32 : i64, scale_group = 48 : i64, zero = 8 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{activation_group 16 is not a multiple of the groups of 32}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 64 : i64, accuracy_level = 4 : i64, activation_group = 16 : i64,
    layout = {kind = "panel_affine", n = 8 : i64, k = 64 : i64, bits = 4 : i64,
              group_size = 32 : i64, scale_type = f32}} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{groups of int8 have at most 65536 elements}}
  rt.kernel @k family "quantize_rows" params {k = 70000 : i64, group_size = 70000 : i64, zero = 8 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{parameter 'zero' = 129 is outside [1, 128]}}
  rt.kernel @k family "rms_norm" params {dim = 8 : i64, epsilon = 1.0e-5 : f64, output = "int8", group_size = 8 : i64, zero = 129 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{output is f32, bf16 or int8, not "int4"}}
  rt.kernel @k family "rms_norm" params {dim = 8 : i64, epsilon = 1.0e-5 : f64, output = "int4"} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{has 2 outputs; only one can be int8 or bf16}}
  rt.kernel @k family "elementwise" params {width = 8 : i64, ops = ["in0", "in1"], output = "bf16"} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{'add' finds 1 values on the stack}}
  rt.kernel @k family "elementwise" params {width = 8 : i64, ops = ["in0", "add"]} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{unknown elementwise operator 'frobnicate'}}
  rt.kernel @k family "elementwise" params {width = 8 : i64, ops = ["in0", "frobnicate"]} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{'in2' is not among the inputs}}
  rt.kernel @k family "elementwise" params {width = 8 : i64, ops = ["in2"], broadcast = [false, true]} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{'ops' leaves no value}}
  rt.kernel @k family "elementwise" params {width = 8 : i64, ops = []} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{rotary_dim 10 is not an even part of size 8}}
  rt.kernel @k family "rope" params {heads = 2 : i64, size = 8 : i64, rotary_dim = 10 : i64,
    interleaved = false, positions = 4 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{9 heads do not share 2 kv heads evenly}}
  rt.kernel @k family "attention" params {heads = 9 : i64, kv_heads = 2 : i64, size = 8 : i64,
    value_size = 8 : i64, window = 0 : i64, page_size = 16 : i64, scale = 1.0 : f64,
    softcap = 0.0 : f64, cache_type = f32, tile = 4 : i64, head_groups = 1 : i64, split = 0 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{32 tokens of 64 query heads of 128 elements and 128 values per kv head are more than a work item can hold}}
  rt.kernel @k family "attention" params {heads = 64 : i64, kv_heads = 1 : i64, size = 128 : i64,
    value_size = 128 : i64, window = 0 : i64, page_size = 16 : i64, scale = 1.0 : f64,
    softcap = 0.0 : f64, cache_type = f32, tile = 32 : i64, head_groups = 1 : i64, split = 0 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{8 kv heads do not make 3 equal groups}}
  rt.kernel @k family "attention" params {heads = 8 : i64, kv_heads = 8 : i64, size = 8 : i64,
    value_size = 8 : i64, window = 0 : i64, page_size = 16 : i64, scale = 1.0 : f64,
    softcap = 0.0 : f64, cache_type = f32, tile = 4 : i64, head_groups = 3 : i64, split = 0 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{64 tokens of 128 query heads of 128 elements and 128 values are more than a work item can hold}}
  rt.kernel @k family "attention" params {heads = 128 : i64, kv_heads = 128 : i64, size = 128 : i64,
    value_size = 128 : i64, window = 0 : i64, page_size = 16 : i64, scale = 1.0 : f64,
    softcap = 0.0 : f64, cache_type = f32, tile = 4 : i64, head_groups = 1 : i64, split = 64 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{9 heads do not share 2 kv heads evenly}}
  rt.kernel @k family "attention_merge" params {heads = 9 : i64, kv_heads = 2 : i64,
    value_size = 8 : i64, window = 0 : i64, split = 8 : i64, cache_type = f32} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{needs the parameter 'cache_type': f32, f16, bf16, i8, f8E4M3FN or f8E5M2}}
  rt.kernel @k family "kv_append" params {width = 8 : i64, cache_type = i16} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{needs the integer parameter 'heads'}}
  rt.kernel @k family "kv_append" params {width = 8 : i64, cache_type = f8E4M3FN} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{8 elements are not rows of 3 heads}}
  rt.kernel @k family "kv_append" params {width = 8 : i64, cache_type = i8, heads = 3 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{planes are 'rows' or 'blocks', not "columns"}}
  rt.kernel @k family "attention" params {heads = 2 : i64, kv_heads = 2 : i64, size = 8 : i64,
    value_size = 8 : i64, window = 0 : i64, page_size = 16 : i64, planes = "columns", scale = 1.0 : f64,
    softcap = 0.0 : f64, cache_type = f32, tile = 4 : i64, head_groups = 1 : i64, split = 0 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{pages of 24 slots are not whole blocks of 16}}
  rt.kernel @k family "attention" params {heads = 2 : i64, kv_heads = 2 : i64, size = 8 : i64,
    value_size = 8 : i64, window = 0 : i64, page_size = 24 : i64, planes = "blocks", scale = 1.0 : f64,
    softcap = 0.0 : f64, cache_type = f32, tile = 4 : i64, head_groups = 1 : i64, split = 0 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{keys of 7 elements do not make pairs in blocks}}
  rt.kernel @k family "attention" params {heads = 2 : i64, kv_heads = 2 : i64, size = 7 : i64,
    value_size = 8 : i64, window = 0 : i64, page_size = 16 : i64, planes = "blocks", scale = 1.0 : f64,
    softcap = 0.0 : f64, cache_type = bf16, tile = 4 : i64, head_groups = 1 : i64, split = 0 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{plane is 'rows', 'key_blocks' or 'value_blocks', not "keys"}}
  rt.kernel @k family "kv_append" params {width = 8 : i64, cache_type = f32, plane = "keys"} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{keys of 7 elements do not make pairs in blocks}}
  rt.kernel @k family "kv_append" params {width = 14 : i64, heads = 2 : i64, cache_type = i8, plane = "key_blocks"} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{rotary_dim 8 is not an even part of size 4}}
  rt.kernel @k family "kv_append" params {width = 8 : i64, heads = 2 : i64, cache_type = f32, rotary_dim = 8 : i64, positions = 9 : i64} {
  }
}

// -----

// expected-error @below {{is called @cpu, the name of a CPU code module}}
func.func private @cpu()
rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "gather_rows" params {dim = 8 : i64} {
  }
}

// -----

// expected-error @below {{holds code for +avx2,+avx512bw,+avx512dq,+avx512f,+avx512vl,+bmi2,+f16c,+fma, cannot add some for +avx2,+bmi2,+f16c,+fma}}
module @cpu attributes {llm.cpu_target = {cpu = "x86-64-v4", tune = "znver4",
  features = ["avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "bmi2", "f16c", "fma"]}} {
}
rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "gather_rows" params {dim = 8 : i64} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{layout has a factor_group: that needs panel_affine, bits = 4, f32 scales, no zeros}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64,
    layout = {kind = "panel_affine", n = 8 : i64, k = 8 : i64, bits = 8 : i64, group_size = 128 : i64, factor_group = 32 : i64, scale_type = f32}} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{layout has a factor_group: that needs panel_affine, bits = 4, f32 scales, no zeros}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64,
    layout = {kind = "panel_affine", n = 8 : i64, k = 8 : i64, bits = 4 : i64, group_size = 256 : i64, factor_group = 32 : i64, scale_type = f32}} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{layout has a factor_group: that needs panel_affine, bits = 4, f32 scales, no zeros}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64,
    layout = {kind = "panel_affine", n = 8 : i64, k = 8 : i64, bits = 4 : i64, group_size = 128 : i64, factor_group = 32 : i64, scale_type = f32, zero_type = f32}} {
  }
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error @below {{layout has a factor_group: that needs panel_affine, bits = 4, f32 scales, no zeros}}
  rt.kernel @k family "linear" params {n = 8 : i64, k = 8 : i64,
    layout = {kind = "panel_affine", n = 8 : i64, k = 8 : i64, bits = 4 : i64, group_size = 100 : i64, factor_group = 24 : i64, scale_type = f32}} {
  }
}
