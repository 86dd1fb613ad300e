// Each op, attribute, type and optional form, there and back: as it is printed
// and in the generic form.
// RUN: llm-opt %s | llm-opt | FileCheck %s
// RUN: llm-opt %s --mlir-print-op-generic | llm-opt | FileCheck %s

#g = #kv.group<layers = 2, kv_heads = 1, planes = [#kv.plane<"k", f32, [1, 8], token>, #kv.plane<"v", f16, [6], token>], page_size = 16, keys_rotated = true, window = 0>
#all = #kv.group<layers = 1, kv_heads = 2, planes = [#kv.plane<"q", i8, [2, 4], token>, #kv.plane<"scale", f16, [2], page>, #kv.plane<"state", bf16, [2, 3, 4], sequence>], page_size = 0, keys_rotated = false, window = 128>

// CHECK-LABEL: func.func private @types
// CHECK-SAME: (!kv.step, !kv.cache<<layers = 2, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f16, [6], token>], page_size = 16, keys_rotated = true, window = 0>>, !kv.cache<<layers = 2, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f16, [6], token>], page_size = 16, keys_rotated = true, window = 0>, <layers = 1, kv_heads = 2, planes = [<"q", i8, [2, 4], token>, <"scale", f16, [2], page>, <"state", bf16, [2, 3, 4], sequence>], page_size = 0, keys_rotated = false, window = 128>>)
func.func private @types(!kv.step, !kv.cache<#g>, !kv.cache<#g, #all>)

// CHECK-LABEL: func.func @ops
// CHECK-SAME: (%arg0: !kv.step, %arg1: !kv.cache<<layers = 2, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f16, [6], token>], page_size = 16, keys_rotated = true, window = 0>, <layers = 1, kv_heads = 2, planes = [<"q", i8, [2, 4], token>, <"scale", f16, [2], page>, <"state", bf16, [2, 3, 4], sequence>], page_size = 0, keys_rotated = false, window = 128>>, %arg2: tensor<?x8xf32>, %arg3: tensor<?x6xf32>, %arg4: tensor<?xi32>, %arg5: tensor<2xf32>, %arg6: tensor<?x16xf32>) {
func.func @ops(%arg0: !kv.step, %arg1: !kv.cache<#g, #all>, %arg2: tensor<?x8xf32>, %arg3: tensor<?x6xf32>, %arg4: tensor<?xi32>, %arg5: tensor<2xf32>, %arg6: tensor<?x16xf32>) {
  // CHECK-NEXT: %0 = kv.append %arg1, %arg0, %arg2, %arg3 {group = 0 : i64, layer = 1 : i64} : <<layers = 2, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f16, [6], token>], page_size = 16, keys_rotated = true, window = 0>, <layers = 1, kv_heads = 2, planes = [<"q", i8, [2, 4], token>, <"scale", f16, [2], page>, <"state", bf16, [2, 3, 4], sequence>], page_size = 0, keys_rotated = false, window = 128>>, tensor<?x8xf32>, tensor<?x6xf32>
  %0 = kv.append %arg1, %arg0, %arg2, %arg3 {group = 0 : i64, layer = 1 : i64} : !kv.cache<#g, #all>, tensor<?x8xf32>, tensor<?x6xf32>
  // CHECK-NEXT: %1 = kv.append %0, %arg0, %arg2 {group = 1 : i64, layer = 0 : i64} : <<layers = 2, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f16, [6], token>], page_size = 16, keys_rotated = true, window = 0>, <layers = 1, kv_heads = 2, planes = [<"q", i8, [2, 4], token>, <"scale", f16, [2], page>, <"state", bf16, [2, 3, 4], sequence>], page_size = 0, keys_rotated = false, window = 128>>, tensor<?x8xf32>
  %1 = kv.append %0, %arg0, %arg2 {group = 1 : i64, layer = 0 : i64} : !kv.cache<#g, #all>, tensor<?x8xf32>
  // CHECK-NEXT: %output = kv.attend %arg6, %1, %arg0 {group = 0 : i64, layer = 0 : i64, num_heads = 2 : i64, scale = 1.250000e-01 : f64} : tensor<?x16xf32>, <<layers = 2, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f16, [6], token>], page_size = 16, keys_rotated = true, window = 0>, <layers = 1, kv_heads = 2, planes = [<"q", i8, [2, 4], token>, <"scale", f16, [2], page>, <"state", bf16, [2, 3, 4], sequence>], page_size = 0, keys_rotated = false, window = 128>> -> tensor<?x12xf32>
  %2 = kv.attend %arg6, %1, %arg0 {group = 0 : i64, layer = 0 : i64, num_heads = 2 : i64, scale = 1.250000e-01 : f64} : tensor<?x16xf32>, !kv.cache<#g, #all> -> tensor<?x12xf32>
  // CHECK-NEXT: %output_0, %mass = kv.attend %arg6, %1, %arg0 sink(%arg5 : tensor<2xf32>) {group = 1 : i64, layer = 0 : i64, num_heads = 2 : i64, scale = 1.250000e-01 : f64, softcap = 5.000000e+01 : f64, window = 128 : i64} : tensor<?x16xf32>, <<layers = 2, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f16, [6], token>], page_size = 16, keys_rotated = true, window = 0>, <layers = 1, kv_heads = 2, planes = [<"q", i8, [2, 4], token>, <"scale", f16, [2], page>, <"state", bf16, [2, 3, 4], sequence>], page_size = 0, keys_rotated = false, window = 128>> -> tensor<?x12xf32>, tensor<?x?xf32>
  %3, %4 = kv.attend %arg6, %1, %arg0 sink(%arg5 : tensor<2xf32>) {group = 1 : i64, layer = 0 : i64, num_heads = 2 : i64, scale = 1.250000e-01 : f64, softcap = 5.000000e+01 : f64, window = 128 : i64} : tensor<?x16xf32>, !kv.cache<#g, #all> -> tensor<?x12xf32>, tensor<?x?xf32>
  // CHECK-NEXT: %2 = kv.fork %1, %arg4, %arg4 : <<layers = 2, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f16, [6], token>], page_size = 16, keys_rotated = true, window = 0>, <layers = 1, kv_heads = 2, planes = [<"q", i8, [2, 4], token>, <"scale", f16, [2], page>, <"state", bf16, [2, 3, 4], sequence>], page_size = 0, keys_rotated = false, window = 128>>, tensor<?xi32>
  %5 = kv.fork %1, %arg4, %arg4 : !kv.cache<#g, #all>, tensor<?xi32>
  // CHECK-NEXT: %3 = kv.rollback %2, %arg4 : <<layers = 2, kv_heads = 1, planes = [<"k", f32, [1, 8], token>, <"v", f16, [6], token>], page_size = 16, keys_rotated = true, window = 0>, <layers = 1, kv_heads = 2, planes = [<"q", i8, [2, 4], token>, <"scale", f16, [2], page>, <"state", bf16, [2, 3, 4], sequence>], page_size = 0, keys_rotated = false, window = 128>>, tensor<?xi32>
  %6 = kv.rollback %5, %arg4 : !kv.cache<#g, #all>, tensor<?xi32>
  return
}

// CHECK-LABEL: func.func @read_step
// CHECK-SAME: (%arg0: !kv.step) {
func.func @read_step(%arg0: !kv.step) {
  // CHECK-NEXT: %0 = kv.read_step %arg0 "token" : tensor<?xi32>
  %0 = kv.read_step %arg0 "token" : tensor<?xi32>
  // CHECK-NEXT: %1 = kv.read_step %arg0 "position" : tensor<?xi32>
  %1 = kv.read_step %arg0 "position" : tensor<?xi32>
  // CHECK-NEXT: %2 = kv.read_step %arg0 "seq" : tensor<?xi32>
  %2 = kv.read_step %arg0 "seq" : tensor<?xi32>
  // CHECK-NEXT: %3 = kv.read_step %arg0 "role" : tensor<?xi32>
  %3 = kv.read_step %arg0 "role" : tensor<?xi32>
  // CHECK-NEXT: %4 = kv.read_step %arg0 "logit_row" : tensor<?xi32>
  %4 = kv.read_step %arg0 "logit_row" : tensor<?xi32>
  // CHECK-NEXT: %5 = kv.read_step %arg0 "q_begin" : tensor<?xi32>
  %5 = kv.read_step %arg0 "q_begin" : tensor<?xi32>
  // CHECK-NEXT: %6 = kv.read_step %arg0 "state_slot" : tensor<?xi32>
  %6 = kv.read_step %arg0 "state_slot" : tensor<?xi32>
  // CHECK-NEXT: %7 = kv.read_step %arg0 "adapter" : tensor<?xi32>
  %7 = kv.read_step %arg0 "adapter" : tensor<?xi32>
  return
}

// CHECK-LABEL: func.func @side_rows
func.func @side_rows(%step: !kv.step) {
  // CHECK: %[[X:.*]] = kv.supply %{{.*}} "hidden" : tensor<?x4xf32>
  %0 = kv.supply %step "hidden" : tensor<?x4xf32>
  // CHECK-NEXT: kv.observe %{{.*}}, %[[X]] "x" : tensor<?x4xf32>
  kv.observe %step, %0 "x" : tensor<?x4xf32>
  return
}
