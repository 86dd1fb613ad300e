// Each op, attribute, type and optional form, there and back: as it is printed
// and in the generic form.
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt %s --mlir-print-op-generic | llm-opt | FileCheck %s

// CHECK-LABEL: module @source
// CHECK-SAME: attributes {llm.source = {path = "m.onnx"}} {
module @source attributes {llm.source = {path = "m.onnx"}} {
}

// CHECK: llm.weight @dense : tensor<2xf32> = #llm.dense<<"data", tensor<2xf32>, dense<[1.000000e+00, -5.000000e-01]> : tensor<2xf32>>>
llm.weight @dense : tensor<2xf32> = #llm.dense<#llm.component<"data", tensor<2xf32>, dense<[1.0, -0.5]> : tensor<2xf32>>>
// CHECK: llm.weight @spanned : tensor<4x8xf32> = #llm.dense<<"data", tensor<4x8xf32>, #llm.span<"a b/m.data", 4096, 128, "0123456789abcdef">>>
llm.weight @spanned : tensor<4x8xf32> = #llm.dense<#llm.component<"data", tensor<4x8xf32>, #llm.span<"a b/m.data", 4096, 128, "0123456789abcdef">>>
// CHECK: llm.weight @bits : tensor<3x5xi4> = #llm.dense<<"data", tensor<3x5xi4>, #llm.span<"m.data", 0, 8, "0123456789ABCDEF">>> {sym_visibility = "private"}
llm.weight @bits : tensor<3x5xi4> = #llm.dense<#llm.component<"data", tensor<3x5xi4>, #llm.span<"m.data", 0, 8, "0123456789ABCDEF">>> {sym_visibility = "private"}
// CHECK: llm.weight @symmetric : tensor<2x33xf32> = #llm.affine<bits = 4, group_size = 32, data = <"data", tensor<2x32xui8>, #llm.span<"m.onnx", 64, 64, "0123456789abcdef">>, scales = <"scales", tensor<2x2xf32>, dense<5.000000e-01> : tensor<2x2xf32>>>
llm.weight @symmetric : tensor<2x33xf32> = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x32xui8>, #llm.span<"m.onnx", 64, 64, "0123456789abcdef">>, scales = #llm.component<"scales", tensor<2x2xf32>, dense<0.5> : tensor<2x2xf32>>>
// CHECK: llm.weight @factors : tensor<2x40xf32> = #llm.affine<bits = 4, group_size = 64, data = <"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = <"scales", tensor<2x1xf32>, dense<5.000000e-01> : tensor<2x1xf32>>, factor_group = 32, factors = <"factors", tensor<2x2xi8>, dense<-15> : tensor<2x2xi8>>>
llm.weight @factors : tensor<2x40xf32> = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, factor_group = 32, factors = #llm.component<"factors", tensor<2x2xi8>, dense<-15> : tensor<2x2xi8>>>
// CHECK: llm.weight @packed_zeros : tensor<2x48xf16> = #llm.affine<bits = 2, group_size = 16, data = <"data", tensor<2x12xui8>, dense<0> : tensor<2x12xui8>>, scales = <"scales", tensor<2x3xf16>, dense<5.000000e-01> : tensor<2x3xf16>>, zeros = <"zeros", tensor<2x1xui8>, dense<3> : tensor<2x1xui8>>>
llm.weight @packed_zeros : tensor<2x48xf16> = #llm.affine<bits = 2, group_size = 16, data = #llm.component<"data", tensor<2x12xui8>, dense<0> : tensor<2x12xui8>>, scales = #llm.component<"scales", tensor<2x3xf16>, dense<0.5> : tensor<2x3xf16>>, zeros = #llm.component<"zeros", tensor<2x1xui8>, dense<3> : tensor<2x1xui8>>>
// CHECK: llm.weight @float_zeros : tensor<1x8xf32> = #llm.affine<bits = 8, group_size = 8, data = <"data", tensor<1x8xui8>, dense<0> : tensor<1x8xui8>>, scales = <"scales", tensor<1x1xbf16>, dense<5.000000e-01> : tensor<1x1xbf16>>, zeros = <"zeros", tensor<1x1xbf16>, dense<3.000000e+00> : tensor<1x1xbf16>>>
llm.weight @float_zeros : tensor<1x8xf32> = #llm.affine<bits = 8, group_size = 8, data = #llm.component<"data", tensor<1x8xui8>, dense<0> : tensor<1x8xui8>>, scales = #llm.component<"scales", tensor<1x1xbf16>, dense<0.5> : tensor<1x1xbf16>>, zeros = #llm.component<"zeros", tensor<1x1xbf16>, dense<3.0> : tensor<1x1xbf16>>>

// CHECK-LABEL: func.func @weights
// CHECK-SAME: () {
func.func @weights() {
  // CHECK-NEXT: %0 = llm.constant dense<[0, -1]> : tensor<2xi64>
  %0 = llm.constant dense<[0, -1]> : tensor<2xi64>
  // CHECK-NEXT: %1 = llm.constant dense<true> : tensor<i1>
  %1 = llm.constant dense<true> : tensor<i1>
  // CHECK-NEXT: %2 = llm.constant dense<> : tensor<0xf32>
  %2 = llm.constant dense<> : tensor<0xf32>
  // CHECK-NEXT: %3 = llm.get_weight @dense : tensor<2xf32>
  %3 = llm.get_weight @dense : tensor<2xf32>
  // CHECK-NEXT: %4 = llm.get_weight @symmetric : tensor<2x33xf32>
  %4 = llm.get_weight @symmetric : tensor<2x33xf32>
  return
}

// CHECK-LABEL: func.func @boundary
// CHECK-SAME: (%arg0: tensor<?x2xf32> {llm.dims = ["batch", ""], llm.name = "x"}) -> (tensor<?x2xf32> {llm.dims = ["batch", ""], llm.name = "y"}) attributes {llm.not_decoder = "no cache"} {
func.func @boundary(%arg0: tensor<?x2xf32> {llm.dims = ["batch", ""], llm.name = "x"}) -> (tensor<?x2xf32> {llm.dims = ["batch", ""], llm.name = "y"}) attributes {llm.not_decoder = "no cache"} {
  // CHECK-NEXT: return %arg0 : tensor<?x2xf32>
  return %arg0 : tensor<?x2xf32>
}

// CHECK-LABEL: func.func @attention
// CHECK-SAME: (%arg0: tensor<1x4x8xf32>, %arg1: tensor<1x4x4xf32>, %arg2: tensor<1x1x?x4xf32>, %arg3: tensor<1x2x4x?xi1>, %arg4: tensor<1xi64>) {
func.func @attention(%arg0: tensor<1x4x8xf32>, %arg1: tensor<1x4x4xf32>, %arg2: tensor<1x1x?x4xf32>, %arg3: tensor<1x2x4x?xi1>, %arg4: tensor<1xi64>) {
  // CHECK-NEXT: %output = llm.attention %arg0, %arg1, %arg1 {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.000000e+00 : f64} : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
  %0 = llm.attention %arg0, %arg1, %arg1 {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.000000e+00 : f64} : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
  // CHECK-NEXT: %output_0 = llm.attention %arg0, %arg1, %arg1 mask(%arg3) {causal, kv_heads = 1 : i64, num_heads = 2 : i64, scale = 5.000000e-01 : f64, softcap = 3.000000e+01 : f64, window = 16 : i64} : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1x2x4x?xi1>) -> tensor<1x4x8xf32>
  %1 = llm.attention %arg0, %arg1, %arg1 mask(%arg3) {causal, kv_heads = 1 : i64, num_heads = 2 : i64, scale = 5.000000e-01 : f64, softcap = 3.000000e+01 : f64, window = 16 : i64} : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1x2x4x?xi1>) -> tensor<1x4x8xf32>
  // CHECK-NEXT: %output_1 = llm.attention %arg0, %arg1, %arg1 nonpad(%arg4) {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.000000e+00 : f64} : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1xi64>) -> tensor<1x4x8xf32>
  %2 = llm.attention %arg0, %arg1, %arg1 nonpad(%arg4) {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.000000e+00 : f64} : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1xi64>) -> tensor<1x4x8xf32>
  // CHECK-NEXT: %output_2, %present:2 = llm.attention %arg0, %arg1, %arg1 past(%arg2, %arg2) mask(%arg3) {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.000000e+00 : f64} : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x2x4x?xi1>) -> (tensor<1x4x8xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>)
  %3:3 = llm.attention %arg0, %arg1, %arg1 past(%arg2, %arg2) mask(%arg3) {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.000000e+00 : f64} : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x2x4x?xi1>) -> (tensor<1x4x8xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>)
  // CHECK-NEXT: %output_3 = llm.attention %arg2, %arg2, %arg2 {kv_heads = 1 : i64, num_heads = 1 : i64, scale = 1.000000e+00 : f64} : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %4 = llm.attention %arg2, %arg2, %arg2 {kv_heads = 1 : i64, num_heads = 1 : i64, scale = 1.000000e+00 : f64} : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  return
}

// CHECK-LABEL: func.func @embedding
// CHECK-SAME: (%arg0: tensor<?x?xi64>, %arg1: tensor<512x64xf32>) {
func.func @embedding(%arg0: tensor<?x?xi64>, %arg1: tensor<512x64xf32>) {
  // CHECK-NEXT: %0 = llm.embedding %arg0, %arg1 : (tensor<?x?xi64>, tensor<512x64xf32>) -> tensor<?x?x64xf32>
  %0 = llm.embedding %arg0, %arg1 : (tensor<?x?xi64>, tensor<512x64xf32>) -> tensor<?x?x64xf32>
  return
}

// CHECK-LABEL: func.func @group_query_attention
// CHECK-SAME: (%arg0: tensor<?x?x64xf32>, %arg1: tensor<?x?x32xf32>, %arg2: tensor<?x2x?x16xf32>, %arg3: tensor<?xi32>, %arg4: tensor<i32>, %arg5: tensor<128x8xf32>, %arg6: tensor<?x?xi64>, %arg7: tensor<1x1x?x?xf32>, %arg8: tensor<4xf32>) {
func.func @group_query_attention(%arg0: tensor<?x?x64xf32>, %arg1: tensor<?x?x32xf32>, %arg2: tensor<?x2x?x16xf32>, %arg3: tensor<?xi32>, %arg4: tensor<i32>, %arg5: tensor<128x8xf32>, %arg6: tensor<?x?xi64>, %arg7: tensor<1x1x?x?xf32>, %arg8: tensor<4xf32>) {
  // CHECK-NEXT: %output = llm.group_query_attention %arg0, %arg1, %arg1 lengths(%arg3, %arg4) {kv_heads = 2 : i64, num_heads = 4 : i64, scale = 2.500000e-01 : f64} : (tensor<?x?x64xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x?x64xf32>
  %0 = llm.group_query_attention %arg0, %arg1, %arg1 lengths(%arg3, %arg4) {kv_heads = 2 : i64, num_heads = 4 : i64, scale = 2.500000e-01 : f64} : (tensor<?x?x64xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x?x64xf32>
  // CHECK-NEXT: %output_0, %present:2 = llm.group_query_attention %arg0, %arg1, %arg1 past(%arg2, %arg2) lengths(%arg3, %arg4) rotary(%arg5, %arg5) positions(%arg6) bias(%arg7) sink(%arg8) {interleaved, kv_heads = 2 : i64, num_heads = 4 : i64, scale = 2.500000e-01 : f64, smooth_softmax, softcap = 1.000000e+00 : f64, window = 8 : i64} : (tensor<?x?x64xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?xi32>, tensor<i32>, tensor<128x8xf32>, tensor<128x8xf32>, tensor<?x?xi64>, tensor<1x1x?x?xf32>, tensor<4xf32>) -> (tensor<?x?x64xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>)
  %1:3 = llm.group_query_attention %arg0, %arg1, %arg1 past(%arg2, %arg2) lengths(%arg3, %arg4) rotary(%arg5, %arg5) positions(%arg6) bias(%arg7) sink(%arg8) {interleaved, kv_heads = 2 : i64, num_heads = 4 : i64, scale = 2.500000e-01 : f64, smooth_softmax, softcap = 1.000000e+00 : f64, window = 8 : i64} : (tensor<?x?x64xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?xi32>, tensor<i32>, tensor<128x8xf32>, tensor<128x8xf32>, tensor<?x?xi64>, tensor<1x1x?x?xf32>, tensor<4xf32>) -> (tensor<?x?x64xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>)
  return
}

// CHECK-LABEL: func.func @norms
// CHECK-SAME: (%arg0: tensor<?x8xf32>, %arg1: tensor<8xf32>) {
func.func @norms(%arg0: tensor<?x8xf32>, %arg1: tensor<8xf32>) {
  // CHECK-NEXT: %0 = llm.layer_norm %arg0, %arg1 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %0 = llm.layer_norm %arg0, %arg1 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK-NEXT: %1 = llm.layer_norm %arg0, %arg1 bias(%arg1) {axis = 1 : i64, epsilon = 9.9999999999999995E-7 : f64} : (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = llm.layer_norm %arg0, %arg1 bias(%arg1) {axis = 1 : i64, epsilon = 1.000000e-06 : f64} : (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK-NEXT: %2 = llm.rms_norm %arg0, %arg1 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %2 = llm.rms_norm %arg0, %arg1 : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK-NEXT: %3 = llm.rms_norm %arg0, %arg1 {axis = 0 : i64, epsilon = 9.9999999999999995E-7 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %3 = llm.rms_norm %arg0, %arg1 {axis = 0 : i64, epsilon = 1.000000e-06 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @linear
// CHECK-SAME: (%arg0: tensor<?x?x4xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<8xf32>, %arg3: tensor<4x8xf32>) {
func.func @linear(%arg0: tensor<?x?x4xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<8xf32>, %arg3: tensor<4x8xf32>) {
  // CHECK-NEXT: %0 = llm.linear %arg0, %arg1 : (tensor<?x?x4xf32>, tensor<8x4xf32>) -> tensor<?x?x8xf32>
  %0 = llm.linear %arg0, %arg1 : (tensor<?x?x4xf32>, tensor<8x4xf32>) -> tensor<?x?x8xf32>
  // CHECK-NEXT: %1 = llm.linear %arg0, %arg1 bias(%arg2) {accuracy_level = 4 : i64} : (tensor<?x?x4xf32>, tensor<8x4xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
  %1 = llm.linear %arg0, %arg1 bias(%arg2) {accuracy_level = 4 : i64} : (tensor<?x?x4xf32>, tensor<8x4xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
  // CHECK-NEXT: %2 = llm.linear %arg0, %arg3 {transposed} : (tensor<?x?x4xf32>, tensor<4x8xf32>) -> tensor<?x?x8xf32>
  %2 = llm.linear %arg0, %arg3 {transposed} : (tensor<?x?x4xf32>, tensor<4x8xf32>) -> tensor<?x?x8xf32>
  return
}

// CHECK-LABEL: func.func @rope
// CHECK-SAME: (%arg0: tensor<?x?x8xf32>, %arg1: tensor<16x2xf32>, %arg2: tensor<?x?xi64>, %arg3: tensor<1x2x?x4xf32>, %arg4: tensor<1x?x1xf32>, %arg5: tensor<?x8xf32>) {
func.func @rope(%arg0: tensor<?x?x8xf32>, %arg1: tensor<16x2xf32>, %arg2: tensor<?x?xi64>, %arg3: tensor<1x2x?x4xf32>, %arg4: tensor<1x?x1xf32>, %arg5: tensor<?x8xf32>) {
  // CHECK-NEXT: %0 = llm.rope %arg0, %arg1, %arg1 positions(%arg2) {num_heads = 2 : i64} : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %0 = llm.rope %arg0, %arg1, %arg1 positions(%arg2) {num_heads = 2 : i64} : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  // CHECK-NEXT: %1 = llm.rope %arg3, %arg4, %arg4 {interleaved, rotary_dim = 2 : i64} : (tensor<1x2x?x4xf32>, tensor<1x?x1xf32>, tensor<1x?x1xf32>) -> tensor<1x2x?x4xf32>
  %1 = llm.rope %arg3, %arg4, %arg4 {interleaved, rotary_dim = 2 : i64} : (tensor<1x2x?x4xf32>, tensor<1x?x1xf32>, tensor<1x?x1xf32>) -> tensor<1x2x?x4xf32>
  // CHECK-NEXT: %2 = llm.rope %arg5, %arg1, %arg1 {num_heads = 2 : i64} : (tensor<?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<?x8xf32>
  %2 = llm.rope %arg5, %arg1, %arg1 {num_heads = 2 : i64} : (tensor<?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @unary
// CHECK-SAME: (%arg0: tensor<?x4xf32>, %arg1: tensor<3xi64>, %arg2: tensor<2xi1>, %arg3: tensor<f16>) {
func.func @unary(%arg0: tensor<?x4xf32>, %arg1: tensor<3xi64>, %arg2: tensor<2xi1>, %arg3: tensor<f16>) {
  // CHECK-NEXT: %0 = llm.abs %arg0 : tensor<?x4xf32>
  %0 = llm.abs %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %1 = llm.ceil %arg0 : tensor<?x4xf32>
  %1 = llm.ceil %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %2 = llm.cos %arg0 : tensor<?x4xf32>
  %2 = llm.cos %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %3 = llm.erf %arg0 : tensor<?x4xf32>
  %3 = llm.erf %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %4 = llm.exp %arg3 : tensor<f16>
  %4 = llm.exp %arg3 : tensor<f16>
  // CHECK-NEXT: %5 = llm.floor %arg0 : tensor<?x4xf32>
  %5 = llm.floor %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %6 = llm.log %arg0 : tensor<?x4xf32>
  %6 = llm.log %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %7 = llm.neg %arg1 : tensor<3xi64>
  %7 = llm.neg %arg1 : tensor<3xi64>
  // CHECK-NEXT: %8 = llm.not %arg2 : tensor<2xi1>
  %8 = llm.not %arg2 : tensor<2xi1>
  // CHECK-NEXT: %9 = llm.reciprocal %arg0 : tensor<?x4xf32>
  %9 = llm.reciprocal %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %10 = llm.relu %arg0 : tensor<?x4xf32>
  %10 = llm.relu %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %11 = llm.round %arg0 : tensor<?x4xf32>
  %11 = llm.round %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %12 = llm.sigmoid %arg0 : tensor<?x4xf32>
  %12 = llm.sigmoid %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %13 = llm.sign %arg1 : tensor<3xi64>
  %13 = llm.sign %arg1 : tensor<3xi64>
  // CHECK-NEXT: %14 = llm.silu %arg0 : tensor<?x4xf32>
  %14 = llm.silu %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %15 = llm.sin %arg0 : tensor<?x4xf32>
  %15 = llm.sin %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %16 = llm.softplus %arg0 : tensor<?x4xf32>
  %16 = llm.softplus %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %17 = llm.sqrt %arg0 : tensor<?x4xf32>
  %17 = llm.sqrt %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %18 = llm.tanh %arg0 : tensor<?x4xf32>
  %18 = llm.tanh %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %19 = llm.gelu %arg0 : tensor<?x4xf32>
  %19 = llm.gelu %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %20 = llm.gelu %arg0 {approximation = 1 : i32} : tensor<?x4xf32>
  %20 = llm.gelu %arg0 {approximation = 1 : i32} : tensor<?x4xf32>
  // CHECK-NEXT: %21 = llm.gelu %arg0 {approximation = 2 : i32} : tensor<?x4xf32>
  %21 = llm.gelu %arg0 {approximation = 2 : i32} : tensor<?x4xf32>
  // CHECK-NEXT: %22 = llm.cast %arg0 : tensor<?x4xf32> -> tensor<?x4xf16>
  %22 = llm.cast %arg0 : tensor<?x4xf32> -> tensor<?x4xf16>
  // CHECK-NEXT: %23 = llm.cast %arg0 {saturate = false} : tensor<?x4xf32> -> tensor<2x4xf8E4M3FN>
  %23 = llm.cast %arg0 {saturate = false} : tensor<?x4xf32> -> tensor<2x4xf8E4M3FN>
  return
}

// CHECK-LABEL: func.func @binary
// CHECK-SAME: (%arg0: tensor<?x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<2x1xi64>, %arg3: tensor<3xi64>, %arg4: tensor<?xi1>, %arg5: tensor<i1>, %arg6: tensor<4xi64>) {
func.func @binary(%arg0: tensor<?x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<2x1xi64>, %arg3: tensor<3xi64>, %arg4: tensor<?xi1>, %arg5: tensor<i1>, %arg6: tensor<4xi64>) {
  // CHECK-NEXT: %0 = llm.add %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %0 = llm.add %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %1 = llm.div %arg2, %arg3 : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<2x3xi64>
  %1 = llm.div %arg2, %arg3 : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<2x3xi64>
  // CHECK-NEXT: %2 = llm.max %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %2 = llm.max %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %3 = llm.min %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %3 = llm.min %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %4 = llm.mod %arg2, %arg3 : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<2x3xi64>
  %4 = llm.mod %arg2, %arg3 : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<2x3xi64>
  // CHECK-NEXT: %5 = llm.mod %arg0, %arg1 {fmod} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %5 = llm.mod %arg0, %arg1 {fmod} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %6 = llm.mul %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %6 = llm.mul %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %7 = llm.pow %arg1, %arg6 : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %7 = llm.pow %arg1, %arg6 : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  // CHECK-NEXT: %8 = llm.sub %arg1, %arg0 : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %8 = llm.sub %arg1, %arg0 : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %9 = llm.and %arg4, %arg5 : (tensor<?xi1>, tensor<i1>) -> tensor<?xi1>
  %9 = llm.and %arg4, %arg5 : (tensor<?xi1>, tensor<i1>) -> tensor<?xi1>
  // CHECK-NEXT: %10 = llm.or %arg2, %arg3 : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<2x3xi64>
  %10 = llm.or %arg2, %arg3 : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<2x3xi64>
  // CHECK-NEXT: %11 = llm.xor %arg4, %arg5 : (tensor<?xi1>, tensor<i1>) -> tensor<?xi1>
  %11 = llm.xor %arg4, %arg5 : (tensor<?xi1>, tensor<i1>) -> tensor<?xi1>
  // CHECK-NEXT: %12 = llm.equal %arg4, %arg5 : (tensor<?xi1>, tensor<i1>) -> tensor<?xi1>
  %12 = llm.equal %arg4, %arg5 : (tensor<?xi1>, tensor<i1>) -> tensor<?xi1>
  // CHECK-NEXT: %13 = llm.greater %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xi1>
  %13 = llm.greater %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xi1>
  // CHECK-NEXT: %14 = llm.greater_equal %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xi1>
  %14 = llm.greater_equal %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xi1>
  // CHECK-NEXT: %15 = llm.less %arg2, %arg3 : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<2x3xi1>
  %15 = llm.less %arg2, %arg3 : (tensor<2x1xi64>, tensor<3xi64>) -> tensor<2x3xi1>
  // CHECK-NEXT: %16 = llm.less_equal %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xi1>
  %16 = llm.less_equal %arg0, %arg1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xi1>
  return
}

// CHECK-LABEL: func.func @ternary
// CHECK-SAME: (%arg0: tensor<?x4xi1>, %arg1: tensor<4xf32>, %arg2: tensor<f32>, %arg3: tensor<1xf32>) {
func.func @ternary(%arg0: tensor<?x4xi1>, %arg1: tensor<4xf32>, %arg2: tensor<f32>, %arg3: tensor<1xf32>) {
  // CHECK-NEXT: %0 = llm.where %arg0, %arg1, %arg2 : (tensor<?x4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %0 = llm.where %arg0, %arg1, %arg2 : (tensor<?x4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %1 = llm.clip %arg1 : (tensor<4xf32>) -> tensor<4xf32>
  %1 = llm.clip %arg1 : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %2 = llm.clip %arg1 low(%arg2) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = llm.clip %arg1 low(%arg2) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK-NEXT: %3 = llm.clip %arg1 high(%arg3) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %3 = llm.clip %arg1 high(%arg3) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %4 = llm.clip %arg1 low(%arg2) high(%arg3) : (tensor<4xf32>, tensor<f32>, tensor<1xf32>) -> tensor<4xf32>
  %4 = llm.clip %arg1 low(%arg2) high(%arg3) : (tensor<4xf32>, tensor<f32>, tensor<1xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @fused_elementwise
// CHECK-SAME: (%arg0: tensor<?x8xf32>, %arg1: tensor<8xf32>) {
func.func @fused_elementwise(%arg0: tensor<?x8xf32>, %arg1: tensor<8xf32>) {
  // CHECK-NEXT: %0 = llm.fused_elementwise %arg0, %arg1 ["in0", "silu", "in1", "mul", "const:0x3f800000", "add"] : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %0 = llm.fused_elementwise %arg0, %arg1 ["in0", "silu", "in1", "mul", "const:0x3f800000", "add"] : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @reductions
// CHECK-SAME: (%arg0: tensor<?x4xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<1xi64>, %arg3: tensor<4xf32>) {
func.func @reductions(%arg0: tensor<?x4xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<1xi64>, %arg3: tensor<4xf32>) {
  // CHECK-NEXT: %0 = llm.argmax %arg0 {axis = -1 : i64} : tensor<?x4xf32> -> tensor<?xi64>
  %0 = llm.argmax %arg0 {axis = -1 : i64} : tensor<?x4xf32> -> tensor<?xi64>
  // CHECK-NEXT: %1 = llm.argmax %arg0 {axis = 0 : i64, keepdims, minimum, select_last_index} : tensor<?x4xf32> -> tensor<1x4xi64>
  %1 = llm.argmax %arg0 {axis = 0 : i64, keepdims, minimum, select_last_index} : tensor<?x4xf32> -> tensor<1x4xi64>
  // CHECK-NEXT: %2 = llm.cumsum %arg0 {axis = 1 : i64} : tensor<?x4xf32>
  %2 = llm.cumsum %arg0 {axis = 1 : i64} : tensor<?x4xf32>
  // CHECK-NEXT: %3 = llm.cumsum %arg0 {axis = -2 : i64, exclusive, reverse} : tensor<?x4xf32>
  %3 = llm.cumsum %arg0 {axis = -2 : i64, exclusive, reverse} : tensor<?x4xf32>
  // CHECK-NEXT: %4 = llm.matmul %arg0, %arg1 : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  %4 = llm.matmul %arg0, %arg1 : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  // CHECK-NEXT: %5 = llm.matmul %arg3, %arg3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %5 = llm.matmul %arg3, %arg3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  // CHECK-NEXT: %6 = llm.softmax %arg0 : tensor<?x4xf32>
  %6 = llm.softmax %arg0 : tensor<?x4xf32>
  // CHECK-NEXT: %7 = llm.softmax %arg0 {axis = 0 : i64, log} : tensor<?x4xf32>
  %7 = llm.softmax %arg0 {axis = 0 : i64, log} : tensor<?x4xf32>
  // CHECK-NEXT: %values, %indices = llm.topk %arg0, %arg2 {axis = -1 : i64, largest, sorted} : (tensor<?x4xf32>, tensor<1xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>)
  %8:2 = llm.topk %arg0, %arg2 {axis = -1 : i64, largest, sorted} : (tensor<?x4xf32>, tensor<1xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>)
  // CHECK-NEXT: %values_0, %indices_1 = llm.topk %arg3, %arg2 {axis = 0 : i64} : (tensor<4xf32>, tensor<1xi64>) -> (tensor<2xf32>, tensor<2xi64>)
  %9:2 = llm.topk %arg3, %arg2 {axis = 0 : i64} : (tensor<4xf32>, tensor<1xi64>) -> (tensor<2xf32>, tensor<2xi64>)
  // CHECK-NEXT: %8 = llm.reduce sum %arg0 axes [] : tensor<?x4xf32> -> tensor<?x4xf32>
  %10 = llm.reduce sum %arg0 axes [] : tensor<?x4xf32> -> tensor<?x4xf32>
  // CHECK-NEXT: %9 = llm.reduce mean %arg0 axes [-1] keepdims : tensor<?x4xf32> -> tensor<?x1xf32>
  %11 = llm.reduce mean %arg0 axes [-1] keepdims : tensor<?x4xf32> -> tensor<?x1xf32>
  // CHECK-NEXT: %10 = llm.reduce max %arg0 axes [0, 1] : tensor<?x4xf32> -> tensor<f32>
  %12 = llm.reduce max %arg0 axes [0, 1] : tensor<?x4xf32> -> tensor<f32>
  // CHECK-NEXT: %11 = llm.reduce min %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  %13 = llm.reduce min %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  // CHECK-NEXT: %12 = llm.reduce prod %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  %14 = llm.reduce prod %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  // CHECK-NEXT: %13 = llm.reduce sum_square %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  %15 = llm.reduce sum_square %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  // CHECK-NEXT: %14 = llm.reduce l1 %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  %16 = llm.reduce l1 %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  // CHECK-NEXT: %15 = llm.reduce l2 %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  %17 = llm.reduce l2 %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  // CHECK-NEXT: %16 = llm.reduce log_sum %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  %18 = llm.reduce log_sum %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  // CHECK-NEXT: %17 = llm.reduce log_sum_exp %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  %19 = llm.reduce log_sum_exp %arg0 axes [0] : tensor<?x4xf32> -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @shapes
// CHECK-SAME: (%arg0: tensor<?x4xf32>, %arg1: tensor<2xi64>, %arg2: tensor<3xi64>, %arg3: tensor<i64>, %arg4: tensor<1x4xf32>, %arg5: tensor<?xi64>) {
func.func @shapes(%arg0: tensor<?x4xf32>, %arg1: tensor<2xi64>, %arg2: tensor<3xi64>, %arg3: tensor<i64>, %arg4: tensor<1x4xf32>, %arg5: tensor<?xi64>) {
  // CHECK-NEXT: %0 = llm.constant_of_shape %arg1 {value = dense<0.000000e+00> : tensor<1xf32>} : tensor<2xi64> -> tensor<?x?xf32>
  %0 = llm.constant_of_shape %arg1 {value = dense<0.000000e+00> : tensor<1xf32>} : tensor<2xi64> -> tensor<?x?xf32>
  // CHECK-NEXT: %1 = llm.constant_of_shape %arg5 {value = dense<7> : tensor<1xi64>} : tensor<?xi64> -> tensor<?x3xi64>
  %1 = llm.constant_of_shape %arg5 {value = dense<7> : tensor<1xi64>} : tensor<?xi64> -> tensor<?x3xi64>
  // CHECK-NEXT: %2 = llm.expand %arg4, %arg2 : (tensor<1x4xf32>, tensor<3xi64>) -> tensor<2x?x4xf32>
  %2 = llm.expand %arg4, %arg2 : (tensor<1x4xf32>, tensor<3xi64>) -> tensor<2x?x4xf32>
  // CHECK-NEXT: %3 = llm.range %arg3, %arg3, %arg3 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %3 = llm.range %arg3, %arg3, %arg3 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  // CHECK-NEXT: %4 = llm.reshape %arg0, %arg2 : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<?x2x2xf32>
  %4 = llm.reshape %arg0, %arg2 : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<?x2x2xf32>
  // CHECK-NEXT: %5 = llm.reshape %arg0, %arg2 {allowzero} : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<0x2x?xf32>
  %5 = llm.reshape %arg0, %arg2 {allowzero} : (tensor<?x4xf32>, tensor<3xi64>) -> tensor<0x2x?xf32>
  // CHECK-NEXT: %6 = llm.shape %arg0 : tensor<?x4xf32> -> tensor<2xi64>
  %6 = llm.shape %arg0 : tensor<?x4xf32> -> tensor<2xi64>
  // CHECK-NEXT: %7 = llm.shape %arg0 {end = 9223372036854775807 : i64, start = -1 : i64} : tensor<?x4xf32> -> tensor<1xi64>
  %7 = llm.shape %arg0 {end = 9223372036854775807 : i64, start = -1 : i64} : tensor<?x4xf32> -> tensor<1xi64>
  // CHECK-NEXT: %8 = llm.squeeze %arg4 axes [0] : tensor<1x4xf32> -> tensor<4xf32>
  %8 = llm.squeeze %arg4 axes [0] : tensor<1x4xf32> -> tensor<4xf32>
  // CHECK-NEXT: %9 = llm.squeeze %arg0 axes [-2] : tensor<?x4xf32> -> tensor<4xf32>
  %9 = llm.squeeze %arg0 axes [-2] : tensor<?x4xf32> -> tensor<4xf32>
  // CHECK-NEXT: %10 = llm.tile %arg4, %arg1 : (tensor<1x4xf32>, tensor<2xi64>) -> tensor<3x8xf32>
  %10 = llm.tile %arg4, %arg1 : (tensor<1x4xf32>, tensor<2xi64>) -> tensor<3x8xf32>
  // CHECK-NEXT: %11 = llm.unsqueeze %arg0 axes [0, -1] : tensor<?x4xf32> -> tensor<1x?x4x1xf32>
  %11 = llm.unsqueeze %arg0 axes [0, -1] : tensor<?x4xf32> -> tensor<1x?x4x1xf32>
  return
}

// CHECK-LABEL: func.func @movement
// CHECK-SAME: (%arg0: tensor<?x4xf32>, %arg1: tensor<2x4xf32>, %arg2: tensor<2x1xi64>, %arg3: tensor<1xi64>, %arg4: tensor<i64>, %arg5: tensor<2xi64>) {
func.func @movement(%arg0: tensor<?x4xf32>, %arg1: tensor<2x4xf32>, %arg2: tensor<2x1xi64>, %arg3: tensor<1xi64>, %arg4: tensor<i64>, %arg5: tensor<2xi64>) {
  // CHECK-NEXT: %0 = llm.concat %arg0, %arg1 {axis = 0 : i64} : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x4xf32>
  %0 = llm.concat %arg0, %arg1 {axis = 0 : i64} : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %1 = llm.gather %arg0, %arg2 {axis = -1 : i64} : (tensor<?x4xf32>, tensor<2x1xi64>) -> tensor<?x2x1xf32>
  %1 = llm.gather %arg0, %arg2 {axis = -1 : i64} : (tensor<?x4xf32>, tensor<2x1xi64>) -> tensor<?x2x1xf32>
  // CHECK-NEXT: %2 = llm.scatter_nd %arg0, %arg2, %arg1 : (tensor<?x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<?x4xf32>
  %2 = llm.scatter_nd %arg0, %arg2, %arg1 : (tensor<?x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %3 = llm.scatter_nd %arg0, %arg2, %arg1 {reduction = "add"} : (tensor<?x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<?x4xf32>
  %3 = llm.scatter_nd %arg0, %arg2, %arg1 {reduction = "add"} : (tensor<?x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %4 = llm.slice %arg0, %arg3, %arg3 : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32>
  %4 = llm.slice %arg0, %arg3, %arg3 : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32>
  // CHECK-NEXT: %5 = llm.slice %arg0, %arg3, %arg3 axes(%arg3) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32>
  %5 = llm.slice %arg0, %arg3, %arg3 axes(%arg3) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32>
  // CHECK-NEXT: %6 = llm.slice %arg0, %arg3, %arg3 steps(%arg3) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32>
  %6 = llm.slice %arg0, %arg3, %arg3 steps(%arg3) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x4xf32>
  // CHECK-NEXT: %7 = llm.slice %arg0, %arg3, %arg3 axes(%arg3) steps(%arg3) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32>
  %7 = llm.slice %arg0, %arg3, %arg3 axes(%arg3) steps(%arg3) : (tensor<?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32>
  // CHECK-NEXT: %8:2 = llm.split %arg0 {axis = 1 : i64} : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>)
  %8:2 = llm.split %arg0 {axis = 1 : i64} : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>)
  // CHECK-NEXT: %9:2 = llm.split %arg0 sizes(%arg5) {axis = -1 : i64} : (tensor<?x4xf32>, tensor<2xi64>) -> (tensor<?x3xf32>, tensor<?x1xf32>)
  %9:2 = llm.split %arg0 sizes(%arg5) {axis = -1 : i64} : (tensor<?x4xf32>, tensor<2xi64>) -> (tensor<?x3xf32>, tensor<?x1xf32>)
  // CHECK-NEXT: %10 = llm.transpose %arg0 perm [1, 0] : tensor<?x4xf32> -> tensor<4x?xf32>
  %10 = llm.transpose %arg0 perm [1, 0] : tensor<?x4xf32> -> tensor<4x?xf32>
  // CHECK-NEXT: %11 = llm.trilu %arg0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %11 = llm.trilu %arg0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %12 = llm.trilu %arg0 diagonal(%arg4) {upper} : (tensor<?x4xf32>, tensor<i64>) -> tensor<?x4xf32>
  %12 = llm.trilu %arg0 diagonal(%arg4) {upper} : (tensor<?x4xf32>, tensor<i64>) -> tensor<?x4xf32>
  return
}

// CHECK-LABEL: func.func @indexing
// CHECK-SAME: (%arg0: tensor<?x4xf32>, %arg1: tensor<?x2xf32>, %arg2: tensor<?x2xi64>, %arg3: tensor<4xi64>, %arg4: tensor<f32>) {
func.func @indexing(%arg0: tensor<?x4xf32>, %arg1: tensor<?x2xf32>, %arg2: tensor<?x2xi64>, %arg3: tensor<4xi64>, %arg4: tensor<f32>) {
  // CHECK-NEXT: %0 = llm.gather_elements %arg0, %arg2 {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x2xi64>) -> tensor<?x2xf32>
  %0 = llm.gather_elements %arg0, %arg2 {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x2xi64>) -> tensor<?x2xf32>
  // CHECK-NEXT: %1 = llm.gather_nd %arg0, %arg2 : (tensor<?x4xf32>, tensor<?x2xi64>) -> tensor<?xf32>
  %1 = llm.gather_nd %arg0, %arg2 {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<?x2xi64>) -> tensor<?xf32>
  // CHECK-NEXT: %2 = llm.pad %arg0, %arg3 : (tensor<?x4xf32>, tensor<4xi64>) -> tensor<?x?xf32>
  %2 = llm.pad %arg0, %arg3 : (tensor<?x4xf32>, tensor<4xi64>) -> tensor<?x?xf32>
  // CHECK-NEXT: %3 = llm.pad %arg0, %arg3 value(%arg4) : (tensor<?x4xf32>, tensor<4xi64>, tensor<f32>) -> tensor<?x6xf32>
  %3 = llm.pad %arg0, %arg3 value(%arg4) : (tensor<?x4xf32>, tensor<4xi64>, tensor<f32>) -> tensor<?x6xf32>
  // CHECK-NEXT: %4 = llm.pad %arg0, %arg3 {mode = "wrap"} : (tensor<?x4xf32>, tensor<4xi64>) -> tensor<?x?xf32>
  %4 = llm.pad %arg0, %arg3 {mode = "wrap"} : (tensor<?x4xf32>, tensor<4xi64>) -> tensor<?x?xf32>
  // CHECK-NEXT: %5 = llm.scatter_elements %arg0, %arg2, %arg1 {axis = -1 : i64} : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>) -> tensor<?x4xf32>
  %5 = llm.scatter_elements %arg0, %arg2, %arg1 {axis = -1 : i64} : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>) -> tensor<?x4xf32>
  // CHECK-NEXT: %6 = llm.scatter_elements %arg0, %arg2, %arg1 {axis = 0 : i64, reduction = "max"} : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>) -> tensor<?x4xf32>
  %6 = llm.scatter_elements %arg0, %arg2, %arg1 {axis = 0 : i64, reduction = "max"} : (tensor<?x4xf32>, tensor<?x2xi64>, tensor<?x2xf32>) -> tensor<?x4xf32>
  return
}
