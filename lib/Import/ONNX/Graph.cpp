//===- Graph.cpp - From ONNX graphs to functions --------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Graph.h"

#include "lib/Import/ONNX/Node.h"
#include "lib/Import/ONNX/Support.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace llm::importer {

Graph::Graph(MLIRContext *context, StringRef path,
             std::shared_ptr<MappedFile> file, const StrippedModel &model,
             const ImportOptions &options)
    : context(context), path(path), model(model),
      reader(context, path, file, model), builder(context),
      file(std::move(file)), options(options) {
  builder.setListener(&shapeValues);
}

InFlightDiagnostic Graph::error() {
  return emitError(FileLineColLoc::get(context, path, 0, 0));
}

OwningOpRef<ModuleOp> Graph::run() {
  if (failed(readHeader()) || failed(readFunctions()) ||
      failed(checkSupported(model, registry, opsets, functionOpsets, functions,
                            [&] { return error(); })))
    return {};
  OwningOpRef<ModuleOp> result(
      ModuleOp::create(FileLineColLoc::get(context, path, 0, 0)));
  module = *result;
  if (failed(importMain(hashBytes(file->bytes()))) || failed(verify(module)))
    return {};
  return result;
}

//===----------------------------------------------------------------------===//
// The model around the graph
//===----------------------------------------------------------------------===//

static void addOpsets(
    const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &list,
    llvm::StringMap<int64_t> &opsets) {
  for (const ::onnx::OperatorSetIdProto &opset : list)
    opsets[normalDomain(opset.domain())] = opset.version();
}

LogicalResult Graph::readHeader() {
  const ::onnx::ModelProto &proto = *model.model;
  if (!proto.has_graph())
    return error() << "the file has no graph; it is not an ONNX model";
  constexpr int64_t kMinIR = 3, kMaxIR = ::onnx::IR_VERSION;
  if (proto.ir_version() < kMinIR || proto.ir_version() > kMaxIR)
    return error() << "IR version " << proto.ir_version()
                   << " is not supported; versions " << kMinIR << " to "
                   << kMaxIR << " are";
  addOpsets(proto.opset_import(), opsets);
  if (opsets.empty())
    return error() << "the model names no operator set (opset_import)";
  return checkOpsets(opsets, [&] { return error(); });
}

LogicalResult Graph::readFunctions() {
  for (const ::onnx::FunctionProto &function : model.model->functions()) {
    std::string key =
        functionKey(function.domain(), function.name(), function.overload());
    if (!functions.try_emplace(key, &function).second)
      return error() << "the function '" << printable(function.name())
                     << "' is defined twice";
    llvm::StringMap<int64_t> &own = functionOpsets[key];
    addOpsets(function.opset_import(), own);
    if (own.empty())
      own = opsets;
    if (failed(checkOpsets(own, [&] { return error(); })))
      return failure();
  }
  return success();
}

DictionaryAttr Graph::sourceAttr(StringRef hash) {
  const ::onnx::ModelProto &proto = *model.model;
  SmallVector<NamedAttribute> attrs, versions;
  for (const auto &opset : opsets)
    versions.push_back(builder.getNamedAttr(
        opset.getKey().empty() ? StringRef("ai.onnx") : opset.getKey(),
        builder.getI64IntegerAttr(opset.getValue())));
  attrs.push_back(builder.getNamedAttr("path", builder.getStringAttr(path)));
  attrs.push_back(builder.getNamedAttr("hash", builder.getStringAttr(hash)));
  attrs.push_back(builder.getNamedAttr(
      "producer",
      builder.getStringAttr(llvm::Twine(proto.producer_name()) +
                            (proto.producer_version().empty() ? "" : " ") +
                            proto.producer_version())));
  for (const ::onnx::StringStringEntryProto &entry : proto.metadata_props())
    if (entry.key() == "license" || entry.key() == "licence" ||
        entry.key() == "model_license") {
      attrs.push_back(builder.getNamedAttr(
          "licence", builder.getStringAttr(entry.value())));
      break;
    }
  attrs.push_back(
      builder.getNamedAttr("opset", builder.getDictionaryAttr(versions)));
  return builder.getDictionaryAttr(attrs);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

Binding *Graph::lookup(Scope &scope, StringRef name) {
  for (Scope *s = &scope; s; s = s->parent) {
    auto it = s->bindings.find(name);
    if (it != s->bindings.end())
      return &it->second;
  }
  return nullptr;
}

LogicalResult Graph::bind(Scope &scope, Binding binding,
                          function_ref<InFlightDiagnostic()> emit) {
  if (lookup(scope, binding.name))
    return emit() << "the value '" << printable(binding.name)
                  << "' is defined twice";
  for (Scope *s = &scope; s; s = s->parent) {
    auto it = s->declared.find(binding.name);
    if (it == s->declared.end())
      continue;
    Type type =
        binding.value ? binding.value.getType() : Type(binding.tensor->type);
    if (failed(checkDeclared(*it->second, type, /*typeOnly=*/true)))
      return failure();
    break;
  }
  std::string name = binding.name;
  scope.bindings[name] = std::move(binding);
  return success();
}

Value Graph::materialize(Binding &binding) {
  if (binding.value)
    return binding.value;
  const Tensor &tensor = *binding.tensor;
  bool integer = tensor.type.getElementType().isInteger();
  int64_t limit = integer ? options.maxConstantElements : 1;
  if (tensor.count() > limit)
    return binding.value = weightValue(
               addWeight(binding.name, tensor.type,
                         ir::DenseFormatAttr::get(
                             context, reader.component(tensor, "data"))));
  OpBuilder::InsertionGuard guard(builder);
  startOfFunction();
  auto constant = ir::ConstantOp::create(
      builder, NameLoc::get(builder.getStringAttr(binding.name)), tensor.type,
      reader.elements(tensor));
  lastConstant = constant;
  return binding.value = constant;
}

void Graph::startOfFunction() {
  if (lastConstant)
    builder.setInsertionPointAfter(lastConstant);
  else
    builder.setInsertionPointToStart(entry);
}

ir::WeightOp Graph::addWeight(StringRef name, RankedTensorType type,
                              ir::WeightFormatInterface format) {
  std::string symbol = name.empty() ? "weight" : name.str();
  for (unsigned suffix = 1;; ++suffix) {
    auto it = symbols.find(symbol);
    if (it == symbols.end())
      break;
    // The same stored weight, reached by another name of the same file.
    ir::WeightOp other = it->second;
    if (other && other.getType() == type && other.getFormat() == format)
      return other;
    symbol = (name + "_" + llvm::Twine(suffix)).str();
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(entry->getParentOp());
  auto weight = ir::WeightOp::create(
      builder, NameLoc::get(builder.getStringAttr(name)),
      builder.getStringAttr(symbol), TypeAttr::get(type), format, StringAttr());
  symbols[symbol] = weight;
  return weight;
}

Value Graph::weightValue(ir::WeightOp weight) {
  Value &value = weightValues[weight.getSymName()];
  if (value)
    return value;
  OpBuilder::InsertionGuard guard(builder);
  startOfFunction();
  auto get = ir::GetWeightOp::create(
      builder, weight.getLoc(), weight.getTensorType(), weight.getSymName());
  lastConstant = get;
  return value = get;
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType>
Graph::declaredType(const ::onnx::ValueInfoProto &info, ArrayAttr *dims) {
  std::string name = printable(info.name());
  if (!info.has_type() || !info.type().has_tensor_type())
    return error() << "the value '" << name
                   << "' is not a tensor; only tensors are supported";
  const ::onnx::TypeProto_Tensor &tensor = info.type().tensor_type();
  Type element = elementType(tensor.elem_type(), context);
  if (!element)
    return error() << "the value '" << name << "' has elements of type "
                   << elementTypeName(tensor.elem_type())
                   << ", which are not supported";
  if (!tensor.has_shape())
    return error() << "rank of '" << name << "' is not known: it is declared "
                   << "without a shape";
  Shape shape, known;
  SmallVector<Attribute> names;
  for (const ::onnx::TensorShapeProto_Dimension &dim : tensor.shape().dim()) {
    // Old exporters write -1 for a size that is not known.
    bool fixed = dim.has_dim_value() && dim.dim_value() != -1;
    shape.push_back(fixed ? dim.dim_value() : ShapedType::kDynamic);
    if (fixed)
      known.push_back(dim.dim_value());
    names.push_back(
        builder.getStringAttr(dim.has_dim_param() ? dim.dim_param() : ""));
  }
  if (!countElements(known) || shape.size() > kMaxRank)
    return error() << "the value '" << name
                   << "' is declared with negative or too large sizes";
  if (dims)
    *dims = builder.getArrayAttr(names);
  return RankedTensorType::get(shape, element);
}

/// A declaration of a computed value may say less than is inferred, and must
/// not contradict it. Where `typeOnly`, only the element type counts: exporters
/// write wrong shapes of inner values, the GenAI builder for one, and nothing
/// is taken from those.
LogicalResult Graph::checkDeclared(const ::onnx::ValueInfoProto &info,
                                   Type type, bool typeOnly) {
  if (!info.has_type() || !info.type().has_tensor_type())
    return success();
  const ::onnx::TypeProto_Tensor &tensor = info.type().tensor_type();
  auto inferred = cast<RankedTensorType>(type);
  bool ok =
      tensor.elem_type() == ::onnx::TensorProto::UNDEFINED ||
      elementType(tensor.elem_type(), context) == inferred.getElementType();
  std::string declared = elementTypeName(tensor.elem_type());
  if (tensor.has_shape() && !typeOnly) {
    ok &= tensor.shape().dim_size() == inferred.getRank();
    declared += " [";
    for (int i = 0; i < std::min(tensor.shape().dim_size(), 16); ++i) {
      const ::onnx::TensorShapeProto_Dimension &dim = tensor.shape().dim(i);
      bool fixed = dim.has_dim_value() && dim.dim_value() != -1;
      declared += i ? ", " : "";
      declared += fixed                 ? std::to_string(dim.dim_value())
                  : dim.has_dim_param() ? printable(dim.dim_param())
                                        : "?";
      if (ok && fixed && !inferred.isDynamicDim(i))
        ok &= dim.dim_value() == inferred.getDimSize(i);
    }
    declared += "]";
  }
  if (ok)
    return success();
  return error() << "the value '" << printable(info.name())
                 << "' is declared as " << declared << ", but it is "
                 << inferred;
}

LogicalResult Graph::addInitializers(const ::onnx::GraphProto &graph,
                                     Scope &scope) {
  if (graph.sparse_initializer_size() != 0)
    return error() << "sparse initializers are not supported";
  for (const ::onnx::TensorProto &proto : graph.initializer()) {
    auto emit = [&]() {
      return error() << "the initializer '" << printable(proto.name()) << "': ";
    };
    if (proto.name().empty())
      return emit() << "has no name";
    FailureOr<Tensor> tensor = reader.read(proto, emit);
    if (failed(tensor))
      return failure();
    Binding binding;
    binding.tensor = std::move(*tensor);
    binding.name = proto.name();
    if (failed(bind(scope, std::move(binding), [&] { return error(); })))
      return failure();
  }
  return success();
}

LogicalResult Graph::declare(const ::onnx::GraphProto &graph, Scope &scope) {
  for (const ::onnx::ValueInfoProto &info : graph.value_info())
    scope.declared[info.name()] = &info;
  for (const ::onnx::ValueInfoProto &info : graph.output())
    scope.declared[info.name()] = &info;
  for (const ::onnx::NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      if (!output.empty())
        scope.defined.insert(output);
  return addInitializers(graph, scope);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

LogicalResult Graph::importMain(StringRef hash) {
  const ::onnx::GraphProto &graph = model.model->graph();
  module->setAttr(ir::kSourceAttr, sourceAttr(hash));
  symbols["main"] = {};

  Scope scope;
  scope.opsets = &opsets;
  if (failed(declare(graph, scope)))
    return failure();
  SmallVector<Type> inputs;
  SmallVector<NamedAttrList> argumentAttrs;
  SmallVector<StringRef> names;
  for (const ::onnx::ValueInfoProto &info : graph.input()) {
    // Until IR version 3 every initializer is an input too; later one that is
    // both has a default, which is what it is imported as.
    if (auto it = scope.bindings.find(info.name());
        it != scope.bindings.end()) {
      if (failed(checkDeclared(info, it->second.tensor->type,
                               /*typeOnly=*/false)))
        return failure();
      continue;
    }
    ArrayAttr dims;
    FailureOr<RankedTensorType> type = declaredType(info, &dims);
    if (failed(type))
      return failure();
    if (info.name().empty())
      return error() << "input " << inputs.size() << " has no name";
    inputs.push_back(*type);
    names.push_back(info.name());
    NamedAttrList attrs;
    attrs.set(ir::kNameAttr, builder.getStringAttr(info.name()));
    attrs.set(ir::kDimsAttr, dims);
    argumentAttrs.push_back(attrs);
  }
  builder.setInsertionPointToEnd(module.getBody());
  auto function =
      func::FuncOp::create(builder, FileLineColLoc::get(context, path, 0, 0),
                           "main", builder.getFunctionType(inputs, {}));
  entry = function.addEntryBlock();
  for (auto [i, name] : llvm::enumerate(names)) {
    Binding binding;
    binding.value = function.getArgument(i);
    binding.value.setLoc(NameLoc::get(builder.getStringAttr(name)));
    binding.name = name.str();
    function.setArgAttrs(i, argumentAttrs[i].getDictionary(context));
    if (failed(bind(scope, std::move(binding), [&] { return error(); })))
      return failure();
  }
  builder.setInsertionPointToEnd(entry);
  if (failed(importNodes(graph.node(), scope)))
    return failure();

  SmallVector<Value> results;
  SmallVector<NamedAttrList> resultAttrs;
  if (graph.output_size() == 0)
    return error() << "the graph has no outputs";
  for (const ::onnx::ValueInfoProto &info : graph.output()) {
    Binding *binding = lookup(scope, info.name());
    if (!binding)
      return error() << "the output '" << printable(info.name())
                     << "' is not defined";
    Value value = materialize(*binding);
    results.push_back(value);
    auto type = cast<RankedTensorType>(value.getType());
    if (failed(checkDeclared(info, type, /*typeOnly=*/false)))
      return failure();
    SmallVector<Attribute> dims(type.getRank(), builder.getStringAttr(""));
    if (info.type().tensor_type().shape().dim_size() == type.getRank())
      for (auto [i, dim] :
           llvm::enumerate(info.type().tensor_type().shape().dim()))
        if (type.isDynamicDim(i) && dim.has_dim_param())
          dims[i] = builder.getStringAttr(dim.dim_param());
    NamedAttrList attrs;
    attrs.set(ir::kNameAttr, builder.getStringAttr(info.name()));
    attrs.set(ir::kDimsAttr, builder.getArrayAttr(dims));
    resultAttrs.push_back(attrs);
  }
  func::ReturnOp::create(builder, function.getLoc(), results);
  function.setType(
      builder.getFunctionType(inputs, ValueRange(results).getTypes()));
  for (auto [i, attrs] : llvm::enumerate(resultAttrs))
    function.setResultAttrs(i, attrs.getDictionary(context));
  return success();
}

FailureOr<SmallVector<Value>>
Graph::importSubgraph(const ::onnx::GraphProto &graph, Scope &parent,
                      ValueRange arguments, Location loc) {
  Scope scope;
  scope.parent = &parent;
  scope.opsets = parent.opsets;
  scope.attributes = parent.attributes;
  scope.depth = parent.depth + 1;
  if (scope.depth > kMaxDepth)
    return error() << "subgraphs nest more than " << kMaxDepth << " deep";
  if (failed(declare(graph, scope)))
    return failure();
  if (static_cast<size_t>(graph.input_size()) != arguments.size())
    return error() << "the subgraph '" << printable(graph.name()) << "' has "
                   << graph.input_size() << " inputs, its node gives it "
                   << arguments.size();
  for (auto [info, value] : llvm::zip(graph.input(), arguments)) {
    Binding binding;
    binding.value = value;
    binding.name = info.name();
    if (failed(checkDeclared(info, value.getType(), /*typeOnly=*/true)) ||
        failed(bind(scope, std::move(binding), [&] { return error(); })))
      return failure();
  }
  if (failed(importNodes(graph.node(), scope)))
    return failure();
  SmallVector<Value> results;
  for (const ::onnx::ValueInfoProto &info : graph.output()) {
    Binding *binding = lookup(scope, info.name());
    if (!binding)
      return error() << "the output '" << printable(info.name())
                     << "' of the subgraph '" << printable(graph.name())
                     << "' is not defined";
    results.push_back(materialize(*binding));
  }
  return results;
}

LogicalResult Graph::importNodes(const NodeList &nodes, Scope &scope) {
  for (const ::onnx::NodeProto *node : inOrder(nodes))
    if (failed(importNode(*node, scope)))
      return failure();
  return success();
}

LogicalResult Graph::importNode(const ::onnx::NodeProto &proto, Scope &scope) {
  if (++importedNodes > options.maxNodes)
    return error() << "more than " << options.maxNodes
                   << " nodes after functions are inlined";
  StringRef domain = normalDomain(proto.domain());
  auto opset = scope.opsets->find(domain);
  int64_t version = opset == scope.opsets->end() ? 0 : opset->getValue();
  Node node(*this, scope, proto, version);
  for (const std::string &input : proto.input()) {
    if (input.empty() || lookup(scope, input) || scope.omitted.contains(input))
      continue;
    bool later = false;
    for (Scope *s = &scope; s; s = s->parent)
      later |= s->defined.contains(input);
    if (later)
      return node.error() << "the input '" << printable(input)
                          << "' depends on this node; the graph has a cycle";
    return node.error() << "the input '" << printable(input)
                        << "' is not defined";
  }
  if (const ::onnx::FunctionProto *function = findFunction(proto))
    return importCall(proto, *function, scope);
  const Operator *op = registry.find(domain, proto.op_type(), version);
  if (!op)
    return node.error() << "the operator is not supported";
  for (unsigned i = 0; i < op->minInputs; ++i)
    if (!node.has(i))
      return node.error() << "input " << i << " is required";
  if (node.numInputs() > op->maxInputs)
    return node.error() << "has " << node.numInputs()
                        << " inputs, the operator takes at most "
                        << op->maxInputs;
  if (node.numOutputs() == 0)
    return node.error() << "has no outputs";
  if (node.numOutputs() > op->maxOutputs)
    return node.error() << "has " << node.numOutputs()
                        << " outputs, the operator has at most "
                        << op->maxOutputs;
  Block *block = builder.getInsertionBlock();
  Operation *before = block->empty() ? nullptr : &block->back();
  if (failed(op->import(node)) || node.hasFailed())
    return failure();
  // What an importer did not check, the verifier does; its message is reported
  // as the node's.
  std::string message;
  {
    ScopedDiagnosticHandler handler(context, [&](Diagnostic &diag) {
      if (message.empty())
        message = diag.str();
      return success();
    });
    Block::iterator created =
        before ? std::next(before->getIterator()) : block->begin();
    for (; created != block->end(); ++created)
      if (failed(verify(&*created, /*verifyRecursively=*/false))) {
        if (message.empty())
          message = "cannot be expressed";
        break;
      }
  }
  if (!message.empty())
    return node.error() << message;
  return node.finish();
}

const ::onnx::FunctionProto *
Graph::findFunction(const ::onnx::NodeProto &proto) const {
  return functions.lookup(
      functionKey(proto.domain(), proto.op_type(), proto.overload()));
}

LogicalResult Graph::importCall(const ::onnx::NodeProto &proto,
                                const ::onnx::FunctionProto &function,
                                Scope &scope) {
  Scope body;
  body.depth = scope.depth + 1;
  if (body.depth > kMaxDepth)
    return error() << "functions and subgraphs nest more than " << kMaxDepth
                   << " deep";
  body.opsets = &functionOpsets[functionKey(function.domain(), function.name(),
                                            function.overload())];
  llvm::StringMap<const ::onnx::AttributeProto *> attributes;
  for (const ::onnx::AttributeProto &attr : function.attribute_proto())
    attributes[attr.name()] = &attr;
  for (const ::onnx::AttributeProto &attr : proto.attribute()) {
    const ::onnx::AttributeProto *value = &attr;
    if (!attr.ref_attr_name().empty()) {
      value = scope.attributes ? scope.attributes->lookup(attr.ref_attr_name())
                               : nullptr;
      if (!value)
        continue;
    }
    attributes[attr.name()] = value;
  }
  body.attributes = &attributes;

  Node node(*this, scope, proto, 0);
  if (proto.input_size() > function.input_size() ||
      proto.output_size() > function.output_size())
    return node.error() << "has more inputs or outputs than its function";
  for (int i = 0; i < function.input_size(); ++i) {
    const std::string &name = function.input(i);
    Binding *given = i < proto.input_size() && !proto.input(i).empty()
                         ? lookup(scope, proto.input(i))
                         : nullptr;
    if (!given) {
      body.omitted.insert(name);
      continue;
    }
    // A weight keeps its own name. Integers may be parts of one.
    if (given->tensor && !given->tensor->type.getElementType().isInteger())
      materialize(*given);
    Binding binding = *given;
    binding.name = name;
    if (failed(bind(body, std::move(binding), [&] { return node.error(); })))
      return failure();
  }
  for (const ::onnx::NodeProto &inner : function.node())
    for (const std::string &output : inner.output())
      if (!output.empty())
        body.defined.insert(output);
  if (failed(importNodes(function.node(), body)))
    return failure();
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty())
      continue;
    Binding *result = lookup(body, function.output(i));
    if (!result)
      return node.error() << "the output '" << printable(function.output(i))
                          << "' of the function is not defined";
    Binding binding = *result;
    binding.name = proto.output(i);
    if (failed(bind(scope, std::move(binding), [&] { return node.error(); })))
      return failure();
  }
  return success();
}

} // namespace llm::importer
