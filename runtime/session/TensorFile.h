//===- TensorFile.h - Tensors in .npy and .pb files ---------------*- C++
//-*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_RUNTIME_SESSION_TENSORFILE_H
#define LLM_RUNTIME_SESSION_TENSORFILE_H

#include "llm/ABI/manifest.pb.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Status.h"

#include <span>
#include <string>
#include <vector>

namespace llm::runtime {

/// A dense row-major tensor in host memory. Elements of less than 8 bits are
/// packed, the first in the low bits.
struct HostTensor {
  artifact::ElementType type = artifact::ELEMENT_UNKNOWN;
  std::vector<int64_t> dims;
  std::vector<std::byte> data;

  /// "f32[2, 3]"
  std::string describe() const;
};

std::string describeShape(artifact::ElementType type,
                          std::span<const int64_t> dims);

/// Number of elements; InvalidInput where a dimension is negative or the
/// product overflows.
Expected<int64_t> elementCount(std::span<const int64_t> dims);

/// Reads NAME.npy (NumPy's format 1.0 to 3.0) or NAME.pb (an ONNX TensorProto
/// with its data inside). InvalidInput names the file and what is wrong.
Expected<HostTensor> readTensor(const std::string &path);

/// The same from bytes: a whole .npy file, or a whole .pb file.
Expected<HostTensor> parseNpy(std::span<const std::byte> bytes);
Expected<HostTensor> parsePb(std::span<const std::byte> bytes);

/// NumPy has a type for it.
bool hasNpyType(artifact::ElementType type);

/// The header of a .npy file of this type and shape, a multiple of 64 bytes.
std::string npyHeader(artifact::ElementType type,
                      std::span<const int64_t> dims);

/// Writes DIRECTORY/NAME.npy, or NAME.pb where NumPy has no such type;
/// characters of the name that do not belong in file names become "_".
Status writeTensor(const std::string &directory, const std::string &name,
                   const HostTensor &tensor);

/// The file name, without its ending, that writeTensor gives `name`.
std::string tensorFileStem(const std::string &name);

} // namespace llm::runtime

#endif // LLM_RUNTIME_SESSION_TENSORFILE_H
