//===- Wire.cpp - An ONNX file without its tensor data --------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Wire.h"

#include "llvm/Support/Endian.h"
#include <google/protobuf/io/coded_stream.h>

#include <limits>

namespace llm::importer {

namespace {

/// The messages that lead to tensor data.
enum class Message { Model, Graph, Node, Attribute, Tensor, Sparse, Function };

std::optional<Message> nestedMessage(Message message, uint64_t field) {
  switch (message) {
  case Message::Model:
    return field == 7    ? std::optional(Message::Graph)
           : field == 25 ? std::optional(Message::Function)
                         : std::nullopt;
  case Message::Graph:
    return field == 1    ? std::optional(Message::Node)
           : field == 5  ? std::optional(Message::Tensor)
           : field == 15 ? std::optional(Message::Sparse)
                         : std::nullopt;
  case Message::Node:
    return field == 5 ? std::optional(Message::Attribute) : std::nullopt;
  case Message::Attribute:
    if (field == 5 || field == 10)
      return Message::Tensor;
    if (field == 6 || field == 11)
      return Message::Graph;
    if (field == 22 || field == 23)
      return Message::Sparse;
    return std::nullopt;
  case Message::Sparse:
    return field == 1 || field == 2 ? std::optional(Message::Tensor)
                                    : std::nullopt;
  case Message::Function:
    return field == 7    ? std::optional(Message::Node)
           : field == 11 ? std::optional(Message::Attribute)
                         : std::nullopt;
  case Message::Tensor:
    return std::nullopt;
  }
  llvm_unreachable("covered switch");
}

constexpr int kRawData = ::onnx::TensorProto::kRawDataFieldNumber;
constexpr int kFloatData = ::onnx::TensorProto::kFloatDataFieldNumber;
constexpr int kDoubleData = ::onnx::TensorProto::kDoubleDataFieldNumber;
constexpr int kTrainingInfo = 20;

class Scanner {
public:
  Scanner(llvm::ArrayRef<char> file, std::vector<DataSpan> &spans)
      : file(file), spans(spans) {}

  llvm::Error run() { return message(Message::Model, file.size(), 0); }
  std::string out;

private:
  llvm::Error malformed(const char *what) {
    return llvm::createStringError("byte " + llvm::Twine(at) + ": " + what);
  }

  llvm::Expected<uint64_t> varint(uint64_t end) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at >= end)
        return malformed("the file ends inside a number");
      uint8_t byte = file[at++];
      if (shift == 63 && byte > 1)
        break;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    return malformed("a number takes more than 64 bits");
  }

  void emitVarint(uint64_t value) {
    while (value >= 0x80) {
      out.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out.push_back(static_cast<char>(value));
  }

  /// Replaces tensor data by its index.
  void emitSpan(uint64_t offset, uint64_t length, int field, bool ambiguous) {
    emitVarint(kRawData << 3 | 2);
    emitVarint(8);
    char index[8];
    llvm::support::endian::write64le(index, spans.size());
    out.append(index, 8);
    spans.push_back({offset, length, field, ambiguous});
  }

  llvm::Error message(Message kind, uint64_t end, int depth) {
    if (depth > kMaxMessageDepth)
      return malformed("messages nest too deeply");
    bool hasData = false;
    while (at < end) {
      uint64_t start = at;
      llvm::Expected<uint64_t> tag = varint(end);
      if (!tag)
        return tag.takeError();
      uint64_t field = *tag >> 3;
      if (field == 0 || field > (1u << 29) - 1)
        return malformed("not a field of an ONNX model");
      switch (*tag & 7) {
      case 0: {
        llvm::Expected<uint64_t> value = varint(end);
        if (!value)
          return value.takeError();
        break;
      }
      case 1:
      case 5: {
        uint64_t size = (*tag & 7) == 1 ? 8 : 4;
        if (end - at < size)
          return malformed("the file ends inside a number");
        at += size;
        break;
      }
      case 2: {
        llvm::Expected<uint64_t> length = varint(end);
        if (!length)
          return length.takeError();
        if (*length > end - at)
          return malformed("a field runs past the end of its message; the "
                           "file is truncated or not an ONNX model");
        if (kind == Message::Tensor &&
            (field == kRawData || field == kFloatData ||
             field == kDoubleData)) {
          emitSpan(at, *length, static_cast<int>(field), hasData);
          hasData = true;
          at += *length;
          continue;
        }
        if (kind == Message::Model && field == kTrainingInfo) {
          at += *length;
          continue;
        }
        if (std::optional<Message> nested = nestedMessage(kind, field)) {
          if (llvm::Error error = emitNested(*nested, *tag, *length, depth))
            return error;
          continue;
        }
        at += *length;
        break;
      }
      default:
        return malformed("not the wire format of an ONNX model");
      }
      out.append(file.data() + start, at - start);
      if (out.size() > kLimit)
        return malformed("more than 2 GiB of the file is not tensor data");
    }
    return llvm::Error::success();
  }

  llvm::Error emitNested(Message kind, uint64_t tag, uint64_t length,
                         int depth) {
    emitVarint(tag);
    // A length of five bytes, known only afterwards: varints may be padded.
    size_t slot = out.size();
    out.append(5, '\0');
    if (llvm::Error error = message(kind, at + length, depth + 1))
      return error;
    uint64_t size = out.size() - slot - 5;
    if (size > kLimit)
      return malformed("more than 2 GiB of the file is not tensor data");
    for (int i = 0; i < 5; ++i)
      out[slot + i] =
          static_cast<char>(((size >> (7 * i)) & 0x7f) | (i < 4 ? 0x80 : 0));
    return llvm::Error::success();
  }

  static constexpr uint64_t kLimit = std::numeric_limits<int32_t>::max();
  llvm::ArrayRef<char> file;
  std::vector<DataSpan> &spans;
  uint64_t at = 0;
};

} // namespace

std::optional<DataSpan>
StrippedModel::spanOf(const ::onnx::TensorProto &tensor) const {
  if (!tensor.has_raw_data() || tensor.raw_data().size() != 8)
    return std::nullopt;
  uint64_t index = llvm::support::endian::read64le(tensor.raw_data().data());
  return index < spans.size() ? std::optional(spans[index]) : std::nullopt;
}

llvm::Expected<StrippedModel> parseModel(llvm::ArrayRef<char> file) {
  if (file.empty())
    return llvm::createStringError("the file is empty");
  StrippedModel result;
  Scanner scanner(file, result.spans);
  if (llvm::Error error = scanner.run())
    return std::move(error);
  if (scanner.out.size() >
      static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    return llvm::createStringError(
        "more than 2 GiB of the file is not tensor data");
  result.model = std::make_unique<::onnx::ModelProto>();
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t *>(scanner.out.data()),
      static_cast<int>(scanner.out.size()));
  stream.SetRecursionLimit(kMaxMessageDepth + 8);
  if (!result.model->ParseFromCodedStream(&stream) ||
      !stream.ConsumedEntireMessage())
    return llvm::createStringError("not an ONNX model: protobuf cannot parse "
                                   "it");
  return result;
}

} // namespace llm::importer
