//===- Chip.h - What an NVIDIA architecture can do --------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CUDA_CHIP_H
#define LLM_LIB_TARGET_CUDA_CHIP_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace llm::cuda {

/// An architecture that code is generated for. Instructions that it lacks make
/// LLVM end the process, so they are refused before LLVM sees them.
struct Chip {
  llvm::StringLiteral name; ///< "sm_90a"
  llvm::StringLiteral ptx;  ///< LLVM's feature for the PTX version it needs
  bool fp8;                 ///< fp8 conversions and mma
  bool wgmma;               ///< warp group mma
  bool tma;                 ///< bulk tensor copies, clusters
  int64_t maxSharedBytes;   ///< static shared memory of a block
};

/// Null for an architecture that is not known.
const Chip *lookupChip(llvm::StringRef name);

/// "sm_80, sm_86, ..." for diagnostics.
std::string listChips();

/// Reports the first operation of a lowered module (llvm and nvvm dialects)
/// that `chip` lacks.
mlir::LogicalResult verifyForChip(mlir::gpu::GPUModuleOp module,
                                  const Chip &chip);

} // namespace llm::cuda

#endif // LLM_LIB_TARGET_CUDA_CHIP_H
