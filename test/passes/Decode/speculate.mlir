// RUN: llm-opt %s --llm-speculate="lookup=3 tokens=2" | FileCheck %s
// RUN: llm-opt %s --llm-speculate="lookup=5 tokens=3 token-cost=250" | FileCheck %s --check-prefix=COST
// RUN: llm-opt %s --llm-speculate="tokens=2 costs=1000,1500,1600" | FileCheck %s --check-prefix=TABLE
// RUN: llm-opt %s --llm-speculate --llm-verify-decode | FileCheck %s --check-prefix=DEFAULT

// What the loop calls computes the drafts, too; what they leave in the cache is
// dropped where they were wrong. Nothing else changes.
#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 8], token>, #kv.plane<"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>
// CHECK-LABEL: func.func @target(
// CHECK-NOT: decode.
func.func private @target.layer0(%h: tensor<?x8xf32>, %step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>) attributes {llm.model = "target", llm.layer = 0 : i64} {
  %next = kv.append %cache, %step, %h, %h {group = 0 : i64, layer = 0 : i64} : !kv.cache<#g>, tensor<?x8xf32>, tensor<?x8xf32>
  %y = kv.attend %h, %next, %step {group = 0 : i64, layer = 0 : i64, num_heads = 1 : i64, scale = 0.5 : f64} : tensor<?x8xf32>, !kv.cache<#g> -> tensor<?x8xf32>
  return %y, %next : tensor<?x8xf32>, !kv.cache<#g>
}
func.func @target(%step: !kv.step, %cache: !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>) attributes {llm.model = "target", llm.vocab = 8 : i64} {
  %ids = kv.read_step %step "token" : tensor<?xi32>
  %e = llm.constant dense<1.0> : tensor<8x8xf32>
  %x = llm.embedding %ids, %e : (tensor<?xi32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %h, %next = call @target.layer0(%x, %step, %cache) : (tensor<?x8xf32>, !kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  return %h, %next : tensor<?x8xf32>, !kv.cache<#g>
}

// CHECK: decode.loop @generate {
// CHECK-NEXT: ^bb0(%[[STEP:.*]]: !kv.step, %[[CACHE:.*]]: !kv.cache<{{.*}}>, %[[SAMPLING:.*]]: !decode.sampling):
// CHECK-NEXT: %[[DRAFTS:.*]] = decode.draft %[[STEP]] lookup 3 costs [1000, 1100, 1200] : <2>
// CHECK-NEXT: %[[LONGER:.*]] = decode.verify %[[STEP]], %[[DRAFTS]] : !kv.step, <2>
// CHECK-NEXT: %[[CALL:.*]]:2 = func.call @target(%[[LONGER]], %[[CACHE]])
// CHECK-NEXT: %[[IDS:.*]], %[[LENGTH:.*]] = decode.accept %[[CALL]]#0, %[[DRAFTS]], %[[SAMPLING]]
// CHECK-NEXT: %[[KEPT:.*]] = kv.rollback %[[CALL]]#1, %[[LENGTH]]
// CHECK-NEXT: decode.yield %[[IDS]], %[[KEPT]]
// CHECK-NEXT: }
// COST: decode.draft %{{.*}} lookup 5 costs [1000, 1250, 1500, 1750] : <3>
// TABLE: decode.draft %{{.*}} lookup 3 costs [1000, 1500, 1600] : <2>
// DEFAULT: decode.draft %{{.*}} lookup 3 costs [1000, 1100, 1200, 1300, 1400] : <4>
decode.loop @generate {
^bb0(%step: !kv.step, %cache: !kv.cache<#g>, %sampling: !decode.sampling):
  %logits, %next = func.call @target(%step, %cache) : (!kv.step, !kv.cache<#g>) -> (tensor<?x8xf32>, !kv.cache<#g>)
  %ids = decode.sample %logits, %sampling : tensor<?x8xf32> -> tensor<?xi32>
  decode.yield %ids, %next : tensor<?xi32>, !kv.cache<#g>
}
