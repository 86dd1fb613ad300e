//===- DispatchCost.h - What a dispatch has to move and compute -*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TOOLS_LLM_RUN_DISPATCHCOST_H
#define LLM_TOOLS_LLM_RUN_DISPATCHCOST_H

#include "runtime/core/MachineLimits.h"
#include "runtime/session/Session.h"

namespace llm::run {

/// The least that a dispatch moves and computes.
struct DispatchCost {
  /// Every operand read or written once; of a table its rows that are looked
  /// up, of a cache the slots that are read or written.
  double bytes = 0;
  /// Of a `linear` and of `attention`, two a multiply-add; elsewhere 0, which
  /// says that memory is what counts.
  double operations = 0;
  /// The rate that the machine has for such operations.
  double runtime::MachineLimits::*limit = nullptr;
};

/// The cost of call `index` of a step that has run, on a device that shares the
/// host's memory.
DispatchCost costOf(const runtime::Session::Profile &step, size_t index,
                    const artifact::Manifest &manifest);

} // namespace llm::run

#endif // LLM_TOOLS_LLM_RUN_DISPATCHCOST_H
