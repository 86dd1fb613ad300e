// RUN: llm-opt %s --convert-llm-to-linalg --canonicalize --cse --split-input-file | FileCheck %s --enable-var-scope

// Sizes known: no check; rows of the right operand run innermost.
// CHECK-LABEL: func.func @matmul_static(
// CHECK-SAME: %[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<3x4xf32>
// CHECK-NOT: cf.assert
// CHECK: scf.for %[[M:.*]] = %{{.*}} iter_args
// CHECK: scf.for %[[K:.*]] = %{{.*}} iter_args
// CHECK: tensor.extract %[[A]][%[[M]], %[[K]]]
// CHECK: scf.for %[[N:.*]] = %{{.*}} iter_args
// CHECK: tensor.extract %[[B]][%[[K]], %[[N]]]
// CHECK: arith.mulf %{{.*}} fastmath<reassoc,contract>
// CHECK: tensor.insert
func.func @matmul_static(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %c = llm.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %c : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: func.func @matmul_dynamic(
// CHECK: cf.assert %{{.*}}, "llm.matmul at node 'mm': the inner sizes differ"
// CHECK: cf.assert %{{.*}}, "llm.matmul at node 'mm': the batch sizes do not broadcast"
func.func @matmul_dynamic(%a: tensor<?x?x?xf32>, %b: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %c = llm.matmul %a, %b : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32> loc("mm")
  return %c : tensor<?x?x?xf32>
}

// -----

// f16 sums in f32.
// CHECK-LABEL: func.func @matmul_half(
// CHECK: iter_args(%{{.*}} = %{{.*}}) -> (tensor<2x4xf32>)
// CHECK: arith.extf
// CHECK: -> tensor<2x4xf16>
func.func @matmul_half(%a: tensor<2x3xf16>, %b: tensor<3x4xf16>) -> tensor<2x4xf16> {
  %c = llm.matmul %a, %b : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf16>
  return %c : tensor<2x4xf16>
}

// -----

// A weight [N, K] is read along its rows; its static sizes are checked against
// the input's.
// CHECK-LABEL: func.func @linear(
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf32>, %[[BIAS:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4x3xf32> {llm.constant = "w:data"}
// CHECK: cf.assert %{{.*}}, "llm.linear at node 'fc': the input's features do not fit the weight"
// CHECK: linalg.generic
// CHECK: %[[N:[0-9]+]] = linalg.index 1
// CHECK: scf.for %[[K:[a-z0-9]+]] =
// CHECK: tensor.extract %[[W]][%[[N]], %[[K]]]
// CHECK: tensor.extract %[[BIAS]][%[[N]]]
llm.weight @w : tensor<4x3xf32> = #llm.dense<
  #llm.component<"data", tensor<4x3xf32>, dense<1.0> : tensor<4x3xf32>>>
func.func @linear(%x: tensor<?x?xf32>, %bias: tensor<4xf32>) -> tensor<?x4xf32> {
  %w = llm.get_weight @w : tensor<4x3xf32>
  %y = llm.linear %x, %w bias(%bias) : (tensor<?x?xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("fc")
  return %y : tensor<?x4xf32>
}

// -----

// Affine groups: codes of 4 bits, a scale and a packed zero per group of 32.
// CHECK-LABEL: func.func @affine(
// CHECK-SAME: %[[D:.*]]: tensor<2x32xi8> {llm.constant = "q:data"}
// CHECK-SAME: %[[S:.*]]: tensor<2x2xf32> {llm.constant = "q:scales"}
// CHECK-SAME: %[[Z:.*]]: tensor<2x1xi8> {llm.constant = "q:zeros"}
// CHECK: arith.divui %{{.*}}, %c32
// CHECK: tensor.extract %[[D]]
// CHECK: arith.andi %{{.*}}, %c15_i8
// CHECK: tensor.extract %[[Z]]
// CHECK: tensor.extract %[[S]]
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: -> tensor<2x40xf32>
llm.weight @q : tensor<2x40xf32> = #llm.affine<bits = 4, group_size = 32,
  data = #llm.component<"data", tensor<2x32xui8>, dense<1> : tensor<2x32xui8>>,
  scales = #llm.component<"scales", tensor<2x2xf32>, dense<0.5> : tensor<2x2xf32>>,
  zeros = #llm.component<"zeros", tensor<2x1xui8>, dense<8> : tensor<2x1xui8>>>
func.func @affine() -> tensor<2x40xf32> {
  %w = llm.get_weight @q : tensor<2x40xf32>
  return %w : tensor<2x40xf32>
}

// -----

// Factors multiply the scale of their group.
// CHECK-LABEL: func.func @affine_factors(
// CHECK-SAME: %[[D:.*]]: tensor<2x32xi8> {llm.constant = "q:data"}
// CHECK-SAME: %[[S:.*]]: tensor<2x1xf32> {llm.constant = "q:scales"}
// CHECK-SAME: %[[F:.*]]: tensor<2x4xi8> {llm.constant = "q:factors"}
// CHECK: tensor.extract %[[S]]
// CHECK: arith.divui %{{.*}}, %c16
// CHECK: %[[FACTOR:.*]] = tensor.extract %[[F]]
// CHECK: arith.sitofp %[[FACTOR]] : i8 to f32
// CHECK: -> tensor<2x40xf32>
llm.weight @q : tensor<2x40xf32> = #llm.affine<bits = 4, group_size = 64,
  data = #llm.component<"data", tensor<2x32xui8>, dense<1> : tensor<2x32xui8>>,
  scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>,
  factor_group = 16,
  factors = #llm.component<"factors", tensor<2x4xi8>, dense<3> : tensor<2x4xi8>>>
func.func @affine_factors() -> tensor<2x40xf32> {
  %w = llm.get_weight @q : tensor<2x40xf32>
  return %w : tensor<2x40xf32>
}

// -----

// Scales of bf16 are read as the integers that hold them.
// CHECK-LABEL: func.func @affine_bf16(
// CHECK-SAME: %{{.*}}: tensor<2x16xi8> {llm.constant = "q:data"}
// CHECK-SAME: %[[S:.*]]: tensor<2x1xi16> {llm.constant = "q:scales"}
// CHECK: %[[SCALE:.*]] = tensor.extract %[[S]]
// CHECK: arith.extui %[[SCALE]] : i16 to i32
// CHECK: -> tensor<2x32xi16>
llm.weight @q : tensor<2x32xbf16> = #llm.affine<bits = 4, group_size = 32,
  data = #llm.component<"data", tensor<2x16xui8>, dense<1> : tensor<2x16xui8>>,
  scales = #llm.component<"scales", tensor<2x1xbf16>, dense<0.5> : tensor<2x1xbf16>>>
func.func @affine_bf16() -> tensor<2x32xbf16> {
  %w = llm.get_weight @q : tensor<2x32xbf16>
  return %w : tensor<2x32xbf16>
}
