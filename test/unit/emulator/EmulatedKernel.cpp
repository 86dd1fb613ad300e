//===- EmulatedKernel.cpp - Compile and launch kernels --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/unit/emulator/EmulatedKernel.h"

#include "dialects/RT/IR/RTDialect.h"
#include "lib/Pipeline/Register.h"
#include "lib/Target/CPU/CompileModule.h"
#include "lib/Target/CUDA/EmulatorLowering.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Kernels/Passes.h"
#include "runtime/device/SharedObject.h"

#include <cstdio>
#include <cstdlib>

using namespace mlir;

namespace llm::test {

[[noreturn]] static void fatal(const std::string &message) {
  fprintf(stderr, "%s\n", message.c_str());
  abort();
}

static MLIRContext &context() {
  static MLIRContext *shared = [] {
    DialectRegistry registry;
    registerDialects(registry);
    auto *made = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    made->loadAllAvailableDialects();
    return made;
  }();
  return *shared;
}

static OwningOpRef<ModuleOp> parseModule(const std::string &text) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      text, ParserConfig(&context()), /*sourceName=*/"/some/where/test.mlir");
  if (!module)
    fatal("cannot parse: " + text);
  return module;
}

EmulatedKernel EmulatedKernel::compile(gpu::GPUModuleOp module,
                                       const std::string &name) {
  FailureOr<OwningOpRef<ModuleOp>> lowered = cuda::lowerToEmulator(module);
  std::string error;
  FailureOr<CPUTarget> target = CPUTarget::get("x86-64-v3", error);
  if (failed(lowered) || failed(target))
    fatal("cannot lower " + name + error);
  auto code = compileToSharedObject(**lowered, *target,
                                    {{name, TableEntry::Kind::Data}});
  if (failed(code))
    fatal("cannot compile " + name);
  EmulatedKernel result;
  result.bytes.assign(code->begin(), code->end());
  auto object =
      runtime::loadSharedObject(std::as_bytes(std::span(result.bytes)));
  if (!object)
    fatal(object.status().toString());
  result.object = *std::move(object);
  result.kernel =
      static_cast<const llm_emulator_kernel *>(result.object->find(name));
  if (!result.kernel)
    fatal("no entry " + name);
  result.emulator = std::make_unique<runtime::Emulator>();
  return result;
}

EmulatedKernel EmulatedKernel::generate(const std::string &family,
                                        const std::string &params,
                                        const Mutation &mutation) {
  OwningOpRef<ModuleOp> module =
      parseModule("rt.program @p target \"cuda-emulator\" symbols [\"T\"] {\n"
                  "rt.kernel @k family \"" +
                  family + "\" params " + params + " {}\n}");
  PassManager pm(&context());
  pm.addPass(mlir::llm::createGenerateKernelsPass());
  if (failed(pm.run(*module)))
    fatal("cannot generate " + family + params);
  auto code = *module->getOps<gpu::GPUModuleOp>().begin();
  if (mutation) {
    mutation(*code.getOps<gpu::GPUFuncOp>().begin());
    if (failed(verify(*module)))
      fatal("the mutation is no valid IR");
  }
  return compile(code, "k");
}

EmulatedKernel EmulatedKernel::parse(const std::string &text) {
  OwningOpRef<ModuleOp> module = parseModule(text);
  auto code = *module->getOps<gpu::GPUModuleOp>().begin();
  return compile(code,
                 (*code.getOps<gpu::GPUFuncOp>().begin()).getName().str());
}

std::optional<runtime::Finding>
EmulatedKernel::launch(int64_t blocks, const std::vector<Operand> &operands,
                       size_t numReads, const std::vector<int64_t> &sizes) {
  std::vector<void *> pointers;
  std::vector<uint64_t> extents;
  for (const Operand &each : operands) {
    pointers.push_back(each.data);
    extents.push_back(each.bytes);
  }
  runtime::LaunchParams params;
  params.kernel = kernel;
  params.grid = {blocks, 1, 1};
  params.block = {kernel->block_threads ? kernel->block_threads : 32, 1, 1};
  params.buffers = pointers;
  params.bytes = extents;
  params.numReads = numReads;
  params.sizes = sizes;
  auto result = emulator->launch(params);
  if (!result)
    fatal(result.status().toString());
  return *result;
}

std::string loweringError(const std::string &text) {
  OwningOpRef<ModuleOp> module = parseModule(text);
  std::string first;
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
    if (first.empty())
      first = diagnostic.str();
    return success();
  });
  auto code = *module->getOps<gpu::GPUModuleOp>().begin();
  auto lowered = cuda::lowerToEmulator(code);
  return succeeded(lowered) ? "" : first;
}

} // namespace llm::test
