//===- CompileGPUModule.cpp - gpu.module to PTX and machine code ----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/CompileGPUModule.h"

#include "lib/Target/CUDA/Chip.h"
#include "lib/Target/CUDA/LowerGPUModule.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVM/ModuleToObject.h"
#include "mlir/Target/LLVM/NVVM/Utils.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace llm::cuda {

namespace {
/// Translates to PTX without looking for a device library.
class PTXSerializer : public LLVM::ModuleToObject {
public:
  PTXSerializer(gpu::GPUModuleOp module, const Chip &chip)
      : ModuleToObject(*module, "nvptx64-nvidia-cuda", chip.name, chip.ptx,
                       /*optLevel=*/3) {}

protected:
  FailureOr<SmallVector<char, 0>>
  moduleToObject(llvm::Module &llvmModule) override {
    // The file name would otherwise depend on the input's path.
    llvmModule.setSourceFileName("kernels");
    FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
    if (failed(machine))
      return getOperation().emitError("this LLVM has no NVPTX backend");
    FailureOr<SmallString<0>> isa =
        translateModuleToISA(llvmModule, **machine, [&] {
          return getOperation().emitError("LLVM cannot write PTX: ");
        });
    if (failed(isa))
      return failure();
    return SmallVector<char, 0>(isa->begin(), isa->end());
  }
};
} // namespace

/// Lowers `module` further, to what LLVM translates, and writes PTX.
static FailureOr<std::string> writePTX(gpu::GPUModuleOp module,
                                       const Chip &chip) {
  if (failed(verifyForChip(module, chip)))
    return failure();
  OwningOpRef<ModuleOp> isolated = isolateGPUModule(module);
  gpu::GPUModuleOp copy = getGPUModule(*isolated);
  PassManager pm(module.getContext(), gpu::GPUModuleOp::getOperationName());
  pm.addPass(createConvertNVVMToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  // Line tables would carry the names of the user's files.
  pm.addPass(createStripDebugInfoPass());
  if (failed(pm.run(copy)))
    return failure();
  PTXSerializer serializer(copy, chip);
  std::optional<SmallVector<char, 0>> bytes = serializer.run();
  if (!bytes)
    return failure();
  std::string ptx(bytes->begin(), bytes->end());
  if (StringRef(ptx).contains(".extern .func"))
    return emitError(module.getLoc(),
                     "the PTX calls a function that it does not define");
  return ptx;
}

FailureOr<std::vector<GPUObject>>
compileGPUModule(gpu::GPUModuleOp module, ArrayRef<std::string> archs,
                 const CompileOptions &options) {
  NVVM::SerializeGPUModuleBase::init();
  SmallVector<const Chip *> chips;
  for (const std::string &arch : archs) {
    const Chip *chip = lookupChip(arch);
    if (!chip)
      return emitError(module.getLoc(), "unknown GPU architecture '")
             << arch << "'; known are " << listChips();
    chips.push_back(chip);
  }
  OwningOpRef<ModuleOp> isolated = isolateGPUModule(module);
  gpu::GPUModuleOp lowered = getGPUModule(*isolated);
  if (failed(lowerGPUModule(lowered)))
    return failure();

  std::optional<std::string> assembler = findAssembler(options.toolkit);
  if (!assembler && !options.toolkit.empty())
    return emitError(module.getLoc(), "there is no ptxas in '")
           << options.toolkit << "'";
  if (!assembler)
    emitWarning(module.getLoc(),
                "no ptxas found (CUDA_ROOT, CUDA_HOME, CUDA_PATH, PATH); "
                "the driver will compile the PTX when it is loaded");
  std::vector<GPUObject> objects;
  for (const Chip *chip : chips) {
    FailureOr<std::string> ptx = writePTX(lowered, *chip);
    if (failed(ptx))
      return failure();
    GPUObject object{chip->name.str(), std::move(*ptx), std::nullopt};
    if (assembler) {
      FailureOr<Cubin> cubin =
          assemble(*assembler, object.ptx, object.arch, options.timeoutSeconds,
                   [&] { return emitError(module.getLoc()); });
      if (failed(cubin))
        return failure();
      object.cubin = std::move(*cubin);
    }
    objects.push_back(std::move(object));
  }
  return objects;
}

} // namespace llm::cuda
