// RUN: llm-opt %s --llm-form-dispatches --split-input-file --verify-diagnostics

func.func @model(%x: tensor<?x8xf32>, %y: tensor<?x1xf32>) -> tensor<?x8xf32> attributes {llm.model = "target"} {
  // expected-error@+1 {{operand of type 'tensor<?x1xf32>' is neither rows nor a row of 'tensor<?x8xf32>'}}
  %m = llm.mul %x, %y : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  return %m : tensor<?x8xf32>
}

// -----

func.func private @extern(tensor<?x8xf32>) -> tensor<?x8xf32>
func.func @model(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {llm.model = "target"} {
  // expected-error@+1 {{calls what is no layer function}}
  %m = call @extern(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %m : tensor<?x8xf32>
}
