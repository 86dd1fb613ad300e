//===- Chip.cpp - What an NVIDIA architecture can do ----------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/Chip.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace llm::cuda {

// PTX 8.0 is what every driver since CUDA 12.0 translates; newer instructions
// and architectures need the version that introduced them.
static constexpr Chip chips[] = {
    {"sm_80", "+ptx80", false, false, false, 48 << 10},
    {"sm_86", "+ptx80", false, false, false, 48 << 10},
    {"sm_87", "+ptx80", false, false, false, 48 << 10},
    {"sm_89", "+ptx84", true, false, false, 48 << 10},
    {"sm_90", "+ptx84", true, false, true, 48 << 10},
    {"sm_90a", "+ptx84", true, true, true, 48 << 10},
    {"sm_100", "+ptx86", true, false, true, 48 << 10},
    {"sm_120", "+ptx87", true, false, true, 48 << 10},
};

const Chip *lookupChip(StringRef name) {
  for (const Chip &chip : chips)
    if (chip.name == name)
      return &chip;
  return nullptr;
}

std::string listChips() {
  return llvm::join(
      llvm::map_range(chips, [](const Chip &c) { return c.name; }), ", ");
}

/// What an operation needs beyond sm_80; empty for nothing.
static StringRef missingFeature(Operation *op, const Chip &chip) {
  StringRef name = op->getName().getStringRef();
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    name = call.getIntrin();
  if (!chip.fp8 && (name.contains(".f8x2") || name.contains("e4m3") ||
                    name.contains("e5m2")))
    return "fp8";
  if (!chip.wgmma && name.contains("wgmma"))
    return "warp group mma";
  if (!chip.tma && (name.contains("cp.async.bulk") || name.contains("cluster")))
    return "bulk copies and clusters";
  return {};
}

LogicalResult verifyForChip(gpu::GPUModuleOp module, const Chip &chip) {
  WalkResult result = module.walk([&](Operation *op) {
    StringRef feature = missingFeature(op, chip);
    if (feature.empty())
      return WalkResult::advance();
    op->emitError("'") << op->getName() << "' needs " << feature << ", which "
                       << chip.name << " does not have";
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return failure();

  int64_t shared = 0;
  DataLayout layout(module);
  for (auto global : module.getOps<LLVM::GlobalOp>())
    if (global.getAddrSpace() ==
        static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared))
      shared += layout.getTypeSize(global.getType());
  if (shared > chip.maxSharedBytes)
    return module.emitError("uses ")
           << shared << " bytes of shared memory, " << chip.name << " has "
           << chip.maxSharedBytes << " for a block";
  return success();
}

} // namespace llm::cuda
