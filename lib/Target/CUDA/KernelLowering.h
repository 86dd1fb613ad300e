//===- KernelLowering.h - One kernel for the emulator -----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to EmulatorLowering.cpp and WarpLowering.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_TARGET_CUDA_KERNELLOWERING_H
#define LLM_LIB_TARGET_CUDA_KERNELLOWERING_H

#include "lib/Target/CUDA/EmulatorTable.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"

namespace llm::cuda {

/// Where a pointer points, as far as the code shows.
struct Pointee {
  int32_t space;  ///< operand, or llm_emulator_space
  bool isPrivate; ///< the thread's own stack: needs no check
};

/// Rewrites one kernel.
class KernelLowering {
public:
  KernelLowering(mlir::LLVM::LLVMFuncOp func, const EmulatorTypes &types,
                 const llvm::StringMap<uint64_t> &sharedOffsets)
      : func(func), types(types), sharedOffsets(sharedOffsets),
        b(func.getLoc(), func.getContext()) {}

  mlir::LogicalResult run();
  EmulatorKernel description;

private:
  Pointee trace(mlir::Value pointer) const;
  uint32_t addSite(mlir::Operation *op, EmulatorSite info);
  uint32_t addSite(mlir::Operation *op) { return addSite(op, {}); }
  mlir::Value call(EmulatorFunction function, mlir::ValueRange arguments);
  mlir::Value slot(mlir::Type type, int64_t count);
  mlir::Value spill(mlir::ValueRange values);
  mlir::Value integer(int64_t value) {
    return mlir::LLVM::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  mlir::Value asWord(mlir::Value value);
  mlir::Value fromWord(mlir::Value word, mlir::Type type);

  void checkAccess(mlir::Operation *op, mlir::Value pointer, mlir::Type type,
                   int32_t access, std::optional<uint64_t> alignment);
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerBarrier(mlir::NVVM::BarrierOp op);
  mlir::LogicalResult lowerShuffle(mlir::NVVM::ShflOp op);
  mlir::LogicalResult lowerReduce(mlir::NVVM::ReduxOp op);
  mlir::LogicalResult lowerVote(mlir::NVVM::VoteSyncOp op);
  mlir::LogicalResult lowerLoadMatrix(mlir::NVVM::LdMatrixOp op);
  mlir::LogicalResult lowerMultiply(mlir::NVVM::MmaOp op);
  mlir::LogicalResult lowerCopy(mlir::NVVM::CpAsyncOp op);
  void replace(mlir::Operation *op, mlir::Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }

  mlir::LLVM::LLVMFuncOp func;
  const EmulatorTypes &types;
  const llvm::StringMap<uint64_t> &sharedOffsets;
  mlir::ImplicitLocOpBuilder b;
  llvm::DenseMap<mlir::Value, int32_t> operands; ///< pointer arguments
  llvm::DenseMap<mlir::Operation *, Pointee> pointees;
  mlir::Value api, thread;
};

} // namespace llm::cuda

#endif // LLM_LIB_TARGET_CUDA_KERNELLOWERING_H
