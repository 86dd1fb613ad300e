//===- Tensor.cpp - Tensors of an ONNX file -------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Tensor.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace llm::importer {
using ::onnx::TensorProto;

Type elementType(int32_t onnxType, MLIRContext *context) {
  Builder b(context);
  auto ui = [&](unsigned width) {
    return IntegerType::get(context, width, IntegerType::Unsigned);
  };
  switch (onnxType) {
  case TensorProto::FLOAT:
    return b.getF32Type();
  case TensorProto::UINT8:
    return ui(8);
  case TensorProto::INT8:
    return b.getI8Type();
  case TensorProto::UINT16:
    return ui(16);
  case TensorProto::INT16:
    return b.getI16Type();
  case TensorProto::INT32:
    return b.getI32Type();
  case TensorProto::INT64:
    return b.getI64Type();
  case TensorProto::BOOL:
    return b.getI1Type();
  case TensorProto::FLOAT16:
    return b.getF16Type();
  case TensorProto::DOUBLE:
    return b.getF64Type();
  case TensorProto::UINT32:
    return ui(32);
  case TensorProto::UINT64:
    return ui(64);
  case TensorProto::BFLOAT16:
    return b.getBF16Type();
  case TensorProto::FLOAT8E4M3FN:
    return Float8E4M3FNType::get(context);
  case TensorProto::FLOAT8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case TensorProto::FLOAT8E5M2:
    return Float8E5M2Type::get(context);
  case TensorProto::FLOAT8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case TensorProto::UINT4:
    return ui(4);
  case TensorProto::INT4:
    return b.getIntegerType(4);
  case TensorProto::FLOAT4E2M1:
    return Float4E2M1FNType::get(context);
  case TensorProto::FLOAT8E8M0:
    return Float8E8M0FNUType::get(context);
  case TensorProto::UINT2:
    return ui(2);
  case TensorProto::INT2:
    return b.getIntegerType(2);
  default:
    return {};
  }
}

std::string elementTypeName(int32_t onnxType) {
  if (::onnx::TensorProto_DataType_IsValid(onnxType))
    return ::onnx::TensorProto_DataType_Name(
        static_cast<::onnx::TensorProto_DataType>(onnxType));
  return "type " + std::to_string(onnxType);
}

std::string printable(StringRef name) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::printEscapedString(name.take_front(200), os);
  if (name.size() > 200)
    os << "...";
  return text;
}

std::optional<int64_t> countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  bool zero = false;
  for (int64_t dim : shape) {
    if (dim < 0 || dim > kMaxElements)
      return std::nullopt;
    // A zero does not excuse absurd sizes beside it.
    if (dim == 0)
      zero = true;
    else if (__builtin_mul_overflow(count, dim, &count) || count > kMaxElements)
      return std::nullopt;
  }
  return zero ? 0 : count;
}

FailureOr<Tensor> TensorReader::read(const TensorProto &tensor,
                                     EmitError emitError) {
  Type element = elementType(tensor.data_type(), context);
  if (!element)
    return emitError() << "elements of type "
                       << elementTypeName(tensor.data_type())
                       << " are not supported";
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  std::optional<int64_t> count = countElements(shape);
  if (!count || shape.size() > kMaxRank) {
    InFlightDiagnostic diag = emitError() << "the dimensions [";
    llvm::interleaveComma(ArrayRef(shape).take_front(8), diag);
    return diag << (shape.size() > 8 ? ", ...]" : "]")
                << " are negative or too large";
  }
  if (tensor.has_segment())
    return emitError() << "tensors in segments are not supported";
  Tensor result;
  result.type = RankedTensorType::get(shape, element);
  unsigned bits = element.getIntOrFloatBitWidth();
  uint64_t size = llvm::divideCeil(*count * (bits == 1 ? 8 : bits), 8);

  if (tensor.data_location() == TensorProto::EXTERNAL)
    return readExternal(tensor, result, size, emitError);
  if (std::optional<DataSpan> span = model.spanOf(tensor)) {
    if (span->ambiguous)
      return emitError() << "has its data in several fields";
    bool fits = span->field == TensorProto::kRawDataFieldNumber ||
                (span->field == TensorProto::kFloatDataFieldNumber &&
                 tensor.data_type() == TensorProto::FLOAT) ||
                (span->field == TensorProto::kDoubleDataFieldNumber &&
                 tensor.data_type() == TensorProto::DOUBLE);
    if (!fits)
      return emitError() << elementTypeName(tensor.data_type())
                         << " data lies in the field of another type";
    if (span->length != size)
      return emitError() << "of type " << result.type << " takes " << size
                         << " bytes, the file has " << span->length;
    result.bytes = file->bytes().slice(span->offset, span->length);
    result.file = path;
    result.offset = span->offset;
    result.owner = file;
    return result;
  }
  if (failed(decodeTyped(tensor, result, size, emitError)))
    return failure();
  return result;
}

LogicalResult TensorReader::decodeTyped(const TensorProto &tensor,
                                        Tensor &result, uint64_t size,
                                        EmitError emitError) {
  auto bytes = std::make_shared<std::vector<char>>();
  auto append = [&](auto value, unsigned width) {
    const char *raw = reinterpret_cast<const char *>(&value);
    bytes->insert(bytes->end(), raw, raw + width);
  };
  int32_t type = tensor.data_type();
  bool inRange = true;
  switch (type) {
  case TensorProto::FLOAT:
    for (float value : tensor.float_data())
      append(value, 4);
    break;
  case TensorProto::DOUBLE:
    for (double value : tensor.double_data())
      append(value, 8);
    break;
  case TensorProto::INT64:
    for (int64_t value : tensor.int64_data())
      append(value, 8);
    break;
  case TensorProto::UINT32:
  case TensorProto::UINT64:
    for (uint64_t value : tensor.uint64_data()) {
      inRange &= type == TensorProto::UINT64 || value <= UINT32_MAX;
      append(value, type == TensorProto::UINT64 ? 8 : 4);
    }
    break;
  default: {
    // Narrower elements are bit patterns in int32_data; those narrower than a
    // byte are packed into bytes first.
    unsigned bits =
        std::max(8u, result.type.getElementType().getIntOrFloatBitWidth());
    for (int32_t value : tensor.int32_data()) {
      inRange &= bits == 32 || (value >= -(int64_t(1) << (bits - 1)) &&
                                value < (int64_t(1) << bits));
      append(value, bits / 8);
    }
  }
  }
  if (!inRange)
    return emitError() << "has a value that does not fit "
                       << elementTypeName(type);
  if (bytes->size() != size)
    return emitError() << "of type " << result.type << " takes " << size
                       << " bytes, the file has " << bytes->size();
  result.bytes = *bytes;
  result.owner = bytes;
  return success();
}

/// Whether `path` lies in `directory` or below; both absolute and resolved.
static bool isUnder(StringRef path, StringRef directory) {
  namespace sp = llvm::sys::path;
  auto p = sp::begin(path), pe = sp::end(path);
  for (auto d = sp::begin(directory), de = sp::end(directory); d != de;
       ++d, ++p)
    if (p == pe || *p != *d)
      return false;
  return true;
}

/// Hugging Face caches are trees of links, from a snapshot into a store of
/// blobs: so a link may lead to where the model file itself really lies, and
/// nowhere else outside the model's directory.
FailureOr<std::string> TensorReader::resolve(StringRef location,
                                             EmitError emitError) {
  namespace fs = llvm::sys::fs;
  namespace sp = llvm::sys::path;
  auto reject = [&](StringRef why) -> LogicalResult {
    return emitError() << "has its data in '" << printable(location)
                       << "', which is not accepted: " << why;
  };
  if (location.empty())
    return reject("the location is empty");
  if (location.contains('\0'))
    return reject("the location has a NUL character");
  if (sp::is_absolute(location))
    return reject("the location must be relative to the model");
  SmallString<256> normal(location);
  sp::remove_dots(normal, /*remove_dot_dot=*/true);
  if (normal.empty() || *sp::begin(normal) == "..")
    return reject("the location leaves the model's directory");

  SmallString<256> full(sp::parent_path(path));
  SmallString<256> directory(full.empty() ? StringRef(".") : StringRef(full));
  sp::append(full, location);
  SmallString<256> realFile, realDirectory, realModel;
  if (std::error_code error = fs::real_path(full, realFile))
    return reject(error.message());
  if (std::error_code error = fs::real_path(directory, realDirectory))
    return reject(error.message());
  if (std::error_code error = fs::real_path(path, realModel))
    return reject(error.message());
  if (!isUnder(realFile, realDirectory) &&
      !isUnder(realFile, sp::parent_path(realModel)))
    return reject("it leads outside the model's directory");
  return std::string(full);
}

FailureOr<Tensor> TensorReader::readExternal(const TensorProto &tensor,
                                             Tensor result, uint64_t size,
                                             EmitError emitError) {
  std::optional<std::string> location;
  std::optional<uint64_t> offset, length;
  llvm::StringSet<> keys;
  for (const ::onnx::StringStringEntryProto &entry : tensor.external_data()) {
    if (!keys.insert(entry.key()).second)
      return emitError() << "has the external data key '" << entry.key()
                         << "' twice";
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      uint64_t value;
      if (StringRef(entry.value()).getAsInteger(10, value))
        return emitError() << "has external data with "
                           << StringRef(entry.key()) << " '"
                           << StringRef(entry.value()).take_front(64)
                           << "', which is no size in bytes";
      (entry.key() == "offset" ? offset : length) = value;
    } else if (entry.key() == "basepath" && !entry.value().empty()) {
      return emitError() << "has external data with a basepath, which is not "
                            "supported";
    }
  }
  if (!location)
    return emitError() << "has external data without a location";
  if (model.spanOf(tensor))
    return emitError() << "has data both in the model and outside it";
  if (length && *length != size)
    return emitError() << "of type " << result.type << " takes " << size
                       << " bytes, its external data has " << *length;
  FailureOr<std::string> name = resolve(*location, emitError);
  if (failed(name))
    return failure();
  llvm::ErrorOr<std::shared_ptr<MappedFile>> data = externalFiles.get(*name);
  if (!data)
    return emitError() << "has its data in '" << *name
                       << "', which cannot be mapped: "
                       << data.getError().message();
  ArrayRef<char> bytes = (*data)->bytes();
  uint64_t start = offset.value_or(0);
  if (start > bytes.size() || size > bytes.size() - start)
    return emitError() << "takes " << size << " bytes at offset " << start
                       << " of '" << *name << "', which has " << bytes.size();
  result.bytes = bytes.slice(start, size);
  result.file = *name;
  result.offset = start;
  result.owner = *data;
  return result;
}

ir::ComponentAttr TensorReader::component(const Tensor &tensor,
                                          StringRef name) {
  if (tensor.file.empty())
    return ir::ComponentAttr::get(context, name, tensor.type, elements(tensor));
  std::string &hash = hashes[{tensor.file, tensor.offset, tensor.bytes.size()}];
  if (hash.empty())
    hash = hashBytes(tensor.bytes);
  return ir::ComponentAttr::get(context, name, tensor.type,
                                ir::SpanAttr::get(context, tensor.file,
                                                  tensor.offset,
                                                  tensor.bytes.size(), hash));
}

DenseElementsAttr TensorReader::elements(const Tensor &tensor) {
  Type element = tensor.type.getElementType();
  unsigned bits = element.getIntOrFloatBitWidth();
  int64_t count = tensor.count();
  if (bits == 1) {
    SmallVector<bool> values;
    for (char byte : tensor.bytes)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(tensor.type, values);
  }
  if (bits >= 8 && count > 0) {
    // An MLIR buffer of one element means a splat; of any other length, all.
    // An aligned copy: the data may start anywhere in its file.
    std::vector<char> aligned(tensor.bytes.begin(), tensor.bytes.end());
    return DenseElementsAttr::getFromRawBuffer(tensor.type, aligned);
  }
  SmallVector<APInt> values;
  for (int64_t i = 0; i < count; ++i) {
    unsigned bit = static_cast<unsigned>(i * bits % 8);
    unsigned byte = static_cast<unsigned char>(tensor.bytes[i * bits / 8]);
    values.push_back(APInt(bits, (byte >> bit) & ((1u << bits) - 1)));
  }
  auto floatType = dyn_cast<FloatType>(element);
  if (!floatType)
    return DenseElementsAttr::get(tensor.type, values);
  SmallVector<APFloat> floats;
  for (const APInt &value : values)
    floats.push_back(APFloat(floatType.getFloatSemantics(), value));
  return DenseElementsAttr::get(tensor.type, floats);
}

} // namespace llm::importer
