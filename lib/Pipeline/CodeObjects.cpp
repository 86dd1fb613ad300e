//===- CodeObjects.cpp - Code modules to code objects ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/Compile.h"

#include "lib/Target/CPU/CompileModule.h"
#include "lib/Target/CUDA/EmulatorLowering.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace llm {

/// The functions of a CPU code module that the table lists: what variants and
/// host functions name, in their order.
static std::vector<TableEntry> tableEntries(ModuleOp module, StringRef code) {
  llvm::SetVector<StringRef> kernels, hosts;
  module.walk([&](Operation *op) {
    if (auto variant = dyn_cast<rt::VariantOp>(op)) {
      if (variant.getCode() == code)
        kernels.insert(variant.getEntry());
    } else if (auto host = dyn_cast<rt::HostFunctionOp>(op)) {
      if (host.getCode() == code)
        hosts.insert(host.getEntry());
    }
  });
  std::vector<TableEntry> entries;
  for (StringRef name : kernels)
    entries.push_back({name.str(), TableEntry::Kind::Kernel});
  for (StringRef name : hosts)
    entries.push_back({name.str(), TableEntry::Kind::Host});
  return entries;
}

/// Code for the emulator. It is generated for a processor that every machine
/// of the last ten years is: kernels are tested with it, not served.
static FailureOr<CodeObject> compileEmulated(ModuleOp module,
                                             gpu::GPUModuleOp code) {
  std::string error;
  FailureOr<CPUTarget> target = CPUTarget::get("x86-64-v3", error);
  if (failed(target))
    return emitError(code.getLoc()) << error;
  FailureOr<OwningOpRef<ModuleOp>> lowered = cuda::lowerToEmulator(code);
  if (failed(lowered))
    return failure();
  std::vector<TableEntry> entries = tableEntries(module, code.getSymName());
  for (TableEntry &entry : entries)
    entry.kind = TableEntry::Kind::Data;
  FailureOr<SmallVector<char, 0>> bytes =
      compileToSharedObject(**lowered, *target, entries);
  if (failed(bytes))
    return failure();
  return CodeObject{code.getSymName().str(), "cuda-emulator", target->name,
                    target->features, std::move(*bytes)};
}

/// Names what a shared object is compiled from.
static std::string cacheKey(ModuleOp code, const CPUTarget &target,
                            ArrayRef<TableEntry> entries) {
  std::string text;
  llvm::raw_string_ostream os(text);
  code.print(os, OpPrintingFlags().useLocalScope());
  os << target.name << llvm::join(target.features, ",");
  for (const TableEntry &entry : entries)
    os << " " << entry.function << static_cast<int>(entry.kind);
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::ArrayRef<uint8_t>(
      reinterpret_cast<const uint8_t *>(text.data()), text.size()));
  return llvm::utohexstr(hash.high64) + "." + llvm::utohexstr(hash.low64);
}

FailureOr<std::vector<CodeObject>>
compileCodeObjects(ModuleOp module, ArrayRef<std::string> mcpus,
                   CodeCache *cache) {
  std::vector<CodeObject> objects;
  auto narrowest = [&](ModuleOp code) -> FailureOr<CPUTarget> {
    std::string error;
    FailureOr<std::vector<CPUTarget>> all = CPUTarget::getAll(mcpus, error);
    if (failed(all))
      return code.emitError(error);
    return all->back();
  };
  for (auto code : module.getOps<ModuleOp>()) {
    std::vector<TableEntry> entries =
        tableEntries(module, code.getSymName().value_or(""));
    if (entries.empty())
      continue;
    FailureOr<CPUTarget> target =
        code->hasAttr(kCPUTargetAttr) ? CPUTarget::of(code) : narrowest(code);
    if (failed(target))
      return failure();
    std::string key = cache ? cacheKey(code, *target, entries) : "";
    if (cache)
      if (auto it = cache->find(key); it != cache->end()) {
        objects.push_back({code.getSymName()->str(), "cpu", target->name,
                           target->features, it->second});
        continue;
      }
    // Code generation rewrites its input, which later stages still print.
    OwningOpRef<ModuleOp> copy = cast<ModuleOp>(code->clone());
    FailureOr<llvm::SmallVector<char, 0>> bytes =
        compileToSharedObject(*copy, *target, entries);
    if (failed(bytes))
      return failure();
    if (cache)
      cache->try_emplace(key, *bytes);
    objects.push_back({code.getSymName()->str(), "cpu", target->name,
                       target->features, std::move(*bytes)});
  }
  for (auto code : module.getOps<gpu::GPUModuleOp>()) {
    if (code.getTargetsAttr())
      continue;
    FailureOr<CodeObject> object = compileEmulated(module, code);
    if (failed(object))
      return failure();
    objects.push_back(std::move(*object));
  }
  return objects;
}

} // namespace llm
