// RUN: llm-opt %s --split-input-file --verify-diagnostics --llm-quantize-weights='bits=4 group-size=32'
// RUN: not llm-opt %s --llm-quantize-weights='bits=3' 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not llm-opt %s --llm-quantize-weights='group-size=12' 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not llm-opt %s --llm-quantize-weights='group-size=8x' 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not llm-opt %s --llm-quantize-weights='group-size=131072' 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not llm-opt %s --llm-quantize-weights='bits=2 group-size=24' 2>&1 | FileCheck %s --check-prefix=GROUP2
// RUN: not llm-opt %s --llm-quantize-weights='method=best' 2>&1 | FileCheck %s --check-prefix=METHOD
// RUN: not llm-opt %s --llm-quantize-weights='search=1000000000' 2>&1 | FileCheck %s --check-prefix=SEARCH
// RUN: not llm-opt %s --llm-quantize-weights='search=2 symmetric=false' 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not llm-opt %s --llm-quantize-weights='where=there' 2>&1 | FileCheck %s --check-prefix=WHERE
// RUN: not llm-opt %s --llm-quantize-weights='match=[' 2>&1 | FileCheck %s --check-prefix=MATCH
// RUN: not llm-opt %s --llm-quantize-weights='factor-group=32 bits=8 group-size=128' 2>&1 | FileCheck %s --check-prefix=FACTORS
// RUN: not llm-opt %s --llm-quantize-weights='factor-group=32 symmetric=false group-size=128' 2>&1 | FileCheck %s --check-prefix=FACTORS
// RUN: not llm-opt %s --llm-quantize-weights='factor-group=32 group-size=256' 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not llm-opt %s --llm-quantize-weights='factor-group=64 group-size=128' 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not llm-opt %s --llm-quantize-weights='factor-group=12 group-size=48' 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not llm-opt %s --llm-quantize-weights='factor-group=32 group-size=row' 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not llm-opt %s --llm-quantize-weights='factor-group=32 group-size=0' 2>&1 | FileCheck %s --check-prefix=GROUP
// FACTORS: error: factor-group splits groups of 4 bits without zero points
// SPLIT: error: factor-group must be a multiple of 8, at most 32, of which at most 4 make a group of '{{.*}}', got {{64|32|12}}
// BITS: quantize_weights_invalid.mlir:{{.*}}: error: kernels read 2, 4 or 8 bits, not 3
// GROUP: error: group-size must be row or a multiple of 8 up to 65536 at 4 bits, got
// GROUP2: error: group-size must be row or a multiple of 16 up to 65536 at 2 bits, got '24'
// METHOD: error: no method is named 'best'; there is gptq, rtn
// SEARCH: error: search is at most 64
// BOTH: error: search looks for symmetric scales only
// WHERE: error: where must be all, layers or head, got 'there'
// MATCH: error: match has the pattern '['

// expected-error@+1 {{'llm.weight' op has an element that is not finite, for output 1 and input 2}}
llm.weight @nan : tensor<2x4xf32> = #llm.dense<#llm.component<"data", tensor<2x4xf32>,
  dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 0x7FC00000, 0x7F800000]]> : tensor<2x4xf32>>>
func.func @f(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %w = llm.get_weight @nan : tensor<2x4xf32>
  %y = llm.linear %x, %w : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// expected-error@+1 {{'llm.weight' op has an element that is not finite, for output 3 and input 0}}
llm.weight @inf : tensor<1x4xf16> = #llm.dense<#llm.component<"data", tensor<1x4xf16>,
  dense<[[1.0, 2.0, 3.0, 0xFC00]]> : tensor<1x4xf16>>>
func.func @g(%x: tensor<?x1xf16>) -> tensor<?x4xf16> {
  %w = llm.get_weight @inf : tensor<1x4xf16>
  %y = llm.linear %x, %w {transposed} : (tensor<?x1xf16>, tensor<1x4xf16>) -> tensor<?x4xf16>
  return %y : tensor<?x4xf16>
}

// -----

// expected-error@+1 {{'llm.weight' op cannot map 'nowhere.bin'}}
llm.weight @gone : tensor<1x4xf32> = #llm.dense<#llm.component<"data", tensor<1x4xf32>, #llm.span<"nowhere.bin", 0, 16, "0123456789abcdef">>>
func.func @h(%x: tensor<?x4xf32>) -> tensor<?x1xf32> {
  %w = llm.get_weight @gone : tensor<1x4xf32>
  %y = llm.linear %x, %w : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x1xf32>
  return %y : tensor<?x1xf32>
}
