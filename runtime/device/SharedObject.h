//===- SharedObject.h - Code objects for the processor ----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_DEVICE_SHAREDOBJECT_H
#define LLM_RUNTIME_DEVICE_SHAREDOBJECT_H

#include "runtime/device/Device.h"

namespace llm::runtime {

/// Success if this processor has the features that `payload` lists; else
/// Unsupported naming those that are missing.
Status supportsCpuCode(const artifact::Payload &payload);

/// Loads a shared object that exports an llm_kernel_table
/// (include/llm/ABI/kernel.h) with the system's loader.
Expected<std::unique_ptr<CodeObject>>
loadSharedObject(std::span<const std::byte> bytes);

} // namespace llm::runtime

#endif // LLM_RUNTIME_DEVICE_SHAREDOBJECT_H
