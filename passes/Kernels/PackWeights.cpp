//===- PackWeights.cpp - Choose the packed layout of every constant -------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/Passes.h"

#include "dialects/LLM/IR/LLMDialect.h"
#include "dialects/RT/IR/RTDialect.h"
#include "passes/Kernels/Layouts.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::llm {
#define GEN_PASS_DEF_PACKWEIGHTSPASS
#include "passes/Kernels/Passes.h.inc"

namespace {
/// Packs the constants of one program.
class ProgramPacker {
public:
  ProgramPacker(ModuleOp module, rt::ProgramOp program)
      : module(module), program(program), symbols(program), b(program),
        onGPU(program.getTarget() != "cpu") {}

  LogicalResult run();
  int64_t panels = 0, conversions = 0;

private:
  FailureOr<WeightOp> weightOf(rt::BufferOp buffer);
  bool getFlag(rt::DispatchOp dispatch, StringRef name);
  FailureOr<int64_t> getSize(rt::DispatchOp dispatch, StringRef name);
  FailureOr<Layout> linearLayout(rt::DispatchOp dispatch, WeightOp weight);
  FailureOr<Layout> embeddingLayout(rt::DispatchOp dispatch, WeightOp weight);
  FailureOr<Layout> rowLayout(rt::BufferOp buffer, WeightOp weight);
  LogicalResult chooseLayout(rt::DispatchOp dispatch, OpOperand &operand);
  LogicalResult packLinear(rt::DispatchOp dispatch);
  void setLayout(rt::BufferOp buffer, const Layout &layout);
  void setKernelParams(rt::DispatchOp dispatch, NamedAttrList params);
  rt::KernelOp getKernel(rt::DispatchOp dispatch) {
    return symbols.lookup<rt::KernelOp>(dispatch.getKernel());
  }
  rt::KernelOp makeKernel(StringRef name, StringRef family,
                          DictionaryAttr params);
  SmallVector<Value> convertInput(rt::DispatchOp dispatch, StringRef family,
                                  NamedAttrList params,
                                  ArrayRef<std::pair<Type, int64_t>> outputs);
  SmallVector<Value> quantize(rt::DispatchOp dispatch, const Layout &layout);
  SmallVector<Value> cast(rt::DispatchOp dispatch, const Layout &layout);

  ModuleOp module;
  rt::ProgramOp program;
  SymbolTable symbols;
  OpBuilder b;
  bool onGPU;
  /// The parameters of each dispatch's kernel before this pass.
  llvm::DenseMap<Operation *, DictionaryAttr> original;
  /// (weight, layout) to the buffer that holds it.
  llvm::MapVector<std::pair<StringRef, Attribute>, rt::BufferOp> packed;
  /// Weights that some linear reads as [n, k]: their panels.
  llvm::StringMap<Layout> tied;
  llvm::MapVector<std::pair<Attribute, Attribute>, rt::KernelOp> made;
  /// (x, the kernel that converts it) to what that wrote, until x is written
  /// again.
  llvm::MapVector<std::pair<Value, Operation *>, SmallVector<Value>> converted;
};
} // namespace

bool ProgramPacker::getFlag(rt::DispatchOp dispatch, StringRef name) {
  auto attr = original.at(dispatch).getAs<BoolAttr>(name);
  return attr && attr.getValue();
}

FailureOr<int64_t> ProgramPacker::getSize(rt::DispatchOp dispatch,
                                          StringRef name) {
  auto attr = original.at(dispatch).getAs<IntegerAttr>(name);
  if (!attr || attr.getInt() < 1)
    return getKernel(dispatch).emitOpError("needs the positive parameter '")
           << name << "'";
  return attr.getInt();
}

FailureOr<WeightOp> ProgramPacker::weightOf(rt::BufferOp buffer) {
  auto weight = dyn_cast_or_null<WeightOp>(
      SymbolTable::lookupSymbolIn(module, buffer.getName()));
  if (!weight)
    return buffer.emitOpError("no llm.weight is named '")
           << buffer.getName() << "'";
  return weight;
}

/// Fills in bits, group size and the types of scales and zeros. Only panels of
/// a CPU keep factors.
static void setAffine(Layout &layout, AffineGroupsFormatAttr format,
                      Layout::Kind kind) {
  layout.kind = kind;
  layout.bits = format.getBits();
  layout.scaleType = format.getScales().getType().getElementType();
  layout.groupSize = format.getFinestGroup();
  if (format.getFactors()) {
    layout.scaleType = Float32Type::get(format.getContext());
    if (kind == Layout::Kind::PanelAffine) {
      layout.groupSize = format.getGroupSize();
      layout.factorGroup = format.getFactorGroup();
    }
  }
  ComponentAttr zeros = format.getZeros();
  if (!zeros)
    return;
  Type type = zeros.getType().getElementType();
  layout.zeroType =
      type.isInteger(8)
          ? Type(IntegerType::get(type.getContext(), 8, IntegerType::Unsigned))
          : type;
}

/// The float type that a kernel reads: f64 and what is not a float have none.
static FailureOr<Type> elementType(WeightOp weight, DenseFormatAttr format) {
  Type type = format.getData().getType().getElementType();
  if (type.isF64())
    return Type(Float32Type::get(type.getContext()));
  if (!type.isF32() && !type.isF16() && !type.isBF16())
    return weight.emitOpError("a kernel cannot read elements of type ") << type;
  return type;
}

FailureOr<Layout> ProgramPacker::linearLayout(rt::DispatchOp dispatch,
                                              WeightOp weight) {
  FailureOr<int64_t> n = getSize(dispatch, "n"), k = getSize(dispatch, "k");
  if (failed(n) || failed(k))
    return failure();
  Layout layout;
  layout.n = *n;
  layout.k = *k;
  layout.transposed = getFlag(dispatch, "transposed");
  ArrayRef<int64_t> shape = weight.getTensorType().getShape();
  SmallVector<int64_t> expected{*n, *k};
  if (layout.transposed)
    std::swap(expected[0], expected[1]);
  if (shape != ArrayRef(expected)) {
    InFlightDiagnostic error = dispatch.emitOpError("multiplies by ")
                               << expected[0] << " x " << expected[1];
    error.attachNote(weight.getLoc())
        << "the weight is " << weight.getTensorType();
    return error;
  }
  if (auto affine = dyn_cast<AffineGroupsFormatAttr>(weight.getFormat())) {
    if (layout.transposed)
      return dispatch.emitOpError("reads affine groups transposed; they run "
                                  "along the last axis of [n, k]");
    if (!onGPU) {
      setAffine(layout, affine, Layout::Kind::PanelAffine);
      return layout;
    }
    setAffine(layout, affine, Layout::Kind::GPUAffine);
    layout.scaleType = Float32Type::get(module.getContext());
    if (layout.zeroType)
      layout.zeroType = layout.scaleType;
    return layout;
  }
  if (onGPU)
    return weight.emitOpError("is stored as #")
           << weight.getFormat().getAbstractAttribute().getName()
           << "; the GPU's linear reads weights in affine groups, #llm.affine";
  auto dense = dyn_cast<DenseFormatAttr>(weight.getFormat());
  if (!dense)
    return weight.emitOpError("no linear kernel reads the format ")
           << weight.getFormat();
  FailureOr<Type> type = elementType(weight, dense);
  if (failed(type))
    return failure();
  layout.kind = type->isBF16() ? Layout::Kind::PanelPairs : Layout::Kind::Panel;
  layout.type = *type;
  return layout;
}

FailureOr<Layout> ProgramPacker::embeddingLayout(rt::DispatchOp dispatch,
                                                 WeightOp weight) {
  FailureOr<int64_t> rows = getSize(dispatch, "vocab"),
                     dim = getSize(dispatch, "dim");
  if (failed(rows) || failed(dim))
    return failure();
  ArrayRef<int64_t> shape = weight.getTensorType().getShape();
  if (shape != ArrayRef<int64_t>({*rows, *dim}))
    return dispatch.emitOpError("reads a table of ")
           << *rows << " x " << *dim << ", @" << weight.getSymName() << " is "
           << weight.getTensorType();
  auto it = tied.find(weight.getSymName());
  if (it != tied.end())
    return it->second;
  Layout layout;
  layout.n = *rows;
  layout.k = *dim;
  if (auto affine = dyn_cast<AffineGroupsFormatAttr>(weight.getFormat())) {
    setAffine(layout, affine, Layout::Kind::RowsAffine);
    return layout;
  }
  auto dense = dyn_cast<DenseFormatAttr>(weight.getFormat());
  if (!dense)
    return weight.emitOpError("no embedding kernel reads the format ")
           << weight.getFormat();
  FailureOr<Type> type = elementType(weight, dense);
  if (failed(type))
    return failure();
  layout.type = *type;
  return layout;
}

FailureOr<Layout> ProgramPacker::rowLayout(rt::BufferOp buffer,
                                           WeightOp weight) {
  auto dense = dyn_cast<DenseFormatAttr>(weight.getFormat());
  if (!dense) {
    InFlightDiagnostic error =
        weight.emitOpError("is packed, and read by a kernel other than linear "
                           "and embedding");
    error.attachNote(buffer.getLoc()) << "read here";
    return error;
  }
  if (failed(elementType(weight, dense)))
    return failure();
  Layout layout;
  layout.k = weight.getTensorType().getNumElements();
  layout.type = Float32Type::get(module.getContext());
  return layout;
}

void ProgramPacker::setLayout(rt::BufferOp buffer, const Layout &layout) {
  MLIRContext *context = module.getContext();
  buffer.setLayoutAttr(layout.toAttr(context));
  buffer.setElementsAttr(rt::ExprAttr::constant(context, layout.elements()));
  buffer.getResult().setType(
      rt::BufferType::get(context, layout.elementType(context)));
}

/// Gives the constant that `operand` reads its layout, in a buffer of its own
/// where another use wants another layout.
LogicalResult ProgramPacker::chooseLayout(rt::DispatchOp dispatch,
                                          OpOperand &operand) {
  auto buffer = operand.get().getDefiningOp<rt::BufferOp>();
  if (!buffer || buffer.getLifetime() != rt::Lifetime::constant)
    return success();
  FailureOr<WeightOp> weight = weightOf(buffer);
  if (failed(weight))
    return failure();
  rt::KernelOp kernel = getKernel(dispatch);
  bool table = operand.getOperandNumber() == 1;
  FailureOr<Layout> layout = failure();
  if (table && kernel.getFamily() == "linear")
    layout = linearLayout(dispatch, *weight);
  else if (table && kernel.getFamily() == "embedding")
    layout = embeddingLayout(dispatch, *weight);
  else
    layout = rowLayout(buffer, *weight);
  if (failed(layout))
    return failure();
  DictionaryAttr dict = layout->toAttr(module.getContext());
  // Checks the sizes, too.
  if (failed(Layout::parse(dict, [&] { return weight->emitOpError(); })))
    return failure();

  auto [it, isNew] = packed.try_emplace({weight->getSymName(), dict}, buffer);
  if (isNew) {
    if (buffer.getLayout() && *buffer.getLayout() != dict) {
      b.setInsertionPointAfter(buffer);
      it->second = llvm::cast<rt::BufferOp>(b.clone(*buffer));
    }
    setLayout(it->second, *layout);
    panels += layout->isPanel();
  }
  operand.set(it->second.getResult());

  if (!table ||
      (kernel.getFamily() != "linear" && kernel.getFamily() != "embedding"))
    return success();
  layout->transposed = false;
  NamedAttrList params(original.at(dispatch));
  params.erase("transposed");
  params.erase("weight"); // the layout says more
  if (params.get("accuracy_level")) {
    auto level = dyn_cast<IntegerAttr>(params.get("accuracy_level"));
    // Where no kernel has the form that is asked for, f32 is more accurate.
    bool int8 = level && level.getInt() == 4 &&
                layout->kind == Layout::Kind::PanelAffine &&
                layout->takesInt8();
    bool bf16 = level && level.getInt() == 3 &&
                layout->kind == Layout::Kind::PanelPairs;
    params.set("accuracy_level", b.getI64IntegerAttr(int8 ? 4 : bf16 ? 3 : 0));
    // Whole groups of the weight.
    auto wanted = dyn_cast_or_null<IntegerAttr>(params.get("activation_group"));
    int64_t groups = wanted && int8 ? wanted.getInt() / layout->groupSize : 1;
    if (groups > 1)
      params.set("activation_group",
                 b.getI64IntegerAttr(groups * layout->groupSize));
    else
      params.erase("activation_group");
  }
  params.set("layout", layout->toAttr(module.getContext()));
  setKernelParams(dispatch, params);
  return success();
}

/// Points `dispatch` to a kernel of the same family with `params`.
void ProgramPacker::setKernelParams(rt::DispatchOp dispatch,
                                    NamedAttrList params) {
  rt::KernelOp kernel = getKernel(dispatch);
  DictionaryAttr dict = params.getDictionary(module.getContext());
  auto [it, isNew] = made.try_emplace({kernel.getFamilyAttr(), dict}, kernel);
  if (isNew && kernel.getParams().contains("layout") &&
      kernel.getParams() != dict)
    it->second = makeKernel(kernel.getSymName(), kernel.getFamily(), dict);
  it->second.setParamsAttr(dict);
  dispatch.setKernel(it->second.getSymName());
}

rt::KernelOp ProgramPacker::makeKernel(StringRef name, StringRef family,
                                       DictionaryAttr params) {
  OpBuilder at = OpBuilder::atBlockBegin(&program.getBody().front());
  auto kernel = rt::KernelOp::create(at, program.getLoc(), name, family, params,
                                     StringAttr());
  kernel.getVariants().emplaceBlock();
  symbols.insert(kernel);
  return kernel;
}

/// A dispatch of `family` that turns the rows that `dispatch` reads first into
/// buffers of `outputs`, each a type and its elements per row; made once per
/// input and kernel.
SmallVector<Value>
ProgramPacker::convertInput(rt::DispatchOp dispatch, StringRef family,
                            NamedAttrList params,
                            ArrayRef<std::pair<Type, int64_t>> outputs) {
  MLIRContext *context = module.getContext();
  Value x = dispatch.getReads()[0];
  rt::KernelOp linear = getKernel(dispatch);
  if (Attribute rows = linear.getParams().get("rows"))
    params.set("rows", rows);
  DictionaryAttr dict = params.getDictionary(context);
  auto [kernel, isNewKernel] =
      made.try_emplace({b.getStringAttr(family), dict});
  if (isNewKernel)
    kernel->second = makeKernel(family, family, dict);
  auto [it, isNew] = converted.try_emplace({x, kernel->second.getOperation()});
  if (!isNew)
    return it->second;

  b.setInsertionPoint(dispatch);
  auto rows = llvm::cast<rt::ExprAttr>(dispatch.getSizes()[0]);
  for (auto [type, width] : outputs)
    it->second.push_back(rt::BufferOp::create(
        b, dispatch.getLoc(), rt::BufferType::get(context, type),
        rt::Lifetime::transient, "", rt::ExprAttr::mul(rows, width),
        rt::ExprAttr(), DictionaryAttr(), IntegerAttr(), IntegerAttr(),
        IntegerAttr()));
  rt::DispatchOp::create(b, dispatch.getLoc(), kernel->second.getSymName(),
                         rows, b.getArrayAttr({rows}), ValueRange{x},
                         it->second);
  ++conversions;
  return it->second;
}

SmallVector<Value> ProgramPacker::quantize(rt::DispatchOp dispatch,
                                           const Layout &layout) {
  MLIRContext *context = module.getContext();
  NamedAttrList params;
  params.set("k", b.getI64IntegerAttr(layout.k));
  params.set("group_size", b.getI64IntegerAttr(layout.sumGroup()));
  int64_t scaleGroup = layout.groupSize;
  if (layout.factorGroup)
    params.set("scale_group", b.getI64IntegerAttr(scaleGroup));
  if (auto size = getKernel(dispatch).getParams().getAs<IntegerAttr>(
          "activation_group")) {
    scaleGroup = size.getInt();
    params.set("scale_group", size);
  }
  // What the kernel adds to its sums where it has no zero points of its own.
  params.set("zero",
             b.getI64IntegerAttr(layout.zeroType ? 1 : layout.commonZero()));
  return convertInput(
      dispatch, "quantize_rows", params,
      {{IntegerType::get(context, 8), codeRowStride(layout.k)},
       {Float32Type::get(context), llvm::divideCeil(layout.k, scaleGroup)},
       {IntegerType::get(context, 32), layout.sums()}});
}

SmallVector<Value> ProgramPacker::cast(rt::DispatchOp dispatch,
                                       const Layout &layout) {
  NamedAttrList params;
  params.set("k", b.getI64IntegerAttr(layout.k));
  return convertInput(
      dispatch, "cast_rows", params,
      {{BFloat16Type::get(module.getContext()), pairRowStride(layout.k)}});
}

/// Sets the grid, and the inputs of accuracy levels 3 and 4.
LogicalResult ProgramPacker::packLinear(rt::DispatchOp dispatch) {
  rt::KernelOp kernel = getKernel(dispatch);
  auto dict = kernel.getParams().getAs<DictionaryAttr>("layout");
  if (!dict)
    return dispatch.emitOpError("multiplies by a buffer that is no constant");
  FailureOr<Layout> layout =
      Layout::parse(dict, [&] { return kernel.emitOpError(); });
  if (failed(layout))
    return failure();
  if (dispatch.getSizes().size() != 1)
    return dispatch.emitOpError("a linear has one size, its rows");
  // A grid of blocks depends on the kernel, --llm-generate-kernels sets it.
  if (!onGPU)
    dispatch.setGridAttr(
        rt::ExprAttr::constant(module.getContext(), layout->panels()));
  auto level = kernel.getParams().getAs<IntegerAttr>("accuracy_level");
  if (!level || level.getInt() < 3)
    return success();
  SmallVector<Value> reads = level.getInt() == 4 ? quantize(dispatch, *layout)
                                                 : cast(dispatch, *layout);
  llvm::append_range(reads, dispatch.getReads().drop_front());
  dispatch.getReadsMutable().assign(reads);
  return success();
}

LogicalResult ProgramPacker::run() {
  SmallVector<rt::DispatchOp> dispatches(
      program.getBody().getOps<rt::DispatchOp>());
  for (rt::DispatchOp dispatch : dispatches) {
    rt::KernelOp kernel = getKernel(dispatch);
    original[dispatch] = kernel.getParams();
    if (kernel.getParams().contains("layout"))
      return kernel.emitOpError("has a layout already");
    if (kernel.getFamily() != "linear" && kernel.getFamily() != "embedding")
      continue;
    if (dispatch.getReads().size() < 2)
      return dispatch.emitOpError("reads no weight");
    if (kernel.getFamily() == "embedding" || getFlag(dispatch, "transposed"))
      continue;
    auto buffer = dispatch.getReads()[1].getDefiningOp<rt::BufferOp>();
    if (!buffer || buffer.getLifetime() != rt::Lifetime::constant)
      continue;
    FailureOr<WeightOp> weight = weightOf(buffer);
    if (failed(weight))
      return failure();
    FailureOr<Layout> layout = linearLayout(dispatch, *weight);
    if (failed(layout))
      return failure();
    tied.try_emplace(weight->getSymName(), *layout);
  }
  for (rt::DispatchOp dispatch : dispatches) {
    for (OpOperand &operand : dispatch->getOpOperands())
      if (failed(chooseLayout(dispatch, operand)))
        return failure();
  }
  for (rt::DispatchOp dispatch : dispatches) {
    if (getKernel(dispatch).getFamily() == "linear" &&
        failed(packLinear(dispatch)))
      return failure();
    for (Value written : dispatch.getWrites())
      converted.remove_if(
          [&](auto &entry) { return entry.first.first == written; });
  }
  return success();
}

namespace {
struct PackWeightsPass : impl::PackWeightsPassBase<PackWeightsPass> {
  using PackWeightsPassBase::PackWeightsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto program : module.getOps<rt::ProgramOp>()) {
      ProgramPacker packer(module, program);
      if (failed(packer.run()))
        return signalPassFailure();
      numPanels += packer.panels;
      numConverted += packer.conversions;
    }
  }
};
} // namespace
} // namespace mlir::llm
