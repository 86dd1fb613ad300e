//===- LinkObject.h - ELF objects to a closed shared object -----*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CPU_LINKOBJECT_H
#define LLM_LIB_TARGET_CPU_LINKOBJECT_H

#include "mlir/IR/Diagnostics.h"

namespace llm {

/// Links relocatable objects with lld, in this process. Reports through
/// `emitError` a symbol by name that none of them defines, a failure of the
/// linker or of the temporary directory, and a result that exports anything but
/// `exported` or needs another library.
mlir::FailureOr<llvm::SmallVector<char, 0>>
linkSharedObject(llvm::ArrayRef<llvm::SmallVector<char, 0>> objects,
                 llvm::StringRef exported,
                 llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace llm

#endif // LLM_LIB_TARGET_CPU_LINKOBJECT_H
