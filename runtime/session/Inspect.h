//===- Inspect.h - What an artifact holds --------------------------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_INSPECT_H
#define LLM_RUNTIME_SESSION_INSPECT_H

#include "runtime/artifact/Artifact.h"

#include <string>

namespace llm::runtime {

/// One JSON object, on one line: {"decoder", "targets", "passes", "memory"} and
/// what else the manifest says of the model. Sizes in bytes. Executes nothing.
/// "activation_bytes" is the arena of a step of 512 tokens (or the whole
/// context, where that is shorter) of one sequence.
Expected<std::string> inspectJson(const Artifact &artifact);

/// The same for people, several lines.
Expected<std::string> inspectText(const Artifact &artifact);

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_INSPECT_H
