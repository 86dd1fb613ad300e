// RUN: llm-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{range [3, 2] is empty}}
func.func private @range_empty() attributes {test.value = #rt.range<T, 3, 2>}

// -----

// expected-error@+1 {{range [-1, 2] is empty}}
func.func private @range_negative() attributes {test.value = #rt.range<T, -1, 2>}

// -----

// expected-error@+1 {{range [1, -2] is empty}}
func.func private @range_low() attributes {test.value = #rt.range<T, 1, -2>}

// -----

// expected-error@+1 {{integer value too large}}
func.func private @range_huge() attributes {test.value = #rt.range<T, 1, 9223372036854775808>}

// -----

// expected-error@+1 {{a buffer holds ints or floats, not 'tensor<2xf32>'}}
func.func private @buffer_elements() attributes {test.value = !rt.buffer<tensor<2xf32>>}

// -----

// expected-error@+1 {{expected valid keyword}}
func.func private @expr_empty() attributes {test.value = #rt.expr<>}

// -----

// expected-error@+1 {{expected '>'}}
func.func private @expr_operator() attributes {test.value = #rt.expr<T - 1>}

// -----

// expected-error@+1 {{expected ')'}}
func.func private @expr_open() attributes {test.value = #rt.expr<(T R)>}

// -----

// expected-error@+1 {{expected ','}}
func.func private @expr_one_argument() attributes {test.value = #rt.expr<min(T)>}

// -----

// expected-error@+1 {{expected ')'}}
func.func private @expr_three_arguments() attributes {test.value = #rt.expr<max(T, R, 1)>}

// -----

// expected-error@+1 {{integer value too large}}
func.func private @expr_huge() attributes {test.value = #rt.expr<9223372036854775808>}

// -----

// expected-error@+1 {{a size is not negative, as -1 is}}
func.func private @expr_negative() attributes {test.value = #rt.expr<T + -1>}

// -----

// expected-error@+1 {{expression nests too deep}}
func.func private @expr_deep() attributes {test.value = #rt.expr<((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((T))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))>}

// -----

// expected-error@+1 {{'rt.program' op symbol 'T' is listed twice}}
rt.program @p target "cpu" symbols ["T", "T"] {

}

// -----

// expected-error@+1 {{'rt.program' op uses symbol 'R', which the program does not list}}
rt.program @p target "cpu" symbols ["T"] attributes {arena_bytes = #rt.expr<T * R>} {

}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'rt.buffer' op uses symbol 'R', which the program does not list}}
  %0 = rt.buffer io "x" [#rt.expr<ceildiv(T, R)>] : !rt.buffer<f32>
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'rt.buffer' op uses symbol 'R', which the program does not list}}
  %0 = rt.buffer transient "" [#rt.expr<T>] {offset = #rt.expr<R>} : !rt.buffer<f32>
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  %x = rt.buffer io "x" [#rt.expr<T>] : !rt.buffer<f32>
  // expected-error@+1 {{'rt.dispatch' op no rt.kernel is named @k}}
  rt.dispatch @k grid #rt.expr<1> sizes [] writes(%x : !rt.buffer<f32>)
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "elementwise" params {} {
  }
  %x = rt.buffer io "x" [#rt.expr<T>] : !rt.buffer<f32>
  // expected-error@+1 {{'rt.dispatch' op uses symbol 'R', which the program does not list}}
  rt.dispatch @k grid #rt.expr<R> sizes [] writes(%x : !rt.buffer<f32>)
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "elementwise" params {} {
  }
  %x = rt.buffer io "x" [#rt.expr<T>] : !rt.buffer<f32>
  // expected-error@+1 {{'rt.dispatch' op uses symbol 'R', which the program does not list}}
  rt.dispatch @k grid #rt.expr<1> sizes [#rt.expr<T>, #rt.expr<R>] writes(%x : !rt.buffer<f32>)
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "elementwise" params {} {
  }
  %w = rt.buffer constant "w" [#rt.expr<1>] : !rt.buffer<f32>
  // expected-error@+1 {{'rt.dispatch' op writes the constant 'w'}}
  rt.dispatch @k grid #rt.expr<1> sizes [] writes(%w : !rt.buffer<f32>)
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'llm.constant' op a program holds kernels, buffers and dispatches}}
  %0 = llm.constant dense<0> : tensor<i32>
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "elementwise" params {} {
  }
  %x = rt.buffer io "x" [#rt.expr<T>] : !rt.buffer<f32>
  // expected-error@+1 {{'rt.dispatch' op writes nothing}}
  "rt.dispatch"(%x) <{grid = #rt.expr<1>, kernel = @k, operandSegmentSizes = array<i32: 1, 0>, sizes = []}> : (!rt.buffer<f32>) -> ()
}

// -----

// expected-error@+1 {{'rt.program' op region #0 ('body') failed to verify constraint: region with 1 blocks}}
"rt.program"() <{sym_name = "no_block", target = "cpu", symbols = []}> ({
}) : () -> ()

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'rt.buffer' op io, constant and state buffers have a name, transient ones have none}}
  %0 = rt.buffer io "" [#rt.expr<T>] : !rt.buffer<f32>
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'rt.buffer' op io, constant and state buffers have a name, transient ones have none}}
  %0 = rt.buffer transient "x" [#rt.expr<T>] : !rt.buffer<f32>
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'rt.buffer' op only a transient buffer has an arena offset}}
  %0 = rt.buffer io "x" [#rt.expr<T>] {offset = #rt.expr<0>} : !rt.buffer<f32>
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'rt.buffer' op only a constant has a packed layout}}
  %0 = rt.buffer io "x" [#rt.expr<T>] {layout = {name = "rows"}} : !rt.buffer<f32>
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'rt.buffer' op a state buffer, and no other, names its group, layer and plane}}
  %0 = rt.buffer state "x" [#rt.expr<T>] {group = 0 : i64, layer = 0 : i64} : !rt.buffer<f32>
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'rt.buffer' op a state buffer, and no other, names its group, layer and plane}}
  %0 = rt.buffer io "x" [#rt.expr<T>] {plane = 0 : i64} : !rt.buffer<f32>
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'rt.buffer' op attribute 'layer' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = rt.buffer state "x" [#rt.expr<T>] {group = 0 : i64, layer = -1 : i64, plane = 0 : i64} : !rt.buffer<f32>
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  // expected-error@+1 {{'rt.buffer' op requires attribute 'elements'}}
  %0 = "rt.buffer"() : () -> !rt.buffer<f32>
}

// -----

// A dispatch before the buffer that it writes: the buffer is checked, too.
rt.program @forward target "cpu" symbols [] {
  rt.kernel @k family "elementwise" params {} {
  }
  rt.dispatch @k grid #rt.expr<1> sizes [] writes(%x : !rt.buffer<f32>)
  // expected-error@+1 {{'rt.buffer' op requires attribute 'elements'}}
  %x = "rt.buffer"() : () -> !rt.buffer<f32>
}

// -----

// expected-error@+1 {{'rt.buffer' op expects parent op 'rt.program'}}
%0 = rt.buffer io "x" [#rt.expr<1>] : !rt.buffer<f32>

// -----

// expected-error@+1 {{'rt.kernel' op expects parent op 'rt.program'}}
rt.kernel @k family "elementwise" params {} {
}

// -----

rt.program @p target "cpu" symbols ["T"] {
  rt.kernel @k family "linear" params {} {
    // expected-error@+1 {{'llm.constant' op a kernel holds variants only}}
    %0 = llm.constant dense<0> : tensor<i32>
  }
}

// -----

rt.program @p target "cpu" symbols ["T", "R"] {
  // expected-error@+1 {{'rt.kernel' op no variant is without ranges or has just one}}
  rt.kernel @k family "linear" params {} {
    rt.variant "v0" code @cpu ranges [#rt.range<T, 1, 4>, #rt.range<R, 1, -1>]
  }
}

// -----

rt.program @p target "cpu" symbols ["T", "R"] {
  // expected-error@+1 {{'rt.kernel' op variants range over 'R' and 'T'}}
  rt.kernel @k family "linear" params {} {
    rt.variant "v0" code @cpu ranges [#rt.range<T, 1, 4>]
    rt.variant "v1" code @cpu ranges [#rt.range<R, 1, 3>]
  }
}

// -----

rt.program @p target "cpu" symbols ["T", "R"] {
  // expected-error@+1 {{'rt.kernel' op no variant covers T = 1}}
  rt.kernel @k family "linear" params {} {
    rt.variant "v0" code @cpu ranges [#rt.range<T, 2, -1>]
  }
}

// -----

rt.program @p target "cpu" symbols ["T", "R"] {
  // expected-error@+1 {{'rt.kernel' op no variant covers T = 5}}
  rt.kernel @k family "linear" params {} {
    rt.variant "v0" code @cpu ranges [#rt.range<T, 1, 4>]
    rt.variant "v1" code @cpu ranges [#rt.range<T, 6, -1>]
  }
}

// -----

rt.program @p target "cpu" symbols ["T", "R"] {
  // expected-error@+1 {{'rt.kernel' op no variant covers T = 9}}
  rt.kernel @k family "linear" params {} {
    rt.variant "v0" code @cpu ranges [#rt.range<T, 1, 8>]
    rt.variant "v1" code @cpu ranges [#rt.range<T, 2, 3>]
  }
}

// -----

rt.program @p target "cpu" symbols ["T", "R"] {
  // expected-error@+1 {{'rt.kernel' op no variant covers T = 9223372036854775807}}
  rt.kernel @k family "linear" params {} {
    rt.variant "v0" code @cpu ranges [#rt.range<T, 1, 9223372036854775806>]
  }
}

// -----

// expected-error@+1 {{'rt.variant' op expects parent op 'rt.kernel'}}
rt.variant "v" code @cpu

// -----

rt.iteration @other {
  rt.call @p
  // expected-error@+1 {{'llm.constant' op an iteration holds calls only}}
  %0 = llm.constant dense<0> : tensor<i32>
}

// -----

rt.iteration @early {
  // expected-error@+1 {{'rt.sample' op samples before a program ran}}
  rt.sample
  rt.call @p
}

// -----

rt.iteration @late_draft {
  rt.call @p
  // expected-error@+1 {{'rt.draft' op drafts come once, before the program that verifies them}}
  rt.draft lookup 3 tokens 1 costs [1000, 1100]
  rt.accept
}

// -----

rt.iteration @second_draft {
  rt.draft lookup 3 tokens 1 costs [1000, 1100]
  // expected-error@+1 {{'rt.draft' op drafts come once, before the program that verifies them}}
  rt.draft lookup 3 tokens 1 costs [1000, 1100]
  rt.call @p
  rt.accept
}

// -----

rt.iteration @unverified {
  rt.draft lookup 3 tokens 1 costs [1000, 1100]
  // expected-error@+1 {{'rt.accept' op accepts what no program has verified}}
  rt.accept
}

// -----

rt.iteration @undrafted {
  rt.call @p
  // expected-error@+1 {{'rt.accept' op accepts what no program has verified}}
  rt.accept
}

// -----

rt.iteration @goes_on {
  rt.draft lookup 3 tokens 1 costs [1000, 1100]
  rt.call @p
  // expected-error@+1 {{'rt.accept' op ends an iteration}}
  rt.accept
  rt.call @p
}

// -----

rt.iteration @unaccepted {
  // expected-error@+1 {{'rt.draft' op no rt.accept follows}}
  rt.draft lookup 3 tokens 1 costs [1000, 1100]
  rt.call @p
  rt.sample
}

// -----

rt.iteration @lookup_long {
  // expected-error@+1 {{'rt.draft' op looks up 1 to 16 tokens and proposes 1 to 16}}
  rt.draft lookup 17 tokens 1 costs [1000, 1100]
}

// -----

rt.iteration @drafts_none {
  // expected-error@+1 {{'rt.draft' op looks up 1 to 16 tokens and proposes 1 to 16}}
  rt.draft lookup 3 tokens 0 costs [1000]
}

// -----

rt.iteration @costs_few {
  // expected-error@+1 {{'rt.draft' op has 3 costs, ascending from 1000 to 1000000 at most}}
  rt.draft lookup 3 tokens 2 costs [1000, 1100]
}

// -----

rt.iteration @costs_descend {
  // expected-error@+1 {{'rt.draft' op has 3 costs, ascending from 1000 to 1000000 at most}}
  rt.draft lookup 3 tokens 2 costs [1000, 1200, 1100]
}

// -----

// expected-error@+1 {{'rt.draft' op expects parent op 'rt.iteration'}}
rt.draft lookup 3 tokens 1 costs [1000, 1100]

// -----

// expected-error@+1 {{'rt.accept' op expects parent op 'rt.iteration'}}
rt.accept

// -----

// expected-error@+1 {{'rt.sample' op expects parent op 'rt.iteration'}}
rt.sample

// -----

// expected-error@+1 {{'rt.call' op expects parent op 'rt.iteration'}}
rt.call @p

// -----

// expected-error@+1 {{'rt.host_function' op type must be a function type}}
rt.host_function @type entry "main" code @cpu : tensor<?xf32> {constants = [], input_names = ["x"], output_names = ["y"]}

// -----

// expected-error@+1 {{'rt.host_function' op needs a name for each input and output}}
rt.host_function @inputs entry "main" code @cpu : (tensor<?xf32>) -> tensor<?xf32> {constants = [], input_names = [], output_names = ["y"]}

// -----

// expected-error@+1 {{'rt.host_function' op needs a name for each input and output}}
rt.host_function @outputs entry "main" code @cpu : (tensor<?xf32>) -> tensor<?xf32> {constants = [], input_names = ["x"], output_names = ["y", "z"]}

// -----

// expected-error@+1 {{'rt.host_function' op input_dims and output_dims have an array of strings for each tensor}}
rt.host_function @dims_count entry "main" code @cpu : (tensor<?xf32>) -> tensor<?xf32> {constants = [], input_names = ["x"], output_names = ["y"], input_dims = []}

// -----

// expected-error@+1 {{'rt.host_function' op input_dims and output_dims have an array of strings for each tensor}}
rt.host_function @dims_kind entry "main" code @cpu : (tensor<?xf32>) -> tensor<?xf32> {constants = [], input_names = ["x"], output_names = ["y"], output_dims = ["batch"]}

// -----

// expected-error@+1 {{'rt.host_function' op input_dims and output_dims have an array of strings for each tensor}}
rt.host_function @dims_names entry "main" code @cpu : (tensor<?xf32>) -> tensor<?xf32> {constants = [], input_names = ["x"], output_names = ["y"], output_dims = [[1]]}

// -----

// expected-error@+1 {{'rt.host_function' op takes and gives ranked tensors, not 'f32'}}
rt.host_function @input_type entry "main" code @cpu : (f32) -> tensor<?xf32> {constants = [], input_names = ["x"], output_names = ["y"]}

// -----

// expected-error@+1 {{'rt.host_function' op takes and gives ranked tensors, not 'tensor<*xf32>'}}
rt.host_function @output_type entry "main" code @cpu : (tensor<?xf32>) -> tensor<*xf32> {constants = [], input_names = ["x"], output_names = ["y"]}

// -----

rt.program @first_concurrent target "cpu" symbols ["T"] {
  rt.kernel @k family "f" params {} {
  }
  %x = rt.buffer io "x" [#rt.expr<T>] : !rt.buffer<f32>
  // expected-error@+1 {{'rt.dispatch' op is concurrent, but there is none before it}}
  rt.dispatch concurrent @k grid #rt.expr<T> sizes [] writes(%x : !rt.buffer<f32>)
}

// -----

rt.program @concurrent_write target "cpu" symbols ["T"] {
  rt.kernel @k family "f" params {} {
  }
  %x = rt.buffer io "x" [#rt.expr<T>] : !rt.buffer<f32>
  %y = rt.buffer io "y" [#rt.expr<T>] : !rt.buffer<f32>
  // expected-note@+1 {{the other dispatch is here}}
  rt.dispatch @k grid #rt.expr<T> sizes [] writes(%x : !rt.buffer<f32>)
  // expected-error@+1 {{'rt.dispatch' op is concurrent with a dispatch that it shares a written buffer with}}
  rt.dispatch concurrent @k grid #rt.expr<T> sizes [] reads(%x : !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
}

// -----

rt.program @concurrent_overwrite target "cpu" symbols ["T"] {
  rt.kernel @k family "f" params {} {
  }
  %x = rt.buffer io "x" [#rt.expr<T>] : !rt.buffer<f32>
  %y = rt.buffer io "y" [#rt.expr<T>] : !rt.buffer<f32>
  %z = rt.buffer io "z" [#rt.expr<T>] : !rt.buffer<f32>
  // expected-note@+1 {{the other dispatch is here}}
  rt.dispatch @k grid #rt.expr<T> sizes [] reads(%x : !rt.buffer<f32>) writes(%y : !rt.buffer<f32>)
  rt.dispatch concurrent @k grid #rt.expr<T> sizes [] reads(%x : !rt.buffer<f32>) writes(%z : !rt.buffer<f32>)
  // expected-error@+1 {{'rt.dispatch' op is concurrent with a dispatch that it shares a written buffer with}}
  rt.dispatch concurrent @k grid #rt.expr<T> sizes [] reads(%z : !rt.buffer<f32>) writes(%x : !rt.buffer<f32>)
}
