//===- EmulatorDevice.h - A GPU without a GPU -------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_DEVICE_EMULATOR_EMULATORDEVICE_H
#define LLM_RUNTIME_DEVICE_EMULATOR_EMULATORDEVICE_H

#include "runtime/device/Device.h"

namespace llm::runtime {

/// The device "cuda-emulator": runs GPU kernels that were compiled for the CPU
/// (include/llm/ABI/emulator.h), every access checked. What it finds wrong ends
/// the run with an Internal status, since kernels are the compiler's. It
/// exists for tests and runs on the caller's thread alone, whatever `threads`.
Expected<std::unique_ptr<Device>> createEmulatorDevice(int threads);

} // namespace llm::runtime

#endif // LLM_RUNTIME_DEVICE_EMULATOR_EMULATORDEVICE_H
