//===- CPUDevice.cpp - The processor this runs on ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cpu/CPUDevice.h"

#include "llm/ABI/kernel.h"
#include "runtime/device/SharedObject.h"

#include <algorithm>
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

/// Runs the items [begin, end) of the calls' grids laid end to end.
static void runItems(std::span<const DispatchCall> phase, int64_t begin,
                     int64_t end) {
  for (const DispatchCall &call : phase) {
    if (begin < call.grid) {
      auto function =
          reinterpret_cast<llm_kernel_fn>(const_cast<void *>(call.function));
      function(call.buffers.data(), call.sizes.data(), begin,
               std::min(end, call.grid));
    }
    begin = std::max<int64_t>(begin - call.grid, 0);
    end -= call.grid;
    if (end <= 0)
      return;
  }
}

Status CPUDevice::run(std::span<const DispatchCall> calls,
                      int64_t *nanoseconds) {
  using Clock = std::chrono::steady_clock;
  while (!calls.empty()) {
    Clock::time_point start;
    size_t count = 1;
    int64_t items = calls[0].grid;
    if (nanoseconds)
      start = Clock::now();
    else
      for (; count < calls.size() && calls[count].concurrent; ++count)
        items += calls[count].grid;
    std::span<const DispatchCall> phase = calls.first(count);
    pool.parallelFor(items, [&](int64_t begin, int64_t end) {
      runItems(phase, begin, end);
    });
    if (nanoseconds)
      *nanoseconds++ = std::chrono::nanoseconds(Clock::now() - start).count();
    calls = calls.subspan(count);
  }
  return Status::success();
}

} // namespace llm::runtime
