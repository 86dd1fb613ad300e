//===- FuseDispatches.cpp - Fewer passes over rows ------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/Passes.h"

#include "dialects/RT/IR/RTDialect.h"
#include "llm/ABI/step.h"
#include "mlir/IR/Builders.h"
#include "passes/Kernels/Layouts.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::llm {
#define GEN_PASS_DEF_FUSEDISPATCHESPASS
#include "passes/Kernels/Passes.h.inc"

namespace {
/// Fuses the dispatches of one program.
class DispatchFuser {
public:
  explicit DispatchFuser(rt::ProgramOp program)
      : program(program), symbols(program) {}

  void run();
  int64_t conversions = 0, residuals = 0, programs = 0, maxima = 0,
          rotations = 0;

private:
  rt::KernelOp getKernel(rt::DispatchOp dispatch) {
    return symbols.lookup<rt::KernelOp>(dispatch.getKernel());
  }
  rt::DispatchOp onlyWriter(Value buffer, rt::DispatchOp reader);
  bool fuseConversion(rt::DispatchOp convert);
  bool fuseResidual(rt::DispatchOp add);
  bool fuseRotation(rt::DispatchOp append);
  bool fuseProgram(rt::DispatchOp elementwise);
  bool fuseMaxima(rt::DispatchOp linear);
  bool canMove(rt::DispatchOp dispatch, rt::DispatchOp to);
  void setParams(rt::DispatchOp dispatch, NamedAttrList params);
  void setWrites(rt::DispatchOp dispatch, rt::DispatchOp of);
  void eraseUnused();

  rt::ProgramOp program;
  SymbolTable symbols;
  llvm::MapVector<std::pair<Attribute, Attribute>, rt::KernelOp> made;
};
} // namespace

static int64_t getInt(rt::KernelOp kernel, StringRef name) {
  auto attr = kernel.getParams().getAs<IntegerAttr>(name);
  return attr ? attr.getInt() : -1;
}

/// The dispatch that writes the transient `buffer`, if that is its only use but
/// for one read by `reader`.
rt::DispatchOp DispatchFuser::onlyWriter(Value buffer, rt::DispatchOp reader) {
  auto op = buffer.getDefiningOp<rt::BufferOp>();
  if (!op || op.getLifetime() != rt::Lifetime::transient)
    return {};
  rt::DispatchOp writer;
  int64_t uses = 0;
  for (OpOperand &use : buffer.getUses()) {
    ++uses;
    auto dispatch = dyn_cast<rt::DispatchOp>(use.getOwner());
    if (dispatch && dispatch != reader &&
        llvm::is_contained(dispatch.getWrites(), buffer))
      writer = dispatch;
  }
  if (uses != 2 || !writer || !writer->isBeforeInBlock(reader) ||
      writer.getSizes() != reader.getSizes())
    return {};
  return writer;
}

/// Points `dispatch` to a kernel of its family with `params`.
void DispatchFuser::setParams(rt::DispatchOp dispatch, NamedAttrList params) {
  rt::KernelOp kernel = getKernel(dispatch);
  DictionaryAttr dict = params.getDictionary(program.getContext());
  auto [it, isNew] = made.try_emplace({kernel.getFamilyAttr(), dict});
  if (isNew) {
    OpBuilder b(kernel);
    it->second = rt::KernelOp::create(b, kernel.getLoc(), kernel.getSymName(),
                                      kernel.getFamily(), dict, StringAttr());
    it->second.getVariants().emplaceBlock();
    symbols.insert(it->second);
  }
  dispatch.setKernel(it->second.getSymName());
}

/// Lets `dispatch` write what `of` writes.
void DispatchFuser::setWrites(rt::DispatchOp dispatch, rt::DispatchOp of) {
  for (Value buffer : of.getWrites())
    if (Operation *op = buffer.getDefiningOp(); dispatch->isBeforeInBlock(op))
      op->moveBefore(dispatch);
  SmallVector<Value> writes(of.getWrites());
  dispatch.getWritesMutable().assign(writes);
}

/// Elements of a quantize_rows that share a scale.
static int64_t scaleGroupOf(rt::KernelOp quantize) {
  int64_t size = getInt(quantize, "scale_group");
  return size < 0 ? getInt(quantize, "group_size") : size;
}

/// Whether a linear that makes outputs of its sums can write them in int8: a
/// work item computes all that share a scale.
static bool canQuantize(rt::KernelOp quantize) {
  int64_t size = scaleGroupOf(quantize);
  return size > 0 && size % kPanelBlock == 0 && size <= kMaxItemOutputs;
}

/// A norm, a chain of elementwise operators or a linear that ends in one, which
/// `convert` alone reads, leaves its rows converted.
bool DispatchFuser::fuseConversion(rt::DispatchOp convert) {
  rt::KernelOp kernel = getKernel(convert);
  bool int8 = kernel.getFamily() == "quantize_rows";
  if (!int8 && kernel.getFamily() != "cast_rows")
    return false;
  Value rows = convert.getReads()[0];
  rt::DispatchOp producer = onlyWriter(rows, convert);
  if (!producer || producer.getWrites().size() != 1)
    return false;
  rt::KernelOp from = getKernel(producer);
  StringRef family = from.getFamily();
  bool norm = family == "rms_norm" || family == "layer_norm";
  bool linear = family == "linear" && from.getParams().contains("ops");
  if ((!norm && !linear && family != "elementwise") ||
      from.getParams().contains("output") ||
      getInt(from, norm     ? "dim"
                   : linear ? "n"
                            : "width") != getInt(kernel, "k") ||
      (linear && int8 && !canQuantize(kernel)))
    return false;
  OpBuilder b(convert);
  NamedAttrList params(from.getParams());
  params.set("output", b.getStringAttr(int8 ? "int8" : "bf16"));
  for (StringRef name : {"group_size", "scale_group", "zero"})
    if (Attribute value = kernel.getParams().get(name))
      params.set(name, value);
  setParams(producer, params);
  setWrites(producer, convert);
  if (linear && int8)
    producer.setGridAttr(rt::ExprAttr::constant(
        program.getContext(),
        llvm::divideCeil(getInt(from, "n"), scaleGroupOf(kernel))));
  convert.erase();
  rows.getDefiningOp()->erase();
  return true;
}

/// Whether the kernel adds two inputs, and does nothing else.
static bool addsRows(rt::KernelOp kernel) {
  auto ops = kernel.getParams().getAs<ArrayAttr>("ops");
  auto broadcast = kernel.getParams().getAs<ArrayAttr>("broadcast");
  Builder b(kernel.getContext());
  return kernel.getFamily() == "elementwise" &&
         ops == b.getStrArrayAttr({"in0", "in1", "add"}) &&
         !kernel.getParams().contains("output") &&
         (!broadcast || llvm::all_of(broadcast, [](Attribute flag) {
           return flag == BoolAttr::get(flag.getContext(), false);
         }));
}

/// Whether nothing between writes what `dispatch` reads.
bool DispatchFuser::canMove(rt::DispatchOp dispatch, rt::DispatchOp to) {
  for (Operation *op = dispatch->getNextNode(); op != to;
       op = op->getNextNode())
    if (auto between = dyn_cast<rt::DispatchOp>(op))
      for (Value written : between.getWrites())
        if (llvm::is_contained(dispatch.getReads(), written))
          return false;
  return true;
}

/// Linears of the same input, in one kernel, whose outputs only `elementwise`
/// reads become one that computes its outputs, too: the gate and the product
/// behind it, or a product and its activation.
bool DispatchFuser::fuseProgram(rt::DispatchOp elementwise) {
  rt::KernelOp chain = getKernel(elementwise);
  auto broadcast = chain.getParams().getAs<ArrayAttr>("broadcast");
  if (chain.getFamily() != "elementwise" ||
      chain.getParams().contains("output") || elementwise.getReads().empty() ||
      elementwise.getWrites().size() != 1 ||
      (broadcast && llvm::any_of(broadcast, [](Attribute flag) {
         return flag != BoolAttr::get(flag.getContext(), false);
       })))
    return false;
  SmallVector<rt::DispatchOp> linears;
  for (Value rows : elementwise.getReads()) {
    rt::DispatchOp linear = onlyWriter(rows, elementwise);
    if (!linear || getKernel(linear).getFamily() != "linear" ||
        !canMove(linear, elementwise) ||
        llvm::is_contained(linear.getReads(), elementwise.getWrites()[0]))
      return false;
    linears.push_back(linear);
  }
  // With int8 three buffers are the input, else one.
  rt::DispatchOp first = linears.front();
  DictionaryAttr params = getKernel(first).getParams();
  size_t inputs = getInt(getKernel(first), "accuracy_level") == 4 ? 3 : 1;
  bool fits =
      getInt(getKernel(first), "n") == getInt(chain, "width") &&
      !params.contains("ops") &&
      params.get("residual") != BoolAttr::get(program.getContext(), true);
  for (rt::DispatchOp linear : linears)
    fits &= getKernel(linear).getParams() == params &&
            linear.getReads().take_front(inputs) ==
                first.getReads().take_front(inputs);
  if (!fits)
    return false;
  // The inputs, then the weights, then the biases.
  SmallVector<Value> reads(first.getReads().take_front(inputs));
  for (size_t i = inputs; i < first.getReads().size(); ++i)
    for (rt::DispatchOp linear : linears)
      reads.push_back(linear.getReads()[i]);
  NamedAttrList combined(params);
  combined.set("ops", chain.getParams().get("ops"));
  first->moveBefore(elementwise);
  setParams(first, combined);
  first.getReadsMutable().assign(reads);
  setWrites(first, elementwise);
  SmallVector<Value> sums(elementwise.getReads());
  elementwise.erase();
  for (rt::DispatchOp linear : ArrayRef(linears).drop_front())
    linear.erase();
  for (Value rows : sums)
    rows.getDefiningOp()->erase();
  return true;
}

/// A linear whose output only `add` reads adds the other rows itself.
bool DispatchFuser::fuseResidual(rt::DispatchOp add) {
  if (!addsRows(getKernel(add)) || add.getReads().size() != 2)
    return false;
  // Of two linears the later one, which moves past less.
  rt::DispatchOp linear;
  Value sums, residual;
  for (unsigned i : {0, 1}) {
    rt::DispatchOp writer = onlyWriter(add.getReads()[i], add);
    if (!writer || (linear && writer->isBeforeInBlock(linear)))
      continue;
    rt::KernelOp kernel = getKernel(writer);
    auto has = kernel.getParams().getAs<BoolAttr>("residual");
    if (kernel.getFamily() != "linear" || (has && has.getValue()) ||
        getInt(kernel, "n") != getInt(getKernel(add), "width"))
      continue;
    linear = writer;
    sums = add.getReads()[i];
    residual = add.getReads()[1 - i];
  }
  if (!linear || llvm::is_contained(add.getWrites(), residual))
    return false;
  // The linear moves to where the other rows are known to be there.
  if (!canMove(linear, add))
    return false;
  linear->moveBefore(add);
  NamedAttrList params(getKernel(linear).getParams());
  params.set("residual", BoolAttr::get(program.getContext(), true));
  setParams(linear, params);
  linear.getReadsMutable().append(residual);
  setWrites(linear, add);
  add.erase();
  sums.getDefiningOp()->erase();
  return true;
}

/// Keys that only `append` reads rotated are rotated as they are stored.
bool DispatchFuser::fuseRotation(rt::DispatchOp append) {
  rt::KernelOp kernel = getKernel(append);
  if (kernel.getFamily() != "kv_append" || append.getReads().size() != 3)
    return false;
  Value rows = append.getReads()[0];
  rt::DispatchOp rope = onlyWriter(rows, append);
  if (!rope || getKernel(rope).getFamily() != "rope")
    return false;
  DictionaryAttr rotation = getKernel(rope).getParams();
  int64_t heads = getInt(getKernel(rope), "heads");
  if (heads * getInt(getKernel(rope), "size") != getInt(kernel, "width") ||
      (kernel.getParams().contains("heads") &&
       getInt(kernel, "heads") != heads))
    return false;
  // What is read must still be there.
  for (Operation *op = rope->getNextNode(); op != append;
       op = op->getNextNode())
    if (auto between = dyn_cast<rt::DispatchOp>(op))
      for (Value written : between.getWrites())
        if (llvm::is_contained(rope.getReads(), written))
          return false;
  NamedAttrList params(kernel.getParams());
  for (StringRef name : {"heads", "rotary_dim", "positions", "interleaved"})
    if (Attribute value = rotation.get(name))
      params.set(name, value);
  setParams(append, params);
  SmallVector<Value> reads(append.getReads());
  reads[0] = rope.getReads()[0];
  llvm::append_range(reads, rope.getReads().drop_front());
  append.getReadsMutable().assign(reads);
  rope.erase();
  rows.getDefiningOp()->erase();
  return true;
}

/// A linear that writes the logits leaves their maxima, for who samples.
bool DispatchFuser::fuseMaxima(rt::DispatchOp linear) {
  rt::KernelOp kernel = getKernel(linear);
  if (kernel.getFamily() != "linear" || kernel.getParams().contains("ops") ||
      kernel.getParams().contains("maxima"))
    return false;
  auto logits = linear.getWrites()[0].getDefiningOp<rt::BufferOp>();
  if (!logits || logits.getLifetime() != rt::Lifetime::io ||
      logits.getName() != "logits" ||
      !llvm::all_of(logits.getResult().getUses(),
                    [&](OpOperand &use) { return use.getOwner() == linear; }))
    return false;
  static_assert(kPanelBlock == LLM_LOGITS_BLOCK);
  OpBuilder b(logits);
  auto rows = llvm::cast<rt::ExprAttr>(linear.getSizes()[0]);
  int64_t panels = llvm::divideCeil(getInt(kernel, "n"), kPanelBlock);
  auto buffer = rt::BufferOp::create(
      b, logits.getLoc(), logits.getResult().getType(), rt::Lifetime::io,
      "logits_maxima", rt::ExprAttr::mul(rows, panels), rt::ExprAttr(),
      DictionaryAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr());
  NamedAttrList params(kernel.getParams());
  params.set("maxima", b.getBoolAttr(true));
  setParams(linear, params);
  linear.getWritesMutable().append(buffer.getResult());
  return true;
}

void DispatchFuser::eraseUnused() {
  llvm::StringSet<> used;
  for (auto dispatch : program.getBody().getOps<rt::DispatchOp>())
    used.insert(dispatch.getKernel());
  for (auto kernel :
       llvm::make_early_inc_range(program.getBody().getOps<rt::KernelOp>()))
    if (!used.contains(kernel.getSymName()))
      kernel.erase();
}

void DispatchFuser::run() {
  for (auto dispatch :
       llvm::make_early_inc_range(program.getBody().getOps<rt::DispatchOp>())) {
    if (fuseConversion(dispatch))
      ++conversions;
    else if (fuseResidual(dispatch))
      ++residuals;
    else if (fuseProgram(dispatch))
      ++programs;
    else if (fuseRotation(dispatch))
      ++rotations;
  }
  // Last: the logits may be what another dispatch was taken into.
  for (auto dispatch : program.getBody().getOps<rt::DispatchOp>())
    maxima += fuseMaxima(dispatch);
  if (conversions || residuals || programs || maxima || rotations)
    eraseUnused();
}

namespace {
struct FuseDispatchesPass : impl::FuseDispatchesPassBase<FuseDispatchesPass> {
  using FuseDispatchesPassBase::FuseDispatchesPassBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<rt::ProgramOp>()) {
      if (program.getTarget() != "cpu")
        continue;
      DispatchFuser fuser(program);
      fuser.run();
      numConversions += fuser.conversions;
      numResiduals += fuser.residuals;
      numRotations += fuser.rotations;
      numPrograms += fuser.programs;
      numMaxima += fuser.maxima;
    }
  }
};
} // namespace
} // namespace mlir::llm
