//===- Tensor.h - Tensors of an ONNX file -----------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_IMPORT_ONNX_TENSOR_H
#define LLM_LIB_IMPORT_ONNX_TENSOR_H

#include "lib/Import/ONNX/Wire.h"
#include "lib/Support/WeightData.h"

#include <map>

namespace llm::importer {

/// Our ops, whose namespace has the name of the tools' own.
namespace ir = ::mlir::llm;

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// No tensor of a model has more elements; what claims to is damaged.
inline constexpr int64_t kMaxElements = int64_t(1) << 40;

/// Nor has one more dimensions.
inline constexpr unsigned kMaxRank = 64;

/// A name of the file for a message: shortened, without control characters.
std::string printable(llvm::StringRef name);

/// The MLIR type of a TensorProto.DataType, or null for those without one here
/// (strings, complex numbers, undefined).
mlir::Type elementType(int32_t onnxType, mlir::MLIRContext *context);
/// "FLOAT16" for 10; "type 99" where the schema has no name.
std::string elementTypeName(int32_t onnxType);

/// The number of elements of a static shape, or nullopt for a negative size
/// and for more than kMaxElements.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape);

/// A tensor's type and where its bytes are, in the stored form of
/// #llm.component.
struct Tensor {
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes;
  /// The file the bytes lie in, as the user would name it, and where; empty
  /// for data decoded from integer fields, which `owner` holds.
  std::string file;
  uint64_t offset = 0;
  std::shared_ptr<const void> owner;

  int64_t count() const { return type.getNumElements(); }
};

/// Finds the bytes of tensors, in the model file or beside it.
class TensorReader {
public:
  TensorReader(mlir::MLIRContext *context, llvm::StringRef path,
               std::shared_ptr<MappedFile> file, const StrippedModel &model)
      : context(context), path(path), file(std::move(file)), model(model) {}

  /// Checks type, dimensions, location and size, and finds the bytes. Large
  /// data is not read.
  mlir::FailureOr<Tensor> read(const ::onnx::TensorProto &tensor,
                               EmitError emitError);

  /// `tensor` as a part of a weight: a hashed span, or its elements inline
  /// where it lies in no file.
  ir::ComponentAttr component(const Tensor &tensor, llvm::StringRef name);

  /// The elements themselves, copied into the context.
  mlir::DenseElementsAttr elements(const Tensor &tensor);

private:
  mlir::FailureOr<Tensor> readExternal(const ::onnx::TensorProto &tensor,
                                       Tensor result, uint64_t size,
                                       EmitError emitError);
  mlir::LogicalResult decodeTyped(const ::onnx::TensorProto &tensor,
                                  Tensor &result, uint64_t size,
                                  EmitError emitError);
  /// The file that `location` names: the path as the user would write it.
  mlir::FailureOr<std::string> resolve(llvm::StringRef location,
                                       EmitError emitError);

  mlir::MLIRContext *context;
  std::string path;
  std::shared_ptr<MappedFile> file;
  const StrippedModel &model;
  WeightFiles externalFiles;
  std::map<std::tuple<std::string, uint64_t, uint64_t>, std::string> hashes;
};

} // namespace llm::importer

#endif // LLM_LIB_IMPORT_ONNX_TENSOR_H
