// RUN: not llm-opt %s --llm-cast-kv-cache=type=int8 2>&1 | FileCheck %s
// CHECK: error: type must be f32, f16 or bf16, got 'int8'
module {
}
