//===- fuzz_tensor.cpp - Reading hostile tensor files ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte chooses between .npy and .pb; the rest is the file. With the
// bit 2 set, the bytes are the dictionary of a .npy header, put into a file.
// What is read must be consistent.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ElementTypes.h"
#include "runtime/session/TensorFile.h"

#include <cstdlib>
#include <string>

using namespace llm::runtime;

static void check(const Expected<HostTensor> &tensor) {
  if (!tensor)
    return;
  Expected<int64_t> count = elementCount(tensor->dims);
  if (!count || elementBytes(tensor->type, *count) != tensor->data.size())
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  uint8_t mode = data[0];
  std::string bytes(reinterpret_cast<const char *>(data + 1), size - 1);
  if (mode & 2) {
    if (bytes.size() > 0xffff)
      return 0;
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(bytes.size() & 0xff);
    file += static_cast<char>(bytes.size() >> 8);
    // As many zeros as small shapes need.
    for (size_t zeros : {size_t(0), size_t(4), size_t(24)})
      check(parseNpy(std::as_bytes(
          std::span<const char>(file + bytes + std::string(zeros, '\0')))));
    return 0;
  }
  auto span = std::as_bytes(std::span<const char>(bytes));
  check(mode & 1 ? parsePb(span) : parseNpy(span));
  return 0;
}
