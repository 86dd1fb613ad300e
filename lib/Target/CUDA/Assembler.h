//===- Assembler.h - PTX to machine code ------------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CUDA_ASSEMBLER_H
#define LLM_LIB_TARGET_CUDA_ASSEMBLER_H

#include "mlir/IR/Diagnostics.h"

#include <optional>
#include <string>
#include <vector>

namespace llm::cuda {

/// What a kernel takes of the machine, as the assembler reports it.
struct KernelResources {
  std::string name;
  int64_t registers = 0;   ///< of a thread
  int64_t spillBytes = 0;  ///< stored and loaded by a thread, whichever is more
  int64_t sharedBytes = 0; ///< of a block
};

struct Cubin {
  std::vector<char> bytes;
  std::vector<KernelResources> kernels; ///< sorted by name
};

/// Finds ptxas: in `toolkit` where it is not empty, else in CUDA_ROOT,
/// CUDA_HOME, CUDA_PATH (each followed by bin/), PATH, /usr/local/cuda, and
/// last among the Python packages of the environment beside this program
/// (../venv/lib/python3*/site-packages/nvidia/*/bin). Nothing where there is
/// none.
std::optional<std::string> findAssembler(llvm::StringRef toolkit);

/// Runs `assembler` on `ptx` for `arch`. A failure, a crash or more than
/// `timeoutSeconds` is reported through `emitError` with the assembler's first
/// words.
mlir::FailureOr<Cubin>
assemble(llvm::StringRef assembler, llvm::StringRef ptx, llvm::StringRef arch,
         unsigned timeoutSeconds,
         llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// Reads the log of `ptxas -v`.
std::vector<KernelResources> parseAssemblerLog(llvm::StringRef log);

} // namespace llm::cuda

#endif // LLM_LIB_TARGET_CUDA_ASSEMBLER_H
