//===- CPUDevice.h - The processor this runs on ---------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_DEVICE_CPU_CPUDEVICE_H
#define LLM_RUNTIME_DEVICE_CPU_CPUDEVICE_H

#include "runtime/core/ThreadPool.h"
#include "runtime/device/Device.h"

namespace llm::runtime {

/// Runs CPU code objects (include/llm/ABI/kernel.h): each dispatch's grid is
/// split into one contiguous range per thread, with a barrier after it.
class CPUDevice : public Device {
public:
  /// `threads` >= 1, including the caller's.
  explicit CPUDevice(int threads) : pool(threads) {}

  std::string_view target() const override { return "cpu"; }
  Status supports(const artifact::Payload &payload) const override;
  Expected<std::unique_ptr<CodeObject>>
  load(const artifact::Payload &payload,
       std::span<const std::byte> bytes) override;
  Status run(std::span<const DispatchCall> calls,
             int64_t *nanoseconds) override;

  int threads() const { return pool.size(); }

private:
  ThreadPool pool;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_DEVICE_CPU_CPUDEVICE_H
