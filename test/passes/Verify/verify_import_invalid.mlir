// RUN: llm-opt %s --llm-verify-import --split-input-file --verify-diagnostics

// expected-error@+1 {{no public function holds the model}}
module {
}

// -----

// expected-note@+1 {{the other one}}
func.func @a() {
  return
}
// expected-error@+1 {{a second public function; a model is one}}
func.func @b() {
  return
}

// -----

// expected-error@+1 {{has no body}}
func.func private @a()

// -----

// expected-error@+1 {{has more than one block}}
func.func @a(%x: tensor<1xf32> {llm.name = "x"}) {
  cf.br ^bb1
^bb1:
  return
}

// -----

// expected-error@+1 {{argument 0 has no 'llm.name'}}
func.func @a(%x: tensor<1xf32>) {
  return
}

// -----

// expected-error@+1 {{two arguments are named 'x'}}
func.func @a(%x: tensor<1xf32> {llm.name = "x"}, %y: tensor<1xf32> {llm.name = "x"}) {
  return
}

// -----

// expected-error@+1 {{argument 0 is 'i32', not a ranked tensor}}
func.func @a(%x: i32 {llm.name = "x"}) {
  return
}

// -----

// expected-error@+1 {{argument 0 of type 'tensor<?x?xf32>' needs 'llm.dims' of 2 strings, got ["n"]}}
func.func @a(%x: tensor<?x?xf32> {llm.name = "x", llm.dims = ["n"]}) {
  return
}

// -----

// expected-error@+1 {{result 0 of type 'tensor<1xf32>' needs 'llm.dims' of 1 strings, got ["n", "m"]}}
func.func @a(%x: tensor<1xf32> {llm.name = "x"}) -> (tensor<1xf32> {llm.dims = ["n", "m"]}) {
  return %x : tensor<1xf32>
}

// -----

func.func @a(%x: tensor<1xf32> {llm.name = "x"}) {
  // expected-error@+1 {{'math.exp' op is neither of the llm dialect nor control flow, which an imported model is made of}}
  %d = math.exp %x : tensor<1xf32>
  return
}
