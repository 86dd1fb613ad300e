//===- ShapeValues.h - What shape arithmetic is known to give ---*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_IMPORT_ONNX_SHAPEVALUES_H
#define LLM_LIB_IMPORT_ONNX_SHAPEVALUES_H

#include "dialects/LLM/IR/LLMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace llm::importer {

/// The elements of an integer scalar or vector, row major; nullopt for one
/// that is only known at run time.
using KnownInts = llvm::SmallVector<std::optional<int64_t>>;

/// Evaluates small integer tensors as their ops are created, so that the types
/// of Reshape, Slice, Expand and the like come out as exact as they can. The
/// ops themselves stay: folding them is a pass.
class ShapeValues : public mlir::OpBuilder::Listener {
public:
  /// Larger tensors are not followed.
  static constexpr int64_t kMaxElements = 256;

  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint previous) override;
  /// Drops what is known of `op` and the ops in it, before it is erased.
  void forget(mlir::Operation *op);

  std::optional<KnownInts> get(mlir::Value value) const;

private:
  std::optional<KnownInts> evaluate(mlir::Operation *op) const;

  llvm::DenseMap<mlir::Value, KnownInts> values;
};

} // namespace llm::importer

#endif // LLM_LIB_IMPORT_ONNX_SHAPEVALUES_H
