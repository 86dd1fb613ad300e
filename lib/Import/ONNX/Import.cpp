//===- Import.cpp - ONNX files to the llm dialect -------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Import.h"

#include "lib/Import/ONNX/Graph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Location.h"

using namespace mlir;

namespace llm {

OwningOpRef<ModuleOp> importONNX(StringRef path, MLIRContext &context,
                                 const ImportOptions &options) {
  context.loadDialect<func::FuncDialect, mlir::llm::LLMDialect,
                      arith::ArithDialect, scf::SCFDialect,
                      tensor::TensorDialect>();
  Location loc = FileLineColLoc::get(&context, path, 0, 0);
  llvm::ErrorOr<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
  if (!file) {
    emitError(loc) << "cannot read the model: " << file.getError().message();
    return {};
  }
  llvm::Expected<importer::StrippedModel> model =
      importer::parseModel((*file)->bytes());
  if (!model) {
    emitError(loc) << llvm::toString(model.takeError());
    return {};
  }
  importer::Graph graph(&context, path, *file, *model, options);
  return graph.run();
}

} // namespace llm
