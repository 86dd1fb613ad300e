//===- Inspect.cpp - llm-run inspect ---------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Inspect.h"
#include "tools/llm-run/Common.h"

namespace llm::run {

using namespace runtime;

void addInspect(CLI::App &app, Action &action) {
  struct InspectOptions {
    std::string artifact;
    bool json = false;
  };
  auto options = std::make_shared<InspectOptions>();
  CLI::App *command = app.add_subcommand(
      "inspect", "Says what an artifact holds, without executing any of it");
  addArtifactArgument(*command, options->artifact);
  command->add_flag("--json", options->json, "print JSON");
  command->footer("Example:\n  llm-run inspect model.llmx --json");
  command->callback([options, &action] {
    action = [options]() -> Status {
      LLM_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact,
                           Artifact::open(options->artifact));
      LLM_ASSIGN_OR_RETURN(std::string text, options->json
                                                 ? inspectJson(*artifact)
                                                 : inspectText(*artifact));
      print(options->json ? text + "\n" : text);
      return Status::success();
    };
  });
}

} // namespace llm::run
