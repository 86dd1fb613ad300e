//===- FormPhases.cpp - Barriers only where data flows --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialects/RT/IR/RTDialect.h"
#include "passes/Dispatch/Passes.h"

namespace mlir::llm {
#define GEN_PASS_DEF_FORMPHASESPASS
#include "passes/Dispatch/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::rt;

namespace {
/// The last phases that touched a buffer, -1 for none.
struct Access {
  int64_t written = -1;
  int64_t read = -1;
};

struct FormPhasesPass
    : public mlir::llm::impl::FormPhasesPassBase<FormPhasesPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      form(program);
  }

  void form(ProgramOp program) {
    struct Placed {
      int64_t phase;
      size_t index; ///< in program order
      DispatchOp dispatch;
    };
    SmallVector<Placed> order;
    llvm::DenseMap<Value, Access> accesses;
    for (auto dispatch : program.getBody().getOps<DispatchOp>()) {
      int64_t phase = 0;
      for (Value value : dispatch.getReads())
        phase = std::max(phase, accesses[value].written + 1);
      for (Value value : dispatch.getWrites()) {
        Access &access = accesses[value];
        phase = std::max({phase, access.written + 1, access.read + 1});
      }
      for (Value value : dispatch.getReads())
        accesses[value].read = std::max(accesses[value].read, phase);
      for (Value value : dispatch.getWrites())
        accesses[value].written = phase;
      order.push_back({phase, order.size(), dispatch});
    }
    llvm::sort(order, [](const Placed &a, const Placed &b) {
      return std::pair(a.phase, a.index) < std::pair(b.phase, b.index);
    });
    int64_t last = -1;
    Block &body = program.getBody().front();
    for (auto [phase, index, dispatch] : order) {
      dispatch.setConcurrent(phase == last);
      numPhases += phase != last;
      ++numDispatches;
      // To the end: buffers may be defined between dispatches.
      dispatch->moveBefore(&body, body.end());
      last = phase;
    }
  }
};
} // namespace
