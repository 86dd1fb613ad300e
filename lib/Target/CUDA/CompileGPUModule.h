//===- CompileGPUModule.h - gpu.module to PTX and machine code --*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CUDA_COMPILEGPUMODULE_H
#define LLM_LIB_TARGET_CUDA_COMPILEGPUMODULE_H

#include "lib/Target/CUDA/Assembler.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>
#include <vector>

namespace llm::cuda {

struct CompileOptions {
  /// Root of a CUDA toolkit; empty to look for one (see findAssembler).
  std::string toolkit;
  /// What one run of the assembler may take.
  unsigned timeoutSeconds = 120;
};

/// The code of one GPU module for one architecture.
struct GPUObject {
  std::string arch; ///< "sm_80"
  /// PTX, which drivers compile themselves where there is no machine code.
  std::string ptx;
  /// Machine code; absent where no assembler was found.
  std::optional<Cubin> cubin;
};

/// Compiles `module` for each of `archs`. The module is left unchanged; the
/// same input and assembler give the same bytes. Without an assembler the
/// result has PTX alone and one warning says so. Reports an architecture that
/// is not known, operations that cannot be lowered or that an architecture
/// lacks, and failures of the assembler.
mlir::FailureOr<std::vector<GPUObject>>
compileGPUModule(mlir::gpu::GPUModuleOp module,
                 llvm::ArrayRef<std::string> archs,
                 const CompileOptions &options);

} // namespace llm::cuda

#endif // LLM_LIB_TARGET_CUDA_COMPILEGPUMODULE_H
