//===- Device.h - What runs the dispatches of a program --------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_DEVICE_DEVICE_H
#define LLM_RUNTIME_DEVICE_DEVICE_H

#include "llm/ABI/manifest.pb.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace llm::runtime {

/// Memory that a dispatch reads or writes, in the device's address space.
struct BufferRef {
  void *data = nullptr;
  uint64_t bytes = 0;
};

/// A loaded code object.
class CodeObject {
public:
  virtual ~CodeObject() = default;
  /// The function of a table entry, or null. What the pointer is, the device
  /// that loaded the object knows: llm_kernel_fn or llm_host_fn on the CPU.
  virtual const void *find(std::string_view entry) const = 0;
};

/// A dispatch with everything known.
struct DispatchCall {
  const void *function = nullptr; ///< from CodeObject::find
  const artifact::Variant *variant = nullptr;
  const artifact::Kernel *kernel = nullptr;
  const artifact::Dispatch *dispatch = nullptr;
  std::span<void *const> buffers;  ///< operands, in order
  std::span<const uint64_t> bytes; ///< of each operand
  std::span<const int64_t> sizes;  ///< int64 arguments
  int64_t grid = 0;                ///< work items, at least 1
  bool concurrent = false; ///< independent of the calls before it, back to
                           ///< the last one that is not concurrent
};

/// A target's executor. Not thread-safe: one run at a time.
class Device {
public:
  virtual ~Device() = default;

  /// The name that payloads and programs carry: "cpu", "cuda-emulator".
  virtual std::string_view target() const = 0;

  /// Success if this machine runs the code of `payload` (whose target is this
  /// device's); else Unsupported naming what is missing.
  virtual Status supports(const artifact::Payload &payload) const = 0;

  /// Loads a code object that supports() accepts. `bytes` outlive it.
  virtual Expected<std::unique_ptr<CodeObject>>
  load(const artifact::Payload &payload, std::span<const std::byte> bytes) = 0;

  /// Runs the calls in order, each after all writes of those before it (but for
  /// those that it is concurrent with); returns when all are done. With
  /// `nanoseconds` (one per call) each call runs alone and its time is stored.
  virtual Status run(std::span<const DispatchCall> calls,
                     int64_t *nanoseconds = nullptr) = 0;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_DEVICE_DEVICE_H
