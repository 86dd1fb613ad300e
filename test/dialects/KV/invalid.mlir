// RUN: llm-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{plane 'k' holds ints or floats, not 'index'}}
func.func private @plane_elements() attributes {test.value = #kv.plane<"k", index, [8], token>}

// -----

// expected-error@+2 {{expected integer value}}
// expected-error@+1 {{failed to parse KV_PlaneAttr parameter 'shape'}}
func.func private @plane_no_shape() attributes {test.value = #kv.plane<"k", f32, [], token>}

// -----

// expected-error@+1 {{plane 'k' needs positive dimensions}}
func.func private @plane_zero() attributes {test.value = #kv.plane<"k", f32, [0], token>}

// -----

// expected-error@+1 {{plane 'k' needs positive dimensions}}
func.func private @plane_negative() attributes {test.value = #kv.plane<"k", f32, [4, -2], token>}

// -----

// expected-error@+1 {{plane 'k' is too large}}
func.func private @plane_large() attributes {test.value = #kv.plane<"k", f32, [4294967296, 4294967296], token>}

// -----

// expected-error@+2 {{expected ::mlir::kv::Granularity to be one of: token, page, sequence}}
// expected-error@+1 {{failed to parse KV_PlaneAttr parameter 'granularity'}}
func.func private @granularity() attributes {test.value = #kv.plane<"k", f32, [8], layer>}

// -----

// expected-error@+1 {{layers and kv_heads must be positive}}
func.func private @no_layers() attributes {test.value = #kv.group<layers = 0, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>}

// -----

// expected-error@+1 {{layers and kv_heads must be positive}}
func.func private @negative_heads() attributes {test.value = #kv.group<layers = 1, kv_heads = -1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>}

// -----

// expected-error@+1 {{layers and kv_heads must be positive}}
func.func private @no_heads() attributes {test.value = #kv.group<layers = 1, kv_heads = 0, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = 0>}

// -----

// expected-error@+2 {{expected '<'}}
// expected-error@+1 {{failed to parse KV_GroupAttr parameter 'planes'}}
func.func private @no_planes() attributes {test.value = #kv.group<layers = 1, kv_heads = 1, planes = [], page_size = 0, keys_rotated = true, window = 0>}

// -----

// expected-error@+1 {{page_size and window must not be negative}}
func.func private @page_size() attributes {test.value = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = -1, keys_rotated = true, window = 0>}

// -----

// expected-error@+1 {{page_size and window must not be negative}}
func.func private @window() attributes {test.value = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>], page_size = 0, keys_rotated = true, window = -1>}

// -----

// expected-error@+1 {{two planes are named 'k'}}
func.func private @same_planes() attributes {test.value = #kv.group<layers = 1, kv_heads = 1, planes = [#kv.plane<"k", f32, [8], token>, #kv.plane<"k", f32, [8], page>], page_size = 0, keys_rotated = true, window = 0>}

// -----

// expected-error@+2 {{expected '<'}}
// expected-error@+1 {{failed to parse KV_CacheType parameter 'groups'}}
func.func private @no_groups() attributes {test.value = !kv.cache<>}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @append_group(%s: !kv.step, %c: !kv.cache<#g>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{'kv.append' op group 1 is not among the cache's 1}}
  %0 = kv.append %c, %s, %k, %k {group = 1 : i64, layer = 0 : i64}
    : !kv.cache<#g>, tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @append_negative_group(%s: !kv.step, %c: !kv.cache<#g>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{'kv.append' op attribute 'group' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = kv.append %c, %s, %k, %k {group = -1 : i64, layer = 0 : i64}
    : !kv.cache<#g>, tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @append_layer(%s: !kv.step, %c: !kv.cache<#g>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{'kv.append' op layer 2 is not among the group's 2}}
  %0 = kv.append %c, %s, %k, %k {group = 0 : i64, layer = 2 : i64}
    : !kv.cache<#g>, tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @append_negative_layer(%s: !kv.step, %c: !kv.cache<#g>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{'kv.append' op attribute 'layer' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = kv.append %c, %s, %k, %k {group = 0 : i64, layer = -1 : i64}
    : !kv.cache<#g>, tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @append_planes(%s: !kv.step, %c: !kv.cache<#g>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{'kv.append' op the group has 2 token planes, got 1 operands}}
  %0 = kv.append %c, %s, %k {group = 0 : i64, layer = 0 : i64}
    : !kv.cache<#g>, tensor<?x8xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @append_rank(%s: !kv.step, %c: !kv.cache<#g>, %k: tensor<?x2x4xf32>) {
  // expected-error@+1 {{'kv.append' op plane 'k' takes rows of 8 elements, got 'tensor<?x2x4xf32>'}}
  %0 = kv.append %c, %s, %k, %k {group = 0 : i64, layer = 0 : i64}
    : !kv.cache<#g>, tensor<?x2x4xf32>, tensor<?x2x4xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @append_width(%s: !kv.step, %c: !kv.cache<#g>, %k: tensor<?x8xf32>, %v: tensor<?x6xf32>) {
  // expected-error@+1 {{'kv.append' op plane 'v' takes rows of 8 elements, got 'tensor<?x6xf32>'}}
  %0 = kv.append %c, %s, %k, %v {group = 0 : i64, layer = 0 : i64}
    : !kv.cache<#g>, tensor<?x8xf32>, tensor<?x6xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @append_dynamic_width(%s: !kv.step, %c: !kv.cache<#g>, %k: tensor<?x?xf32>) {
  // expected-error@+1 {{'kv.append' op plane 'k' takes rows of 8 elements, got 'tensor<?x?xf32>'}}
  %0 = kv.append %c, %s, %k, %k {group = 0 : i64, layer = 0 : i64}
    : !kv.cache<#g>, tensor<?x?xf32>, tensor<?x?xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @append_tokens(%s: !kv.step, %c: !kv.cache<#g>, %k: tensor<3x8xf32>, %v: tensor<4x8xf32>) {
  // expected-error@+1 {{'kv.append' op operands have rows for 3 and 4 tokens}}
  %0 = kv.append %c, %s, %k, %v {group = 0 : i64, layer = 0 : i64}
    : !kv.cache<#g>, tensor<3x8xf32>, tensor<4x8xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_group(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<?x16xf32>) {
  // expected-error@+1 {{'kv.attend' op group 7 is not among the cache's 1}}
  %0 = kv.attend %q, %c, %s {group = 7 : i64, layer = 0 : i64, num_heads = 4 : i64, scale = 1.0 : f64}
    : tensor<?x16xf32>, !kv.cache<#g> -> tensor<?x16xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_layer(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<?x16xf32>) {
  // expected-error@+1 {{'kv.attend' op layer 2 is not among the group's 2}}
  %0 = kv.attend %q, %c, %s {group = 0 : i64, layer = 2 : i64, num_heads = 4 : i64, scale = 1.0 : f64}
    : tensor<?x16xf32>, !kv.cache<#g> -> tensor<?x16xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_no_heads(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<?x16xf32>) {
  // expected-error@+1 {{'kv.attend' op num_heads (0) must be a positive multiple of kv_heads (2)}}
  %0 = kv.attend %q, %c, %s {group = 0 : i64, layer = 0 : i64, num_heads = 0 : i64, scale = 1.0 : f64}
    : tensor<?x16xf32>, !kv.cache<#g> -> tensor<?x16xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_negative_heads(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<?x16xf32>) {
  // expected-error@+1 {{'kv.attend' op num_heads (-2) must be a positive multiple of kv_heads (2)}}
  %0 = kv.attend %q, %c, %s {group = 0 : i64, layer = 0 : i64, num_heads = -2 : i64, scale = 1.0 : f64}
    : tensor<?x16xf32>, !kv.cache<#g> -> tensor<?x16xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_heads(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<?x16xf32>) {
  // expected-error@+1 {{'kv.attend' op num_heads (3) must be a positive multiple of kv_heads (2)}}
  %0 = kv.attend %q, %c, %s {group = 0 : i64, layer = 0 : i64, num_heads = 3 : i64, scale = 1.0 : f64}
    : tensor<?x16xf32>, !kv.cache<#g> -> tensor<?x16xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_query(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<?x18xf32>) {
  // expected-error@+1 {{'kv.attend' op the query is [tokens, num_heads * size], not 'tensor<?x18xf32>'}}
  %0 = kv.attend %q, %c, %s {group = 0 : i64, layer = 0 : i64, num_heads = 4 : i64, scale = 1.0 : f64}
    : tensor<?x18xf32>, !kv.cache<#g> -> tensor<?x16xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_query_rank(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<16xf32>) {
  // expected-error@+1 {{'kv.attend' op the query is [tokens, num_heads * size], not 'tensor<16xf32>'}}
  %0 = kv.attend %q, %c, %s {group = 0 : i64, layer = 0 : i64, num_heads = 4 : i64, scale = 1.0 : f64}
    : tensor<16xf32>, !kv.cache<#g> -> tensor<?x16xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_dynamic_query(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<?x?xf32>) {
  // expected-error@+1 {{'kv.attend' op the query is [tokens, num_heads * size], not 'tensor<?x?xf32>'}}
  %0 = kv.attend %q, %c, %s {group = 0 : i64, layer = 0 : i64, num_heads = 4 : i64, scale = 1.0 : f64}
    : tensor<?x?xf32>, !kv.cache<#g> -> tensor<?x16xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_output(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<?x16xf32>) {
  // expected-error@+1 {{'kv.attend' op the output is [tokens, num_heads * value size], not 'tensor<?x18xf32>'}}
  %0 = kv.attend %q, %c, %s {group = 0 : i64, layer = 0 : i64, num_heads = 4 : i64, scale = 1.0 : f64}
    : tensor<?x16xf32>, !kv.cache<#g> -> tensor<?x18xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_tokens(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<3x16xf32>) {
  // expected-error@+1 {{'kv.attend' op the output is [tokens, num_heads * value size], not 'tensor<4x16xf32>'}}
  %0 = kv.attend %q, %c, %s {group = 0 : i64, layer = 0 : i64, num_heads = 4 : i64, scale = 1.0 : f64}
    : tensor<3x16xf32>, !kv.cache<#g> -> tensor<4x16xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_sink(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<?x16xf32>, %i: tensor<2xf32>) {
  // expected-error@+1 {{'kv.attend' op the sink has a logit for each of 4 heads, it is 'tensor<2xf32>'}}
  %0 = kv.attend %q, %c, %s sink(%i : tensor<2xf32>) {group = 0 : i64, layer = 0 : i64, num_heads = 4 : i64, scale = 1.0 : f64}
    : tensor<?x16xf32>, !kv.cache<#g> -> tensor<?x16xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @attend_mass(%s: !kv.step, %c: !kv.cache<#g>, %q: tensor<?x16xf32>) {
  // expected-error@+1 {{'kv.attend' op the mass is [tokens, slots], not 'tensor<?xf32>'}}
  %0:2 = kv.attend %q, %c, %s {group = 0 : i64, layer = 0 : i64, num_heads = 4 : i64, scale = 1.0 : f64}
    : tensor<?x16xf32>, !kv.cache<#g> -> tensor<?x16xf32>, tensor<?xf32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @fork_rank(%c: !kv.cache<#g>, %i: tensor<?x1xi32>) {
  // expected-error@+1 {{'kv.fork' op parent and child are vectors, not 'tensor<?x1xi32>'}}
  %0 = kv.fork %c, %i, %i : !kv.cache<#g>, tensor<?x1xi32>
  return
}

// -----

#g = #kv.group<layers = 2, kv_heads = 2, planes = [#kv.plane<"k", f32, [2, 4], token>, #kv.plane<"v", f32, [2, 4], token>, #kv.plane<"s", f32, [2], page>], page_size = 16, keys_rotated = true, window = 0>
func.func @rollback_rank(%c: !kv.cache<#g>, %i: tensor<i32>) {
  // expected-error@+1 {{'kv.rollback' op length is a vector, not 'tensor<i32>'}}
  %0 = kv.rollback %c, %i : !kv.cache<#g>, tensor<i32>
  return
}

// -----

func.func @step_field(%s: !kv.step) {
  // expected-error@+1 {{'kv.read_step' op the step has no array 'page'}}
  %0 = kv.read_step %s "page" : tensor<?xi32>
  return
}

// -----

func.func @step_rank(%s: !kv.step) {
  // expected-error@+1 {{'kv.read_step' op a step array is a vector}}
  %0 = kv.read_step %s "token" : tensor<?x1xi32>
  return
}

// -----

func.func @observe_width(%s: !kv.step, %x: tensor<?x?xf32>) {
  // expected-error@+1 {{'kv.observe' op takes rows of known width, not 'tensor<?x?xf32>'}}
  kv.observe %s, %x "x" : tensor<?x?xf32>
  return
}

// -----

func.func @observe_name(%s: !kv.step, %x: tensor<?x4xf32>) {
  // expected-error@+1 {{'kv.observe' op has an empty name}}
  kv.observe %s, %x "" : tensor<?x4xf32>
  return
}

// -----

func.func @supply_rank(%s: !kv.step) {
  // expected-error@+1 {{'kv.supply' op takes rows of known width, not 'tensor<?xf32>'}}
  %0 = kv.supply %s "x" : tensor<?xf32>
  return
}

// -----

func.func @supply_none(%s: !kv.step) {
  // expected-error@+1 {{'kv.supply' op takes rows of known width, not 'tensor<?x0xf32>'}}
  %0 = kv.supply %s "x" : tensor<?x0xf32>
  return
}
