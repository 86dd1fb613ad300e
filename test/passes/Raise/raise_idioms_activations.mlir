// RUN: llm-opt %s --llm-raise-idioms --split-input-file | FileCheck %s --enable-var-scope

// CHECK-LABEL: func.func @silu(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>
// CHECK-NEXT: %[[Y:.*]] = llm.silu %[[X]] : tensor<?x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @silu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %s = llm.sigmoid %x : tensor<?x8xf32>
  %y = llm.mul %s, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// 0.5 * (x * (1 + erf(x / sqrt 2))).
// CHECK-LABEL: func.func @gelu(
// CHECK-SAME: %[[X:.*]]: tensor<2x8xf32>
// CHECK-NEXT: %[[Y:.*]] = llm.gelu %[[X]] : tensor<2x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @gelu(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %root = llm.constant dense<1.41421354> : tensor<f32>
  %one = llm.constant dense<1.0> : tensor<f32>
  %half = llm.constant dense<0.5> : tensor<f32>
  %d = llm.div %x, %root : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %e = llm.erf %d : tensor<2x8xf32>
  %a = llm.add %e, %one : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %m = llm.mul %x, %a : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = llm.mul %half, %m : (tensor<f32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// (0.5 * x) * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), the GPT-2 form.
// CHECK-LABEL: func.func @gelu_tanh(
// CHECK-NEXT: llm.gelu %{{.*}} {approximation = 1 : i32} : tensor<?x8xf32>
func.func @gelu_tanh(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %half = llm.constant dense<0.5> : tensor<f32>
  %three = llm.constant dense<3.0> : tensor<f32>
  %c = llm.constant dense<0.044715> : tensor<f32>
  %r = llm.constant dense<0.7978846> : tensor<f32>
  %one = llm.constant dense<1.0> : tensor<f32>
  %h = llm.mul %x, %half : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %p = llm.pow %x, %three : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %cp = llm.mul %p, %c : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %s = llm.add %x, %cp : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %rs = llm.mul %s, %r : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %t = llm.tanh %rs : tensor<?x8xf32>
  %a = llm.add %t, %one : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %y = llm.mul %h, %a : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// sqrt(2 / pi) * x * (1 + 0.044715 * x * x), the other way to factor it.
// CHECK-LABEL: func.func @gelu_tanh_factored(
// CHECK-NEXT: llm.gelu %{{.*}} {approximation = 1 : i32} : tensor<?x8xf32>
func.func @gelu_tanh_factored(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %half = llm.constant dense<0.5> : tensor<f32>
  %c = llm.constant dense<0.044715> : tensor<f32>
  %r = llm.constant dense<0.7978846> : tensor<f32>
  %one = llm.constant dense<1.0> : tensor<f32>
  %xx = llm.mul %x, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %cx = llm.mul %xx, %c : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %s = llm.add %cx, %one : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %xr = llm.mul %x, %r : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %in = llm.mul %xr, %s : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %t = llm.tanh %in : tensor<?x8xf32>
  %a = llm.add %one, %t : (tensor<f32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %xa = llm.mul %x, %a : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = llm.mul %xa, %half : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// x * sigmoid(1.702 x).
// CHECK-LABEL: func.func @quick_gelu(
// CHECK-NEXT: llm.gelu %{{.*}} {approximation = 2 : i32} : tensor<?x8xf32>
func.func @quick_gelu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c = llm.constant dense<1.702> : tensor<f32>
  %m = llm.mul %x, %c : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %s = llm.sigmoid %m : tensor<?x8xf32>
  %y = llm.mul %x, %s : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
