//===- TensorFile.cpp - Tensors in .npy and .pb files ----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/TensorFile.h"

#include "runtime/artifact/ElementTypes.h"
#include "runtime/core/OutputFile.h"
#include "runtime/session/tensor.pb.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <google/protobuf/stubs/logging.h>
#include <optional>
#include <string_view>

namespace llm::runtime {

namespace {

struct TypeNames {
  artifact::ElementType type;
  std::string_view npy; ///< NumPy's descr; empty: it has none
  int onnx;             ///< TensorProto.DataType
};

constexpr std::array types = std::to_array<TypeNames>({
    {artifact::F32, "<f4", 1},      {artifact::U8, "|u1", 2},
    {artifact::I8, "|i1", 3},       {artifact::U16, "<u2", 4},
    {artifact::I16, "<i2", 5},      {artifact::I32, "<i4", 6},
    {artifact::I64, "<i8", 7},      {artifact::BOOL, "|b1", 9},
    {artifact::F16, "<f2", 10},     {artifact::F64, "<f8", 11},
    {artifact::U32, "<u4", 12},     {artifact::U64, "<u8", 13},
    {artifact::BF16, "", 16},       {artifact::F8E4M3FN, "", 17},
    {artifact::F8E4M3FNUZ, "", 18}, {artifact::F8E5M2, "", 19},
    {artifact::F8E5M2FNUZ, "", 20}, {artifact::U4, "", 21},
    {artifact::I4, "", 22},         {artifact::F4E2M1FN, "", 23},
    {artifact::F8E8M0FNU, "", 24},  {artifact::U2, "", 25},
    {artifact::I2, "", 26},
});

constexpr size_t maxRank = 32;

Expected<uint64_t> dataBytes(const HostTensor &tensor) {
  LLM_ASSIGN_OR_RETURN(int64_t count, elementCount(tensor.dims));
  std::optional<uint64_t> bytes = elementBytes(tensor.type, count);
  if (!bytes)
    return Status::invalidInput("its size overflows");
  return *bytes;
}

//===----------------------------------------------------------------------===//
// .npy: numpy.lib.format in NumPy's documentation
//===----------------------------------------------------------------------===//

/// The header is a Python dictionary with three known keys.
class NpyHeader {
public:
  explicit NpyHeader(std::string_view text) : rest(text) {}

  Status parse(HostTensor &tensor) {
    if (!accept("{"))
      return malformed();
    bool hasType = false, hasShape = false;
    while (!accept("}")) {
      std::optional<std::string_view> key = quoted();
      if (!key || !accept(":"))
        return malformed();
      if (*key == "descr") {
        std::optional<std::string_view> descr = quoted();
        if (!descr)
          return Status::unsupported("a structured type");
        LLM_RETURN_IF_ERROR(readType(*descr, tensor));
        hasType = true;
      } else if (*key == "fortran_order") {
        if (accept("True"))
          fortran = true;
        else if (!accept("False"))
          return malformed();
      } else if (*key == "shape") {
        if (!readShape(tensor.dims))
          return malformed();
        hasShape = true;
      } else {
        return malformed();
      }
      accept(",");
    }
    if (!hasType || !hasShape)
      return malformed();
    // With one dimension at most, both orders are the same.
    if (fortran && tensor.dims.size() > 1)
      return Status::unsupported("it is in Fortran order; save it with "
                                 "numpy.ascontiguousarray");
    return Status::success();
  }

private:
  static Status malformed() {
    return Status::invalidInput("its .npy header is malformed");
  }

  void skipSpace() {
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\n'))
      rest.remove_prefix(1);
  }
  bool accept(std::string_view text) {
    skipSpace();
    if (rest.substr(0, text.size()) != text)
      return false;
    rest.remove_prefix(text.size());
    return true;
  }
  std::optional<std::string_view> quoted() {
    skipSpace();
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
      return std::nullopt;
    size_t end = rest.find(rest[0], 1);
    if (end == std::string_view::npos)
      return std::nullopt;
    std::string_view text = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    return text;
  }

  static Status readType(std::string_view descr, HostTensor &tensor) {
    for (const TypeNames &each : types)
      if (!each.npy.empty() && each.npy == descr) {
        tensor.type = each.type;
        return Status::success();
      }
    return Status::unsupported("elements of type '" + std::string(descr) +
                               "' (little-endian numbers and bool are read)");
  }

  bool readShape(std::vector<int64_t> &dims) {
    if (!accept("("))
      return false;
    while (!accept(")")) {
      skipSpace();
      int64_t size = 0;
      auto [end, error] =
          std::from_chars(rest.data(), rest.data() + rest.size(), size);
      if (error != std::errc() || size < 0 || dims.size() == maxRank)
        return false;
      rest.remove_prefix(static_cast<size_t>(end - rest.data()));
      dims.push_back(size);
      accept(",");
    }
    return true;
  }

  std::string_view rest;
  bool fortran = false;
};

} // namespace

Expected<HostTensor> parseNpy(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char *>(bytes.data()),
                        bytes.size());
  if (text.size() < 10 || text.substr(0, 6) != "\x93NUMPY")
    return Status::invalidInput("not a .npy file (wrong magic)");
  int version = static_cast<unsigned char>(text[6]);
  size_t lengthBytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3 || text.size() < 8 + lengthBytes)
    return Status::unsupported(".npy format version " +
                               std::to_string(version));
  size_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= size_t(static_cast<unsigned char>(text[8 + i])) << (8 * i);
  size_t start = 8 + lengthBytes;
  if (length > text.size() - start)
    return Status::invalidInput("it is truncated");
  HostTensor tensor;
  LLM_RETURN_IF_ERROR(NpyHeader(text.substr(start, length)).parse(tensor));
  LLM_ASSIGN_OR_RETURN(uint64_t size, dataBytes(tensor));
  std::span<const std::byte> data = bytes.subspan(start + length);
  if (data.size() != size)
    return Status::invalidInput(tensor.describe() + " has " +
                                std::to_string(size) + " bytes, the file " +
                                std::to_string(data.size()));
  tensor.data.assign(data.begin(), data.end());
  return tensor;
}

namespace {

//===----------------------------------------------------------------------===//
// .pb: onnx.TensorProto
//===----------------------------------------------------------------------===//

/// Appends the low bytes of each value, as the typed fields store small types.
template <typename Element, typename Field>
void append(const Field &field, std::vector<std::byte> &data) {
  for (auto value : field) {
    auto element = static_cast<Element>(value);
    const auto *bytes = reinterpret_cast<const std::byte *>(&element);
    data.insert(data.end(), bytes, bytes + sizeof(element));
  }
}

void readTypedData(const tensor::Tensor &proto, HostTensor &result) {
  std::vector<std::byte> &data = result.data;
  switch (result.type) {
  case artifact::F32:
    return append<float>(proto.float_data(), data);
  case artifact::F64:
    return append<double>(proto.double_data(), data);
  case artifact::I64:
    return append<int64_t>(proto.int64_data(), data);
  case artifact::U64:
    return append<uint64_t>(proto.uint64_data(), data);
  case artifact::U32:
    return append<uint32_t>(proto.uint64_data(), data);
  case artifact::I32:
    return append<int32_t>(proto.int32_data(), data);
  case artifact::I16:
  case artifact::U16:
  case artifact::F16:
  case artifact::BF16:
    return append<uint16_t>(proto.int32_data(), data);
  default:
    // One byte each; those of fewer bits are packed in bytes already.
    return append<uint8_t>(proto.int32_data(), data);
  }
}

} // namespace

Expected<HostTensor> parsePb(std::span<const std::byte> bytes) {
  tensor::Tensor proto;
  // Protobuf would print; the failure is reported by us.
  google::protobuf::LogSilencer silencer;
  if (bytes.size() > INT32_MAX ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Status::invalidInput("not an ONNX TensorProto");
  HostTensor result;
  for (const TypeNames &each : types)
    if (each.onnx == proto.data_type())
      result.type = each.type;
  if (result.type == artifact::ELEMENT_UNKNOWN)
    return Status::unsupported("elements of ONNX type " +
                               std::to_string(proto.data_type()));
  if (proto.data_location() != 0)
    return Status::unsupported("its data is in another file");
  if (proto.dims_size() > static_cast<int>(maxRank))
    return Status::unsupported("it has " + std::to_string(proto.dims_size()) +
                               " dimensions");
  result.dims.assign(proto.dims().begin(), proto.dims().end());
  LLM_ASSIGN_OR_RETURN(uint64_t size, dataBytes(result));
  if (proto.has_raw_data()) {
    const auto *raw =
        reinterpret_cast<const std::byte *>(proto.raw_data().data());
    result.data.assign(raw, raw + proto.raw_data().size());
  } else {
    readTypedData(proto, result);
  }
  if (result.data.size() != size)
    return Status::invalidInput(result.describe() + " has " +
                                std::to_string(size) + " bytes, the file " +
                                std::to_string(result.data.size()));
  return result;
}

namespace {

bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

} // namespace

std::string describeShape(artifact::ElementType type,
                          std::span<const int64_t> dims) {
  std::string text(elementName(type));
  text += "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

std::string HostTensor::describe() const { return describeShape(type, dims); }

Expected<int64_t> elementCount(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
  for (int64_t size : dims) {
    if (size < 0)
      return Status::invalidInput("a dimension is negative");
    if (!empty && __builtin_mul_overflow(count, size, &count))
      return Status::invalidInput("its number of elements overflows");
  }
  return empty ? 0 : count;
}

Expected<HostTensor> readTensor(const std::string &path) {
  return catchExceptions([&]() -> Expected<HostTensor> {
    LLM_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
    if (endsWith(path, ".npy"))
      return parseNpy(file.bytes()).withContext(path);
    if (endsWith(path, ".pb"))
      return parsePb(file.bytes()).withContext(path);
    return Status::invalidInput(path + ": a tensor's file ends in .npy or .pb");
  });
}

bool hasNpyType(artifact::ElementType type) {
  return std::any_of(types.begin(), types.end(), [&](const TypeNames &each) {
    return each.type == type && !each.npy.empty();
  });
}

std::string npyHeader(artifact::ElementType type,
                      std::span<const int64_t> dims) {
  std::string dictionary = "{'descr': '";
  for (const TypeNames &each : types)
    if (each.type == type)
      dictionary += each.npy;
  dictionary += "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < dims.size(); ++i)
    dictionary += (i ? ", " : "") + std::to_string(dims[i]);
  dictionary += dims.size() == 1 ? ",), }" : "), }";
  constexpr size_t prefix = 10;
  size_t total = (prefix + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.append(total - prefix - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

std::string tensorFileStem(const std::string &name) {
  std::string stem;
  for (char c : name) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    stem += plain ? c : '_';
  }
  if (stem.empty() || stem[0] == '.')
    stem.insert(0, "_");
  return stem;
}

Status writeTensor(const std::string &directory, const std::string &name,
                   const HostTensor &tensor) {
  bool npy = hasNpyType(tensor.type);
  std::string path =
      directory + "/" + tensorFileStem(name) + (npy ? ".npy" : ".pb");
  LLM_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  if (npy) {
    std::string header = npyHeader(tensor.type, tensor.dims);
    LLM_RETURN_IF_ERROR(file.write(header.data(), header.size()));
    LLM_RETURN_IF_ERROR(file.write(tensor.data.data(), tensor.data.size()));
    return file.commit();
  }
  tensor::Tensor proto;
  proto.set_name(name);
  for (const TypeNames &each : types)
    if (each.type == tensor.type)
      proto.set_data_type(each.onnx);
  for (int64_t size : tensor.dims)
    proto.add_dims(size);
  proto.set_raw_data(tensor.data.data(), tensor.data.size());
  std::string bytes;
  if (!proto.SerializeToString(&bytes))
    return Status::unsupported(path + ": the tensor is too large for a .pb");
  LLM_RETURN_IF_ERROR(file.write(bytes.data(), bytes.size()));
  return file.commit();
}

} // namespace llm::runtime
