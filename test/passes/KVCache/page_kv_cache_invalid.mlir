// RUN: not llm-opt %s --llm-page-kv-cache=page-size=-1 2>&1 | FileCheck %s
// RUN: not llm-opt %s --llm-page-kv-cache=page-size=2147483648 2>&1 | FileCheck %s --check-prefix=LARGE
// CHECK: error: page-size must be 0 (contiguous) or a positive number of slots, got -1
// LARGE: error: page-size must be 0 (contiguous) or a positive number of slots, got 2147483648
module {
}
