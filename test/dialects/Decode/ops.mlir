// Each op, attribute, type and optional form, there and back: as it is printed
// and in the generic form.
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt %s --mlir-print-op-generic | llm-opt | FileCheck %s

#g = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 8], token>, #kv.plane<"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>

// CHECK-LABEL: func.func private @target
// CHECK-SAME: (!kv.step, !kv.cache<<layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>>) -> (tensor<?x512xf32>, !kv.cache<<layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>>)
func.func private @target(!kv.step, !kv.cache<#g>) -> (tensor<?x512xf32>, !kv.cache<#g>)

// CHECK-LABEL: func.func private @sampling
// CHECK-SAME: (!decode.sampling)
func.func private @sampling(!decode.sampling)

// CHECK-LABEL: decode.loop @generate
// CHECK-SAME:  {
decode.loop @generate {
// CHECK-NEXT: ^bb0(%arg0: !kv.step, %arg1: !kv.cache<<layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>>, %arg2: !decode.sampling):
^bb0(%arg0: !kv.step, %arg1: !kv.cache<#g>, %arg2: !decode.sampling):
  // CHECK-NEXT: %0:2 = func.call @target(%arg0, %arg1) : (!kv.step, !kv.cache<<layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>>) -> (tensor<?x512xf32>, !kv.cache<<layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>>)
  %0:2 = func.call @target(%arg0, %arg1) : (!kv.step, !kv.cache<#g>) -> (tensor<?x512xf32>, !kv.cache<#g>)
  // CHECK-NEXT: %1 = decode.sample %0#0, %arg2 : tensor<?x512xf32> -> tensor<?xi32>
  %1 = decode.sample %0#0, %arg2 : tensor<?x512xf32> -> tensor<?xi32>
  // CHECK-NEXT: decode.yield %1, %0#1 : tensor<?xi32>, <<layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>>
  decode.yield %1, %0#1 : tensor<?xi32>, !kv.cache<#g>
}

// CHECK-LABEL: func.func private @drafts
// CHECK-SAME: (!decode.drafts<4>)
func.func private @drafts(!decode.drafts<4>)

// CHECK-LABEL: decode.loop @speculate
// CHECK-SAME:  {
decode.loop @speculate {
// CHECK-NEXT: ^bb0(%arg0: !kv.step, %arg1: !kv.cache<<{{.*}}>>, %arg2: !decode.sampling):
^bb0(%arg0: !kv.step, %arg1: !kv.cache<#g>, %arg2: !decode.sampling):
  // CHECK-NEXT: %0 = decode.draft %arg0 lookup 3 costs [1000, 1100, 1200] : <2>
  %0 = decode.draft %arg0 lookup 3 costs [1000, 1100, 1200] : !decode.drafts<2>
  // CHECK-NEXT: %1 = decode.verify %arg0, %0 : !kv.step, <2>
  %1 = decode.verify %arg0, %0 : !kv.step, !decode.drafts<2>
  // CHECK-NEXT: %2:2 = func.call @target(%1, %arg1)
  %2:2 = func.call @target(%1, %arg1) : (!kv.step, !kv.cache<#g>) -> (tensor<?x512xf32>, !kv.cache<#g>)
  // CHECK-NEXT: %ids, %length = decode.accept %2#0, %0, %arg2 : tensor<?x512xf32>, <2> -> tensor<?xi32>, tensor<?xi32>
  %ids, %length = decode.accept %2#0, %0, %arg2 : tensor<?x512xf32>, !decode.drafts<2> -> tensor<?xi32>, tensor<?xi32>
  // CHECK-NEXT: %3 = kv.rollback %2#1, %length
  %3 = kv.rollback %2#1, %length : !kv.cache<#g>, tensor<?xi32>
  decode.yield %ids, %3 : tensor<?xi32>, !kv.cache<#g>
}

// CHECK-LABEL: decode.loop @score
// CHECK-SAME:  attributes {sym_visibility = "private"} {
decode.loop @score attributes {sym_visibility = "private"} {
// CHECK-NEXT: ^bb0(%arg0: !kv.step, %arg1: !kv.cache<<layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>>, %arg2: !decode.sampling):
^bb0(%arg0: !kv.step, %arg1: !kv.cache<#g>, %arg2: !decode.sampling):
  // CHECK-NEXT: %0 = kv.read_step %arg0 "token" : tensor<?xi32>
  %0 = kv.read_step %arg0 "token" : tensor<?xi32>
  // CHECK-NEXT: decode.yield %0, %arg1 : tensor<?xi32>, <<layers = 1, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f32, [1, 8], token>], page_size = 16, keys_rotated = true, window = 0>>
  decode.yield %0, %arg1 : tensor<?xi32>, !kv.cache<#g>
}
