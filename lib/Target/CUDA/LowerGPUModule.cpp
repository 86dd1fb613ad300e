//===- LowerGPUModule.cpp - gpu.module to the nvvm dialect ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/LowerGPUModule.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace llm::cuda {

/// Bare pointers carry no sizes, so every buffer declares its bound.
static LogicalResult verifyStaticBuffers(gpu::GPUModuleOp module) {
  WalkResult result = module.walk([](gpu::GPUFuncOp func) {
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
      auto memref = dyn_cast<MemRefType>(type);
      if (!memref ||
          (memref.hasStaticShape() && memref.getLayout().isIdentity()))
        continue;
      func.emitOpError("argument ")
          << i << " is " << memref
          << "; kernels take contiguous buffers with a static bound";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Conversions may leave operations behind and still succeed.
static LogicalResult verifyLowered(gpu::GPUModuleOp module) {
  Operation *cast = nullptr;
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == module.getOperation())
      return WalkResult::advance();
    if (isa<UnrealizedConversionCastOp>(op)) {
      cast = op; // A consequence of another one, mostly.
      return WalkResult::advance();
    }
    if (!isa<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect())) {
      op->emitError("'") << op->getName() << "' cannot be lowered for the GPU";
      return WalkResult::interrupt();
    }
    if (auto func = dyn_cast<LLVM::LLVMFuncOp>(op); func && func.isExternal()) {
      // Such as __nv_expf: there is no device library to link.
      std::optional<SymbolTable::UseRange> uses =
          SymbolTable::getSymbolUses(func, module);
      Operation *user = uses && !uses->empty() ? uses->begin()->getUser() : op;
      user->emitError("calls '")
          << func.getName() << "', which is not defined in the GPU module";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (!result.wasInterrupted() && cast)
    return cast->emitError("types cannot be converted for the GPU");
  return failure(result.wasInterrupted());
}

OwningOpRef<ModuleOp> isolateGPUModule(gpu::GPUModuleOp module) {
  OwningOpRef<ModuleOp> isolated(ModuleOp::create(module.getLoc()));
  isolated->push_back(module.clone());
  return isolated;
}

gpu::GPUModuleOp getGPUModule(ModuleOp isolated) {
  return *isolated.getOps<gpu::GPUModuleOp>().begin();
}

LogicalResult lowerGPUModule(gpu::GPUModuleOp module) {
  if (failed(verifyStaticBuffers(module)))
    return failure();
  MLIRContext *context = module.getContext();
  {
    RewritePatternSet patterns(context);
    populateGpuLowerSubgroupReduceToShufflePatterns(patterns,
                                                    /*subgroupSize=*/32);
    if (failed(applyPatternsGreedily(module, std::move(patterns))))
      return failure();
  }
  PassManager pm(context, gpu::GPUModuleOp::getOperationName());
  pm.addPass(createConvertNVGPUToNVVMPass());
  pm.addPass(createConvertVectorToSCFPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(memref::createExpandOpsPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  ConvertGpuOpsToNVVMOpsOptions options;
  options.useBarePtrCallConv = true;
  options.indexBitwidth = 64;
  options.hasRedux = true;
  pm.addPass(createConvertGpuOpsToNVVMOps(options));
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (failed(pm.run(module)))
    return failure();
  return verifyLowered(module);
}

} // namespace llm::cuda
