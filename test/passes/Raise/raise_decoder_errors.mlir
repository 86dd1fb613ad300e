// RUN: not llm-opt %s --llm-raise-decoder --split-input-file 2>&1 | FileCheck %s

// CHECK: error: expected the one public function of an imported model, found 2
func.func @a() {
  return
}
func.func @b() {
  return
}

// -----

// CHECK: error: the name 'target' of the decoder is taken
llm.weight @target : tensor<1xf32> = #llm.dense<#llm.component<"data", tensor<1xf32>, dense<1.0> : tensor<1xf32>>>
func.func @main() {
  return
}
