//===- Boundary.h - Arguments and results of converted functions -*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_CONVERSION_LLMTOLINALG_BOUNDARY_H
#define LLM_PASSES_CONVERSION_LLMTOLINALG_BOUNDARY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::llm {

/// Replaces each llm.get_weight in `func` by arguments for the weight's stored
/// parts (and the arithmetic that dequantises them).
LogicalResult expandWeights(func::FuncOp func);

/// Gives arguments and results the form they have at run time: truth values
/// are bytes, elements below 8 bits are packed bytes with the sizes beside
/// them.
LogicalResult expandBoundary(func::FuncOp func);

} // namespace mlir::llm

#endif // LLM_PASSES_CONVERSION_LLMTOLINALG_BOUNDARY_H
