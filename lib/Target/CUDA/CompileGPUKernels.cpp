//===- CompileGPUKernels.cpp - GPU modules to binaries --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/RT/IR/RTDialect.h"
#include "lib/Target/CUDA/CompileGPUModule.h"
#include "lib/Target/CUDA/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace llm::cuda {
#define GEN_PASS_DEF_COMPILEGPUKERNELS
#include "lib/Target/CUDA/Passes.h.inc"

static LogicalResult dump(gpu::GPUModuleOp module, StringRef directory,
                          StringRef extension, StringRef bytes) {
  SmallString<128> path(directory);
  llvm::sys::path::append(path, module.getSymName() + extension);
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(path, &message);
  if (!file)
    return emitError(module.getLoc()) << message;
  file->os() << bytes;
  file->os().flush();
  if (std::error_code error = file->os().error()) {
    file->os().clear_error();
    return emitError(module.getLoc())
           << "cannot write '" << path << "': " << error.message();
  }
  file->keep();
  return success();
}

namespace {
struct CompileGPUKernels : impl::CompileGPUKernelsBase<CompileGPUKernels> {
  using Base::Base;

  void runOnOperation() override {
    for (auto module :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (module.getTargetsAttr() && failed(compile(module)))
        return signalPassFailure();
  }

  LogicalResult compile(gpu::GPUModuleOp module) {
    ArrayAttr targets = module.getTargetsAttr();
    auto target = targets.size() == 1
                      ? dyn_cast<NVVM::NVVMTargetAttr>(targets[0])
                      : NVVM::NVVMTargetAttr();
    if (!target)
      return module.emitOpError("must have one #nvvm.target");
    CompileOptions options;
    options.toolkit = toolkit;
    options.timeoutSeconds = timeout;
    FailureOr<std::vector<GPUObject>> objects =
        compileGPUModule(module, target.getChip().str(), options);
    if (failed(objects))
      return failure();
    GPUObject &object = objects->front();
    ++numModules;

    OpBuilder builder(module);
    SmallVector<Attribute> attributes;
    auto append = [&](gpu::CompilationTarget format, StringRef bytes) {
      attributes.push_back(gpu::ObjectAttr::get(
          &getContext(), target, format, builder.getStringAttr(bytes),
          /*properties=*/DictionaryAttr(), /*kernels=*/gpu::KernelTableAttr()));
    };
    append(gpu::CompilationTarget::Assembly, object.ptx);
    if (!dumpDirectory.empty() &&
        failed(dump(module, dumpDirectory, ".ptx", object.ptx)))
      return failure();
    if (object.cubin) {
      StringRef bytes(object.cubin->bytes.data(), object.cubin->bytes.size());
      append(gpu::CompilationTarget::Binary, bytes);
      if (!dumpDirectory.empty() &&
          failed(dump(module, dumpDirectory, ".cubin", bytes)))
        return failure();
      annotate(module.getSymName(), *object.cubin);
    }
    gpu::BinaryOp::create(builder, module.getLoc(), module.getSymName(),
                          /*offloadingHandler=*/nullptr, attributes);
    module.erase();
    return success();
  }

  /// Writes what ptxas reported to the variants that use `code`.
  void annotate(StringRef code, const Cubin &cubin) {
    llvm::StringMap<const KernelResources *> byName;
    for (const KernelResources &kernel : cubin.kernels) {
      byName[kernel.name] = &kernel;
      numSpilling += kernel.spillBytes > 0;
    }
    getOperation().walk([&](rt::VariantOp variant) {
      const KernelResources *kernel = byName.lookup(variant.getEntry());
      if (variant.getCode() != code || !kernel)
        return;
      variant.setRegisters(kernel->registers);
      variant.setSpillBytes(kernel->spillBytes);
      variant.setSharedBytes(kernel->sharedBytes);
    });
  }
};
} // namespace

} // namespace llm::cuda
