//===- CPUDevice.cpp - The processor this runs on ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cpu/CPUDevice.h"

#include "llm/ABI/kernel.h"
#include "runtime/device/SharedObject.h"

#include <chrono>

namespace llm::runtime {

Status CPUDevice::supports(const artifact::Payload &payload) const {
  return supportsCpuCode(payload);
}

Expected<std::unique_ptr<CodeObject>>
CPUDevice::load(const artifact::Payload &payload,
                std::span<const std::byte> bytes) {
  LLM_RETURN_IF_ERROR(supports(payload));
  return loadSharedObject(bytes);
}

Status CPUDevice::run(std::span<const DispatchCall> calls,
                      int64_t *nanoseconds) {
  using Clock = std::chrono::steady_clock;
  for (const DispatchCall &call : calls) {
    Clock::time_point start;
    if (nanoseconds)
      start = Clock::now();
    auto function =
        reinterpret_cast<llm_kernel_fn>(const_cast<void *>(call.function));
    pool.parallelFor(call.grid, [&](int64_t begin, int64_t end) {
      function(call.buffers.data(), call.sizes.data(), begin, end);
    });
    if (nanoseconds)
      *nanoseconds++ = std::chrono::nanoseconds(Clock::now() - start).count();
  }
  return Status::success();
}

} // namespace llm::runtime
