//===- WeightData.h - The bytes of a stored weight --------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_SUPPORT_WEIGHTDATA_H
#define LLM_LIB_SUPPORT_WEIGHTDATA_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/FileSystem.h"

#include <memory>
#include <vector>

namespace llm {

/// A regular file, mapped read only. Devices, pipes and directories are
/// refused: mapping or reading them need not end.
class MappedFile {
public:
  static llvm::ErrorOr<std::shared_ptr<MappedFile>> open(llvm::StringRef path);

  /// The whole file; empty for an empty one. Valid while this object lives.
  llvm::ArrayRef<char> bytes() const {
    return region ? llvm::ArrayRef<char>(region.const_data(), region.size())
                  : llvm::ArrayRef<char>();
  }

private:
  llvm::sys::fs::mapped_file_region region;
};

/// Files already mapped, by path. A pass keeps one while it walks weights, so
/// that a file of many weights is mapped once.
class WeightFiles {
public:
  llvm::ErrorOr<std::shared_ptr<MappedFile>> get(llvm::StringRef path);

private:
  llvm::StringMap<std::shared_ptr<MappedFile>> files;
};

/// The stored bytes of one component: row major, little endian, elements
/// narrower than a byte packed low bits first, i1 one byte each.
class WeightData {
public:
  /// A view of a span, or the packed bytes of inline elements. Reports through
  /// `emitError` a file that cannot be mapped, a span that runs past its end,
  /// and, where `verifyHash` is set, bytes whose XXH3-64 is another one.
  static mlir::FailureOr<WeightData>
  open(mlir::llm::ComponentAttr component,
       llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
       WeightFiles *files = nullptr, bool verifyHash = false);

  /// As many bytes as the component's type takes. Valid while this object, or
  /// a copy of it, lives.
  llvm::ArrayRef<char> bytes() const { return view; }

private:
  WeightData() = default;
  llvm::ArrayRef<char> view;
  std::shared_ptr<const void> owner;
};

/// XXH3-64 of `bytes` as 16 lower-case hex digits, as #llm.span has it.
std::string hashBytes(llvm::ArrayRef<char> bytes);

} // namespace llm

#endif // LLM_LIB_SUPPORT_WEIGHTDATA_H
