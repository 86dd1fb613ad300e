//===- Matmul.h - Matrix products for other families ------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_IMPORT_ONNX_MATMUL_H
#define LLM_LIB_IMPORT_ONNX_MATMUL_H

#include "lib/Import/ONNX/Node.h"

namespace llm::importer {

/// a x b with NumPy's batch rules; an error where they do not fit.
mlir::Value matmulOf(Node &n, mlir::Value a, mlir::Value b);

mlir::LogicalResult einsum(Node &n);

} // namespace llm::importer

#endif // LLM_LIB_IMPORT_ONNX_MATMUL_H
