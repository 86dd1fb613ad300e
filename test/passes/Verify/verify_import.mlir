// RUN: llm-opt %s --llm-verify-import --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main(
func.func @main(%ids: tensor<?x4xi64> {llm.name = "ids", llm.dims = ["batch", ""]}, %x: tensor<f32> {llm.name = "x"}) -> (tensor<?x4xi64> {llm.name = "y", llm.dims = ["batch", ""]}) {
  %y = llm.cumsum %ids {axis = 1 : i64} : tensor<?x4xi64>
  return %y : tensor<?x4xi64>
}

// -----

// CHECK-LABEL: func.func @branches(
func.func @branches(%c: tensor<i1> {llm.name = "c"}, %x: tensor<2xf32> {llm.name = "x"}) -> tensor<2xf32> {
  %b = tensor.extract %c[] : tensor<i1>
  %y = scf.if %b -> tensor<2xf32> {
    %n = llm.neg %x : tensor<2xf32>
    scf.yield %n : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  return %y : tensor<2xf32>
}
