//===- Arguments.h - Command lines for CLI11 --------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TOOLS_ARGUMENTS_H
#define LLM_TOOLS_ARGUMENTS_H

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace llm {

/// Whether `app` or a subcommand has an option that takes a value under `name`
/// ("--stop").
inline bool takesValue(CLI::App &app, const std::string &name) {
  const CLI::Option *option = app.get_option_no_throw(name);
  if (option && option->get_expected_min() > 0)
    return true;
  for (CLI::App *command : app.get_subcommands([](CLI::App *) { return true; }))
    if (takesValue(*command, name))
      return true;
  return false;
}

/// Parses the command line. CLI11 takes the next argument as the value of
/// `--option=`; here it is empty.
inline void parseArguments(CLI::App &app, int argc, char **argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    bool empty = argument.size() > 3 && argument.substr(0, 2) == "--" &&
                 argument.find('=') == argument.size() - 1;
    if (empty && takesValue(app, argument.substr(0, argument.size() - 1))) {
      argument.pop_back();
      arguments.push_back(argument);
      argument.clear();
    }
    arguments.push_back(argument);
  }
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
}

} // namespace llm

#endif // LLM_TOOLS_ARGUMENTS_H
