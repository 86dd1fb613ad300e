// RUN: llm-opt %s --llm-cast-weights=type=bf16 | FileCheck %s
// RUN: llm-opt %s --llm-cast-weights='type=f16 match=matrix' | FileCheck %s --check-prefix=F16

// Ties go to even: 1 + 2^-8 to 1, 1 + 3 * 2^-8 to 1 + 2^-6; infinities and NaN
// stay; the least subnormal of f32 is lost.
// CHECK: llm.weight @matrix : tensor<2x4xf32> = #llm.dense<<"data", tensor<2x4xbf16>,
// CHECK-SAME: dense<{{\[\[}}1.000000e+00, 1.015630e+00, 0x7F80, -0.000000e+00], [0x7FC0, 0.000000e+00, 3.140630e+00, -6.553600e+04]]>
// F16: llm.weight @matrix : tensor<2x4xf32> = #llm.dense<<"data", tensor<2x4xf16>,
// F16-SAME: dense<{{\[\[}}1.003910e+00, 1.011720e+00, 0x7C00, -0.000000e+00], [0x7E00, 0.000000e+00, 3.140630e+00, -6.550400e+04]]>
llm.weight @matrix : tensor<2x4xf32> = #llm.dense<#llm.component<"data", tensor<2x4xf32>,
  dense<[[1.00390625, 1.01171875, 0x7F800000, -0.0], [0x7F800001, 1.0e-45, 3.140625, -65504.0]]> : tensor<2x4xf32>>>
// CHECK: llm.weight @table : tensor<4x4xf64> = #llm.dense<<"data", tensor<4x4xbf16>
// F16: llm.weight @table : tensor<4x4xf64> = #llm.dense<<"data", tensor<4x4xf64>
llm.weight @table : tensor<4x4xf64> = #llm.dense<#llm.component<"data", tensor<4x4xf64>, dense<1.0> : tensor<4x4xf64>>>
// CHECK: llm.weight @narrow : tensor<2x4xf16> = #llm.dense<<"data", tensor<2x4xf16>
llm.weight @narrow : tensor<2x4xf16> = #llm.dense<#llm.component<"data", tensor<2x4xf16>, dense<1.0> : tensor<2x4xf16>>>
// CHECK: llm.weight @norm : tensor<4xf32> = #llm.dense<<"data", tensor<4xf32>
llm.weight @norm : tensor<4xf32> = #llm.dense<#llm.component<"data", tensor<4xf32>, dense<1.0> : tensor<4xf32>>>
// CHECK: llm.weight @bias : tensor<2xf32> = #llm.dense<<"data", tensor<2xf32>
llm.weight @bias : tensor<2xf32> = #llm.dense<#llm.component<"data", tensor<2xf32>, dense<1.0> : tensor<2xf32>>>

// CHECK: llm.get_weight @matrix : tensor<2x4xf32>
func.func @f(%x: tensor<?x4xf32>, %h: tensor<?x4xf16>, %ids: tensor<?xi32>) -> tensor<?x2xf32> {
  %w = llm.get_weight @matrix : tensor<2x4xf32>
  %b = llm.get_weight @bias : tensor<2xf32>
  %n = llm.get_weight @norm : tensor<4xf32>
  %t = llm.get_weight @table : tensor<4x4xf64>
  %s = llm.get_weight @narrow : tensor<2x4xf16>
  %0 = llm.rms_norm %x, %n {axis = -1 : i64, epsilon = 1.0e-5 : f64} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = llm.linear %0, %w bias(%b) : (tensor<?x4xf32>, tensor<2x4xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %2 = llm.embedding %ids, %t : (tensor<?xi32>, tensor<4x4xf64>) -> tensor<?x4xf64>
  %3 = llm.linear %h, %s : (tensor<?x4xf16>, tensor<2x4xf16>) -> tensor<?x2xf16>
  return %1 : tensor<?x2xf32>
}
