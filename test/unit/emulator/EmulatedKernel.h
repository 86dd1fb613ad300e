//===- EmulatedKernel.h - Compile and launch kernels ------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_TEST_UNIT_EMULATOR_EMULATEDKERNEL_H
#define LLM_TEST_UNIT_EMULATOR_EMULATEDKERNEL_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/device/Device.h"
#include "runtime/device/emulator/Emulator.h"

#include <functional>
#include <string>
#include <vector>

namespace llm::test {

/// An operand of a launch.
struct Operand {
  void *data;
  uint64_t bytes;
};
template <typename Buffer> Operand operand(Buffer &buffer) {
  return {const_cast<void *>(static_cast<const void *>(buffer.data())),
          buffer.size() * sizeof(*buffer.data())};
}

/// A kernel compiled for the emulator and loaded.
class EmulatedKernel {
public:
  using Mutation = std::function<void(mlir::gpu::GPUFuncOp)>;

  /// An rt.kernel of `family` with `params` (text); `mutation` may damage the
  /// generated function before it is lowered. Ends the test program where
  /// anything fails.
  static EmulatedKernel generate(const std::string &family,
                                 const std::string &params,
                                 const Mutation &mutation = {});
  /// The one gpu.func of `text`, a gpu.module.
  static EmulatedKernel parse(const std::string &text);

  /// Blocks of the kernel's own size, or of 32 threads where it names none.
  std::optional<runtime::Finding> launch(int64_t blocks,
                                         const std::vector<Operand> &operands,
                                         size_t numReads,
                                         const std::vector<int64_t> &sizes);

  const llm_emulator_kernel &description() const { return *kernel; }

private:
  static EmulatedKernel compile(mlir::gpu::GPUModuleOp module,
                                const std::string &name);

  std::unique_ptr<runtime::CodeObject> object;
  std::vector<char> bytes;
  const llm_emulator_kernel *kernel = nullptr;
  std::unique_ptr<runtime::Emulator> emulator;
};

/// What happens when `text`, a gpu.module, is lowered for the emulator: the
/// first diagnostic, or "" where it succeeds.
std::string loweringError(const std::string &text);

} // namespace llm::test

#endif // LLM_TEST_UNIT_EMULATOR_EMULATEDKERNEL_H
