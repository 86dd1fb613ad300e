// RUN: llm-opt %s --llm-verify-import | FileCheck %s

// CHECK-LABEL: func.func @main(
func.func @main(%ids: tensor<?x4xi64> {llm.name = "ids", llm.dims = ["batch", ""]}, %x: tensor<f32> {llm.name = "x"}) -> (tensor<?x4xi64> {llm.name = "y", llm.dims = ["batch", ""]}) {
  %y = llm.cumsum %ids {axis = 1 : i64} : tensor<?x4xi64>
  return %y : tensor<?x4xi64>
}
