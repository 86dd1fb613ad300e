// RUN: llm-opt %s --llm-quantize-weights='bits=4 group-size=8' | FileCheck %s
// RUN: llm-opt %s --llm-quantize-weights='bits=8 group-size=row' | FileCheck %s --check-prefix=ROW
// RUN: llm-opt %s --llm-quantize-weights='bits=4 group-size=8 symmetric=false' | FileCheck %s --check-prefix=ASYM
// RUN: llm-opt %s --llm-quantize-weights='bits=2 group-size=16 match=plain|w?de' | FileCheck %s --check-prefix=MATCH
// RUN: llm-opt %s --llm-quantize-weights='bits=4 group-size=8 where=head' | FileCheck %s --check-prefix=HEAD
// RUN: llm-opt %s --llm-quantize-weights='bits=4 group-size=8 where=layers' | FileCheck %s --check-prefix=LAYERS
// RUN: llm-opt %s --llm-quantize-weights='bits=4 group-size=16 factor-group=8' | FileCheck %s --check-prefix=FACTORS

// -8 gets code 0 and 7 code 15: the scale is 1. The second group has two elements
// and zeros behind them; its scale is -1, so that 8 gets code 0.
// CHECK: llm.weight @plain : tensor<1x10xf32> = #llm.affine<bits = 4, group_size = 8,
// CHECK-SAME: data = <"data", tensor<1x8xui8>, dense<{{\[\[}}8, 169, 203, 15, 144, 136, 136, 136]]> : tensor<1x8xui8>>,
// CHECK-SAME: scales = <"scales", tensor<1x2xf16>, dense<{{\[\[}}1.000000e+00, -1.000000e+00]]> : tensor<1x2xf16>>>
// One group of 10 inputs, rounded up to 16 codes. Of -8 and 8 the negative one
// sets the scale, 8 is clipped to 127 / 16.
// ROW: llm.weight @plain : tensor<1x10xf32> = #llm.affine<bits = 8, group_size = 16,
// ROW-SAME: data = <"data", tensor<1x16xui8>, dense<{{\[\[}}128, 0, 144, 160, 176, 192, 240, 0, 255, 112, 128, 128, 128, 128, 128, 128]]> : tensor<1x16xui8>>,
// ROW-SAME: dense<6.250000e-02> : tensor<1x1xf16>
// From -8 to 7 is 15 steps, with the zero point 8. From -1 to 8 the scale is 0.6,
// as f16 has it, and the zero point round(1 / 0.6) = 2.
// ASYM: llm.weight @plain {{.*}} data = <"data", tensor<1x8xui8>, dense<{{\[\[}}8, 169, 203, 15, 15, 34, 34, 34]]> : tensor<1x8xui8>>,
// ASYM-SAME: dense<{{\[\[}}1.000000e+00, 6.000980e-01]]> : tensor<1x2xf16>
// ASYM-SAME: zeros = <"zeros", tensor<1x1xui8>, dense<40> : tensor<1x1xui8>>
// Scales of 1 and -1 are multiples of 1/8, which no smaller unit of 6 bits has.
// FACTORS: llm.weight @plain {{.*}} data = <"data", tensor<1x8xui8>, dense<{{\[\[}}8, 169, 203, 15, 144, 136, 136, 136]]> : tensor<1x8xui8>>,
// FACTORS-SAME: scales = <"scales", tensor<1x1xf32>, dense<1.250000e-01> : tensor<1x1xf32>>, factor_group = 8,
// FACTORS-SAME: factors = <"factors", tensor<1x2xi8>, dense<{{\[\[}}8, -8]]> : tensor<1x2xi8>>>
// Too small for such a unit, but not beside larger ones.
// FACTORS: llm.weight @tiny {{.*}} = #llm.affine<bits = 4, group_size = 8, {{.*}} dense<{{\[\[}}-1.250000e-01], [-1.250000e-10]]> : tensor<2x1xf32>>>
// FACTORS: llm.weight @beside {{.*}} factors = <"factors", tensor<1x2xi8>, dense<{{\[\[}}-15, -1]]> : tensor<1x2xi8>>>
llm.weight @plain : tensor<1x10xf32> = #llm.dense<#llm.component<"data", tensor<1x10xf32>,
  dense<[[-0.0, -8.0, 1.0, 2.0, 3.0, 4.0, 7.0, -8.0, 8.0, -1.0]]> : tensor<1x10xf32>>>

// Turned around: the same rows as if stored [outputs, inputs].
// CHECK: llm.weight @turned : tensor<3x8xf32> = #llm.affine<bits = 4, group_size = 8,
// CHECK-SAME: dense<{{\[\[}}7, 136, 136, 136], [136, 136, 136, 136], [152, 186, 220, 14]]> : tensor<3x4xui8>
// CHECK-SAME: dense<{{\[\[}}-1.250000e-01], [0.000000e+00], [-1.000000e+00]]> : tensor<3x1xf16>
llm.weight @turned : tensor<8x3xf32> = #llm.dense<#llm.component<"data", tensor<8x3xf32>,
  dense<[[0.125, 0.0, 0.0], [1.0, 0.0, -1.0], [0.0, 0.0, -2.0], [0.0, 0.0, -3.0],
         [0.0, 0.0, -4.0], [0.0, 0.0, -5.0], [0.0, 0.0, -6.0], [0.0, 0.0, 8.0]]> : tensor<8x3xf32>>>

// 2^20 has no scale in f16, nor have rows of 2^-30.
// CHECK: llm.weight @huge {{.*}} dense<-1.310720e+05> : tensor<1x1xf32>
// CHECK: llm.weight @tiny {{.*}} tensor<2x1xf32>
// A tiny group is no matter where its row has larger ones.
// CHECK: llm.weight @beside {{.*}} scales = <"scales", tensor<1x2xf16>, dense<{{\[\[}}-1.250000e-01, -0.000000e+00]]> : tensor<1x2xf16>>
llm.weight @huge : tensor<1x8xf32> = #llm.dense<#llm.component<"data", tensor<1x8xf32>, dense<1048576.0> : tensor<1x8xf32>>>
llm.weight @tiny : tensor<2x8xf32> = #llm.dense<#llm.component<"data", tensor<2x8xf32>,
  dense<[[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0e-9, 1.0e-9, 1.0e-9, 1.0e-9, 1.0e-9, 1.0e-9, 1.0e-9, 1.0e-9]]> : tensor<2x8xf32>>>
llm.weight @beside : tensor<1x16xf32> = #llm.dense<#llm.component<"data", tensor<1x16xf32>,
  dense<[[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0e-9, 1.0e-9, 1.0e-9, 1.0e-9, 1.0e-9, 1.0e-9, 1.0e-9, 1.0e-9]]> : tensor<1x16xf32>>>

// What else reads a weight wants it dense; a vector is no matrix; a table of
// embeddings alone is no product's.
// CHECK: llm.weight @added : tensor<1x8xf32> = #llm.dense
// CHECK: llm.weight @norm : tensor<8xf32> = #llm.dense
// CHECK: llm.weight @table : tensor<4x8xf32> = #llm.dense
// CHECK: llm.weight @tied : tensor<4x8xf32> = #llm.affine
// CHECK: llm.weight @unused : tensor<4x8xf32> = #llm.dense
llm.weight @added : tensor<1x8xf32> = #llm.dense<#llm.component<"data", tensor<1x8xf32>, dense<1.0> : tensor<1x8xf32>>>
llm.weight @norm : tensor<8xf32> = #llm.dense<#llm.component<"data", tensor<8xf32>, dense<1.0> : tensor<8xf32>>>
llm.weight @table : tensor<4x8xf32> = #llm.dense<#llm.component<"data", tensor<4x8xf32>, dense<1.0> : tensor<4x8xf32>>>
llm.weight @tied : tensor<4x8xf32> = #llm.dense<#llm.component<"data", tensor<4x8xf32>, dense<1.0> : tensor<4x8xf32>>>
llm.weight @unused : tensor<4x8xf32> = #llm.dense<#llm.component<"data", tensor<4x8xf32>, dense<1.0> : tensor<4x8xf32>>>

// Quantized already: left as it is.
// CHECK: llm.weight @done : tensor<1x8xf32> = #llm.affine<bits = 8,
llm.weight @done : tensor<1x8xf32> = #llm.affine<bits = 8, group_size = 8,
  data = #llm.component<"data", tensor<1x8xui8>, dense<129> : tensor<1x8xui8>>,
  scales = #llm.component<"scales", tensor<1x1xf32>, dense<0.5> : tensor<1x1xf32>>>

// MATCH: @plain : tensor<1x10xf32> = #llm.affine<bits = 2, group_size = 16,
// MATCH: @turned : tensor<8x3xf32> = #llm.dense

// HEAD: @plain : tensor<1x10xf32> = #llm.affine
// HEAD: @turned : tensor<8x3xf32> = #llm.dense
// LAYERS: @plain : tensor<1x10xf32> = #llm.dense
// LAYERS: @turned : tensor<3x8xf32> = #llm.affine
// LAYERS: @huge {{.*}} = #llm.dense

// CHECK-LABEL: func.func private @layer
// CHECK: %[[W:.*]] = llm.get_weight @turned : tensor<3x8xf32>
// CHECK: llm.linear %{{.*}}, %[[W]] : (tensor<?x8xf32>, tensor<3x8xf32>) -> tensor<?x3xf32>
func.func private @layer(%x: tensor<?x8xf32>) -> tensor<?x3xf32> attributes {llm.model = "m", llm.layer = 0 : i64} {
  %w = llm.get_weight @turned : tensor<8x3xf32>
  %y = llm.linear %x, %w {transposed} : (tensor<?x8xf32>, tensor<8x3xf32>) -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}

func.func @m(%x: tensor<?x10xf32>) -> tensor<?x1xf32> attributes {llm.model = "m"} {
  %w = llm.get_weight @plain : tensor<1x10xf32>
  %y = llm.linear %x, %w : (tensor<?x10xf32>, tensor<1x10xf32>) -> tensor<?x1xf32>
  return %y : tensor<?x1xf32>
}

func.func @others(%x: tensor<?x8xf32>, %long: tensor<?x16xf32>, %ids: tensor<?xi32>) {
  %huge = llm.get_weight @huge : tensor<1x8xf32>
  %0 = llm.linear %x, %huge : (tensor<?x8xf32>, tensor<1x8xf32>) -> tensor<?x1xf32>
  %tiny = llm.get_weight @tiny : tensor<2x8xf32>
  %1 = llm.linear %x, %tiny : (tensor<?x8xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  %beside = llm.get_weight @beside : tensor<1x16xf32>
  %2 = llm.linear %long, %beside : (tensor<?x16xf32>, tensor<1x16xf32>) -> tensor<?x1xf32>
  %added = llm.get_weight @added : tensor<1x8xf32>
  %3 = llm.linear %x, %added : (tensor<?x8xf32>, tensor<1x8xf32>) -> tensor<?x1xf32>
  %4 = llm.add %x, %added : (tensor<?x8xf32>, tensor<1x8xf32>) -> tensor<?x8xf32>
  %norm = llm.get_weight @norm : tensor<8xf32>
  %5 = llm.rms_norm %x, %norm {axis = -1 : i64, epsilon = 1.0e-5 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %table = llm.get_weight @table : tensor<4x8xf32>
  %6 = llm.embedding %ids, %table : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %tied = llm.get_weight @tied : tensor<4x8xf32>
  %7 = llm.embedding %ids, %tied : (tensor<?xi32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %8 = llm.linear %x, %tied : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %done = llm.get_weight @done : tensor<1x8xf32>
  %9 = llm.linear %x, %done : (tensor<?x8xf32>, tensor<1x8xf32>) -> tensor<?x1xf32>
  return
}
