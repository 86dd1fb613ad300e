// RUN: llm-opt %s --verify-diagnostics --llm-cast-weights=type=f16
// RUN: llm-opt %s --llm-cast-weights=type=bf16 -o /dev/null
// RUN: not llm-opt %s --llm-cast-weights=type=f8 2>&1 | FileCheck %s
// CHECK: cast_weights_invalid.mlir:{{.*}}: error: type must be bf16 or f16, got 'f8'

// expected-error@+1 {{'llm.weight' op element 2 is 6.552000e+04, too large for 'f16'; leave this weight out with 'match', or take bf16}}
llm.weight @w : tensor<2x2xf32> = #llm.dense<#llm.component<"data", tensor<2x2xf32>, dense<[[65519.0, 0x7F800000], [65520.0, -1.0e9]]> : tensor<2x2xf32>>>
func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w = llm.get_weight @w : tensor<2x2xf32>
  %y = llm.linear %x, %w : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}
