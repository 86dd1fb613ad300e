// RUN: llm-opt %s --verify-diagnostics

func.func @past(%x: tensor<1x2x4xf32>, %past: tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  // expected-error@+1 {{a past is [batch, kv_heads, past, size], not 'tensor<1x2x4xf32>'}}
  %y, %p:2 = llm.attention %x, %x, %x past(%past, %past) {causal, num_heads = 1 : i64, kv_heads = 1 : i64, scale = 0.5 : f64}
    : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>)
  return %y : tensor<1x2x4xf32>
}
