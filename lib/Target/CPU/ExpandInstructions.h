//===- ExpandInstructions.h - What an old processor lacks -------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CPU_EXPANDINSTRUCTIONS_H
#define LLM_LIB_TARGET_CPU_EXPANDINSTRUCTIONS_H

#include "lib/Support/CPUTarget.h"

namespace llvm {
class Module;
} // namespace llvm

namespace llm {

/// Writes out, for scalars and vectors, what `target` has no instruction for
/// and LLVM would call a library for: conversions between f16 and f32, rounding
/// to integers, and fused multiply-adds. In f32 these become a product and a
/// sum, each rounded; in f64 the product's error is added, which the generic
/// path's functions rely on. Everything else has the same bits as with the
/// instruction, but that a NaN may have others.
void expandInstructions(llvm::Module &module, const CPUTarget &target);

} // namespace llm

#endif // LLM_LIB_TARGET_CPU_EXPANDINSTRUCTIONS_H
