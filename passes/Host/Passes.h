//===- Passes.h - Whole graphs as host functions ---------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_HOST_PASSES_H
#define LLM_PASSES_HOST_PASSES_H

#include "dialects/RT/IR/RTDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::llm {
/// On the function of a code module that becomes an `llm_host_fn`: the types of
/// its constants, in order (array of types).
inline constexpr StringRef kHostConstantsAttr = "llm.host_constants";
/// What a failed check calls, between `--llm-lower-checks` and
/// `--llm-lower-host-function`: llm_check(i1 ok, ptr message).
inline constexpr StringRef kCheckFunction = "llm_check";

#define GEN_PASS_DECL
#include "passes/Host/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Host/Passes.h.inc"

/// The generic path: from @main on llm ops to an rt.host_function and its code
/// module in the LLVM dialect.
void buildHostFunctionPipeline(OpPassManager &pm);
/// Registers it as `--llm-host-function-pipeline`.
void registerHostFunctionPipeline();
} // namespace mlir::llm

#endif // LLM_PASSES_HOST_PASSES_H
