// RUN: llm-opt %s --llm-fold-shapes --split-input-file | FileCheck %s --enable-var-scope

// What must stay: each of these would be wrong for some sizes.

// Two sizes that the input does not have at the same place.
// CHECK-LABEL: func.func @swapped(
// CHECK: llm.shape
// CHECK: llm.reshape {{.*}} -> tensor<?x?xf32>
func.func @swapped(%x: tensor<?x?xf32> {llm.dims = ["a", "b"]}) -> tensor<?x?xf32> {
  %s = llm.shape %x : tensor<?x?xf32> -> tensor<2xi64>
  %i = llm.constant dense<[1, 0]> : tensor<2xi64>
  %t = llm.gather %s, %i {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %y = llm.reshape %x, %t : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// The dimension may be shorter than 4.
// CHECK-LABEL: func.func @short(
// CHECK: llm.slice
func.func @short(%x: tensor<?xf32> {llm.dims = ["a"]}) -> tensor<?xf32> {
  %b = llm.constant dense<0> : tensor<1xi64>
  %e = llm.constant dense<4> : tensor<1xi64>
  %y = llm.slice %x, %b, %e : (tensor<?xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Reversed order, though the size is the same.
// CHECK-LABEL: func.func @reversed(
// CHECK: llm.slice
func.func @reversed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = llm.constant dense<-1> : tensor<1xi64>
  %e = llm.constant dense<-9223372036854775808> : tensor<1xi64>
  %a = llm.constant dense<0> : tensor<1xi64>
  %s = llm.constant dense<-1> : tensor<1xi64>
  %y = llm.slice %x, %b, %e axes(%a) steps(%s) : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Division by zero and an index out of range are errors at run time.
// CHECK-LABEL: func.func @undefined(
// CHECK: llm.div
// CHECK: llm.gather
func.func @undefined() -> (tensor<1xi64>, tensor<1xi64>) {
  %a = llm.constant dense<4> : tensor<1xi64>
  %z = llm.constant dense<0> : tensor<1xi64>
  %d = llm.div %a, %z : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %g = llm.gather %a, %a {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  return %d, %g : tensor<1xi64>, tensor<1xi64>
}

// -----

// A function that is called keeps its type.
// CHECK-LABEL: func.func @callee(
// CHECK-SAME: -> tensor<?xf32>
func.func @callee(%x: tensor<4xf32>) -> tensor<?xf32> {
  %t = llm.constant dense<-1> : tensor<1xi64>
  %y = llm.reshape %x, %t : (tensor<4xf32>, tensor<1xi64>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func @caller(%x: tensor<4xf32>) -> tensor<?xf32> {
  %y = call @callee(%x) : (tensor<4xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Branches agree on a type, so values do not change theirs. A constant of
// another type does not go where control flow takes it.
// CHECK-LABEL: func.func @branches(
// CHECK: scf.if {{.*}} -> (tensor<?xf32>)
// CHECK: llm.reshape {{.*}} -> tensor<?xf32>
func.func @branches(%c: tensor<i1>, %x: tensor<4xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %t = llm.constant dense<-1> : tensor<1xi64>
  %b = tensor.extract %c[] : tensor<i1>
  %z = scf.if %b -> tensor<?xf32> {
    %r = llm.reshape %x, %t : (tensor<4xf32>, tensor<1xi64>) -> tensor<?xf32>
    scf.yield %r : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  return %z : tensor<?xf32>
}
