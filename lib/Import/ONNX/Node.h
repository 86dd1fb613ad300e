//===- Node.h - What an operator's importer works with ----------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One Node is made per ONNX node. An operator's importer reads attributes and
// inputs from it, builds ops at its location, and sets its results. The first
// error counts: it is reported at the node, and what follows it is silent, so
// an importer may go on with the defaults it gets.
//
#ifndef LLM_LIB_IMPORT_ONNX_NODE_H
#define LLM_LIB_IMPORT_ONNX_NODE_H

#include "lib/Import/ONNX/Graph.h"
#include "mlir/IR/Builders.h"

namespace llm::importer {

/// The sizes of a tensor, mlir::ShapedType::kDynamic where unknown.
using Shape = llvm::SmallVector<int64_t>;

class Node {
public:
  Node(Graph &graph, Scope &scope, const ::onnx::NodeProto &proto,
       int64_t version);

  //===--- Errors ---------------------------------------------------------===//
  /// "node 'x' (MatMul): ...". Inactive once the node has failed.
  mlir::InFlightDiagnostic error();
  bool hasFailed() const { return failed; }

  //===--- Attributes -----------------------------------------------------===//
  // Each reports an attribute of another type than it is asked for. What no
  // importer asks for is reported in the end as unknown.
  bool hasAttr(llvm::StringRef name);
  int64_t intAttr(llvm::StringRef name, int64_t otherwise);
  bool flag(llvm::StringRef name, bool otherwise = false) {
    return intAttr(name, otherwise) != 0;
  }
  /// As intAttr, with an error where the attribute is absent.
  int64_t requiredInt(llvm::StringRef name);
  double floatAttr(llvm::StringRef name, double otherwise);
  std::string stringAttr(llvm::StringRef name, llvm::StringRef otherwise);
  std::optional<llvm::SmallVector<int64_t>> intsAttr(llvm::StringRef name);
  std::optional<llvm::SmallVector<float>> floatsAttr(llvm::StringRef name);
  const ::onnx::TensorProto *tensorAttr(llvm::StringRef name);
  const ::onnx::GraphProto *graphAttr(llvm::StringRef name);

  //===--- Inputs and outputs ---------------------------------------------===//
  unsigned numInputs() const { return proto.input_size(); }
  unsigned numOutputs() const { return proto.output_size(); }
  bool has(unsigned i) const;
  /// The value of input `i`; null where it is omitted or undefined.
  mlir::Value in(unsigned i);
  /// All inputs, with nulls where omitted.
  llvm::SmallVector<mlir::Value> allInputs();
  /// The stored tensor behind input `i`, or null where it is computed.
  const Tensor *tensor(unsigned i);
  /// The name of input `i` in the file.
  llvm::StringRef inputName(unsigned i) const { return proto.input(i); }
  bool wants(unsigned i) const;
  void set(unsigned i, mlir::Value value);
  /// Result `i` is a stored tensor, which becomes a weight when it is used.
  void setTensor(unsigned i, Tensor tensor);

  //===--- Types ----------------------------------------------------------===//
  static mlir::RankedTensorType type(mlir::Value value);
  static llvm::ArrayRef<int64_t> shape(mlir::Value value);
  static mlir::Type element(mlir::Value value);
  // Whether the elements of an input are so, with an error where not.
  bool isFloat(unsigned i);
  bool isInteger(unsigned i); // i1 is not.
  bool isNumeric(unsigned i); // Likewise.
  bool isBool(unsigned i);
  bool sameElements(unsigned i, unsigned j);
  /// Whether the rank of an input lies between the two.
  bool hasRank(unsigned i, int64_t min, int64_t max);
  /// A result type; reports sizes that no model has.
  mlir::RankedTensorType makeType(llvm::ArrayRef<int64_t> shape,
                                  mlir::Type element);
  /// The element type that an attribute such as `to` names, or null with an
  /// error.
  mlir::Type elementTypeOf(int64_t onnxType);
  /// `axis` in [0, rank), or 0 with an error.
  int64_t axis(int64_t axis, int64_t rank);
  /// Normalised, without repetition.
  llvm::SmallVector<int64_t> axes(llvm::ArrayRef<int64_t> axes, int64_t rank);
  /// The broadcast shape, with an error where there is none.
  Shape broadcast(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

  //===--- Known integers -------------------------------------------------===//
  /// The elements of an integer scalar or vector, each where it is known;
  /// nullopt where not even their number is.
  std::optional<KnownInts> known(mlir::Value value) const;
  /// All elements of input `i`, where every one is known.
  std::optional<llvm::SmallVector<int64_t>> constantInts(mlir::Value value);
  /// The one element of a float or integer constant.
  std::optional<double> constantScalar(mlir::Value value);
  /// Axes given as attribute before opset `since`, as input `index` from it on.
  /// nullopt: not given. Axes that are not constant are an error.
  std::optional<llvm::SmallVector<int64_t>> axesSince(int64_t since,
                                                      unsigned index);

  /// The shape that input `i` gives, a vector of known length.
  mlir::FailureOr<Shape> shapeFrom(unsigned i);

  //===--- Building -------------------------------------------------------===//
  template <typename Op, typename... Args>
  Op create(mlir::TypeRange results, Args &&...args) {
    return Op::create(builder, loc, results, std::forward<Args>(args)...);
  }
  template <typename Op, typename... Args>
  mlir::Value make(mlir::Type result, Args &&...args) {
    return Op::create(builder, loc, result, std::forward<Args>(args)...)
        ->getResult(0);
  }
  mlir::Value constantInts(llvm::ArrayRef<int64_t> values);
  mlir::Value constantInt(int64_t value);
  /// A rank-0 constant of a float or integer type.
  mlir::Value constantScalar(mlir::Type element, double value);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape,
                      llvm::ArrayRef<int64_t> resultShape);
  /// The axes before `axis` as one, and those from it on as one.
  mlir::Value flatten(mlir::Value value, int64_t axis);
  mlir::Value cast(mlir::Value value, mlir::Type element);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> perm);
  /// A broadcasting op whose result has the operands' element type.
  template <typename Op> mlir::Value binary(mlir::Value a, mlir::Value b) {
    return make<Op>(makeType(broadcast(shape(a), shape(b)), element(a)), a, b);
  }
  template <typename Op> mlir::Value unary(mlir::Value a) {
    return make<Op>(a.getType(), a);
  }
  mlir::UnitAttr unit(bool on) {
    return on ? mlir::UnitAttr::get(graph.context) : mlir::UnitAttr();
  }
  mlir::FloatAttr f64(double value) { return builder.getF64FloatAttr(value); }
  mlir::IntegerAttr i64(int64_t value) {
    return builder.getI64IntegerAttr(value);
  }

  /// What the driver does after the importer: unknown attributes, results
  /// missing, ops that do not verify.
  mlir::LogicalResult finish();

  Graph &graph;
  Scope &scope;
  const ::onnx::NodeProto &proto;
  /// The version of the operator set that the node's domain is imported at.
  const int64_t version;
  mlir::Location loc;
  mlir::OpBuilder &builder;

private:
  const ::onnx::AttributeProto *find(llvm::StringRef name, int type);

  bool failed = false;
  llvm::StringSet<> asked;
  llvm::SmallVector<Binding> results;
};

} // namespace llm::importer

#endif // LLM_LIB_IMPORT_ONNX_NODE_H
