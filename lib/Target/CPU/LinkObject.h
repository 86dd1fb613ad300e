//===- LinkObject.h - An ELF object to a closed shared object ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CPU_LINKOBJECT_H
#define LLM_LIB_TARGET_CPU_LINKOBJECT_H

#include "mlir/IR/Diagnostics.h"

namespace llm {

/// Links one relocatable object with lld, in this process. Reports through
/// `emitError` an undefined symbol by name, a failure of the linker or of the
/// temporary directory, and a result that exports anything but `exported` or
/// needs another library.
mlir::FailureOr<llvm::SmallVector<char, 0>>
linkSharedObject(llvm::StringRef object, llvm::StringRef exported,
                 llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace llm

#endif // LLM_LIB_TARGET_CPU_LINKOBJECT_H
