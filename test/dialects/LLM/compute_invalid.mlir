// RUN: llm-opt %s --split-input-file --verify-diagnostics

func.func @shapes(%x: tensor<2x3xf32>, %y: tensor<2xf32>) {
  // expected-error@+1 {{'llm.add' op shapes 'tensor<2x3xf32>' and 'tensor<2xf32>' do not broadcast}}
  %0 = llm.add %x, %y : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @elements(%x: tensor<3xf32>, %y: tensor<3xf16>) {
  // expected-error@+1 {{'llm.mul' op element types differ: 'tensor<3xf32>' and 'tensor<3xf16>'}}
  %0 = llm.mul %x, %y : (tensor<3xf32>, tensor<3xf16>) -> tensor<3xf32>
  return
}

// -----

func.func @result_elements(%x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.sub' op result elements must be 'f32', got 'tensor<3xf16>'}}
  %0 = llm.sub %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf16>
  return
}

// -----

func.func @pow_elements(%x: tensor<3xf32>, %y: tensor<3xi64>) {
  // expected-error@+1 {{'llm.pow' op result elements must be 'f32', got 'tensor<3xi64>'}}
  %0 = llm.pow %x, %y : (tensor<3xf32>, tensor<3xi64>) -> tensor<3xi64>
  return
}

// -----

func.func @comparison_elements(%x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.less' op result elements must be 'i1', got 'tensor<3xf32>'}}
  %0 = llm.less %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @result_rank(%x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.add' op operands give shape [3], the result is 'tensor<1x3xf32>'}}
  %0 = llm.add %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<1x3xf32>
  return
}

// -----

func.func @result_shape(%x: tensor<?x3xf32>, %y: tensor<4x1xf32>) {
  // expected-error@+1 {{'llm.add' op operands give shape [4, 3], the result is 'tensor<2x3xf32>'}}
  %0 = llm.add %x, %y : (tensor<?x3xf32>, tensor<4x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @unary_elements(%x: tensor<3xi64>) {
  // expected-error@+1 {{'llm.exp' op operand #0 must be ranked tensor of floating-point values, but got 'tensor<3xi64>'}}
  %0 = llm.exp %x : tensor<3xi64>
  return
}

// -----

func.func @not_elements(%x: tensor<3xi64>) {
  // expected-error@+1 {{'llm.not' op operand #0 must be ranked tensor of 1-bit signless integer values, but got 'tensor<3xi64>'}}
  %0 = llm.not %x : tensor<3xi64>
  return
}

// -----

func.func @cast_shape(%x: tensor<3xi64>) {
  // expected-error@+1 {{'llm.cast' op requires the same shape for all operands and results}}
  %0 = llm.cast %x : tensor<3xi64> -> tensor<4xf32>
  return
}

// -----

func.func @gelu_approximation(%x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.gelu' op attribute 'approximation' failed to satisfy constraint: GELU spelling}}
  %0 = llm.gelu %x {approximation = 3 : i32} : tensor<3xf32>
  return
}

// -----

func.func @where_elements(%c: tensor<3xi1>, %x: tensor<3xf32>, %y: tensor<3xf16>) {
  // expected-error@+1 {{'llm.where' op x, y and the result share an element type}}
  %0 = llm.where %c, %x, %y : (tensor<3xi1>, tensor<3xf32>, tensor<3xf16>) -> tensor<3xf32>
  return
}

// -----

func.func @where_result_elements(%c: tensor<3xi1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.where' op x, y and the result share an element type}}
  %0 = llm.where %c, %x, %x : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf16>
  return
}

// -----

func.func @where_branches(%c: tensor<3xi1>, %x: tensor<3xf32>, %y: tensor<2xf32>) {
  // expected-error@+1 {{'llm.where' op the operands do not broadcast}}
  %0 = llm.where %c, %x, %y : (tensor<3xi1>, tensor<3xf32>, tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @where_condition(%c: tensor<2xi1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.where' op the operands do not broadcast}}
  %0 = llm.where %c, %x, %x : (tensor<2xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @where_result(%c: tensor<2x1xi1>, %x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.where' op operands give shape [2, 3], the result is 'tensor<3xf32>'}}
  %0 = llm.where %c, %x, %x : (tensor<2x1xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @fused_operand(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op 'in1' names no operand}}
  %0 = llm.fused_elementwise %x ["in1"] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @fused_no_index(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op 'in' names no operand}}
  %0 = llm.fused_elementwise %x ["in"] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @fused_huge_index(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op 'in99999999999999999999' names no operand}}
  %0 = llm.fused_elementwise %x ["in99999999999999999999"] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @fused_constant(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op 'const:0x3f80' is no f32 in 8 hex digits}}
  %0 = llm.fused_elementwise %x ["in0", "const:0x3f80", "add"] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @fused_constant_digits(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op 'const:0x3f80000g' is no f32 in 8 hex digits}}
  %0 = llm.fused_elementwise %x ["in0", "const:0x3f80000g", "add"] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @fused_operator(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op unknown operator 'sinh'}}
  %0 = llm.fused_elementwise %x ["in0", "sinh"] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @fused_depth(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op 'add' finds too few values}}
  %0 = llm.fused_elementwise %x ["in0", "add"] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @fused_rest(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op leaves 2 values, not one}}
  %0 = llm.fused_elementwise %x ["in0", "in0"] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @fused_nothing(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op leaves 0 values, not one}}
  %0 = llm.fused_elementwise %x [] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @fused_result(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op the result is [rows, width], not 'tensor<8xf32>'}}
  %0 = llm.fused_elementwise %x ["in0"] : (tensor<?x8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @fused_rank(%x: tensor<1x?x8xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op operand 'tensor<1x?x8xf32>' has no rows like 'tensor<?x8xf32>'}}
  %0 = llm.fused_elementwise %x ["in0"] : (tensor<1x?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @fused_width(%x: tensor<4xf32>) {
  // expected-error@+1 {{'llm.fused_elementwise' op operand 'tensor<4xf32>' has no rows like 'tensor<?x8xf32>'}}
  %0 = llm.fused_elementwise %x ["in0"] : (tensor<4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @clip_bound(%x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.clip' op a bound must be a single element, not 'tensor<3xf32>'}}
  %0 = llm.clip %x low(%x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @clip_bound_elements(%x: tensor<3xf32>, %y: tensor<f16>) {
  // expected-error@+1 {{'llm.clip' op a bound of type 'tensor<f16>' does not fit 'tensor<3xf32>'}}
  %0 = llm.clip %x high(%y) : (tensor<3xf32>, tensor<f16>) -> tensor<3xf32>
  return
}

// -----

func.func @clip_elements(%x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.clip' op result elements must be 'f32', got 'tensor<3xf16>'}}
  %0 = llm.clip %x : (tensor<3xf32>) -> tensor<3xf16>
  return
}

// -----

func.func @clip_shape(%x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.clip' op operands give shape [3], the result is 'tensor<4xf32>'}}
  %0 = llm.clip %x : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @argmax_axis(%x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.argmax' op axis 1 is outside a tensor of rank 1}}
  %0 = llm.argmax %x {axis = 1 : i64} : tensor<3xf32> -> tensor<i64>
  return
}

// -----

func.func @argmax_axis_huge(%x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.argmax' op axis -9223372036854775808 is outside a tensor of rank 1}}
  %0 = llm.argmax %x {axis = -9223372036854775808 : i64} : tensor<3xf32> -> tensor<i64>
  return
}

// -----

func.func @argmax_shape(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'llm.argmax' op operands give shape [3], the result is 'tensor<1x3xi64>'}}
  %0 = llm.argmax %x {axis = 0 : i64} : tensor<2x3xf32> -> tensor<1x3xi64>
  return
}

// -----

func.func @argmax_keepdims(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'llm.argmax' op operands give shape [1, 3], the result is 'tensor<3xi64>'}}
  %0 = llm.argmax %x {axis = 0 : i64, keepdims} : tensor<2x3xf32> -> tensor<3xi64>
  return
}

// -----

func.func @cumsum_axis(%x: tensor<3xf32>) {
  // expected-error@+1 {{'llm.cumsum' op axis -2 is outside a tensor of rank 1}}
  %0 = llm.cumsum %x {axis = -2 : i64} : tensor<3xf32>
  return
}

// -----

func.func @softmax_axis(%x: tensor<f32>) {
  // expected-error@+1 {{'llm.softmax' op axis -1 is outside a tensor of rank 0}}
  %0 = llm.softmax %x : tensor<f32>
  return
}

// -----

func.func @matmul_scalar(%x: tensor<f32>, %y: tensor<4x8xf32>) {
  // expected-error@+1 {{'llm.matmul' op operands are at least vectors}}
  %0 = llm.matmul %x, %y : (tensor<f32>, tensor<4x8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @matmul_elements(%x: tensor<4xf32>, %y: tensor<4x8xf16>) {
  // expected-error@+1 {{'llm.matmul' op element types differ}}
  %0 = llm.matmul %x, %y : (tensor<4xf32>, tensor<4x8xf16>) -> tensor<8xf32>
  return
}

// -----

func.func @matmul_result_elements(%x: tensor<4xf32>, %y: tensor<4x8xf32>) {
  // expected-error@+1 {{'llm.matmul' op result elements must be 'f32', got 'tensor<8xf16>'}}
  %0 = llm.matmul %x, %y : (tensor<4xf32>, tensor<4x8xf32>) -> tensor<8xf16>
  return
}

// -----

func.func @matmul_inner(%x: tensor<2x3xf32>, %y: tensor<4x8xf32>) {
  // expected-error@+1 {{'llm.matmul' op inner dimensions differ: 'tensor<2x3xf32>' and 'tensor<4x8xf32>'}}
  %0 = llm.matmul %x, %y : (tensor<2x3xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @matmul_batch(%x: tensor<2x2x4xf32>, %y: tensor<3x4x8xf32>) {
  // expected-error@+1 {{'llm.matmul' op batch dimensions do not broadcast}}
  %0 = llm.matmul %x, %y : (tensor<2x2x4xf32>, tensor<3x4x8xf32>) -> tensor<2x2x8xf32>
  return
}

// -----

func.func @matmul_result(%x: tensor<4xf32>, %y: tensor<4x8xf32>) {
  // expected-error@+1 {{'llm.matmul' op operands give shape [8], the result is 'tensor<1x8xf32>'}}
  %0 = llm.matmul %x, %y : (tensor<4xf32>, tensor<4x8xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @reduce_axis(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'llm.reduce' op axis 2 is outside a tensor of rank 2}}
  %0 = llm.reduce sum %x axes [2] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @reduce_twice(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'llm.reduce' op axis -1 is named twice}}
  %0 = llm.reduce sum %x axes [1, -1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @reduce_elements(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'llm.reduce' op result elements must be 'f32', got 'tensor<2xf16>'}}
  %0 = llm.reduce sum %x axes [1] : tensor<2x3xf32> -> tensor<2xf16>
  return
}

// -----

func.func @reduce_result(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'llm.reduce' op operands give shape [2, 1], the result is 'tensor<2xf32>'}}
  %0 = llm.reduce sum %x axes [1] keepdims : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @reduce_kind(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{custom op 'llm.reduce' expected string or keyword containing one of the following enum values for attribute 'kind' [sum, mean, max, min, prod, sum_square, l1, l2, log_sum, log_sum_exp]}}
  %0 = llm.reduce product %x axes [1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @topk_axis(%x: tensor<2x4xf32>, %k: tensor<1xi64>) {
  // expected-error@+1 {{'llm.topk' op axis 2 is outside a tensor of rank 2}}
  %0:2 = llm.topk %x, %k {axis = 2 : i64} : (tensor<2x4xf32>, tensor<1xi64>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  return
}

// -----

func.func @topk_k(%x: tensor<2x4xf32>, %k: tensor<2xi64>) {
  // expected-error@+1 {{'llm.topk' op k must be a single element, not 'tensor<2xi64>'}}
  %0:2 = llm.topk %x, %k {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2xi64>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  return
}

// -----

func.func @topk_elements(%x: tensor<2x4xf32>, %k: tensor<1xi64>) {
  // expected-error@+1 {{'llm.topk' op result elements must be 'f32', got 'tensor<2x2xf16>'}}
  %0:2 = llm.topk %x, %k {axis = 1 : i64} : (tensor<2x4xf32>, tensor<1xi64>) -> (tensor<2x2xf16>, tensor<2x2xi64>)
  return
}

// -----

func.func @topk_values(%x: tensor<2x4xf32>, %k: tensor<1xi64>) {
  // expected-error@+1 {{'llm.topk' op operands give shape [2, ?], the result is 'tensor<3x2xf32>'}}
  %0:2 = llm.topk %x, %k {axis = 1 : i64} : (tensor<2x4xf32>, tensor<1xi64>) -> (tensor<3x2xf32>, tensor<2x2xi64>)
  return
}

// -----

func.func @topk_indices(%x: tensor<2x4xf32>, %k: tensor<1xi64>) {
  // expected-error@+1 {{'llm.topk' op operands give shape [2, 2], the result is 'tensor<2x3xi64>'}}
  %0:2 = llm.topk %x, %k {axis = 1 : i64} : (tensor<2x4xf32>, tensor<1xi64>) -> (tensor<2x2xf32>, tensor<2x3xi64>)
  return
}

// -----

func.func @topk_many(%x: tensor<2x4xf32>, %k: tensor<1xi64>) {
  // expected-error@+1 {{'llm.topk' op takes 5 elements of 4}}
  %0:2 = llm.topk %x, %k {axis = 1 : i64} : (tensor<2x4xf32>, tensor<1xi64>) -> (tensor<2x5xf32>, tensor<2x5xi64>)
  return
}
