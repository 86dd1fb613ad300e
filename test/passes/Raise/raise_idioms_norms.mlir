// RUN: llm-opt %s --llm-raise-idioms --split-input-file | FileCheck %s --enable-var-scope

// As torch traces it: pow, mean, sqrt, reciprocal, and the weight on the left.
// CHECK-LABEL: func.func @rms(
// CHECK-SAME: %[[X:.*]]: tensor<?x?x8xf32>
// CHECK: %[[W:.*]] = llm.get_weight @w
// CHECK: %[[Y:.*]] = llm.rms_norm %[[X]], %[[W]] {epsilon = 9.9999999747524271E-7 : f64}
// CHECK: return %[[Y]]
llm.weight @w : tensor<8xf32> = #llm.dense<#llm.component<"data", tensor<8xf32>, dense<2.0> : tensor<8xf32>>>
func.func @rms(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %w = llm.get_weight @w : tensor<8xf32>
  %two = llm.constant dense<2.0> : tensor<f32>
  %eps = llm.constant dense<1.0e-06> : tensor<f32>
  %p = llm.pow %x, %two : (tensor<?x?x8xf32>, tensor<f32>) -> tensor<?x?x8xf32>
  %m = llm.reduce mean %p axes [-1] keepdims : tensor<?x?x8xf32> -> tensor<?x?x1xf32>
  %a = llm.add %m, %eps : (tensor<?x?x1xf32>, tensor<f32>) -> tensor<?x?x1xf32>
  %s = llm.sqrt %a : tensor<?x?x1xf32>
  %r = llm.reciprocal %s : tensor<?x?x1xf32>
  %n = llm.mul %x, %r : (tensor<?x?x8xf32>, tensor<?x?x1xf32>) -> tensor<?x?x8xf32>
  %y = llm.mul %w, %n : (tensor<8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}

// -----

// f16 around a norm in f32; x * x; a quotient; a constant of one element; the
// scale a constant in the graph, which becomes a weight.
// CHECK: llm.weight @constant : tensor<8xf16>
// CHECK-LABEL: func.func @rms_f16(
// CHECK-SAME: %[[X:.*]]: tensor<2x4x8xf16>
// CHECK: %[[W:.*]] = llm.get_weight @constant
// CHECK: llm.rms_norm %[[X]], %[[W]] {epsilon = 9.9999997473787516E-6 : f64} : (tensor<2x4x8xf16>, tensor<8xf16>) -> tensor<2x4x8xf16>
func.func @rms_f16(%x: tensor<2x4x8xf16>) -> tensor<2x4x8xf16> {
  %w = llm.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf16>
  %eps = llm.constant dense<1.0e-05> : tensor<1xf32>
  %one = llm.constant dense<1.0> : tensor<1xf32>
  %f = llm.cast %x : tensor<2x4x8xf16> -> tensor<2x4x8xf32>
  %p = llm.mul %f, %f : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %m = llm.reduce mean %p axes [2] keepdims : tensor<2x4x8xf32> -> tensor<2x4x1xf32>
  %a = llm.add %eps, %m : (tensor<1xf32>, tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %s = llm.sqrt %a : tensor<2x4x1xf32>
  %r = llm.div %one, %s : (tensor<1xf32>, tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %n = llm.mul %r, %f : (tensor<2x4x1xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %h = llm.cast %n : tensor<2x4x8xf32> -> tensor<2x4x8xf16>
  %y = llm.mul %h, %w : (tensor<2x4x8xf16>, tensor<8xf16>) -> tensor<2x4x8xf16>
  return %y : tensor<2x4x8xf16>
}

// -----

// Layer norm whose difference is computed twice, with a bias.
// CHECK-LABEL: func.func @layer(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>
// CHECK: %[[Y:.*]] = llm.layer_norm %[[X]], %{{.*}} bias(%{{.*}}) {epsilon = 9.9999997473787516E-6 : f64} : (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: return %[[Y]]
llm.weight @w : tensor<8xf32> = #llm.dense<#llm.component<"data", tensor<8xf32>, dense<2.0> : tensor<8xf32>>>
llm.weight @b : tensor<8xf32> = #llm.dense<#llm.component<"data", tensor<8xf32>, dense<1.0> : tensor<8xf32>>>
func.func @layer(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %w = llm.get_weight @w : tensor<8xf32>
  %b = llm.get_weight @b : tensor<8xf32>
  %two = llm.constant dense<2.0> : tensor<f32>
  %eps = llm.constant dense<1.0e-05> : tensor<f32>
  %mu = llm.reduce mean %x axes [-1] keepdims : tensor<?x8xf32> -> tensor<?x1xf32>
  %d = llm.sub %x, %mu : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %d2 = llm.sub %x, %mu : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %p = llm.pow %d, %two : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %m = llm.reduce mean %p axes [-1] keepdims : tensor<?x8xf32> -> tensor<?x1xf32>
  %a = llm.add %m, %eps : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %s = llm.sqrt %a : tensor<?x1xf32>
  %n = llm.div %d2, %s : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %g = llm.mul %n, %w : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %y = llm.add %b, %g : (tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// A scale computed from a weight, 1 + w, is evaluated.
// CHECK: llm.weight @scale : tensor<4xf32> = {{.*}}dense<[1.500000e+00, 3.000000e+00, 0.000000e+00, 1.000000e+00]>
// CHECK-LABEL: func.func @computed_scale(
// CHECK: %[[W:.*]] = llm.get_weight @scale
// CHECK: llm.rms_norm %{{.*}}, %[[W]] {epsilon = 9.9999999747524271E-7 : f64}
llm.weight @w : tensor<4xf32> = #llm.dense<#llm.component<"data", tensor<4xf32>, dense<[0.5, 2.0, -1.0, 0.0]> : tensor<4xf32>>>
func.func @computed_scale(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %w = llm.get_weight @w : tensor<4xf32>
  %one = llm.constant dense<1.0> : tensor<f32>
  %eps = llm.constant dense<1.0e-06> : tensor<f32>
  %power = llm.constant dense<-0.5> : tensor<f32>
  %scale = llm.add %w, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %p = llm.mul %x, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %m = llm.reduce mean %p axes [-1] keepdims : tensor<?x4xf32> -> tensor<?x1xf32>
  %a = llm.add %m, %eps : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %r = llm.pow %a, %power : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %n = llm.mul %x, %r : (tensor<?x4xf32>, tensor<?x1xf32>) -> tensor<?x4xf32>
  %y = llm.mul %n, %scale : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
