//===- StoreInstrumentation.cpp - Where a tool's passes put weights -------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Pipeline/StoreInstrumentation.h"

#include "lib/Support/WeightStore.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace llm {

namespace {
class StoreInstrumentation : public PassInstrumentation {
public:
  StoreInstrumentation(std::string directory, bool scratch)
      : directory(std::move(directory)), scratch(scratch) {}

  void runBeforePass(Pass *, Operation *op) override {
    if (!isOutermost(op) || op->hasAttr(kStoreAttr))
      return;
    op->setAttr(kStoreAttr, StringAttr::get(op->getContext(), directory));
    if (scratch)
      op->setAttr(kScratchStoreAttr, UnitAttr::get(op->getContext()));
    isSet = true;
  }
  void runAfterPass(Pass *, Operation *op) override { remove(op); }
  void runAfterPassFailed(Pass *, Operation *op) override { remove(op); }

private:
  static bool isOutermost(Operation *op) {
    return isa<ModuleOp>(op) && !op->getParentOp();
  }
  void remove(Operation *op) {
    if (!isSet || !isOutermost(op))
      return;
    op->removeAttr(kStoreAttr);
    op->removeAttr(kScratchStoreAttr);
    isSet = false;
  }

  std::string directory;
  bool scratch, isSet = false;
};
} // namespace

void addStore(PassManager &pm, std::string directory, bool scratch) {
  pm.addInstrumentation(
      std::make_unique<StoreInstrumentation>(std::move(directory), scratch));
}

std::string storeBeside(StringRef output) {
  llvm::sys::fs::file_status status;
  if (output == "-" ||
      (!llvm::sys::fs::status(output, status) &&
       status.type() != llvm::sys::fs::file_type::regular_file))
    return {};
  return (output + ".weights").str();
}

} // namespace llm
