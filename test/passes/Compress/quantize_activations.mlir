// RUN: llm-opt %s --llm-quantize-activations | FileCheck %s --check-prefixes=CHECK,INT8
// RUN: llm-opt %s --llm-quantize-activations='type=bf16 match=b' | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: llm-opt %s --llm-quantize-activations=type=int8 --llm-quantize-activations='type=f16 where=layers' | FileCheck %s --check-prefixes=CHECK,LAYERS
// RUN: llm-opt %s --llm-quantize-activations=group-size=128 | FileCheck %s --check-prefix=GROUP
// RUN: not llm-opt %s --llm-quantize-activations='type=bf16 group-size=128' 2>&1 | FileCheck %s --check-prefix=SCALES
// RUN: not llm-opt %s --llm-quantize-activations=type=int4 2>&1 | FileCheck %s --check-prefix=ERROR
// SCALES: error: group-size is for int8: bf16 has no scales
// ERROR: quantize_activations.mlir:{{.*}}: error: type must be f32, f16, bf16 or int8, got 'int4'

llm.weight @a : tensor<2x4xf32> = #llm.dense<#llm.component<"data", tensor<2x4xf32>, dense<1.0> : tensor<2x4xf32>>>
llm.weight @b : tensor<2x4xf32> = #llm.dense<#llm.component<"data", tensor<2x4xf32>, dense<1.0> : tensor<2x4xf32>>>
// CHECK-LABEL: @layer
func.func private @layer(%x: tensor<?x4xf32>) -> tensor<?x2xf32> attributes {llm.model = "m", llm.layer = 0 : i64} {
  %w = llm.get_weight @a : tensor<2x4xf32>
  // GROUP: llm.linear %{{.*}} {accuracy_level = 4 : i64, activation_group = 128 : i64}
  // INT8: llm.linear %{{.*}} {accuracy_level = 4 : i64}
  // BF16: llm.linear %arg0, %0 : (
  // LAYERS: llm.linear %{{.*}} {accuracy_level = 2 : i64}
  %y = llm.linear %x, %w : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}
// CHECK-LABEL: @m
func.func @m(%x: tensor<?x4xf32>, %computed: tensor<2x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) attributes {llm.model = "m"} {
  %w = llm.get_weight @b : tensor<2x4xf32>
  // INT8: llm.linear %{{.*}} {accuracy_level = 4 : i64}
  // BF16: llm.linear %{{.*}} {accuracy_level = 3 : i64}
  // LAYERS: llm.linear %{{.*}} {accuracy_level = 4 : i64}
  %y = llm.linear %x, %w : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  // CHECK: llm.linear %arg0, %arg1 : (
  %z = llm.linear %x, %computed : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  return %y, %z : tensor<?x2xf32>, tensor<?x2xf32>
}
