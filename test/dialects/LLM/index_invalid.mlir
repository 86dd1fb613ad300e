// RUN: llm-opt %s --split-input-file --verify-diagnostics

func.func @elements_axis(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>) {
  // expected-error@+1 {{'llm.gather_elements' op axis 2 is outside a tensor of rank 2}}
  %0 = llm.gather_elements %x, %i {axis = 2 : i64} : (tensor<4x5xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
  return
}

// -----

func.func @elements_rank(%x: tensor<4x5xf32>, %i: tensor<4xi64>) {
  // expected-error@+1 {{'llm.gather_elements' op indices 'tensor<4xi64>' do not fit 'tensor<4x5xf32>' beside axis 1}}
  %0 = llm.gather_elements %x, %i {axis = 1 : i64} : (tensor<4x5xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @elements_size(%x: tensor<4x5xf32>, %i: tensor<6x2xi64>) {
  // expected-error@+1 {{'llm.gather_elements' op indices 'tensor<6x2xi64>' do not fit 'tensor<4x5xf32>' beside axis 1}}
  %0 = llm.gather_elements %x, %i {axis = 1 : i64} : (tensor<4x5xf32>, tensor<6x2xi64>) -> tensor<6x2xf32>
  return
}

// -----

func.func @elements_type(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>) {
  // expected-error@+1 {{'llm.gather_elements' op result elements must be 'f32', got 'tensor<4x2xf16>'}}
  %0 = llm.gather_elements %x, %i {axis = 1 : i64} : (tensor<4x5xf32>, tensor<4x2xi64>) -> tensor<4x2xf16>
  return
}

// -----

func.func @elements_shape(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>) {
  // expected-error@+1 {{'llm.gather_elements' op operands give shape [4, 2], the result is 'tensor<4x5xf32>'}}
  %0 = llm.gather_elements %x, %i {axis = 1 : i64} : (tensor<4x5xf32>, tensor<4x2xi64>) -> tensor<4x5xf32>
  return
}

// -----

func.func @nd_scalar(%x: tensor<f32>, %i: tensor<1xi64>) {
  // expected-error@+1 {{'llm.gather_nd' op input and indices are at least vectors}}
  %0 = llm.gather_nd %x, %i : (tensor<f32>, tensor<1xi64>) -> tensor<f32>
  return
}

// -----

func.func @nd_batch(%x: tensor<4x5xf32>, %i: tensor<4x1xi64>) {
  // expected-error@+1 {{'llm.gather_nd' op batch_dims 2 is no number of leading axes of both 'tensor<4x5xf32>' and 'tensor<4x1xi64>'}}
  %0 = llm.gather_nd %x, %i {batch_dims = 2 : i64} : (tensor<4x5xf32>, tensor<4x1xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @nd_batch_sizes(%x: tensor<4x5xf32>, %i: tensor<3x1xi64>) {
  // expected-error@+1 {{'llm.gather_nd' op the leading axes of 'tensor<4x5xf32>' and 'tensor<3x1xi64>' differ}}
  %0 = llm.gather_nd %x, %i {batch_dims = 1 : i64} : (tensor<4x5xf32>, tensor<3x1xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @nd_depth(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>) {
  // expected-error@+1 {{'llm.gather_nd' op indices 'tensor<4x2xi64>' are no tuples into 'tensor<4x5xf32>'}}
  %0 = llm.gather_nd %x, %i {batch_dims = 1 : i64} : (tensor<4x5xf32>, tensor<4x2xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @nd_shape(%x: tensor<4x5xf32>, %i: tensor<3x1xi64>) {
  // expected-error@+1 {{'llm.gather_nd' op operands give shape [3, 5], the result is 'tensor<3xf32>'}}
  %0 = llm.gather_nd %x, %i : (tensor<4x5xf32>, tensor<3x1xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @pad_mode(%x: tensor<4xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'llm.pad' op mode must be constant, edge, reflect or wrap, not 'mirror'}}
  %0 = llm.pad %x, %p {mode = "mirror"} : (tensor<4xf32>, tensor<2xi64>) -> tensor<?xf32>
  return
}

// -----

func.func @pad_scalar(%x: tensor<4xf32>, %p: tensor<i64>) {
  // expected-error@+1 {{'llm.pad' op the pads must be a vector, not 'tensor<i64>'}}
  %0 = llm.pad %x, %p : (tensor<4xf32>, tensor<i64>) -> tensor<?xf32>
  return
}

// -----

func.func @pad_count(%x: tensor<4xf32>, %p: tensor<3xi64>) {
  // expected-error@+1 {{'llm.pad' op pads 'tensor<3xi64>' are not two for each axis of 'tensor<4xf32>'}}
  %0 = llm.pad %x, %p : (tensor<4xf32>, tensor<3xi64>) -> tensor<?xf32>
  return
}

// -----

func.func @pad_value(%x: tensor<4xf32>, %p: tensor<2xi64>, %v: tensor<2xf32>) {
  // expected-error@+1 {{'llm.pad' op the value must be a single element, not 'tensor<2xf32>'}}
  %0 = llm.pad %x, %p value(%v) : (tensor<4xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @pad_value_type(%x: tensor<4xf32>, %p: tensor<2xi64>, %v: tensor<i64>) {
  // expected-error@+1 {{'llm.pad' op value 'tensor<i64>' is no element of 'tensor<4xf32>'}}
  %0 = llm.pad %x, %p value(%v) : (tensor<4xf32>, tensor<2xi64>, tensor<i64>) -> tensor<?xf32>
  return
}

// -----

func.func @pad_rank(%x: tensor<4xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'llm.pad' op operands give shape [?], the result is 'tensor<?x?xf32>'}}
  %0 = llm.pad %x, %p : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @scatter_reduction(%x: tensor<4xf32>, %i: tensor<2xi64>, %u: tensor<2xf32>) {
  // expected-error@+1 {{'llm.scatter_elements' op reduction must be none, add, mul, max or min, not 'mean'}}
  %0 = llm.scatter_elements %x, %i, %u {axis = 0 : i64, reduction = "mean"} : (tensor<4xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @scatter_updates(%x: tensor<4xf32>, %i: tensor<2xi64>, %u: tensor<3xf32>) {
  // expected-error@+1 {{'llm.scatter_elements' op updates 'tensor<3xf32>' do not fit indices 'tensor<2xi64>' into 'tensor<4xf32>'}}
  %0 = llm.scatter_elements %x, %i, %u {axis = 0 : i64} : (tensor<4xf32>, tensor<2xi64>, tensor<3xf32>) -> tensor<4xf32>
  return
}
