// RUN: llm-opt %s --llm-raise-decoder --llm-verify-raise | FileCheck %s --enable-var-scope
// RUN: llm-opt %s --llm-raise-decoder=model=draft --llm-verify-raise | FileCheck %s --check-prefix=DRAFT

// Two layers of attention and a product each, a norm, tied logits.

// CHECK-LABEL: func.func private @target.layer0(
// CHECK-SAME: %[[H:[a-z0-9]*]]: tensor<?x8xf32>, %[[STEP:[a-z0-9]*]]: !kv.step, %[[CACHE:[a-z0-9]*]]: !kv.cache<<layers = 2, kv_heads = 1, planes = [<"k", f32, [1, 4], token>, <"v", f32, [1, 4], token>], page_size = 0, keys_rotated = true, window = 0>>)
// CHECK-SAME: attributes {llm.layer = 0 : i64, llm.model = "target"}
// CHECK: %[[Q:.*]] = llm.linear %[[H]], %{{.*}} {transposed} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
// CHECK: %[[P:.*]] = kv.read_step %[[STEP]] "position" : tensor<?xi32>
// CHECK: %[[QR:.*]] = llm.rope %[[Q]], %{{.*}}, %{{.*}} positions(%[[P]]) {num_heads = 2 : i64}
// CHECK: %[[K:.*]] = llm.linear
// CHECK: %[[KR:.*]] = llm.rope %[[K]], %{{.*}}, %{{.*}} positions(%[[P]]) {num_heads = 1 : i64}
// CHECK: %[[NEXT:.*]] = kv.append %[[CACHE]], %[[STEP]], %[[KR]], %[[K]] {group = 0 : i64, layer = 0 : i64}
// CHECK: %[[Y:.*]] = kv.attend %[[QR]], %[[NEXT]], %[[STEP]] {group = 0 : i64, layer = 0 : i64, num_heads = 2 : i64, scale = 5.000000e-01 : f64}
// CHECK: %[[O:.*]] = llm.add %[[H]], %[[Y]] : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK: return %[[O]], %[[NEXT]]

// CHECK-LABEL: func.func private @target.layer1(
// CHECK-SAME: attributes {llm.layer = 1 : i64, llm.model = "target"}
// CHECK: kv.append {{.*}} {group = 0 : i64, layer = 1 : i64}

// CHECK-LABEL: func.func @target(
// CHECK-SAME: %[[STEP:[a-z0-9]*]]: !kv.step, %[[CACHE:[a-z0-9]*]]: !kv.cache
// CHECK-SAME: -> (tensor<?x32xf32>, !kv.cache
// CHECK-SAME: attributes {llm.max_context = 16 : i64, llm.model = "target", llm.vocab = 32 : i64}
// CHECK: %[[IDS:.*]] = kv.read_step %[[STEP]] "token" : tensor<?xi32>
// CHECK: %[[H0:.*]] = llm.embedding %[[IDS]], %[[E:.*]] : (tensor<?xi32>, tensor<32x8xf32>) -> tensor<?x8xf32>
// CHECK: %[[L0:.*]]:2 = call @target.layer0(%[[H0]], %[[STEP]], %[[CACHE]])
// CHECK: %[[L1:.*]]:2 = call @target.layer1(%[[L0]]#0, %[[STEP]], %[[L0]]#1)
// CHECK: %[[N:.*]] = llm.rms_norm %[[L1]]#0
// CHECK: %[[ROW:.*]] = kv.read_step %[[STEP]] "logit_row" : tensor<?xi32>
// CHECK: %[[R:.*]] = llm.gather %[[N]], %[[ROW]] {axis = 0 : i64} : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
// CHECK: %[[LOGITS:.*]] = llm.linear %[[R]], %[[E]] : (tensor<?x8xf32>, tensor<32x8xf32>) -> tensor<?x32xf32>
// CHECK: return %[[LOGITS]], %[[L1]]#1

// CHECK: decode.loop @generate {
// CHECK: %[[OUT:.*]]:2 = func.call @target(%{{.*}}, %{{.*}})
// CHECK: %[[ID:.*]] = decode.sample %[[OUT]]#0
// CHECK: decode.yield %[[ID]], %[[OUT]]#1
// CHECK-NOT: @main

// DRAFT: func.func private @draft.layer0({{.*}} llm.model = "draft"
// DRAFT: func.func @draft({{.*}} llm.model = "draft"
// DRAFT-NOT: decode.loop

llm.weight @e : tensor<32x8xf32> = #llm.dense<#llm.component<"data", tensor<32x8xf32>, dense<1.0> : tensor<32x8xf32>>>
llm.weight @n : tensor<8xf32> = #llm.dense<#llm.component<"data", tensor<8xf32>, dense<1.0> : tensor<8xf32>>>
llm.weight @q : tensor<8x8xf32> = #llm.dense<#llm.component<"data", tensor<8x8xf32>, dense<1.0> : tensor<8x8xf32>>>
llm.weight @k : tensor<8x4xf32> = #llm.dense<#llm.component<"data", tensor<8x4xf32>, dense<1.0> : tensor<8x4xf32>>>
llm.weight @t : tensor<16x2xf32> = #llm.dense<#llm.component<"data", tensor<16x2xf32>, dense<1.0> : tensor<16x2xf32>>>
// The names are of no help on purpose.
func.func @main(%a: tensor<?x?xi64> {llm.name = "a", llm.dims = ["x", "y"]}, %b: tensor<?x?xi64> {llm.name = "b", llm.dims = ["x", "y"]},
    %c: tensor<?x?xi64> {llm.name = "c", llm.dims = ["x", "z + y"]},
    %k0: tensor<?x1x?x4xf32> {llm.name = "d", llm.dims = ["x", "", "z", ""]}, %v0: tensor<?x1x?x4xf32> {llm.name = "e", llm.dims = ["x", "", "z", ""]},
    %k1: tensor<?x1x?x4xf32> {llm.name = "f", llm.dims = ["x", "", "z", ""]}, %v1: tensor<?x1x?x4xf32> {llm.name = "g", llm.dims = ["x", "", "z", ""]})
    -> (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x?x32xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) {
  %e = llm.get_weight @e : tensor<32x8xf32>
  %n = llm.get_weight @n : tensor<8xf32>
  %wq = llm.get_weight @q : tensor<8x8xf32>
  %wk = llm.get_weight @k : tensor<8x4xf32>
  %t = llm.get_weight @t : tensor<16x2xf32>
  %keep = llm.cast %c : tensor<?x?xi64> -> tensor<?x?xi1>
  %mask = llm.unsqueeze %keep axes [1, 2] : tensor<?x?xi1> -> tensor<?x1x1x?xi1>
  %h = llm.embedding %b, %e : (tensor<?x?xi64>, tensor<32x8xf32>) -> tensor<?x?x8xf32>
  %q0 = llm.linear %h, %wq {transposed} : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
  %kk0 = llm.linear %h, %wk {transposed} : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
  %qr0 = llm.rope %q0, %t, %t positions(%a) {num_heads = 2 : i64} : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %kr0 = llm.rope %kk0, %t, %t positions(%a) {num_heads = 1 : i64} : (tensor<?x?x4xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x4xf32>
  %y0, %p0:2 = llm.attention %qr0, %kr0, %kk0 past(%k0, %v0) mask(%mask) {causal, num_heads = 2 : i64, kv_heads = 1 : i64, scale = 0.5 : f64}
    : (tensor<?x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x1x?xi1>) -> (tensor<?x?x8xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>)
  %h1 = llm.add %h, %y0 : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %q1 = llm.linear %h1, %wq {transposed} : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
  %kk1 = llm.linear %h1, %wk {transposed} : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
  %qr1 = llm.rope %q1, %t, %t positions(%a) {num_heads = 2 : i64} : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %kr1 = llm.rope %kk1, %t, %t positions(%a) {num_heads = 1 : i64} : (tensor<?x?x4xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x4xf32>
  %y1, %p1:2 = llm.attention %qr1, %kr1, %kk1 past(%k1, %v1) mask(%mask) {causal, num_heads = 2 : i64, kv_heads = 1 : i64, scale = 0.5 : f64}
    : (tensor<?x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x1x?xi1>) -> (tensor<?x?x8xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>)
  %h2 = llm.add %h1, %y1 : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %f = llm.rms_norm %h2, %n : (tensor<?x?x8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
  %l = llm.linear %f, %e : (tensor<?x?x8xf32>, tensor<32x8xf32>) -> tensor<?x?x32xf32>
  return %p0#0, %p0#1, %l, %p1#0, %p1#1 : tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x?x32xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>
}
