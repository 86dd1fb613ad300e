//===- CApi.h - What the parts of the C interface share -----------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_CAPI_H
#define LLM_RUNTIME_SESSION_CAPI_H

#include "llm/runtime.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/session/Engine.h"

#include <memory>
#include <vector>

struct llm_artifact {
  std::shared_ptr<const llm::runtime::Artifact> artifact;
  /// Null where the artifact has none.
  std::shared_ptr<const llm::runtime::Tokenizer> tokenizer;
  std::vector<int32_t> eosIds;
};

/// Holds what it needs of the artifact: either may be ended first.
struct llm_session {
  struct State {
    llm_artifact source;
    std::unique_ptr<llm::runtime::Session> session;
    bool hasEngine = false;
  };
  std::shared_ptr<State> state;
};

/// Holds the session's state: either may be ended first.
struct llm_engine {
  std::shared_ptr<llm_session::State> state;
  std::unique_ptr<llm::runtime::Engine> engine;
};

namespace llm::runtime::capi {

/// The code of a status; a failure's message becomes llm_last_error().
llm_code report(const Status &status);

/// Runs the body of an API function; no exception leaves it.
template <typename Body> llm_code guarded(Body &&body) {
  return report(catchExceptions([&]() -> Status { return body(); }));
}

template <typename Struct> Status checkSize(const Struct *value) {
  if (value->struct_size != sizeof(Struct))
    return Status::invalidInput(
        "a struct was not set up by its init function, or belongs to another "
        "version of the library");
  return Status::success();
}

/// InvalidInput where the session has an engine.
Status needFree(const llm_session *session);

GenerationRequest convert(const llm_request &request,
                          const llm_artifact &artifact);
/// Valid as long as `answer` is.
llm_result convert(const GenerationResult &answer);

} // namespace llm::runtime::capi

#endif // LLM_RUNTIME_SESSION_CAPI_H
