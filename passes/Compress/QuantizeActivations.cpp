//===- QuantizeActivations.cpp - Let products read fewer bits -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/Passes.h"
#include "passes/Compress/Weights.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::llm {
#define GEN_PASS_DEF_QUANTIZEACTIVATIONSPASS
#include "passes/Compress/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;

namespace {
struct QuantizeActivations
    : mlir::llm::impl::QuantizeActivationsPassBase<QuantizeActivations> {
  using QuantizeActivationsPassBase::QuantizeActivationsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto emit = [&] { return emitError(module.getLoc()); };
    auto level = ::llvm::StringSwitch<int64_t>(type)
                     .Case("f32", 1)
                     .Case("f16", 2)
                     .Case("bf16", 3)
                     .Case("int8", 4)
                     .Default(0);
    if (!level) {
      emit() << "type must be f32, f16, bf16 or int8, got '" << type.getValue()
             << "'";
      return signalPassFailure();
    }
    if (groupSize && level != 4) {
      emit() << "group-size is for int8: " << type.getValue()
             << " has no scales";
      return signalPassFailure();
    }
    FailureOr<Selection> selection = Selection::parse(where, match, emit);
    if (failed(selection))
      return signalPassFailure();
    for (const WeightUses &uses : collectWeightUses(module)) {
      if (!selection->contains(uses))
        continue;
      for (LinearOp linear : uses.linears) {
        if (!selection->isThere(linear) ||
            (linear.getAccuracyLevel() == static_cast<uint64_t>(level) &&
             linear.getActivationGroup() == groupSize))
          continue;
        linear.setAccuracyLevel(level);
        linear.setActivationGroup(groupSize);
        ++numProducts;
      }
    }
  }
};
} // namespace
