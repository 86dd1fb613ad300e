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
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Kernels/KernelFamily.h"

namespace mlir::llm {
#define GEN_PASS_DEF_GENERATEKERNELSPASS
#include "passes/Kernels/Passes.h.inc"

static constexpr StringRef kCPUModule = "cpu";

/// The module of CPU code, made at the end of `module` where there is none.
static FailureOr<ModuleOp> getCodeModule(ModuleOp module,
                                         const ::llm::CPUTarget &target) {
  if (Operation *op = SymbolTable::lookupSymbolIn(module, kCPUModule)) {
    auto code = dyn_cast<ModuleOp>(op);
    if (!code)
      return op->emitError("is called @cpu, the name of the CPU code module");
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
  ModuleOp code = ModuleOp::create(b, module.getLoc(), kCPUModule);
  target.attach(code);
  return code;
}

namespace {
struct GenerateKernelsPass
    : impl::GenerateKernelsPassBase<GenerateKernelsPass> {
  using GenerateKernelsPassBase::GenerateKernelsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<rt::KernelOp> kernels;
    for (auto program : module.getOps<rt::ProgramOp>())
      if (program.getTarget() == "cpu")
        for (auto kernel : program.getBody().getOps<rt::KernelOp>())
          if (kernel.getVariants().front().empty())
            kernels.push_back(kernel);
    if (kernels.empty())
      return;

    std::string error;
    FailureOr<::llm::CPUTarget> cpu = ::llm::CPUTarget::get(mcpu, error);
    if (failed(cpu)) {
      module.emitError(error);
      return signalPassFailure();
    }
    FailureOr<ModuleOp> code = getCodeModule(module, *cpu);
    if (failed(code))
      return signalPassFailure();
    KernelTarget target{"cpu", cpu->name, cpu->vectorWidth(), cpu->features};
    KernelRegistry registry;
    populateCPUKernels(registry);

    llvm::MapVector<std::pair<Attribute, Attribute>, rt::KernelOp> done;
    for (rt::KernelOp kernel : kernels) {
      auto [it, isNew] = done.try_emplace(
          {kernel.getFamilyAttr(), kernel.getParamsAttr()}, kernel);
      if (!isNew) {
        OpBuilder b = OpBuilder::atBlockEnd(&kernel.getVariants().front());
        for (Operation &variant : it->second.getVariants().front())
          b.clone(variant);
        ++numShared;
        continue;
      }
      KernelGenerator generate = registry.lookup("cpu", kernel.getFamily());
      if (!generate) {
        kernel.emitOpError("target 'cpu' has no kernel family '")
            << kernel.getFamily() << "'";
        return signalPassFailure();
      }
      size_t before = llvm::range_size(code->getOps<func::FuncOp>());
      KernelBuilder builder(kernel, *code, target);
      if (failed(generate(builder)))
        return signalPassFailure();
      numFunctions += llvm::range_size(code->getOps<func::FuncOp>()) - before;
    }
  }
};
} // namespace
} // namespace mlir::llm
