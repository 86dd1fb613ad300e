//===- DraftVerifier.cpp - Checking what a manifest says of drafts --------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "llm/ABI/step.h"
#include "runtime/artifact/Artifact.h"

namespace llm::runtime {

using namespace artifact;

namespace {
/// What a draft proposes, and that what it leaves can be dropped again.
Status verifyDraft(const Manifest &manifest, const Draft &draft) {
  if (draft.lookup() < 1 || draft.lookup() > LLM_MAX_LOOKUP)
    return Status::invalidInput(
        "a draft looks " + std::to_string(draft.lookup()) +
        " tokens up, not 1 to " + std::to_string(LLM_MAX_LOOKUP));
  if (draft.tokens() < 1 || draft.tokens() > LLM_MAX_DRAFT)
    return Status::invalidInput("a draft of " + std::to_string(draft.tokens()) +
                                " tokens, not 1 to " +
                                std::to_string(LLM_MAX_DRAFT));
  if (draft.costs_size() != static_cast<int>(draft.tokens()) + 1)
    return Status::invalidInput("a draft of " + std::to_string(draft.tokens()) +
                                " tokens with " +
                                std::to_string(draft.costs_size()) + " costs");
  uint32_t least = LLM_DRAFT_COST_UNIT;
  if (draft.costs(0) != least)
    return Status::invalidInput("a step without drafts costs " +
                                std::to_string(draft.costs(0)));
  for (uint32_t cost : draft.costs()) {
    if (cost < least || cost > LLM_MAX_DRAFT_COST)
      return Status::invalidInput("the costs of drafts do not ascend, or "
                                  "exceed " +
                                  std::to_string(LLM_MAX_DRAFT_COST));
    least = cost;
  }
  for (const CacheGroup &group : manifest.cache_groups())
    for (const Plane &plane : group.planes())
      if (plane.granularity() != Plane::TOKEN)
        return Status::invalidInput(
            "a draft, and plane '" + plane.name() + "'" +
            ", which keeps more than tokens and cannot drop one");
  return Status::success();
}

} // namespace

Status verifyDrafts(const Manifest &manifest, const Iteration &iteration) {
  using Call = Iteration::Call;
  bool any = false;
  for (const Call &call : iteration.calls())
    any |= call.kind() == Call::DRAFT || call.kind() == Call::ACCEPT;
  if (!any)
    return Status::success();
  if (iteration.calls_size() != 3 || iteration.calls(0).kind() != Call::DRAFT ||
      iteration.calls(1).kind() != Call::PROGRAM ||
      iteration.calls(2).kind() != Call::ACCEPT)
    return Status::unsupported("an iteration that drafts consists of a draft, "
                               "a program and what accepts");
  if (!manifest.programs(static_cast<int>(iteration.calls(1).program()))
           .row_invariant())
    return Status::unsupported("drafts are verified by a program whose rows "
                               "depend on what shares their step");
  return verifyDraft(manifest, iteration.calls(0).draft());
}

} // namespace llm::runtime
