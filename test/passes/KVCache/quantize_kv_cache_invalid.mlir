// RUN: not llm-opt %s --llm-quantize-kv-cache=type=fp8 2>&1 | FileCheck %s
// CHECK: error: type must be int8, f8E4M3FN or f8E5M2, got 'fp8'
module {
}
