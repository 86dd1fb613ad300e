// RUN: not llm-opt %s --llm-raise-idioms=max-positions=0 2>&1 | FileCheck %s
// CHECK: error: max-positions must be from 1 to 16777216, got 0
module {
}
