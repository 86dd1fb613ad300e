//===- EmulatorTable.h - What emulated kernels and runtime share -*- C++ -*-==//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// include/llm/ABI/emulator.h in MLIR's terms.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CUDA_EMULATORTABLE_H
#define LLM_LIB_TARGET_CUDA_EMULATORTABLE_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace llm::cuda {

/// The functions of llm_emulator_api, by their place in the struct.
enum class EmulatorFunction : int32_t {
  specialRegister = 2,
  shared,
  access,
  barrier,
  syncWarp,
  shuffle,
  reduce,
  vote,
  loadMatrix,
  multiplyMatrix,
  copyAsync,
  commitCopies,
  waitCopies,
  end
};

/// llm_emulator_site.
struct EmulatorSite {
  std::string location;
  int32_t space = 0;
  int32_t access = 0;
  int32_t bytes = 0;
  int32_t alignment = 0;
};

/// llm_emulator_kernel.
struct EmulatorKernel {
  std::string name;
  uint32_t numBuffers = 0;
  uint32_t numSizes = 0;
  uint32_t sharedBytes = 0;
  uint32_t blockThreads = 0;
  std::vector<EmulatorSite> sites;
};

/// The types of the ABI.
struct EmulatorTypes {
  explicit EmulatorTypes(mlir::MLIRContext *context);
  mlir::LLVM::LLVMFunctionType signature(EmulatorFunction function) const;

  mlir::LLVM::LLVMPointerType pointer;
  mlir::LLVM::LLVMStructType api;      ///< llm_emulator_api
  mlir::LLVM::LLVMFunctionType thread; ///< llm_emulator_fn
};

/// Where `location` is, for a person: labels, file names without directories,
/// line and column.
std::string describeLocation(mlir::Location location);

/// Appends the constant llm_emulator_kernel @`kernel.name` to `module`, for the
/// function `thread` of that module.
void appendEmulatorKernel(mlir::ModuleOp module, const EmulatorKernel &kernel,
                          mlir::LLVM::LLVMFuncOp thread,
                          const EmulatorTypes &types);

} // namespace llm::cuda

#endif // LLM_LIB_TARGET_CUDA_EMULATORTABLE_H
