// RUN: llm-opt %s --llm-raise-idioms --split-input-file | FileCheck %s --enable-var-scope

// With cache, repeated key heads, a scale and a mask that is added; the mask
// says causal order and padding.
// CHECK-LABEL: func.func @cached(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: tensor<?x?x8xf32>
// CHECK-SAME: %[[K:[a-z0-9]*]]: tensor<?x?x4xf32>
// CHECK-SAME: %[[V:[a-z0-9]*]]: tensor<?x?x4xf32>
// CHECK-SAME: %[[PK:[a-z0-9]*]]: tensor<?x1x?x4xf32>
// CHECK-SAME: %[[PV:[a-z0-9]*]]: tensor<?x1x?x4xf32>
// CHECK-SAME: %[[AM:[a-z0-9]*]]: tensor<?x?xi64>
// CHECK-NEXT: %[[KEEP:.*]] = llm.cast %[[AM]] : tensor<?x?xi64> -> tensor<?x?xi1>
// CHECK-NEXT: %[[M:.*]] = llm.unsqueeze %[[KEEP]] axes [1, 2] : tensor<?x?xi1> -> tensor<?x1x1x?xi1>
// CHECK-NEXT: %[[Y:.*]], %[[P:.*]]:2 = llm.attention %[[Q]], %[[K]], %[[V]] past(%[[PK]], %[[PV]]) mask(%[[M]]) {causal, kv_heads = 1 : i64, num_heads = 2 : i64, scale = 5.000000e-01 : f64}
// CHECK-NEXT: return %[[Y]], %[[P]]#0, %[[P]]#1
func.func @cached(%q: tensor<?x?x8xf32> {llm.dims = ["b", "s", ""]}, %k: tensor<?x?x4xf32> {llm.dims = ["b", "s", ""]}, %v: tensor<?x?x4xf32> {llm.dims = ["b", "s", ""]},
    %pk: tensor<?x1x?x4xf32> {llm.dims = ["b", "", "p", ""]}, %pv: tensor<?x1x?x4xf32> {llm.dims = ["b", "", "p", ""]}, %am: tensor<?x?xi64> {llm.dims = ["b", "p + s"]})
    -> (tensor<?x?x8xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) {
  %i0 = llm.constant dense<0> : tensor<i64>
  %i1 = llm.constant dense<1> : tensor<i64>
  %zero = llm.constant dense<0.0> : tensor<f32>
  %low = llm.constant dense<-1.0e+09> : tensor<f32>
  %past1 = llm.shape %pk {start = 2 : i64, end = 3 : i64} : tensor<?x1x?x4xf32> -> tensor<1xi64>
  %past = llm.squeeze %past1 axes [0] : tensor<1xi64> -> tensor<i64>
  %total1 = llm.shape %am {start = 1 : i64} : tensor<?x?xi64> -> tensor<1xi64>
  %total = llm.squeeze %total1 axes [0] : tensor<1xi64> -> tensor<i64>
  %qi = llm.range %past, %total, %i1 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %ki = llm.range %i0, %total, %i1 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %q2 = llm.unsqueeze %qi axes [1] : tensor<?xi64> -> tensor<?x1xi64>
  %c = llm.greater_equal %q2, %ki : (tensor<?x1xi64>, tensor<?xi64>) -> tensor<?x?xi1>
  %keep = llm.cast %am : tensor<?x?xi64> -> tensor<?x?xi1>
  %keep4 = llm.unsqueeze %keep axes [1, 2] : tensor<?x?xi1> -> tensor<?x1x1x?xi1>
  %both = llm.and %keep4, %c : (tensor<?x1x1x?xi1>, tensor<?x?xi1>) -> tensor<?x1x?x?xi1>
  %mask = llm.where %both, %zero, %low : (tensor<?x1x?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x1x?x?xf32>
  %sq = llm.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
  %sk = llm.constant dense<[0, 0, 1, 4]> : tensor<4xi64>
  %qr = llm.reshape %q, %sq : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>
  %qt = llm.transpose %qr perm [0, 2, 1, 3] : tensor<?x?x2x4xf32> -> tensor<?x2x?x4xf32>
  %kr = llm.reshape %k, %sk : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
  %kt = llm.transpose %kr perm [0, 2, 1, 3] : tensor<?x?x1x4xf32> -> tensor<?x1x?x4xf32>
  %vr = llm.reshape %v, %sk : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
  %vt = llm.transpose %vr perm [0, 2, 1, 3] : tensor<?x?x1x4xf32> -> tensor<?x1x?x4xf32>
  %kc = llm.concat %pk, %kt {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %vc = llm.concat %pv, %vt {axis = -2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %five = llm.constant dense<[1, 1, 2, 1, 1]> : tensor<5xi64>
  %four = llm.constant dense<[0, 2, -1, 4]> : tensor<4xi64>
  %ku = llm.unsqueeze %kc axes [2] : tensor<?x1x?x4xf32> -> tensor<?x1x1x?x4xf32>
  %ke = llm.expand %ku, %five : (tensor<?x1x1x?x4xf32>, tensor<5xi64>) -> tensor<?x1x2x?x4xf32>
  %kh = llm.reshape %ke, %four : (tensor<?x1x2x?x4xf32>, tensor<4xi64>) -> tensor<?x2x?x4xf32>
  %vu = llm.unsqueeze %vc axes [2] : tensor<?x1x?x4xf32> -> tensor<?x1x1x?x4xf32>
  %ve = llm.expand %vu, %five : (tensor<?x1x1x?x4xf32>, tensor<5xi64>) -> tensor<?x1x2x?x4xf32>
  %vh = llm.reshape %ve, %four : (tensor<?x1x2x?x4xf32>, tensor<4xi64>) -> tensor<?x2x?x4xf32>
  %kht = llm.transpose %kh perm [0, 1, 3, 2] : tensor<?x2x?x4xf32> -> tensor<?x2x4x?xf32>
  %dots = llm.matmul %qt, %kht : (tensor<?x2x?x4xf32>, tensor<?x2x4x?xf32>) -> tensor<?x2x?x?xf32>
  %two = llm.constant dense<2.0> : tensor<f32>
  %scaled = llm.div %dots, %two : (tensor<?x2x?x?xf32>, tensor<f32>) -> tensor<?x2x?x?xf32>
  %masked = llm.add %mask, %scaled : (tensor<?x1x?x?xf32>, tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %p = llm.softmax %masked {axis = -1 : i64} : tensor<?x2x?x?xf32>
  %o = llm.matmul %p, %vh : (tensor<?x2x?x?xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  %ot = llm.transpose %o perm [0, 2, 1, 3] : tensor<?x2x?x4xf32> -> tensor<?x?x2x4xf32>
  %flat = llm.constant dense<[0, 0, 8]> : tensor<3xi64>
  %y = llm.reshape %ot, %flat : (tensor<?x?x2x4xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
  return %y, %kc, %vc : tensor<?x?x8xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>
}

// -----

// Static, without cache; both factors scaled by a square root; a cap; masked by
// a selection; f16 with the softmax in f32.
// CHECK-LABEL: func.func @capped(
// CHECK: llm.attention %{{.*}}, %{{.*}}, %{{.*}} {causal, kv_heads = 2 : i64, num_heads = 2 : i64, scale = 2.500000e-01 : f64, softcap = 3.000000e+01 : f64} : (tensor<1x3x8xf16>, tensor<1x3x8xf16>, tensor<1x3x8xf16>) -> tensor<1x3x8xf16>
func.func @capped(%q: tensor<1x2x3x4xf16>, %k: tensor<1x2x3x4xf16>, %v: tensor<1x2x3x4xf16>) -> tensor<1x2x3x4xf16> {
  %root = llm.constant dense<0.5> : tensor<f16>
  %cap = llm.constant dense<30.0> : tensor<1xf32>
  %low = llm.constant dense<0xFF800000> : tensor<f32>
  %ones = llm.constant dense<true> : tensor<3x3xi1>
  %order = llm.trilu %ones : (tensor<3x3xi1>) -> tensor<3x3xi1>
  %qs = llm.mul %q, %root : (tensor<1x2x3x4xf16>, tensor<f16>) -> tensor<1x2x3x4xf16>
  %kt = llm.transpose %k perm [0, 1, 3, 2] : tensor<1x2x3x4xf16> -> tensor<1x2x4x3xf16>
  %ks = llm.mul %kt, %root : (tensor<1x2x4x3xf16>, tensor<f16>) -> tensor<1x2x4x3xf16>
  %dots = llm.matmul %qs, %ks : (tensor<1x2x3x4xf16>, tensor<1x2x4x3xf16>) -> tensor<1x2x3x3xf16>
  %wide = llm.cast %dots : tensor<1x2x3x3xf16> -> tensor<1x2x3x3xf32>
  %in = llm.div %wide, %cap : (tensor<1x2x3x3xf32>, tensor<1xf32>) -> tensor<1x2x3x3xf32>
  %t = llm.tanh %in : tensor<1x2x3x3xf32>
  %out = llm.mul %t, %cap : (tensor<1x2x3x3xf32>, tensor<1xf32>) -> tensor<1x2x3x3xf32>
  %masked = llm.where %order, %out, %low : (tensor<3x3xi1>, tensor<1x2x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xf32>
  %p = llm.softmax %masked {axis = 3 : i64} : tensor<1x2x3x3xf32>
  %narrow = llm.cast %p : tensor<1x2x3x3xf32> -> tensor<1x2x3x3xf16>
  %y = llm.matmul %narrow, %v : (tensor<1x2x3x3xf16>, tensor<1x2x3x4xf16>) -> tensor<1x2x3x4xf16>
  return %y : tensor<1x2x3x4xf16>
}
