//===- Emulator.h - GPU kernels on the CPU, checked -------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_DEVICE_EMULATOR_EMULATOR_H
#define LLM_RUNTIME_DEVICE_EMULATOR_EMULATOR_H

#include "llm/ABI/emulator.h"
#include "runtime/core/Status.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace llm::runtime {

class FiberStacks;

/// Extents in blocks or threads, or a place within them: x, y, z.
using Dim3 = std::array<int64_t, 3>;

/// A mistake of a kernel that a GPU would not report.
struct Finding {
  enum class Kind {
    OutOfBounds,   ///< an access outside its operand or shared memory
    ReadOnly,      ///< a write to an operand that is only read
    Misaligned,    ///< an address that the access's width forbids
    Uninitialised, ///< a read of shared memory that nobody wrote
    Race,          ///< two accesses that nothing orders, one of them a write
    Divergence,    ///< a barrier or warp operation that not all threads reach
    Deadlock,      ///< threads that wait for each other
  };
  Kind kind;
  std::string kernel;
  Dim3 block{}, thread{};
  std::string location; ///< what the thread was doing, and where it stands
  std::string message;  ///< what is wrong with it

  /// "race in kernel 'k', block (0, 0, 0), thread (32, 0, 0), at ...: ...".
  std::string toString() const;
};

/// What a launch runs.
struct LaunchParams {
  const llm_emulator_kernel *kernel = nullptr;
  Dim3 grid{1, 1, 1};
  Dim3 block{1, 1, 1};
  std::span<void *const> buffers;  ///< operands, in order
  std::span<const uint64_t> bytes; ///< of each operand
  size_t numReads = 0;             ///< the first operands are only read
  std::span<const int64_t> sizes;
};

/// Runs kernels compiled for the emulator: blocks one after the other, each
/// CUDA thread as a fiber. Not thread-safe.
class Emulator {
public:
  Emulator();
  ~Emulator();

  /// Runs a launch to its end or to the first finding, which is returned. Fails
  /// with InvalidInput or Unsupported for parameters that do not fit the kernel
  /// or a GPU, and with Resource where there is no memory for the stacks.
  Expected<std::optional<Finding>> launch(const LaunchParams &params);

private:
  std::unique_ptr<FiberStacks> stacks;
};

} // namespace llm::runtime

#endif // LLM_RUNTIME_DEVICE_EMULATOR_EMULATOR_H
