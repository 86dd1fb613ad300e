//===- HostFunction.h - Running a whole graph as one function -----*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_HOSTFUNCTION_H
#define LLM_RUNTIME_SESSION_HOSTFUNCTION_H

#include "runtime/artifact/Artifact.h"
#include "runtime/device/Program.h"
#include "runtime/session/TensorFile.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace llm::runtime {

/// A host function of an artifact (the generic path), loaded. Calls are
/// independent; one at a time.
class HostFunction {
public:
  /// Loads the function `index`. Unsupported when this processor lacks a
  /// feature that its code needs. `memory` (bytes) bounds what a call may
  /// allocate together with the artifact's weights; 0: what the surroundings
  /// grant.
  static Expected<std::unique_ptr<HostFunction>>
  load(std::shared_ptr<const Artifact> artifact, int index, uint64_t memory);

  const artifact::HostFunction &description() const {
    return artifact->manifest().host_functions(index);
  }

  /// Calls it. `inputs` are in the order of the description; their types and
  /// shapes are checked against it, each symbol standing for one size.
  /// InvalidInput with what the function itself reports; Resource when it needs
  /// more memory than allowed.
  Expected<std::vector<HostTensor>> run(std::span<const HostTensor> inputs);

private:
  HostFunction(std::shared_ptr<const Artifact> artifact, int index)
      : artifact(std::move(artifact)), index(index) {}
  Status checkShape(const artifact::TensorInfo &info, const HostTensor &tensor,
                    std::map<std::string, int64_t> &symbols) const;

  std::shared_ptr<const Artifact> artifact;
  int index;
  uint64_t budget = 0;
  std::unique_ptr<Device> device;
  std::unique_ptr<CodeLoader> code;
  const void *function = nullptr;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_HOSTFUNCTION_H
