//===- DraftCosts.h - Tables of what drafting takes -------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_SUPPORT_DRAFTCOSTS_H
#define LLM_LIB_SUPPORT_DRAFTCOSTS_H

#include "llm/ABI/step.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

namespace llm {

/// Whether `costs` says what a step with 0, 1, ..., `tokens` drafts for a
/// sequence takes: ascending from LLM_DRAFT_COST_UNIT, the cost without drafts,
/// to LLM_MAX_DRAFT_COST at most.
inline bool areDraftCosts(llvm::ArrayRef<int64_t> costs, int64_t tokens) {
  return static_cast<int64_t>(costs.size()) == tokens + 1 &&
         costs.front() == LLM_DRAFT_COST_UNIT && llvm::is_sorted(costs) &&
         costs.back() <= LLM_MAX_DRAFT_COST;
}

} // namespace llm

#endif // LLM_LIB_SUPPORT_DRAFTCOSTS_H
