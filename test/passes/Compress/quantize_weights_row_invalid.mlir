// RUN: llm-opt %s --verify-diagnostics --llm-quantize-weights='bits=8 group-size=row'

// expected-error@+1 {{'llm.weight' op has rows of 65537 inputs, too long for one group of at most 65536; give a group-size}}
llm.weight @long : tensor<1x65537xf32> = #llm.dense<#llm.component<"data", tensor<1x65537xf32>, dense<1.0> : tensor<1x65537xf32>>>
func.func @f(%x: tensor<?x65537xf32>) -> tensor<?x1xf32> {
  %w = llm.get_weight @long : tensor<1x65537xf32>
  %y = llm.linear %x, %w : (tensor<?x65537xf32>, tensor<1x65537xf32>) -> tensor<?x1xf32>
  return %y : tensor<?x1xf32>
}
