// RUN: llm-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'func.func' op 'llm.source' is a dictionary on the module}}
func.func private @source_elsewhere() attributes {llm.source = {path = "m.onnx"}}

// -----

// expected-error@+1 {{'builtin.module' op 'llm.source' is a dictionary on the module}}
module attributes {llm.source = "m.onnx"} {
}

// -----

// expected-error@+1 {{'func.func' op 'llm.not_decoder' is a string}}
func.func private @not_decoder() attributes {llm.not_decoder}

// -----

// expected-error@+1 {{'func.func' op 'llm.name' is a string}}
func.func private @name_of_argument(tensor<4xf32> {llm.name = 3 : i64})

// -----

// expected-error@+1 {{'func.func' op 'llm.dims' is an array of strings}}
func.func private @dims_of_argument(tensor<?xf32> {llm.dims = "batch"})

// -----

// expected-error@+1 {{'func.func' op 'llm.dims' is an array of strings}}
func.func private @dims_of_result() -> (tensor<?xf32> {llm.dims = [4 : i64]})

// -----

// expected-error@+1 {{offset + length overflows}}
func.func private @span_overflows() attributes {test.value = #llm.span<"f", 18446744073709551615, 1, "0123456789abcdef">}

// -----

// expected-error@+1 {{hash must be 16 hex digits, got '0123456789abcde'}}
func.func private @hash_length() attributes {test.value = #llm.span<"f", 0, 1, "0123456789abcde">}

// -----

// expected-error@+1 {{hash must be 16 hex digits, got '0123456789abcdeg'}}
func.func private @hash_digits() attributes {test.value = #llm.span<"f", 0, 1, "0123456789abcdeg">}

// -----

// expected-error@+1 {{component 'data' needs a static shape of ints or floats, got 'tensor<?xf32>'}}
func.func private @component_dynamic() attributes {test.value = #llm.component<"data", tensor<?xf32>, #llm.span<"f", 0, 4, "0123456789abcdef">>}

// -----

// expected-error@+1 {{component 'data' needs a static shape of ints or floats, got 'tensor<2xindex>'}}
func.func private @component_elements() attributes {test.value = #llm.component<"data", tensor<2xindex>, #llm.span<"f", 0, 4, "0123456789abcdef">>}

// -----

// expected-error@+1 {{component 'data' needs a static shape of ints or floats}}
func.func private @component_overflows() attributes {test.value = #llm.component<"data", tensor<4611686018427387904x4xf32>, #llm.span<"f", 0, 0, "0123456789abcdef">>}

// -----

// expected-error@+1 {{component 'data' of type 'tensor<3x3xi4>' takes 5 bytes, its span has 6}}
func.func private @component_length() attributes {test.value = #llm.component<"data", tensor<3x3xi4>, #llm.span<"f", 0, 6, "0123456789abcdef">>}

// -----

// expected-error@+1 {{component 'data' needs an #llm.span or an elements attribute}}
func.func private @component_source() attributes {test.value = #llm.component<"data", tensor<2xf32>, "f">}

// -----

// expected-error@+1 {{component 'data' of type 'tensor<2xf32>' has elements of type 'tensor<3xf32>'}}
func.func private @component_type() attributes {test.value = #llm.component<"data", tensor<2xf32>, dense<0.0> : tensor<3xf32>>}

// -----

// expected-error@+1 {{dense weight of type 'tensor<2xf32>' stores 'tensor<3xf32>'}}
llm.weight @dense : tensor<2xf32> = #llm.dense<#llm.component<"data", tensor<3xf32>, dense<0.0> : tensor<3xf32>>>

// -----

// expected-error@+1 {{dense weight of type 'tensor<2xbf16>' stores 'tensor<2xf32>'; only floats can be stored in another type, a narrower one}}
llm.weight @wider : tensor<2xbf16> = #llm.dense<#llm.component<"data", tensor<2xf32>, dense<0.0> : tensor<2xf32>>>

// -----

// expected-error@+1 {{dense weight of type 'tensor<2xi32>' stores 'tensor<2xi8>'; only floats can be stored in another type, a narrower one}}
llm.weight @integers : tensor<2xi32> = #llm.dense<#llm.component<"data", tensor<2xi8>, dense<0> : tensor<2xi8>>>

// -----

// expected-error@+1 {{bits must be 2, 4 or 8, got 3}}
func.func private @bits() attributes {test.value = #llm.affine<bits = 3, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>}

// -----

// expected-error@+1 {{group_size must be a positive multiple of 8, got 0}}
func.func private @group_zero() attributes {test.value = #llm.affine<bits = 4, group_size = 0, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>}

// -----

// expected-error@+1 {{group_size must be a positive multiple of 8, got -32}}
func.func private @group_negative() attributes {test.value = #llm.affine<bits = 4, group_size = -32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>}

// -----

// expected-error@+1 {{group_size must be a positive multiple of 8, got 20}}
func.func private @group_odd() attributes {test.value = #llm.affine<bits = 4, group_size = 20, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>}

// -----

// expected-error@+1 {{data must be a matrix of bytes, got 'tensor<32xui8>'}}
func.func private @data_rank() attributes {test.value = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<32xui8>, dense<0> : tensor<32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>}

// -----

// expected-error@+1 {{data must be a matrix of bytes, got 'tensor<2x16xi16>'}}
func.func private @data_elements() attributes {test.value = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xi16>, dense<0> : tensor<2x16xi16>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>}

// -----

// expected-error@+1 {{scales must be a matrix of floats, got 'tensor<2xf32>'}}
func.func private @scales_rank() attributes {test.value = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2xf32>, dense<0.5> : tensor<2xf32>>>}

// -----

// expected-error@+1 {{scales must be a matrix of floats, got 'tensor<2x1xi32>'}}
func.func private @scales_elements() attributes {test.value = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xi32>, dense<0> : tensor<2x1xi32>>>}

// -----

// expected-error@+1 {{data has 2 rows, scales have 3}}
func.func private @scales_rows() attributes {test.value = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<3x1xf32>, dense<0.5> : tensor<3x1xf32>>>}

// -----

// expected-error@+1 {{2 groups of 9223372036854775800 are too large}}
func.func private @groups_overflow() attributes {test.value = #llm.affine<bits = 8, group_size = 9223372036854775800, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x2xf32>, dense<0.5> : tensor<2x2xf32>>>}

// -----

// expected-error@+1 {{data has 16 bytes a row, 2 groups of 32 take 32}}
func.func private @row_bytes() attributes {test.value = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x2xf32>, dense<0.5> : tensor<2x2xf32>>>}

// -----

// expected-error@+1 {{zeros must be [2, 1] of packed bytes or of the scales' type, got 'tensor<2xui8>'}}
func.func private @zeros_rank() attributes {test.value = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, zeros = #llm.component<"zeros", tensor<2xui8>, dense<0> : tensor<2xui8>>>}

// -----

// expected-error@+1 {{zeros must be [2, 1] of packed bytes or of the scales' type, got 'tensor<1x1xui8>'}}
func.func private @zeros_rows() attributes {test.value = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, zeros = #llm.component<"zeros", tensor<1x1xui8>, dense<0> : tensor<1x1xui8>>>}

// -----

// expected-error@+1 {{zeros must be [2, 1] of packed bytes or of the scales' type, got 'tensor<2x2xui8>'}}
func.func private @zeros_width() attributes {test.value = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, zeros = #llm.component<"zeros", tensor<2x2xui8>, dense<0> : tensor<2x2xui8>>>}

// -----

// expected-error@+1 {{zeros must be [2, 1] of packed bytes or of the scales' type, got 'tensor<2x1xf16>'}}
func.func private @zeros_elements() attributes {test.value = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, zeros = #llm.component<"zeros", tensor<2x1xf16>, dense<0.5> : tensor<2x1xf16>>>}

// -----

// expected-error@+1 {{factors and factor_group come together}}
func.func private @factors_alone() attributes {test.value = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, factors = #llm.component<"factors", tensor<2x2xi8>, dense<1> : tensor<2x2xi8>>>}

// -----

// expected-error@+1 {{factors and factor_group come together}}
func.func private @factor_group_alone() attributes {test.value = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, factor_group = 32>}

// -----

// expected-error@+1 {{factors split groups of 4 bits without zeros}}
func.func private @factors_bits() attributes {test.value = #llm.affine<bits = 8, group_size = 32, data = #llm.component<"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, factor_group = 32, factors = #llm.component<"factors", tensor<2x2xi8>, dense<1> : tensor<2x2xi8>>>}

// -----

// expected-error@+1 {{factors split groups of 4 bits without zeros}}
func.func private @factors_zeros() attributes {test.value = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, zeros = #llm.component<"zeros", tensor<2x1xui8>, dense<0> : tensor<2x1xui8>>, factor_group = 32, factors = #llm.component<"factors", tensor<2x2xi8>, dense<1> : tensor<2x2xi8>>>}

// -----

// expected-error@+1 {{factor_group must be a multiple of 8, at most 32, of which at most 4 make a group of 64, got 8}}
func.func private @factor_group_many() attributes {test.value = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, factor_group = 8, factors = #llm.component<"factors", tensor<2x8xi8>, dense<1> : tensor<2x8xi8>>>}

// -----

// expected-error@+1 {{factor_group must be a multiple of 8, at most 32, of which at most 4 make a group of 64, got 64}}
func.func private @factor_group_large() attributes {test.value = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, factor_group = 64, factors = #llm.component<"factors", tensor<2x1xi8>, dense<1> : tensor<2x1xi8>>>}

// -----

// expected-error@+1 {{factor_group must be a multiple of 8, at most 32, of which at most 4 make a group of 64, got -32}}
func.func private @factor_group_negative() attributes {test.value = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, factor_group = -32, factors = #llm.component<"factors", tensor<2x2xi8>, dense<1> : tensor<2x2xi8>>>}

// -----

// expected-error@+1 {{factors must be [2, 2] of i8, got 'tensor<2x3xi8>'}}
func.func private @factors_width() attributes {test.value = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, factor_group = 32, factors = #llm.component<"factors", tensor<2x3xi8>, dense<1> : tensor<2x3xi8>>>}

// -----

// expected-error@+1 {{factors must be [2, 2] of i8, got 'tensor<2x2xui8>'}}
func.func private @factors_elements() attributes {test.value = #llm.affine<bits = 4, group_size = 64, data = #llm.component<"data", tensor<2x32xui8>, dense<0> : tensor<2x32xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>, factor_group = 32, factors = #llm.component<"factors", tensor<2x2xui8>, dense<1> : tensor<2x2xui8>>>}

// -----

// expected-error@+1 {{affine groups store a float matrix, not 'tensor<64xf32>'}}
llm.weight @affine_rank : tensor<64xf32> = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>

// -----

// expected-error@+1 {{affine groups store a float matrix, not 'tensor<2x32xi32>'}}
llm.weight @affine_elements : tensor<2x32xi32> = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>

// -----

// expected-error@+1 {{weight of type 'tensor<3x32xf32>' has 2 rows of data}}
llm.weight @affine_rows : tensor<3x32xf32> = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>

// -----

// expected-error@+1 {{weight of type 'tensor<2x33xf32>' needs 2 groups a row, has 1}}
llm.weight @affine_groups : tensor<2x33xf32> = #llm.affine<bits = 4, group_size = 32, data = #llm.component<"data", tensor<2x16xui8>, dense<0> : tensor<2x16xui8>>, scales = #llm.component<"scales", tensor<2x1xf32>, dense<0.5> : tensor<2x1xf32>>>

// -----

// expected-error@+1 {{a weight has a static shape, not 'tensor<?xf32>'}}
llm.weight @dynamic : tensor<?xf32> = #llm.dense<#llm.component<"data", tensor<2xf32>, dense<0.0> : tensor<2xf32>>>

// -----

// expected-error@+1 {{attribute 'type' failed to satisfy constraint: type attribute of ranked tensor of any type values}}
llm.weight @type : i32 = #llm.dense<#llm.component<"data", tensor<2xf32>, dense<0.0> : tensor<2xf32>>>

// -----

// expected-error@+1 {{invalid kind of attribute specified}}
llm.weight @format : tensor<2xf32> = dense<0.0> : tensor<2xf32>

// -----

func.func @no_weight() {
  // expected-error@+1 {{'llm.get_weight' op no llm.weight is named @missing}}
  %0 = llm.get_weight @missing : tensor<2xf32>
  return
}

// -----

func.func private @other()

func.func @no_weight_but_a_function() {
  // expected-error@+1 {{'llm.get_weight' op no llm.weight is named @other}}
  %0 = llm.get_weight @other : tensor<2xf32>
  return
}

// -----

// expected-note@+1 {{the weight}}
llm.weight @w : tensor<2xf32> = #llm.dense<#llm.component<"data", tensor<2xf32>, dense<0.0> : tensor<2xf32>>>

func.func @type_of_weight() {
  // expected-error@+1 {{'llm.get_weight' op has type 'tensor<3xf32>', the weight 'tensor<2xf32>'}}
  %0 = llm.get_weight @w : tensor<3xf32>
  return
}

// -----

func.func @constant() {
  // expected-error@+1 {{'llm.constant' op result #0 must be ranked tensor of any type values, but got 'vector<2xi64>'}}
  %0 = llm.constant dense<0> : vector<2xi64>
  return
}

// -----

func.func @rank_of_query(%q: tensor<4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op query, key, value and output are all of rank 3 or all of rank 4}}
  %0 = llm.attention %q, %k, %k {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @rank_of_key(%q: tensor<1x4x8xf32>, %k: tensor<1x1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op query, key, value and output are all of rank 3 or all of rank 4}}
  %0 = llm.attention %q, %k, %q {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x1x4x4xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @rank_of_value(%q: tensor<1x4x8xf32>, %k: tensor<1x1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op query, key, value and output are all of rank 3 or all of rank 4}}
  %0 = llm.attention %q, %q, %k {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x1x4x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @rank_of_output(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op query, key, value and output are all of rank 3 or all of rank 4}}
  %0 = llm.attention %q, %k, %k {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @rank_of_mask(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>, %m: tensor<1x1x1x4x4xi1>) {
  // expected-error@+1 {{'llm.attention' op the mask broadcasts to [batch, heads, seq, slots], it is 'tensor<1x1x1x4x4xi1>'}}
  %0 = llm.attention %q, %k, %k mask(%m) {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1x1x1x4x4xi1>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @rank_of_nonpad(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>, %n: tensor<1x1xi64>) {
  // expected-error@+1 {{'llm.attention' op nonpad_kv_seqlen must be a vector, not 'tensor<1x1xi64>'}}
  %0 = llm.attention %q, %k, %k nonpad(%n) {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1x1xi64>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @rank_of_past(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>, %p: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op past is [batch, kv_heads, slots, size], not 'tensor<1x4x4xf32>'}}
  %0 = llm.attention %q, %k, %k past(%p, %p) {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @rank_of_present(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op present is [batch, kv_heads, slots, size], not 'tensor<1x4x4xf32>'}}
  %0:3 = llm.attention %q, %k, %k {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x1x4x4xf32>)
  return
}

// -----

func.func @no_heads(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op num_heads (0) must be a positive multiple of kv_heads (1)}}
  %0 = llm.attention %q, %k, %k {kv_heads = 1 : i64, num_heads = 0 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @no_kv_heads(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op num_heads (2) must be a positive multiple of kv_heads (0)}}
  %0 = llm.attention %q, %k, %k {kv_heads = 0 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @negative_heads(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op num_heads (-2) must be a positive multiple of kv_heads (-1)}}
  %0 = llm.attention %q, %k, %k {kv_heads = -1 : i64, num_heads = -2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @uneven_heads(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op num_heads (3) must be a positive multiple of kv_heads (2)}}
  %0 = llm.attention %q, %k, %k {kv_heads = 2 : i64, num_heads = 3 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @heads_of_query(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op query of type 'tensor<1x4x8xf32>' does not hold 3 heads}}
  %0 = llm.attention %q, %k, %k {kv_heads = 1 : i64, num_heads = 3 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @heads_of_key(%q: tensor<1x4x8xf32>, %k: tensor<1x4x5xf32>) {
  // expected-error@+1 {{'llm.attention' op key of type 'tensor<1x4x5xf32>' does not hold 2 heads}}
  %0 = llm.attention %q, %k, %q {kv_heads = 2 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x5xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @heads_of_value(%q: tensor<1x4x8xf32>, %k: tensor<1x4x5xf32>) {
  // expected-error@+1 {{'llm.attention' op value of type 'tensor<1x4x5xf32>' does not hold 2 heads}}
  %0 = llm.attention %q, %q, %k {kv_heads = 2 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x5xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @heads_of_output(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op output of type 'tensor<1x4x7xf32>' does not hold 2 heads}}
  %0 = llm.attention %q, %k, %k {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x7xf32>
  return
}

// -----

func.func @heads_of_query_4d(%q: tensor<1x3x4x8xf32>) {
  // expected-error@+1 {{'llm.attention' op query of type 'tensor<1x3x4x8xf32>' does not hold 6 heads}}
  %0 = llm.attention %q, %q, %q {kv_heads = 3 : i64, num_heads = 6 : i64, scale = 1.0 : f64}
    : (tensor<1x3x4x8xf32>, tensor<1x3x4x8xf32>, tensor<1x3x4x8xf32>) -> tensor<1x3x4x8xf32>
  return
}

// -----

func.func @heads_of_past(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>, %p: tensor<1x2x3x4xf32>) {
  // expected-error@+1 {{'llm.attention' op past of type 'tensor<1x2x3x4xf32>' does not hold 1 heads}}
  %0 = llm.attention %q, %k, %k past(%p, %p) {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @heads_of_present(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op present of type 'tensor<1x2x4x4xf32>' does not hold 1 heads}}
  %0:3 = llm.attention %q, %k, %k {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> (tensor<1x4x8xf32>, tensor<1x2x4x4xf32>, tensor<1x1x4x4xf32>)
  return
}

// -----

func.func @one_past(%q: tensor<1x4x8xf32>, %p: tensor<1x2x3x4xf32>) {
  // expected-error@+1 {{'llm.attention' op past_key and past_value come together}}
  %0 = "llm.attention"(%q, %q, %q, %p) <{kv_heads = 2 : i64, num_heads = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0>, scale = 1.0 : f64}>
    : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x2x3x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @one_present(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op present key and value come together, got 1 of them}}
  %0:2 = llm.attention %q, %k, %k {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> (tensor<1x4x8xf32>, tensor<1x1x4x4xf32>)
  return
}

// -----

func.func @window(%q: tensor<1x4x8xf32>, %k: tensor<1x4x4xf32>) {
  // expected-error@+1 {{'llm.attention' op attribute 'window' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = llm.attention %q, %k, %k {kv_heads = 1 : i64, num_heads = 2 : i64, scale = 1.0 : f64, window = -1 : i64}
    : (tensor<1x4x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @gqa_rank(%q: tensor<3x64xf32>, %k: tensor<1x3x32xf32>, %l: tensor<1xi32>, %t: tensor<i32>) {
  // expected-error@+1 {{'llm.group_query_attention' op query, key, value and output are of rank 3}}
  %0 = llm.group_query_attention %q, %k, %k lengths(%l, %t) {kv_heads = 2 : i64, num_heads = 4 : i64, scale = 0.25 : f64}
    : (tensor<3x64xf32>, tensor<1x3x32xf32>, tensor<1x3x32xf32>, tensor<1xi32>, tensor<i32>) -> tensor<1x3x64xf32>
  return
}

// -----

func.func @gqa_rank_of_output(%q: tensor<1x3x64xf32>, %k: tensor<1x3x32xf32>, %l: tensor<1xi32>, %t: tensor<i32>) {
  // expected-error@+1 {{'llm.group_query_attention' op query, key, value and output are of rank 3}}
  %0 = llm.group_query_attention %q, %k, %k lengths(%l, %t) {kv_heads = 2 : i64, num_heads = 4 : i64, scale = 0.25 : f64}
    : (tensor<1x3x64xf32>, tensor<1x3x32xf32>, tensor<1x3x32xf32>, tensor<1xi32>, tensor<i32>) -> tensor<3x64xf32>
  return
}

// -----

func.func @cos_alone(%q: tensor<1x3x64xf32>, %k: tensor<1x3x32xf32>, %l: tensor<1xi32>, %t: tensor<i32>, %c: tensor<16x8xf32>) {
  // expected-error@+1 {{'llm.group_query_attention' op cos and sin come together}}
  %0 = "llm.group_query_attention"(%q, %k, %k, %l, %t, %c) <{kv_heads = 2 : i64, num_heads = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0>, scale = 1.0 : f64}>
    : (tensor<1x3x64xf32>, tensor<1x3x32xf32>, tensor<1x3x32xf32>, tensor<1xi32>, tensor<i32>, tensor<16x8xf32>) -> tensor<1x3x64xf32>
  return
}

// -----

func.func @gqa_tables(%q: tensor<1x3x64xf32>, %k: tensor<1x3x32xf32>, %l: tensor<1xi32>, %t: tensor<i32>, %c: tensor<1x16x8xf32>) {
  // expected-error@+1 {{'llm.group_query_attention' op the tables are [positions, rotary / 2], not 'tensor<1x16x8xf32>'}}
  %0 = llm.group_query_attention %q, %k, %k lengths(%l, %t) rotary(%c, %c) {kv_heads = 2 : i64, num_heads = 4 : i64, scale = 0.25 : f64}
    : (tensor<1x3x64xf32>, tensor<1x3x32xf32>, tensor<1x3x32xf32>, tensor<1xi32>, tensor<i32>, tensor<1x16x8xf32>, tensor<1x16x8xf32>) -> tensor<1x3x64xf32>
  return
}

// -----

func.func @gqa_heads(%q: tensor<1x3x64xf32>, %k: tensor<1x3x32xf32>, %l: tensor<1xi32>, %t: tensor<i32>) {
  // expected-error@+1 {{'llm.group_query_attention' op num_heads (5) must be a positive multiple of kv_heads (2)}}
  %0 = llm.group_query_attention %q, %k, %k lengths(%l, %t) {kv_heads = 2 : i64, num_heads = 5 : i64, scale = 0.25 : f64}
    : (tensor<1x3x64xf32>, tensor<1x3x32xf32>, tensor<1x3x32xf32>, tensor<1xi32>, tensor<i32>) -> tensor<1x3x64xf32>
  return
}

// -----

func.func @embedding_table(%i: tensor<?xi64>, %w: tensor<2x4x8xf32>) {
  // expected-error@+1 {{'llm.embedding' op the table is a matrix, not 'tensor<2x4x8xf32>'}}
  %0 = llm.embedding %i, %w : (tensor<?xi64>, tensor<2x4x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @embedding_result(%i: tensor<3xi64>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{'llm.embedding' op operands give shape [3, 8], the result is 'tensor<3x9xf32>'}}
  %0 = llm.embedding %i, %w : (tensor<3xi64>, tensor<4x8xf32>) -> tensor<3x9xf32>
  return
}

// -----

func.func @linear_weight(%x: tensor<?x4xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{'llm.linear' op the weight is a matrix, not 'tensor<4xf32>'}}
  %0 = llm.linear %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_scalar(%x: tensor<f32>, %w: tensor<8x4xf32>) {
  // expected-error@+1 {{'llm.linear' op the input is at least a vector}}
  %0 = llm.linear %x, %w : (tensor<f32>, tensor<8x4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @linear_features(%x: tensor<?x4xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{'llm.linear' op the input has 4 features, the weight takes 8}}
  %0 = llm.linear %x, %w : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_transposed(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>) {
  // expected-error@+1 {{'llm.linear' op the input has 4 features, the weight takes 8}}
  %0 = llm.linear %x, %w {transposed} : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_bias_rank(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>, %b: tensor<1x8xf32>) {
  // expected-error@+1 {{'llm.linear' op the bias is a vector of 8 elements, not 'tensor<1x8xf32>'}}
  %0 = llm.linear %x, %w bias(%b) : (tensor<?x4xf32>, tensor<8x4xf32>, tensor<1x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_bias_size(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{'llm.linear' op the bias is a vector of 8 elements, not 'tensor<4xf32>'}}
  %0 = llm.linear %x, %w bias(%b) : (tensor<?x4xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_result(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>) {
  // expected-error@+1 {{'llm.linear' op operands give shape [?, 8], the result is 'tensor<?x4xf32>'}}
  %0 = llm.linear %x, %w : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @norm_elements(%x: tensor<?x8xf32>, %s: tensor<8xf32>) {
  // expected-error@+1 {{'llm.rms_norm' op result elements must be 'f32', got 'tensor<?x8xf16>'}}
  %0 = llm.rms_norm %x, %s : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf16>
  return
}

// -----

func.func @norm_result(%x: tensor<?x8xf32>, %s: tensor<8xf32>) {
  // expected-error@+1 {{'llm.rms_norm' op operands give shape [?, 8], the result is 'tensor<?x4xf32>'}}
  %0 = llm.rms_norm %x, %s : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @norm_axis(%x: tensor<?x8xf32>, %s: tensor<8xf32>) {
  // expected-error@+1 {{'llm.rms_norm' op axis 2 is outside a tensor of rank 2}}
  %0 = llm.rms_norm %x, %s {axis = 2 : i64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_scalar(%x: tensor<f32>) {
  // expected-error@+1 {{'llm.rms_norm' op axis -1 is outside a tensor of rank 0}}
  %0 = llm.rms_norm %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @norm_scale(%x: tensor<?x8xf32>, %s: tensor<4xf32>) {
  // expected-error@+1 {{'llm.rms_norm' op the scale of type 'tensor<4xf32>' does not fit 'tensor<?x8xf32>'}}
  %0 = llm.rms_norm %x, %s : (tensor<?x8xf32>, tensor<4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @layer_norm_axis(%x: tensor<?x8xf32>, %s: tensor<8xf32>) {
  // expected-error@+1 {{'llm.layer_norm' op axis -3 is outside a tensor of rank 2}}
  %0 = llm.layer_norm %x, %s {axis = -3 : i64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @layer_norm_bias(%x: tensor<?x8xf32>, %s: tensor<8xf32>, %b: tensor<2xf32>) {
  // expected-error@+1 {{'llm.layer_norm' op the bias of type 'tensor<2xf32>' does not fit 'tensor<?x8xf32>'}}
  %0 = llm.layer_norm %x, %s bias(%b) : (tensor<?x8xf32>, tensor<8xf32>, tensor<2xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @rope_rank(%x: tensor<8xf32>, %c: tensor<16x2xf32>, %s: tensor<16x2xf32>) {
  // expected-error@+1 {{'llm.rope' op the input is of rank 2, 3 or 4}}
  %0 = llm.rope %x, %c, %s {num_heads = 2 : i64}
    : (tensor<8xf32>, tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @rope_no_heads(%x: tensor<?x?x8xf32>, %c: tensor<16x2xf32>, %s: tensor<16x2xf32>, %p: tensor<?x?xi64>) {
  // expected-error@+1 {{'llm.rope' op num_heads says how many heads the last dimension has}}
  %0 = llm.rope %x, %c, %s positions(%p) {}
    : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @rope_negative_heads(%x: tensor<?x?x8xf32>, %c: tensor<16x2xf32>, %s: tensor<16x2xf32>, %p: tensor<?x?xi64>) {
  // expected-error@+1 {{'llm.rope' op attribute 'num_heads' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = llm.rope %x, %c, %s positions(%p) {num_heads = -2 : i64}
    : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @rope_heads(%x: tensor<?x?x8xf32>, %c: tensor<16x2xf32>, %s: tensor<16x2xf32>, %p: tensor<?x?xi64>) {
  // expected-error@+1 {{'llm.rope' op the input 'tensor<?x?x8xf32>' does not hold 3 heads}}
  %0 = llm.rope %x, %c, %s positions(%p) {num_heads = 3 : i64}
    : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @rope_tables_with_positions(%x: tensor<?x?x8xf32>, %c: tensor<1x16x2xf32>, %s: tensor<1x16x2xf32>, %p: tensor<?x?xi64>) {
  // expected-error@+1 {{'llm.rope' op the tables are [positions, rotary / 2] with positions, [batch, seq, rotary / 2] without}}
  %0 = llm.rope %x, %c, %s positions(%p) {num_heads = 2 : i64}
    : (tensor<?x?x8xf32>, tensor<1x16x2xf32>, tensor<1x16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @rope_tables_without_positions(%x: tensor<?x?x8xf32>, %c: tensor<16x2xf32>, %s: tensor<16x2xf32>) {
  // expected-error@+1 {{'llm.rope' op the tables are [positions, rotary / 2] with positions, [batch, seq, rotary / 2] without}}
  %0 = llm.rope %x, %c, %s {num_heads = 2 : i64}
    : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @rope_tables_of_tokens(%x: tensor<?x8xf32>, %c: tensor<1x16x2xf32>, %s: tensor<1x16x2xf32>) {
  // expected-error@+1 {{'llm.rope' op the tables are [positions, rotary / 2] with positions, [batch, seq, rotary / 2] without}}
  %0 = llm.rope %x, %c, %s {num_heads = 2 : i64}
    : (tensor<?x8xf32>, tensor<1x16x2xf32>, tensor<1x16x2xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @rope_tables_differ(%x: tensor<?x?x8xf32>, %c: tensor<16x2xf32>, %s: tensor<1x16x2xf32>, %p: tensor<?x?xi64>) {
  // expected-error@+1 {{'llm.rope' op the tables are [positions, rotary / 2] with positions, [batch, seq, rotary / 2] without}}
  %0 = llm.rope %x, %c, %s positions(%p) {num_heads = 2 : i64}
    : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<1x16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @rope_odd_rotary(%x: tensor<?x?x8xf32>, %c: tensor<16x2xf32>, %s: tensor<16x2xf32>, %p: tensor<?x?xi64>) {
  // expected-error@+1 {{'llm.rope' op rotary_dim 3 does not fit tables of width 2}}
  %0 = llm.rope %x, %c, %s positions(%p) {num_heads = 2 : i64, rotary_dim = 3 : i64}
    : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @rope_width(%x: tensor<?x?x8xf32>, %c: tensor<16x2xf32>, %s: tensor<16x2xf32>, %p: tensor<?x?xi64>) {
  // expected-error@+1 {{'llm.rope' op rotary_dim 2 does not fit tables of width 2}}
  %0 = llm.rope %x, %c, %s positions(%p) {num_heads = 2 : i64, rotary_dim = 2 : i64}
    : (tensor<?x?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @rope_wide(%x: tensor<?x?x8xf32>, %c: tensor<16x4xf32>, %s: tensor<16x4xf32>, %p: tensor<?x?xi64>) {
  // expected-error@+1 {{'llm.rope' op rotary_dim 8 is more than the head's size, 4}}
  %0 = llm.rope %x, %c, %s positions(%p) {num_heads = 2 : i64, rotary_dim = 8 : i64}
    : (tensor<?x?x8xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @rope_elements(%x: tensor<?x8xf32>, %c: tensor<16x2xf32>, %s: tensor<16x2xf32>) {
  // expected-error@+1 {{'llm.rope' op result elements must be 'f32', got 'tensor<?x8xf16>'}}
  %0 = llm.rope %x, %c, %s {num_heads = 2 : i64}
    : (tensor<?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<?x8xf16>
  return
}

// -----

func.func @rope_result(%x: tensor<?x8xf32>, %c: tensor<16x2xf32>, %s: tensor<16x2xf32>) {
  // expected-error@+1 {{'llm.rope' op operands give shape [?, 8], the result is 'tensor<?x4xf32>'}}
  %0 = llm.rope %x, %c, %s {num_heads = 2 : i64}
    : (tensor<?x8xf32>, tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<?x4xf32>
  return
}
