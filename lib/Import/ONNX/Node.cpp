//===- Node.cpp - What an operator's importer works with ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lib/Import/ONNX/Node.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace llm::importer {
using ::onnx::AttributeProto;

static StringRef nameOf(const ::onnx::NodeProto &proto) {
  if (!proto.name().empty())
    return proto.name();
  for (const std::string &output : proto.output())
    if (!output.empty())
      return output;
  return "unnamed";
}

Node::Node(Graph &graph, Scope &scope, const ::onnx::NodeProto &proto,
           int64_t version)
    : graph(graph), scope(scope), proto(proto), version(version),
      loc(NameLoc::get(StringAttr::get(graph.context, nameOf(proto)))),
      builder(graph.builder), results(proto.output_size()) {}

InFlightDiagnostic Node::error() {
  if (failed)
    return InFlightDiagnostic();
  failed = true;
  return graph.error() << "node '" << printable(nameOf(proto)) << "' ("
                       << printable(proto.op_type()) << "): ";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const AttributeProto *Node::find(StringRef name, int type) {
  asked.insert(name);
  for (const AttributeProto &attr : proto.attribute()) {
    if (attr.name() != name)
      continue;
    const AttributeProto *found = &attr;
    if (!attr.ref_attr_name().empty()) {
      // A parameter of the function around: absent there means absent here.
      if (!scope.attributes)
        return nullptr;
      auto it = scope.attributes->find(attr.ref_attr_name());
      if (it == scope.attributes->end())
        return nullptr;
      found = it->second;
    }
    if (type != AttributeProto::UNDEFINED && found->type() != type) {
      error() << "attribute '" << name << "' has type "
              << ::onnx::AttributeProto_AttributeType_Name(found->type())
              << ", expected "
              << ::onnx::AttributeProto_AttributeType_Name(
                     static_cast<::onnx::AttributeProto_AttributeType>(type));
      return nullptr;
    }
    return found;
  }
  return nullptr;
}

bool Node::hasAttr(StringRef name) {
  return find(name, AttributeProto::UNDEFINED) != nullptr;
}

int64_t Node::intAttr(StringRef name, int64_t otherwise) {
  const AttributeProto *attr = find(name, AttributeProto::INT);
  return attr ? attr->i() : otherwise;
}

int64_t Node::requiredInt(StringRef name) {
  const AttributeProto *attr = find(name, AttributeProto::INT);
  if (!attr)
    error() << "the attribute '" << name << "' is required";
  return attr ? attr->i() : 0;
}

double Node::floatAttr(StringRef name, double otherwise) {
  const AttributeProto *attr = find(name, AttributeProto::FLOAT);
  return attr ? attr->f() : otherwise;
}

std::string Node::stringAttr(StringRef name, StringRef otherwise) {
  const AttributeProto *attr = find(name, AttributeProto::STRING);
  return attr ? attr->s() : otherwise.str();
}

std::optional<SmallVector<int64_t>> Node::intsAttr(StringRef name) {
  const AttributeProto *attr = find(name, AttributeProto::INTS);
  if (!attr)
    return std::nullopt;
  return SmallVector<int64_t>(attr->ints().begin(), attr->ints().end());
}

std::optional<SmallVector<float>> Node::floatsAttr(StringRef name) {
  const AttributeProto *attr = find(name, AttributeProto::FLOATS);
  if (!attr)
    return std::nullopt;
  return SmallVector<float>(attr->floats().begin(), attr->floats().end());
}

const ::onnx::TensorProto *Node::tensorAttr(StringRef name) {
  const AttributeProto *attr = find(name, AttributeProto::TENSOR);
  return attr ? &attr->t() : nullptr;
}

const ::onnx::GraphProto *Node::graphAttr(StringRef name) {
  const AttributeProto *attr = find(name, AttributeProto::GRAPH);
  if (!attr)
    error() << "the attribute '" << name << "' is required";
  return attr ? &attr->g() : nullptr;
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

bool Node::has(unsigned i) const {
  return i < numInputs() && !proto.input(i).empty() &&
         graph.lookup(scope, proto.input(i));
}

Value Node::in(unsigned i) {
  Binding *binding = has(i) ? graph.lookup(scope, proto.input(i)) : nullptr;
  return binding ? graph.materialize(*binding) : Value();
}

SmallVector<Value> Node::allInputs() {
  SmallVector<Value> values;
  for (unsigned i = 0; i < numInputs(); ++i)
    values.push_back(in(i));
  return values;
}

const Tensor *Node::tensor(unsigned i) {
  Binding *binding = has(i) ? graph.lookup(scope, proto.input(i)) : nullptr;
  return binding && binding->tensor ? &*binding->tensor : nullptr;
}

bool Node::wants(unsigned i) const {
  return i < numOutputs() && !proto.output(i).empty();
}

void Node::set(unsigned i, Value value) {
  if (i < results.size())
    results[i].value = value;
}

void Node::setTensor(unsigned i, Tensor tensor) {
  if (i < results.size())
    results[i].tensor = std::move(tensor);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

RankedTensorType Node::type(Value value) {
  return cast<RankedTensorType>(value.getType());
}
ArrayRef<int64_t> Node::shape(Value value) { return type(value).getShape(); }
Type Node::element(Value value) { return type(value).getElementType(); }

/// Input `i`; null, with an error, where it is omitted.
static Value required(Node &n, unsigned i) {
  Value value = n.in(i);
  if (!value)
    n.error() << "input " << i << " is omitted, but required";
  return value;
}

/// Whether input `i` is there and has elements that `holds` for.
static bool check(Node &n, unsigned i, function_ref<bool(Type)> holds,
                  StringRef expected) {
  Value value = required(n, i);
  if (!value)
    return false;
  bool ok = holds(Node::element(value));
  if (!ok)
    n.error() << "input " << i << " must be of " << expected << ", got "
              << value.getType();
  return ok;
}

bool Node::isFloat(unsigned i) {
  return check(
      *this, i, [](Type type) { return isa<FloatType>(type); }, "a float type");
}
bool Node::isInteger(unsigned i) {
  return check(
      *this, i,
      [](Type type) { return type.isInteger() && !type.isInteger(1); },
      "an integer type");
}
bool Node::isNumeric(unsigned i) {
  return check(
      *this, i, [](Type type) { return !type.isInteger(1); }, "a numeric type");
}
bool Node::isBool(unsigned i) {
  return check(*this, i, [](Type type) { return type.isInteger(1); }, "bool");
}
bool Node::sameElements(unsigned i, unsigned j) {
  Value first = required(*this, i);
  Value second = first ? required(*this, j) : Value();
  if (!second)
    return false;
  bool same = element(first) == element(second);
  if (!same)
    error() << "inputs " << i << " and " << j
            << " must have one element type, got " << first.getType() << " and "
            << second.getType();
  return same;
}
bool Node::hasRank(unsigned i, int64_t min, int64_t max) {
  Value value = required(*this, i);
  if (!value)
    return false;
  int64_t rank = type(value).getRank();
  bool ok = rank >= min && rank <= max;
  if (!ok) {
    InFlightDiagnostic diag = error();
    diag << "input " << i << " must be of rank " << min;
    if (max != min)
      diag << " to " << max;
    diag << ", got " << value.getType();
  }
  return ok;
}

RankedTensorType Node::makeType(ArrayRef<int64_t> shape, Type element) {
  SmallVector<int64_t> known;
  for (int64_t dim : shape)
    if (!ShapedType::isDynamic(dim))
      known.push_back(dim);
  if (!countElements(known) || shape.size() > kMaxRank) {
    error() << "the result would be a tensor of " << shape.size()
            << " dimensions with too many elements or negative sizes";
    return RankedTensorType::get({}, element);
  }
  return RankedTensorType::get(shape, element);
}

Type Node::elementTypeOf(int64_t onnxType) {
  bool fits = onnxType >= INT32_MIN && onnxType <= INT32_MAX;
  Type element =
      fits ? elementType(static_cast<int32_t>(onnxType), graph.context)
           : Type();
  if (!element)
    error() << "elements of type "
            << elementTypeName(fits ? static_cast<int32_t>(onnxType) : 0)
            << " are not supported";
  return element;
}

int64_t Node::axis(int64_t axis, int64_t rank) {
  if (std::optional<int64_t> normal = ir::normalizeAxis(axis, rank))
    return *normal;
  error() << "axis " << axis << " is outside a tensor of rank " << rank;
  return 0;
}

SmallVector<int64_t> Node::axes(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> normal;
  for (int64_t a : axes) {
    a = axis(a, rank);
    if (llvm::is_contained(normal, a))
      error() << "axis " << a << " is named twice";
    else
      normal.push_back(a);
  }
  return normal;
}

Shape Node::broadcast(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  FailureOr<SmallVector<int64_t>> shape = ir::broadcastShapes(a, b);
  if (succeeded(shape))
    return *shape;
  InFlightDiagnostic diag = error();
  auto show = [&](ArrayRef<int64_t> dims) {
    diag << "[";
    llvm::interleaveComma(dims, diag, [&](int64_t dim) {
      if (ShapedType::isDynamic(dim))
        diag << "?";
      else
        diag << dim;
    });
    diag << "]";
  };
  diag << "the shapes ";
  show(a);
  diag << " and ";
  show(b);
  diag << " do not broadcast";
  return Shape(a);
}

//===----------------------------------------------------------------------===//
// Known integers
//===----------------------------------------------------------------------===//

std::optional<KnownInts> Node::known(Value value) const {
  return value ? graph.shapeValues.get(value) : std::nullopt;
}

std::optional<SmallVector<int64_t>> Node::constantInts(Value value) {
  std::optional<KnownInts> ints = known(value);
  if (!ints)
    return std::nullopt;
  SmallVector<int64_t> out;
  for (std::optional<int64_t> element : *ints) {
    if (!element)
      return std::nullopt;
    out.push_back(*element);
  }
  return out;
}

std::optional<double> Node::constantScalar(Value value) {
  if (std::optional<SmallVector<int64_t>> ints = constantInts(value))
    return ints->size() == 1 ? std::optional<double>(ints->front())
                             : std::nullopt;
  DenseFPElementsAttr floats;
  if (!value || !matchPattern(value, m_Constant(&floats)) ||
      floats.getNumElements() != 1)
    return std::nullopt;
  APFloat number = *floats.value_begin<APFloat>();
  bool loses;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

std::optional<SmallVector<int64_t>> Node::axesSince(int64_t since,
                                                    unsigned index) {
  if (version < since)
    return intsAttr("axes");
  if (!has(index))
    return std::nullopt;
  std::optional<SmallVector<int64_t>> axes = constantInts(in(index));
  if (!axes)
    error() << "the axes '" << printable(inputName(index))
            << "' are not constant, so the rank of the result is not known";
  return axes ? *axes : SmallVector<int64_t>();
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

Value Node::constantInts(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())},
                                    builder.getI64Type());
  return make<ir::ConstantOp>(type, DenseIntElementsAttr::get(type, values));
}

Value Node::constantInt(int64_t value) {
  auto type = RankedTensorType::get({}, builder.getI64Type());
  return make<ir::ConstantOp>(type, DenseIntElementsAttr::get(type, value));
}

Value Node::constantScalar(Type element, double value) {
  auto type = RankedTensorType::get({}, element);
  DenseElementsAttr attr;
  if (auto floatType = dyn_cast<FloatType>(element)) {
    APFloat number(value);
    bool loses;
    number.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &loses);
    attr = DenseElementsAttr::get(type, number);
  } else {
    APInt number(64, static_cast<uint64_t>(static_cast<int64_t>(value)), true);
    attr = DenseElementsAttr::get(
        type, number.sextOrTrunc(element.getIntOrFloatBitWidth()));
  }
  return make<ir::ConstantOp>(type, attr);
}

Value Node::reshape(Value value, ArrayRef<int64_t> shape,
                    ArrayRef<int64_t> resultShape) {
  return make<ir::ReshapeOp>(makeType(resultShape, element(value)), value,
                             constantInts(shape), UnitAttr());
}

Value Node::cast(Value value, Type to) {
  if (element(value) == to)
    return value;
  return make<ir::CastOp>(type(value).clone(to), value,
                          builder.getBoolAttr(true));
}

Value Node::transpose(Value value, ArrayRef<int64_t> perm) {
  Shape shape;
  for (int64_t axis : perm)
    shape.push_back(type(value).getDimSize(axis));
  return make<ir::TransposeOp>(makeType(shape, element(value)), value,
                               builder.getDenseI64ArrayAttr(perm));
}

//===----------------------------------------------------------------------===//
// The end of a node
//===----------------------------------------------------------------------===//

LogicalResult Node::finish() {
  for (const AttributeProto &attr : proto.attribute())
    if (!failed && !asked.contains(attr.name()))
      error() << "the attribute '" << printable(attr.name())
              << "' is not known at version " << version;
  if (failed)
    return failure();
  for (unsigned i = 0; i < numOutputs(); ++i) {
    if (!wants(i))
      continue;
    Binding &result = results[i];
    if (!result.value && !result.tensor)
      return error() << "the output '" << printable(proto.output(i))
                     << "' (output " << i << ") is not supported";
    result.name = proto.output(i);
    if (mlir::failed(
            graph.bind(scope, std::move(result), [&] { return error(); })))
      return failure();
  }
  return success();
}

} // namespace llm::importer
