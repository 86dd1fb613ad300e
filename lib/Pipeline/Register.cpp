//===- Register.cpp - Every dialect and pass of the compiler ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one file that includes MLIR's Init headers; they take long to compile.
//
#include "lib/Pipeline/Register.h"

#include "lib/Pipeline/Compile.h"

#include "dialects/Decode/IR/DecodeDialect.h"
#include "dialects/KV/IR/KVDialect.h"
#include "dialects/LLM/IR/LLMDialect.h"
#include "dialects/RT/IR/RTDialect.h"
#include "lib/Target/CUDA/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVM/NVVM/Target.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Compress/Passes.h"
#include "passes/Conversion/LLMToLinalg/Passes.h"
#include "passes/Conversion/LLMToRT/Passes.h"
#include "passes/Decode/Passes.h"
#include "passes/Dispatch/Passes.h"
#include "passes/Host/Passes.h"
#include "passes/KVCache/Passes.h"
#include "passes/Kernels/Passes.h"
#include "passes/Raise/Passes.h"
#include "passes/Verify/Passes.h"

#include <mutex>

void llm::registerDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllToLLVMIRTranslations(registry);
  mlir::NVVM::registerNVVMTargetInterfaceExternalModels(registry);
  registry.insert<mlir::llm::LLMDialect, mlir::kv::KVDialect,
                  mlir::decode::DecodeDialect, mlir::rt::RTDialect>();
}

void llm::registerPasses() {
  static std::once_flag once;
  std::call_once(once, [] {
    mlir::registerTransformsPasses();
    // One line per group, in the order of the stages.
    mlir::llm::registerRaisePasses();
    mlir::llm::registerCompressPasses();
    mlir::llm::registerKVCachePasses();
    mlir::llm::registerDecodePasses();
    mlir::llm::registerVerifyPasses();
    mlir::llm::registerLLMKernelsPasses();
    mlir::llm::registerLLMDispatchPasses();
    mlir::llm::registerLLMLLMToRTPasses();
    mlir::llm::registerLLMLLMToLinalgPasses();
    cuda::registerLLMTargetCUDAPasses();
    registerPipelines();
    mlir::llm::registerLLMHostPasses();
    mlir::llm::registerHostFunctionPipeline();
  });
}

llvm::Error llm::loadPassPlugin(llvm::StringRef path) {
  llvm::Expected<mlir::PassPlugin> plugin = mlir::PassPlugin::load(path.str());
  if (!plugin)
    return plugin.takeError();
  plugin->registerPassRegistryCallbacks();
  return llvm::Error::success();
}
