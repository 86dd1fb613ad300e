//===- Safetensors.h - Reading safetensors files ----------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_SUPPORT_SAFETENSORS_H
#define LLM_LIB_SUPPORT_SAFETENSORS_H

#include "lib/Support/WeightData.h"

namespace llm {

/// A mapped safetensors file: the length of a header in 8 bytes, the header in
/// JSON ({"name": {"dtype", "shape", "data_offsets"}}), elements row major and
/// little endian. Source: github.com/huggingface/safetensors, README.
class Safetensors {
public:
  struct Tensor {
    std::string dtype; ///< "F32", "F64", "U8", ...
    llvm::SmallVector<int64_t> shape;
    /// As many bytes as they take. Valid while the file, or a copy, lives.
    llvm::ArrayRef<char> bytes;
  };

  /// Reports through `emitError` a file that cannot be read, a header that is
  /// none, and tensors that do not lie in the file or do not have the size of
  /// their shape.
  static mlir::FailureOr<Safetensors>
  open(llvm::StringRef path,
       llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

  /// Null where there is none of that name.
  const Tensor *find(llvm::StringRef name) const;
  llvm::StringRef path() const { return file; }
  /// An entry of the file's metadata; "" where there is none.
  llvm::StringRef metadata(llvm::StringRef name) const {
    auto it = entries.find(name);
    return it == entries.end() ? llvm::StringRef() : it->second;
  }

private:
  std::string file;
  llvm::StringMap<std::string> entries;
  std::shared_ptr<MappedFile> mapped;
  llvm::StringMap<Tensor> tensors;
};

} // namespace llm

#endif // LLM_LIB_SUPPORT_SAFETENSORS_H
