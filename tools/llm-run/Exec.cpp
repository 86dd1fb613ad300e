//===- Exec.cpp - llm-run exec ---------------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/HostFunction.h"
#include "tools/llm-run/Common.h"

#include <set>

namespace llm::run {

using namespace runtime;

namespace {

struct ExecOptions {
  std::string artifact, outputDirectory;
  std::vector<std::string> inputs;
  uint64_t memory = 0;
};

/// The parts of NAME=FILE. Names of tensors may contain "="; files are named by
/// the last part.
std::pair<std::string, std::string> splitInput(const std::string &argument) {
  size_t split = argument.rfind('=');
  return {argument.substr(0, split), argument.substr(split + 1)};
}

void verifyInputArguments(const std::vector<std::string> &arguments) {
  std::set<std::string> names;
  for (const std::string &argument : arguments) {
    if (argument.find('=') == std::string::npos)
      throw CLI::ValidationError("--input",
                                 "'" + argument + "' is not NAME=FILE");
    std::string name = splitInput(argument).first;
    if (!names.insert(name).second)
      throw CLI::ValidationError("--input", "'" + name + "' is given twice");
  }
}

/// The inputs of `function` in its order, read from the NAME=FILE arguments.
Expected<std::vector<HostTensor>>
readInputs(const artifact::HostFunction &function,
           const std::vector<std::string> &arguments) {
  std::map<std::string, std::string> files;
  for (const std::string &argument : arguments) {
    auto [name, file] = splitInput(argument);
    files.emplace(name, file);
  }
  std::vector<HostTensor> tensors;
  std::string names;
  for (const artifact::TensorInfo &input : function.inputs()) {
    names += (names.empty() ? "" : ", ") + input.name();
    auto found = files.find(input.name());
    if (found == files.end())
      return Status::invalidInput("--input " + input.name() +
                                  "=FILE is missing");
    LLM_ASSIGN_OR_RETURN(HostTensor tensor, readTensor(found->second));
    tensors.push_back(std::move(tensor));
    files.erase(found);
  }
  if (!files.empty())
    return Status::invalidInput("the model has no input '" +
                                files.begin()->first + "'; it has: " + names);
  return tensors;
}

Status execAction(const ExecOptions &options) {
  LLM_ASSIGN_OR_RETURN(std::shared_ptr<const Artifact> artifact,
                       Artifact::open(options.artifact));
  if (artifact->manifest().host_functions_size() == 0)
    return Status::unsupported(
        options.artifact +
        ": exec runs generic artifacts, and this one holds decoder programs "
        "only: use llm-run generate or perplexity");
  auto loaded = HostFunction::load(artifact, 0, options.memory)
                    .withContext(options.artifact);
  if (!loaded)
    return loaded.takeStatus();
  std::unique_ptr<HostFunction> function = *std::move(loaded);
  std::set<std::string> stems;
  for (const artifact::TensorInfo &output : function->description().outputs())
    if (!stems.insert(tensorFileStem(output.name())).second)
      return Status::unsupported("two outputs would be written to the file '" +
                                 tensorFileStem(output.name()) + "'");
  LLM_ASSIGN_OR_RETURN(std::vector<HostTensor> inputs,
                       readInputs(function->description(), options.inputs));
  auto results = function->run(inputs).withContext(options.artifact);
  if (!results)
    return results.takeStatus();
  int index = 0;
  for (const HostTensor &result : *results) {
    const std::string &name = function->description().outputs(index++).name();
    LLM_RETURN_IF_ERROR(writeTensor(options.outputDirectory, name, result));
    note(name + ": " + result.describe());
  }
  return Status::success();
}

} // namespace

void addExec(CLI::App &app, Action &action) {
  auto options = std::make_shared<ExecOptions>();
  CLI::App *command = app.add_subcommand(
      "exec", "Runs a graph on tensors from files, and writes its outputs");
  addArtifactArgument(*command, options->artifact);
  command
      ->add_option("--input", options->inputs,
                   "a tensor: .npy, or .pb (an ONNX TensorProto)")
      ->type_name("NAME=FILE")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--output-dir", options->outputDirectory,
                   "an existing directory; gets NAME.npy for each output, or "
                   "NAME.pb where NumPy has no such type")
      ->required()
      ->check(refuseEmpty)
      ->type_name("DIR");
  addMemoryOption(*command, options->memory);
  command->footer("Example:\n  llm-run exec graph.llmx --input x=x.npy "
                  "--output-dir out");
  command->callback([options, &action] {
    verifyInputArguments(options->inputs);
    action = [options] { return execAction(*options); };
  });
}

} // namespace llm::run
