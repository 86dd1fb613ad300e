//===- Wire.h - An ONNX file without its tensor data ------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Protobuf copies every bytes field it parses. The scanner walks the wire
// format once, notes where tensor data lies, and hands protobuf the rest.
//
#ifndef LLM_LIB_IMPORT_ONNX_WIRE_H
#define LLM_LIB_IMPORT_ONNX_WIRE_H

#include "onnx/onnx-ml.pb.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace llm::importer {

/// How deep messages may nest. A subgraph takes three levels (node, attribute,
/// graph), so this allows 64 of them.
inline constexpr int kMaxMessageDepth = 200;

/// Tensor data left in the file. `field` is the TensorProto field that held
/// it: raw_data, or packed float_data or double_data, which are little-endian
/// on the wire as well.
struct DataSpan {
  uint64_t offset, length;
  int field;
  /// The tensor had a second data field: which one counts is undefined.
  bool ambiguous;
};

/// A model whose TensorProto.raw_data holds an index into `spans` instead of
/// data.
struct StrippedModel {
  std::unique_ptr<::onnx::ModelProto> model;
  std::vector<DataSpan> spans;

  /// The data of `tensor` that stayed in the file, if any did.
  std::optional<DataSpan> spanOf(const ::onnx::TensorProto &tensor) const;
};

/// Parses `file` (a ModelProto). Memory is proportional to what is not tensor
/// data. Fails with the byte and the cause on malformed, truncated or too
/// deeply nested input.
llvm::Expected<StrippedModel> parseModel(llvm::ArrayRef<char> file);

} // namespace llm::importer

#endif // LLM_LIB_IMPORT_ONNX_WIRE_H
