//===- Contracts.h - Shared by the verifiers of stages ----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_VERIFY_CONTRACTS_H
#define LLM_PASSES_VERIFY_CONTRACTS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::llm {

/// The contract of the raise stage, which later stages keep. Reports the first
/// breach.
LogicalResult verifyDecoderForm(ModuleOp module);

} // namespace mlir::llm

#endif // LLM_PASSES_VERIFY_CONTRACTS_H
