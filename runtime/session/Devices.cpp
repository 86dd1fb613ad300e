//===- Devices.cpp - Which device runs an artifact -----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cpu/CPUDevice.h"
#include "runtime/session/Session.h"

#ifdef LLM_HAVE_EMULATOR
#include "runtime/device/emulator/EmulatorDevice.h"
#endif

#include <algorithm>
#include <array>

namespace llm::runtime {

std::vector<std::string> availableDevices() {
  std::vector<std::string> names{"cpu"};
#ifdef LLM_HAVE_EMULATOR
  names.push_back("cuda-emulator");
#endif
  return names;
}

Expected<std::unique_ptr<Device>> createDevice(const std::string &name,
                                               int threads) {
  if (name == "cpu")
    return std::unique_ptr<Device>(std::make_unique<CPUDevice>(threads));
#ifdef LLM_HAVE_EMULATOR
  if (name == "cuda-emulator")
    return createEmulatorDevice(threads);
#endif
  std::string list;
  for (const std::string &each : availableDevices())
    list += (list.empty() ? "" : ", ") + each;
  return Status::unsupported("this build has no device '" + name +
                             "'; it has: " + list);
}

Expected<std::string> chooseDevice(const artifact::Manifest &manifest,
                                   const std::string &wanted) {
  std::vector<std::string> targets;
  for (const artifact::Payload &payload : manifest.payloads())
    if (payload.kind() == artifact::Payload::CODE &&
        std::find(targets.begin(), targets.end(), payload.target()) ==
            targets.end())
      targets.push_back(payload.target());
  std::string list;
  for (const std::string &target : targets)
    list += (list.empty() ? "" : ", ") + target;
  if (list.empty())
    list = "nothing";
  auto has = [](const std::vector<std::string> &names,
                const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!wanted.empty()) {
    if (has(targets, wanted))
      return wanted;
    return Status::invalidInput(
        "the artifact has no code for device '" + wanted +
        "'; it has code for: " + list +
        "; compile the model again with llm-compile --target=" + wanted);
  }
  std::vector<std::string> available = availableDevices();
  for (const std::string &name : available)
    if (has(targets, name))
      return name;
  return Status::unsupported("the artifact has code for: " + list +
                             "; none of it runs here");
}

} // namespace llm::runtime
