// RUN: llm-opt %s --llm-form-dispatches | FileCheck %s

llm.weight @row : tensor<8xf32> = #llm.dense<#llm.component<"data", tensor<8xf32>, dense<1.0> : tensor<8xf32>>>

// A tree over rows is one op; a row vector repeats, a splat constant is inlined.
// CHECK-LABEL: func.func @tree
// CHECK: %[[W:.*]] = llm.get_weight @row
// CHECK: %[[Y:.*]] = llm.fused_elementwise %{{.*}}, %[[W]], %{{.*}} ["in0", "in1", "mul", "const:0x3f000000", "add", "in2", "tanh", "max"]
// CHECK-NEXT: return %[[Y]]
func.func @tree(%x: tensor<?x8xf32>, %z: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {llm.model = "target"} {
  %w = llm.get_weight @row : tensor<8xf32>
  %c = llm.constant dense<0.5> : tensor<f32>
  %a = llm.mul %x, %w : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %b = llm.add %a, %c : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %t = llm.tanh %z : tensor<?x8xf32>
  %m = llm.max %b, %t : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %m : tensor<?x8xf32>
}

// A value with two uses is stored, so it stays an op of its own.
// CHECK-LABEL: func.func @shared
// CHECK: %[[S:.*]] = llm.fused_elementwise %{{.*}} ["in0", "silu"]
// CHECK: %[[Y:.*]] = llm.fused_elementwise %[[S]], %{{.*}} ["in0", "in1", "mul"]
// CHECK: return %[[Y]], %[[S]]
func.func @shared(%x: tensor<?x8xf32>, %z: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) attributes {llm.model = "target"} {
  %s = llm.silu %x : tensor<?x8xf32>
  %m = llm.mul %s, %z : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %m, %s : tensor<?x8xf32>, tensor<?x8xf32>
}

// The three spellings of GELU keep their difference; what nothing uses goes.
// CHECK-LABEL: func.func @gelu
// CHECK: llm.fused_elementwise %{{.*}} ["in0", "gelu", "gelu_tanh", "gelu_sigmoid"]
// CHECK-NOT: llm.neg
func.func @gelu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {llm.model = "target"} {
  %a = llm.gelu %x : tensor<?x8xf32>
  %b = llm.gelu %a {approximation = 1 : i32} : tensor<?x8xf32>
  %c = llm.gelu %b {approximation = 2 : i32} : tensor<?x8xf32>
  %d = llm.neg %x : tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}

// A function that is no model is left alone.
// CHECK-LABEL: func.func @plain
// CHECK: llm.silu
func.func @plain(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %s = llm.silu %x : tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}
