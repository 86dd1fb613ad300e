//===- Graph.h - From ONNX graphs to functions ------------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LLM_LIB_IMPORT_ONNX_GRAPH_H
#define LLM_LIB_IMPORT_ONNX_GRAPH_H

#include "lib/Import/ONNX/Import.h"
#include "lib/Import/ONNX/Order.h"
#include "lib/Import/ONNX/Registry.h"
#include "lib/Import/ONNX/ShapeValues.h"
#include "lib/Import/ONNX/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace llm::importer {

/// What a name of the file stands for: a value, or a stored tensor that
/// becomes one when it is first used.
struct Binding {
  mlir::Value value;
  std::optional<Tensor> tensor;
  std::string name;
};

/// The names visible in a graph, a subgraph or a function body.
struct Scope {
  Scope *parent = nullptr;
  llvm::StringMap<Binding> bindings;
  llvm::StringMap<const ::onnx::ValueInfoProto *> declared;
  /// Names that later nodes define, to tell a cycle from an unknown name.
  llvm::StringSet<> defined;
  /// Operator-set versions by domain ("" is ai.onnx).
  const llvm::StringMap<int64_t> *opsets = nullptr;
  /// In a function body: the attributes of the calling node, by name.
  const llvm::StringMap<const ::onnx::AttributeProto *> *attributes = nullptr;
  /// Names of a function's inputs that its caller omitted.
  llvm::StringSet<> omitted;
  /// Subgraphs and calls between this scope and the main graph.
  int depth = 0;
};

/// Subgraphs and calls may nest as deep as this.
inline constexpr int kMaxDepth = 64;

/// "ai.onnx" is another name of the empty domain.
inline llvm::StringRef normalDomain(llvm::StringRef domain) {
  return domain == "ai.onnx" ? "" : domain;
}

/// The import of one model.
class Graph {
public:
  Graph(mlir::MLIRContext *context, llvm::StringRef path,
        std::shared_ptr<MappedFile> file, const StrippedModel &model,
        const ImportOptions &options);

  mlir::OwningOpRef<mlir::ModuleOp> run();

  /// An error about the model file.
  mlir::InFlightDiagnostic error();

  /// The nodes of `nodes` in order, at the builder's place.
  mlir::LogicalResult importNodes(const NodeList &nodes, Scope &scope);

  /// A subgraph (a branch or a loop's body) at the builder's place. `arguments`
  /// are the values of its inputs. The values of its outputs, or failure.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  importSubgraph(const ::onnx::GraphProto &graph, Scope &parent,
                 mlir::ValueRange arguments, mlir::Location loc);

  /// Looks a name up, outwards; null where it is unknown.
  Binding *lookup(Scope &scope, llvm::StringRef name);
  /// The value of a binding. A stored tensor becomes a constant or a weight.
  mlir::Value materialize(Binding &binding);
  /// Whether a name may still be given to a new value, reported if not.
  mlir::LogicalResult bind(Scope &scope, Binding binding,
                           llvm::function_ref<mlir::InFlightDiagnostic()> emit);

  /// Adds `llm.weight`; the symbol gets a suffix where the name is taken.
  /// Equal formats under one name share a symbol.
  ir::WeightOp addWeight(llvm::StringRef name, mlir::RankedTensorType type,
                         ir::WeightFormatInterface format);
  /// The value of a weight, at the start of the function.
  mlir::Value weightValue(ir::WeightOp weight);

  mlir::MLIRContext *const context;
  const std::string path;
  const StrippedModel &model;
  TensorReader reader;
  ShapeValues shapeValues;
  mlir::OpBuilder builder;

private:
  mlir::LogicalResult readHeader();
  mlir::LogicalResult readFunctions();
  mlir::LogicalResult importMain(llvm::StringRef hash);
  mlir::LogicalResult addInitializers(const ::onnx::GraphProto &graph,
                                      Scope &scope);
  mlir::LogicalResult declare(const ::onnx::GraphProto &graph, Scope &scope);
  mlir::LogicalResult importNode(const ::onnx::NodeProto &proto, Scope &scope);
  mlir::LogicalResult importCall(const ::onnx::NodeProto &proto,
                                 const ::onnx::FunctionProto &function,
                                 Scope &scope);
  mlir::FailureOr<mlir::RankedTensorType>
  declaredType(const ::onnx::ValueInfoProto &info, mlir::ArrayAttr *dims);
  mlir::LogicalResult checkDeclared(const ::onnx::ValueInfoProto &info,
                                    mlir::Type type, bool typeOnly);
  const ::onnx::FunctionProto *
  findFunction(const ::onnx::NodeProto &proto) const;
  /// Moves the builder behind the constants at the start of the function.
  void startOfFunction();
  mlir::DictionaryAttr sourceAttr(llvm::StringRef hash);

  std::shared_ptr<MappedFile> file;
  const ImportOptions options;
  const Registry registry;
  mlir::ModuleOp module;
  mlir::Block *entry = nullptr;
  /// The last constant at the start of the function, if any.
  mlir::Operation *lastConstant = nullptr;
  llvm::StringMap<int64_t> opsets;
  llvm::StringMap<llvm::StringMap<int64_t>> functionOpsets;
  llvm::StringMap<const ::onnx::FunctionProto *> functions;
  llvm::StringMap<mlir::Value> weightValues;
  /// Symbols of the module; null for those that are no weights.
  llvm::StringMap<ir::WeightOp> symbols;
  uint64_t importedNodes = 0;
};

} // namespace llm::importer

#endif // LLM_LIB_IMPORT_ONNX_GRAPH_H
