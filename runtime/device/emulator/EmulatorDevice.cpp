//===- EmulatorDevice.cpp - A GPU without a GPU ---------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/emulator/EmulatorDevice.h"

#include "runtime/device/SharedObject.h"
#include "runtime/device/emulator/Emulator.h"

#include <chrono>

namespace llm::runtime {

namespace {
class EmulatorDevice : public Device {
public:
  std::string_view target() const override { return "cuda-emulator"; }

  Status supports(const artifact::Payload &payload) const override {
    return supportsCpuCode(payload);
  }

  Expected<std::unique_ptr<CodeObject>>
  load(const artifact::Payload &payload,
       std::span<const std::byte> bytes) override {
    LLM_RETURN_IF_ERROR(supports(payload));
    return loadSharedObject(bytes);
  }

  Status run(std::span<const DispatchCall> calls,
             int64_t *nanoseconds) override {
    using Clock = std::chrono::steady_clock;
    for (const DispatchCall &call : calls) {
      Clock::time_point start;
      if (nanoseconds)
        start = Clock::now();
      LLM_RETURN_IF_ERROR(run(call));
      if (nanoseconds)
        *nanoseconds++ = std::chrono::nanoseconds(Clock::now() - start).count();
    }
    return Status::success();
  }

private:
  Status run(const DispatchCall &call) {
    LaunchParams params;
    params.kernel = static_cast<const llm_emulator_kernel *>(call.function);
    params.grid = {call.grid, 1, 1};
    params.block = {call.variant->block_threads(), 1, 1};
    params.buffers = call.buffers;
    params.bytes = call.bytes;
    params.numReads = call.dispatch->num_reads();
    params.sizes = call.sizes;
    LLM_ASSIGN_OR_RETURN(std::optional<Finding> finding,
                         emulator.launch(params));
    if (!finding)
      return Status::success();
    std::string message = finding->toString();
    if (!call.dispatch->location().empty())
      message += " (dispatch of " + call.dispatch->location() + ")";
    return Status::internal(std::move(message));
  }

  Emulator emulator;
};
} // namespace

Expected<std::unique_ptr<Device>> createEmulatorDevice(int) {
  return std::unique_ptr<Device>(std::make_unique<EmulatorDevice>());
}

} // namespace llm::runtime
