// RUN: llm-opt %s --convert-llm-to-linalg --canonicalize --cse --split-input-file | FileCheck %s --enable-var-scope

// The causal bound, and a row that sees nothing divides by 1, not by 0.
// CHECK-LABEL: func.func @attention(
// CHECK: "llm.attention at node 'a': query, key and value do not fit each other"
// CHECK: arith.cmpi sle
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[LOWEST:.*]] : f32
// CHECK: math.exp
// CHECK: arith.cmpf oeq
// CHECK: arith.divf
func.func @attention(%q: tensor<?x?x8xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>) -> tensor<?x?x8xf32> {
  %y = llm.attention %q, %k, %v {causal, kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<?x?x8xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x8xf32> loc("a")
  return %y : tensor<?x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @rope(
// CHECK-SAME: %[[X:.*]]: tensor<1x?x8xf32>, %[[COS:.*]]: tensor<16x2xf32>, %[[SIN:.*]]: tensor<16x2xf32>, %[[P:.*]]: tensor<1x?xi64>
// CHECK: cf.assert %{{.*}}, "llm.rope at node 'r': a position is outside the tables"
// CHECK: tensor.extract %[[P]]
// CHECK: tensor.extract %[[COS]]
// CHECK: tensor.extract %[[SIN]]
func.func @rope(%x: tensor<1x?x8xf32>, %cos: tensor<16x2xf32>, %sin: tensor<16x2xf32>, %p: tensor<1x?xi64>)
    -> tensor<1x?x8xf32> {
  %y = llm.rope %x, %cos, %sin positions(%p) {num_heads = 2 : i64}
    : (tensor<1x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<1x?xi64>) -> tensor<1x?x8xf32> loc("r")
  return %y : tensor<1x?x8xf32>
}

// -----

// The lengths are checked before anything is written with them.
// CHECK-LABEL: func.func @group_query(
// CHECK: "llm.group_query_attention at node 'g': a length in seqlens_k does not fit the query and total_sequence_length"
// CHECK: tensor.insert
func.func @group_query(%q: tensor<?x?x32xf32>, %k: tensor<?x?x16xf32>, %v: tensor<?x?x16xf32>,
                       %pk: tensor<?x2x?x8xf32>, %pv: tensor<?x2x?x8xf32>, %l: tensor<?xi32>, %t: tensor<i32>)
    -> (tensor<?x?x32xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) {
  %y, %nk, %nv = llm.group_query_attention %q, %k, %v past(%pk, %pv) lengths(%l, %t)
    {kv_heads = 2 : i64, num_heads = 4 : i64, scale = 0.25 : f64}
    : (tensor<?x?x32xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>,
       tensor<?xi32>, tensor<i32>) -> (tensor<?x?x32xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) loc("g")
  return %y, %nk, %nv : tensor<?x?x32xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>
}
