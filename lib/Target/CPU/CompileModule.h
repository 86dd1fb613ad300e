//===- CompileModule.h - MLIR to an ELF shared object -----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CPU_COMPILEMODULE_H
#define LLM_LIB_TARGET_CPU_COMPILEMODULE_H

#include "lib/Support/CPUTarget.h"
#include "mlir/IR/BuiltinOps.h"

namespace llm {

/// An entry of the exported table (include/llm/ABI/kernel.h).
struct TableEntry {
  enum class Kind {
    /// A func.func of static 1-D memrefs, then i64 sizes, then the bounds of
    /// the work items as two indices. Gets a wrapper of type `llm_kernel_fn`.
    Kernel,
    /// A func.func or llvm.func of four !llvm.ptr with an i32 result: an
    /// `llm_host_fn` as it stands.
    Host,
    /// An llvm.mlir.global: the entry points to it.
    Data
  };
  std::string function; ///< symbol in the code module, and name in the table
  Kind kind = Kind::Kernel;
};

/// Compiles `code` (func, scf, cf, arith, math, vector, memref, affine, index,
/// llvm; no ranked tensors, no linalg) to an x86-64 ELF shared object that has
/// no undefined symbol and no dependency and exports LLM_KERNEL_TABLE_SYMBOL
/// alone. `code` is left unchanged; what no entry reaches is left out. The same
/// input gives the same bytes.
/// Reports what cannot be lowered, an entry that does not exist or has another
/// signature, and any function that the code calls and does not define.
mlir::FailureOr<llvm::SmallVector<char, 0>>
compileToSharedObject(mlir::ModuleOp code, const CPUTarget &target,
                      llvm::ArrayRef<TableEntry> entries);

} // namespace llm

#endif // LLM_LIB_TARGET_CPU_COMPILEMODULE_H
