//===- GenerateKernels.cpp - Functions for every rt.kernel ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/Passes.h"

#include "lib/Support/CPUTarget.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Kernels/KernelFamily.h"

#include <map>

namespace mlir::llm {
#define GEN_PASS_DEF_GENERATEKERNELSPASS
#include "passes/Kernels/Passes.h.inc"

static constexpr StringRef kCPUModule = "cpu";

/// The module of CPU code `name`, made at the end of `module` where there is
/// none.
static FailureOr<ModuleOp> getCodeModule(ModuleOp module, StringRef name,
                                         const ::llm::CPUTarget &target) {
  if (Operation *op = SymbolTable::lookupSymbolIn(module, name)) {
    auto code = dyn_cast<ModuleOp>(op);
    if (!code)
      return op->emitError("is called @")
             << name << ", the name of a CPU code module";
    if (!code->hasAttr(::llm::kCPUTargetAttr)) {
      target.attach(code);
      return code;
    }
    FailureOr<::llm::CPUTarget> old = ::llm::CPUTarget::of(code);
    if (failed(old))
      return failure();
    if (old->features != target.features)
      return code.emitError("holds code for ")
             << old->featureString() << ", cannot add some for "
             << target.featureString();
    return code;
  }
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  ModuleOp code = ModuleOp::create(b, module.getLoc(), name);
  target.attach(code);
  return code;
}

/// Appends an empty gpu.module `name` for `arch` (the emulator's where that is
/// empty).
static gpu::GPUModuleOp appendGPUModule(ModuleOp module, StringRef name,
                                        StringRef arch) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Attribute, 1> targets;
  if (!arch.empty())
    targets.push_back(NVVM::NVVMTargetAttr::get(b.getContext(), /*optLevel=*/3,
                                                "nvptx64-nvidia-cuda", arch));
  auto code = gpu::GPUModuleOp::create(b, module.getLoc(), name, targets);
  SymbolTable(module).insert(code);
  return code;
}

/// The kernels of programs for `target` that have no variants yet.
static SmallVector<rt::KernelOp> collectKernels(ModuleOp module,
                                                StringRef target) {
  SmallVector<rt::KernelOp> kernels;
  for (auto program : module.getOps<rt::ProgramOp>())
    if (program.getTarget() == target)
      for (auto kernel : program.getBody().getOps<rt::KernelOp>())
        if (kernel.getVariants().front().empty())
          kernels.push_back(kernel);
  return kernels;
}

static void setGrids(rt::KernelOp kernel, rt::ExprAttr grid) {
  auto program = kernel->getParentOfType<rt::ProgramOp>();
  for (auto dispatch : program.getBody().getOps<rt::DispatchOp>())
    if (dispatch.getKernel() == kernel.getSymName())
      dispatch.setGridAttr(grid);
}

namespace {
struct GenerateKernelsPass
    : impl::GenerateKernelsPassBase<GenerateKernelsPass> {
  using GenerateKernelsPassBase::GenerateKernelsPassBase;

  void runOnOperation() override {
    KernelRegistry registry;
    populateCPUKernels(registry);
    populateCUDAKernels(registry);
    if (failed(generateCPU(registry)) || failed(generateCUDA(registry)) ||
        failed(generateEmulator(registry)))
      signalPassFailure();
  }

  LogicalResult generateCPU(const KernelRegistry &registry) {
    ModuleOp module = getOperation();
    SmallVector<rt::KernelOp> kernels = collectKernels(module, "cpu");
    if (kernels.empty())
      return success();
    SmallVector<std::string> names(mcpus.begin(), mcpus.end());
    if (names.empty())
      names.push_back("native");
    std::string error;
    FailureOr<std::vector<::llm::CPUTarget>> cpus =
        ::llm::CPUTarget::getAll(names, error);
    if (failed(cpus))
      return module.emitError(error);
    for (const ::llm::CPUTarget &cpu : *cpus) {
      std::string name = cpus->size() == 1
                             ? kCPUModule.str()
                             : (kCPUModule + "_" + cpu.name).str();
      llvm::replace(name, '-', '_');
      FailureOr<ModuleOp> code = getCodeModule(module, name, cpu);
      if (failed(code))
        return failure();
      KernelTarget target{"cpu", cpu.name, cpu.vectorWidth(), cpu.features};
      if (failed(generate(registry, target, *code, kernels)))
        return failure();
    }
    return success();
  }

  LogicalResult generateCUDA(const KernelRegistry &registry) {
    ModuleOp module = getOperation();
    SmallVector<rt::KernelOp> kernels = collectKernels(module, "cuda");
    if (kernels.empty())
      return success();
    if (archs.empty())
      return kernels.front().emitOpError(
          "is for target 'cuda', but no architecture is given "
          "(arch=sm_80,...)");
    for (const std::string &arch : archs)
      if (failed(generate(registry, {"cuda", arch, 0, {}},
                          appendGPUModule(module, "cuda_" + arch, arch),
                          kernels)))
        return failure();
    return success();
  }

  LogicalResult generateEmulator(const KernelRegistry &registry) {
    SmallVector<rt::KernelOp> kernels =
        collectKernels(getOperation(), "cuda-emulator");
    if (kernels.empty())
      return success();
    return generate(registry, {"cuda-emulator", "", 0, {}},
                    appendGPUModule(getOperation(), "cuda_emulator", ""),
                    kernels);
  }

  /// Adds the functions of `kernels` to `code`, and their variants.
  LogicalResult generate(const KernelRegistry &registry,
                         const KernelTarget &target, Operation *code,
                         ArrayRef<rt::KernelOp> kernels) {
    struct Done {
      SmallVector<rt::VariantOp> variants;
      rt::ExprAttr grid;
    };
    std::map<std::pair<const void *, const void *>, Done> done;
    for (rt::KernelOp kernel : kernels) {
      KernelGenerator generator =
          registry.lookup(target.name, kernel.getFamily());
      if (!generator)
        return kernel.emitOpError("target '")
               << target.name << "' has no kernel family '"
               << kernel.getFamily() << "'";
      auto [it, isNew] =
          done.try_emplace({kernel.getFamilyAttr().getAsOpaquePointer(),
                            kernel.getParamsAttr().getAsOpaquePointer()});
      Done &shared = it->second;
      Block &variants = kernel.getVariants().front();
      if (!isNew) {
        OpBuilder b = OpBuilder::atBlockEnd(&variants);
        for (rt::VariantOp variant : shared.variants)
          b.clone(*variant);
        if (shared.grid)
          setGrids(kernel, shared.grid);
        ++numShared;
        continue;
      }
      Operation *last = variants.empty() ? nullptr : &variants.back();
      size_t before = llvm::range_size(code->getRegion(0).getOps());
      KernelBuilder builder(kernel, code, target);
      if (failed(generator(builder)))
        return failure();
      numFunctions += llvm::range_size(code->getRegion(0).getOps()) - before;
      // One kernel has variants of several code modules: take this one's.
      for (auto variant : variants.getOps<rt::VariantOp>())
        if (!last || last->isBeforeInBlock(variant))
          shared.variants.push_back(variant);
      shared.grid = builder.grid();
      if (shared.grid)
        setGrids(kernel, shared.grid);
    }
    return success();
  }
};
} // namespace
} // namespace mlir::llm
