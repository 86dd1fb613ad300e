// RUN: llm-opt %s --split-input-file --verify-diagnostics

func.func @concat_nothing() {
  // expected-error@+1 {{'llm.concat' op needs an input}}
  %0 = "llm.concat"() <{axis = 0 : i64}> : () -> tensor<2xf32>
  return
}

// -----

func.func @concat_axis(%x: tensor<2xf32>) {
  // expected-error@+1 {{'llm.concat' op axis 1 is outside a tensor of rank 1}}
  %0 = llm.concat %x {axis = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @concat_scalar(%x: tensor<f32>) {
  // expected-error@+1 {{'llm.concat' op axis 0 is outside a tensor of rank 0}}
  %0 = llm.concat %x {axis = 0 : i64} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @concat_rank(%x: tensor<2xf32>, %y: tensor<1x2xf32>) {
  // expected-error@+1 {{'llm.concat' op input 'tensor<1x2xf32>' does not fit 'tensor<4xf32>'}}
  %0 = llm.concat %x, %y {axis = 0 : i64} : (tensor<2xf32>, tensor<1x2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @concat_elements(%x: tensor<2xf32>, %y: tensor<2xf16>) {
  // expected-error@+1 {{'llm.concat' op input 'tensor<2xf16>' does not fit 'tensor<4xf32>'}}
  %0 = llm.concat %x, %y {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @concat_beside(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.concat' op input 'tensor<2x4xf32>' does not fit 'tensor<4x3xf32>' beside axis 0}}
  %0 = llm.concat %x, %y {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @concat_overflow(%x: tensor<9223372036854775807xi8>) {
  // expected-error@+1 {{'llm.concat' op inputs are too long along the axis}}
  %0 = llm.concat %x, %x {axis = 0 : i64} : (tensor<9223372036854775807xi8>, tensor<9223372036854775807xi8>) -> tensor<?xi8>
  return
}

// -----

func.func @concat_sum(%x: tensor<2xf32>) {
  // expected-error@+1 {{'llm.concat' op inputs add up to 4 along the axis}}
  %0 = llm.concat %x, %x {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @fill_shape(%s: tensor<2x1xi64>) {
  // expected-error@+1 {{'llm.constant_of_shape' op the shape must be a vector, not 'tensor<2x1xi64>'}}
  %0 = llm.constant_of_shape %s {value = dense<0.0> : tensor<1xf32>} : tensor<2x1xi64> -> tensor<?x?xf32>
  return
}

// -----

func.func @fill_rank(%s: tensor<3xi64>) {
  // expected-error@+1 {{'llm.constant_of_shape' op a shape of 3 sizes gives no 'tensor<?x?xf32>'}}
  %0 = llm.constant_of_shape %s {value = dense<0.0> : tensor<1xf32>} : tensor<3xi64> -> tensor<?x?xf32>
  return
}

// -----

func.func @fill_value(%s: tensor<2xi64>) {
  // expected-error@+1 {{'llm.constant_of_shape' op value must be one element of type 'f32', it is 'tensor<2xf32>'}}
  %0 = llm.constant_of_shape %s {value = dense<0.0> : tensor<2xf32>} : tensor<2xi64> -> tensor<?x?xf32>
  return
}

// -----

func.func @fill_elements(%s: tensor<2xi64>) {
  // expected-error@+1 {{'llm.constant_of_shape' op value must be one element of type 'f32', it is 'tensor<1xi64>'}}
  %0 = llm.constant_of_shape %s {value = dense<0> : tensor<1xi64>} : tensor<2xi64> -> tensor<?x?xf32>
  return
}

// -----

func.func @expand_shape(%x: tensor<4xf32>, %s: tensor<i64>) {
  // expected-error@+1 {{'llm.expand' op the shape must be a vector, not 'tensor<i64>'}}
  %0 = llm.expand %x, %s : (tensor<4xf32>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

func.func @expand_elements(%x: tensor<4xf32>, %s: tensor<1xi64>) {
  // expected-error@+1 {{'llm.expand' op result elements must be 'f32', got 'tensor<4xf16>'}}
  %0 = llm.expand %x, %s : (tensor<4xf32>, tensor<1xi64>) -> tensor<4xf16>
  return
}

// -----

func.func @expand_rank(%x: tensor<4xf32>, %s: tensor<2xi64>) {
  // expected-error@+1 {{'llm.expand' op a shape of 'tensor<2xi64>' expands 'tensor<4xf32>' to no 'tensor<4xf32>'}}
  %0 = llm.expand %x, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @expand_lower_rank(%x: tensor<1x4xf32>, %s: tensor<?xi64>) {
  // expected-error@+1 {{'llm.expand' op a shape of 'tensor<?xi64>' expands 'tensor<1x4xf32>' to no 'tensor<4xf32>'}}
  %0 = llm.expand %x, %s : (tensor<1x4xf32>, tensor<?xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @expand_sizes(%x: tensor<2x4xf32>, %s: tensor<2xi64>) {
  // expected-error@+1 {{'llm.expand' op does not expand 'tensor<2x4xf32>' to 'tensor<6x4xf32>'}}
  %0 = llm.expand %x, %s : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<6x4xf32>
  return
}

// -----

func.func @gather_axis(%x: tensor<f32>, %i: tensor<i64>) {
  // expected-error@+1 {{'llm.gather' op axis 0 is outside a tensor of rank 0}}
  %0 = llm.gather %x, %i {axis = 0 : i64} : (tensor<f32>, tensor<i64>) -> tensor<f32>
  return
}

// -----

func.func @gather_elements(%x: tensor<4xi64>, %i: tensor<2xi64>) {
  // expected-error@+1 {{'llm.gather' op result elements must be 'i64', got 'tensor<2xi32>'}}
  %0 = llm.gather %x, %i {axis = 0 : i64} : (tensor<4xi64>, tensor<2xi64>) -> tensor<2xi32>
  return
}

// -----

func.func @gather_result(%x: tensor<4x5xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{'llm.gather' op operands give shape [4, 2], the result is 'tensor<2x5xf32>'}}
  %0 = llm.gather %x, %i {axis = 1 : i64} : (tensor<4x5xf32>, tensor<2xi64>) -> tensor<2x5xf32>
  return
}

// -----

func.func @range_scalars(%x: tensor<i64>, %y: tensor<1xi64>) {
  // expected-error@+1 {{'llm.range' op start, limit and delta are scalars of one type, not 'tensor<1xi64>'}}
  %0 = llm.range %x, %y, %x : (tensor<i64>, tensor<1xi64>, tensor<i64>) -> tensor<?xi64>
  return
}

// -----

func.func @range_types(%x: tensor<i64>, %y: tensor<i32>) {
  // expected-error@+1 {{'llm.range' op start, limit and delta are scalars of one type, not 'tensor<i32>'}}
  %0 = llm.range %x, %x, %y : (tensor<i64>, tensor<i64>, tensor<i32>) -> tensor<?xi64>
  return
}

// -----

func.func @range_elements(%x: tensor<i64>) {
  // expected-error@+1 {{'llm.range' op result elements must be 'i64', got 'tensor<?xi32>'}}
  %0 = llm.range %x, %x, %x : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi32>
  return
}

// -----

func.func @range_result(%x: tensor<i64>) {
  // expected-error@+1 {{'llm.range' op operands give shape [?], the result is 'tensor<2x3xi64>'}}
  %0 = llm.range %x, %x, %x : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3xi64>
  return
}

// -----

func.func @reshape_shape(%x: tensor<4xf32>, %s: tensor<1x1xi64>) {
  // expected-error@+1 {{'llm.reshape' op the shape must be a vector, not 'tensor<1x1xi64>'}}
  %0 = llm.reshape %x, %s : (tensor<4xf32>, tensor<1x1xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @reshape_elements(%x: tensor<4xf32>, %s: tensor<1xi64>) {
  // expected-error@+1 {{'llm.reshape' op result elements must be 'f32', got 'tensor<4xf16>'}}
  %0 = llm.reshape %x, %s : (tensor<4xf32>, tensor<1xi64>) -> tensor<4xf16>
  return
}

// -----

func.func @reshape_rank(%x: tensor<4xf32>, %s: tensor<1xi64>) {
  // expected-error@+1 {{'llm.reshape' op a shape of 1 sizes gives no 'tensor<2x2xf32>'}}
  %0 = llm.reshape %x, %s : (tensor<4xf32>, tensor<1xi64>) -> tensor<2x2xf32>
  return
}

// -----

func.func @reshape_count(%x: tensor<4xf32>, %s: tensor<2xi64>) {
  // expected-error@+1 {{'llm.reshape' op the input has 4 elements, the result 6}}
  %0 = llm.reshape %x, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_reduction(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>, %u: tensor<2x5xf32>) {
  // expected-error@+1 {{'llm.scatter_nd' op reduction must be none, add, mul, max or min, not 'mean'}}
  %0 = llm.scatter_nd %x, %i, %u {reduction = "mean"} : (tensor<4x5xf32>, tensor<2x1xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_scalar(%x: tensor<f32>, %i: tensor<2x1xi64>, %u: tensor<2x5xf32>) {
  // expected-error@+1 {{'llm.scatter_nd' op input and indices are at least vectors}}
  %0 = llm.scatter_nd %x, %i, %u : (tensor<f32>, tensor<2x1xi64>, tensor<2x5xf32>) -> tensor<f32>
  return
}

// -----

func.func @scatter_scalar_index(%x: tensor<4x5xf32>, %i: tensor<i64>, %u: tensor<2x5xf32>) {
  // expected-error@+1 {{'llm.scatter_nd' op input and indices are at least vectors}}
  %0 = llm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<i64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_depth(%x: tensor<4x5xf32>, %i: tensor<2x3xi64>, %u: tensor<2x5xf32>) {
  // expected-error@+1 {{'llm.scatter_nd' op indices 'tensor<2x3xi64>' are no tuples into 'tensor<4x5xf32>'}}
  %0 = llm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x3xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_no_depth(%x: tensor<4x5xf32>, %i: tensor<2x0xi64>, %u: tensor<2x5xf32>) {
  // expected-error@+1 {{'llm.scatter_nd' op indices 'tensor<2x0xi64>' are no tuples into 'tensor<4x5xf32>'}}
  %0 = llm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x0xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_dynamic_depth(%x: tensor<4x5xf32>, %i: tensor<2x?xi64>, %u: tensor<2x5xf32>) {
  // expected-error@+1 {{'llm.scatter_nd' op indices 'tensor<2x?xi64>' are no tuples into 'tensor<4x5xf32>'}}
  %0 = llm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x?xi64>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_updates(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>, %u: tensor<2xf32>) {
  // expected-error@+1 {{'llm.scatter_nd' op updates 'tensor<2xf32>' do not fit indices 'tensor<2x1xi64>' into 'tensor<4x5xf32>'}}
  %0 = llm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_update_elements(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>, %u: tensor<2x5xf16>) {
  // expected-error@+1 {{'llm.scatter_nd' op updates 'tensor<2x5xf16>' do not fit indices 'tensor<2x1xi64>' into 'tensor<4x5xf32>'}}
  %0 = llm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x1xi64>, tensor<2x5xf16>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_elements(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>, %u: tensor<2x5xf32>) {
  // expected-error@+1 {{'llm.scatter_nd' op result elements must be 'f32', got 'tensor<4x5xf16>'}}
  %0 = llm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x1xi64>, tensor<2x5xf32>) -> tensor<4x5xf16>
  return
}

// -----

func.func @scatter_result(%x: tensor<4x5xf32>, %i: tensor<2x1xi64>, %u: tensor<2x5xf32>) {
  // expected-error@+1 {{'llm.scatter_nd' op operands give shape [4, 5], the result is 'tensor<5x5xf32>'}}
  %0 = llm.scatter_nd %x, %i, %u : (tensor<4x5xf32>, tensor<2x1xi64>, tensor<2x5xf32>) -> tensor<5x5xf32>
  return
}

// -----

func.func @shape_result(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'llm.shape' op operands give shape [1], the result is 'tensor<2xi64>'}}
  %0 = llm.shape %x {start = 1 : i64} : tensor<4x5xf32> -> tensor<2xi64>
  return
}

// -----

func.func @shape_rank(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{'llm.shape' op operands give shape [2], the result is 'tensor<2x1xi64>'}}
  %0 = llm.shape %x : tensor<4x5xf32> -> tensor<2x1xi64>
  return
}

// -----

func.func @slice_starts(%x: tensor<4x5xf32>, %a: tensor<i64>, %b: tensor<1xi64>) {
  // expected-error@+1 {{'llm.slice' op starts must be a vector, not 'tensor<i64>'}}
  %0 = llm.slice %x, %a, %b : (tensor<4x5xf32>, tensor<i64>, tensor<1xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @slice_ends(%x: tensor<4x5xf32>, %a: tensor<1xi64>, %b: tensor<i64>) {
  // expected-error@+1 {{'llm.slice' op ends must be a vector, not 'tensor<i64>'}}
  %0 = llm.slice %x, %a, %b : (tensor<4x5xf32>, tensor<1xi64>, tensor<i64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @slice_axes(%x: tensor<4x5xf32>, %a: tensor<1xi64>, %b: tensor<1xi64>, %c: tensor<i64>) {
  // expected-error@+1 {{'llm.slice' op axes must be a vector, not 'tensor<i64>'}}
  %0 = llm.slice %x, %a, %b axes(%c) : (tensor<4x5xf32>, tensor<1xi64>, tensor<1xi64>, tensor<i64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @slice_steps(%x: tensor<4x5xf32>, %a: tensor<1xi64>, %b: tensor<1xi64>, %d: tensor<i64>) {
  // expected-error@+1 {{'llm.slice' op steps must be a vector, not 'tensor<i64>'}}
  %0 = llm.slice %x, %a, %b steps(%d) : (tensor<4x5xf32>, tensor<1xi64>, tensor<1xi64>, tensor<i64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @slice_lengths(%x: tensor<4x5xf32>, %a: tensor<1xi64>, %b: tensor<2xi64>) {
  // expected-error@+1 {{'llm.slice' op starts, ends, axes and steps differ in length}}
  %0 = llm.slice %x, %a, %b : (tensor<4x5xf32>, tensor<1xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @slice_length_of_steps(%x: tensor<4x5xf32>, %a: tensor<?xi64>, %b: tensor<1xi64>, %c: tensor<1xi64>, %d: tensor<2xi64>) {
  // expected-error@+1 {{'llm.slice' op starts, ends, axes and steps differ in length}}
  %0 = llm.slice %x, %a, %b axes(%c) steps(%d) : (tensor<4x5xf32>, tensor<?xi64>, tensor<1xi64>, tensor<1xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @slice_many(%x: tensor<4x5xf32>, %a: tensor<3xi64>, %b: tensor<3xi64>) {
  // expected-error@+1 {{'llm.slice' op cuts 3 axes of 'tensor<4x5xf32>'}}
  %0 = llm.slice %x, %a, %b : (tensor<4x5xf32>, tensor<3xi64>, tensor<3xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @slice_elements(%x: tensor<4x5xf32>, %a: tensor<1xi64>, %b: tensor<1xi64>) {
  // expected-error@+1 {{'llm.slice' op result elements must be 'f32', got 'tensor<?x?xf16>'}}
  %0 = llm.slice %x, %a, %b : (tensor<4x5xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf16>
  return
}

// -----

func.func @slice_rank(%x: tensor<4x5xf32>, %a: tensor<1xi64>, %b: tensor<1xi64>) {
  // expected-error@+1 {{'llm.slice' op operands give shape [?, ?], the result is 'tensor<?xf32>'}}
  %0 = llm.slice %x, %a, %b : (tensor<4x5xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return
}

// -----

func.func @slice_larger(%x: tensor<4x5xf32>, %a: tensor<1xi64>, %b: tensor<1xi64>) {
  // expected-error@+1 {{'llm.slice' op gives 'tensor<5x5xf32>', more than 'tensor<4x5xf32>'}}
  %0 = llm.slice %x, %a, %b : (tensor<4x5xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<5x5xf32>
  return
}

// -----

func.func @split_axis(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.split' op axis -3 is outside a tensor of rank 2}}
  %0:2 = llm.split %x {axis = -3 : i64} : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
  return
}

// -----

func.func @split_nothing(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.split' op needs a result}}
  "llm.split"(%x) <{axis = 0 : i64}> : (tensor<2x4xf32>) -> ()
  return
}

// -----

func.func @split_sizes(%x: tensor<2x4xf32>, %s: tensor<i64>) {
  // expected-error@+1 {{'llm.split' op sizes must be a vector, not 'tensor<i64>'}}
  %0:2 = llm.split %x sizes(%s) {axis = 1 : i64} : (tensor<2x4xf32>, tensor<i64>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
  return
}

// -----

func.func @split_size_count(%x: tensor<2x4xf32>, %s: tensor<3xi64>) {
  // expected-error@+1 {{'llm.split' op has 3 sizes for 2 results}}
  %0:2 = llm.split %x sizes(%s) {axis = 1 : i64} : (tensor<2x4xf32>, tensor<3xi64>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
  return
}

// -----

func.func @split_elements(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.split' op result elements must be 'f32', got 'tensor<2x2xf16>'}}
  %0:2 = llm.split %x {axis = 1 : i64} : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xf16>)
  return
}

// -----

func.func @split_shape(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.split' op operands give shape [2, ?], the result is 'tensor<1x2xf32>'}}
  %0:2 = llm.split %x {axis = 1 : i64} : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<1x2xf32>)
  return
}

// -----

func.func @split_overflow(%x: tensor<?xi8>) {
  // expected-error@+1 {{'llm.split' op results are too long along the axis}}
  %0:2 = llm.split %x {axis = 0 : i64} : (tensor<?xi8>) -> (tensor<9223372036854775807xi8>, tensor<9223372036854775807xi8>)
  return
}

// -----

func.func @split_sum(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.split' op results add up to 5 along the axis, the input has 4}}
  %0:2 = llm.split %x {axis = 1 : i64} : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @squeeze_axis(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{'llm.squeeze' op axis 2 is outside a tensor of rank 2}}
  %0 = llm.squeeze %x axes [2] : tensor<1x4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @squeeze_twice(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{'llm.squeeze' op axis -2 is named twice}}
  %0 = llm.squeeze %x axes [0, -2] : tensor<1x4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @squeeze_elements(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{'llm.squeeze' op result elements must be 'f32', got 'tensor<4xf16>'}}
  %0 = llm.squeeze %x axes [0] : tensor<1x4xf32> -> tensor<4xf16>
  return
}

// -----

func.func @squeeze_size(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{'llm.squeeze' op axis 1 of 'tensor<1x4xf32>' is not of size 1}}
  %0 = llm.squeeze %x axes [1] : tensor<1x4xf32> -> tensor<1xf32>
  return
}

// -----

func.func @squeeze_result(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{'llm.squeeze' op operands give shape [4], the result is 'tensor<5xf32>'}}
  %0 = llm.squeeze %x axes [0] : tensor<1x4xf32> -> tensor<5xf32>
  return
}

// -----

func.func @tile_repeats(%x: tensor<2x4xf32>, %r: tensor<i64>) {
  // expected-error@+1 {{'llm.tile' op repeats must be a vector, not 'tensor<i64>'}}
  %0 = llm.tile %x, %r : (tensor<2x4xf32>, tensor<i64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @tile_elements(%x: tensor<2x4xf32>, %r: tensor<2xi64>) {
  // expected-error@+1 {{'llm.tile' op result elements must be 'f32', got 'tensor<2x4xf16>'}}
  %0 = llm.tile %x, %r : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<2x4xf16>
  return
}

// -----

func.func @tile_count(%x: tensor<2x4xf32>, %r: tensor<1xi64>) {
  // expected-error@+1 {{'llm.tile' op has 1 repeats for 'tensor<2x4xf32>'}}
  %0 = llm.tile %x, %r : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @tile_rank(%x: tensor<2x4xf32>, %r: tensor<2xi64>) {
  // expected-error@+1 {{'llm.tile' op operands give shape [?, ?], the result is 'tensor<2x4x1xf32>'}}
  %0 = llm.tile %x, %r : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<2x4x1xf32>
  return
}

// -----

func.func @tile_multiple(%x: tensor<2x4xf32>, %r: tensor<2xi64>) {
  // expected-error@+1 {{'llm.tile' op gives 'tensor<3x4xf32>', no multiple of 'tensor<2x4xf32>'}}
  %0 = llm.tile %x, %r : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  return
}

// -----

func.func @tile_of_nothing(%x: tensor<0x4xf32>, %r: tensor<2xi64>) {
  // expected-error@+1 {{'llm.tile' op gives 'tensor<3x4xf32>', no multiple of 'tensor<0x4xf32>'}}
  %0 = llm.tile %x, %r : (tensor<0x4xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  return
}

// -----

func.func @transpose_count(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.transpose' op perm has 1 axes, the input 2}}
  %0 = llm.transpose %x perm [0] : tensor<2x4xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @transpose_twice(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.transpose' op perm is no permutation}}
  %0 = llm.transpose %x perm [1, 1] : tensor<2x4xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @transpose_range(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.transpose' op perm is no permutation}}
  %0 = llm.transpose %x perm [0, 2] : tensor<2x4xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @transpose_negative(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.transpose' op perm is no permutation}}
  %0 = llm.transpose %x perm [0, -1] : tensor<2x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @transpose_elements(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.transpose' op result elements must be 'f32', got 'tensor<4x2xf16>'}}
  %0 = llm.transpose %x perm [1, 0] : tensor<2x4xf32> -> tensor<4x2xf16>
  return
}

// -----

func.func @transpose_result(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.transpose' op operands give shape [4, 2], the result is 'tensor<2x4xf32>'}}
  %0 = llm.transpose %x perm [1, 0] : tensor<2x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @trilu_rank(%x: tensor<4xf32>) {
  // expected-error@+1 {{'llm.trilu' op the input is at least a matrix, not 'tensor<4xf32>'}}
  %0 = llm.trilu %x : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @trilu_diagonal(%x: tensor<2x4xf32>, %k: tensor<2xi64>) {
  // expected-error@+1 {{'llm.trilu' op the diagonal must be a single element, not 'tensor<2xi64>'}}
  %0 = llm.trilu %x diagonal(%k) : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @trilu_elements(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.trilu' op result elements must be 'f32', got 'tensor<2x4xf16>'}}
  %0 = llm.trilu %x : (tensor<2x4xf32>) -> tensor<2x4xf16>
  return
}

// -----

func.func @trilu_result(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'llm.trilu' op operands give shape [2, 4], the result is 'tensor<2x5xf32>'}}
  %0 = llm.trilu %x : (tensor<2x4xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @unsqueeze_axis(%x: tensor<4xf32>) {
  // expected-error@+1 {{'llm.unsqueeze' op axis 2 is outside a tensor of rank 2}}
  %0 = llm.unsqueeze %x axes [2] : tensor<4xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @unsqueeze_twice(%x: tensor<4xf32>) {
  // expected-error@+1 {{'llm.unsqueeze' op axis -3 is named twice}}
  %0 = llm.unsqueeze %x axes [0, -3] : tensor<4xf32> -> tensor<1x1x4xf32>
  return
}

// -----

func.func @unsqueeze_elements(%x: tensor<4xf32>) {
  // expected-error@+1 {{'llm.unsqueeze' op result elements must be 'f32', got 'tensor<1x4xf16>'}}
  %0 = llm.unsqueeze %x axes [0] : tensor<4xf32> -> tensor<1x4xf16>
  return
}

// -----

func.func @unsqueeze_size(%x: tensor<4xf32>) {
  // expected-error@+1 {{'llm.unsqueeze' op axis 0 of 'tensor<2x4xf32>' is not of size 1}}
  %0 = llm.unsqueeze %x axes [0] : tensor<4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @unsqueeze_result(%x: tensor<4xf32>) {
  // expected-error@+1 {{'llm.unsqueeze' op the result 'tensor<1x5xf32>' has other sizes than 'tensor<4xf32>' beside the axes}}
  %0 = llm.unsqueeze %x axes [0] : tensor<4xf32> -> tensor<1x5xf32>
  return
}

// -----

func.func @unsqueeze_rank(%x: tensor<4xf32>) {
  // expected-error@+1 {{'llm.unsqueeze' op the result 'tensor<1x4x4xf32>' has other sizes than 'tensor<4xf32>' beside the axes}}
  %0 = llm.unsqueeze %x axes [0] : tensor<4xf32> -> tensor<1x4x4xf32>
  return
}
