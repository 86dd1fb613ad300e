//===- FuseDispatches.cpp - Fewer passes over rows ------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/Passes.h"

#include "dialects/RT/IR/RTDialect.h"
#include "mlir/IR/Builders.h"
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
  int64_t conversions = 0, residuals = 0, rotations = 0;

private:
  rt::KernelOp getKernel(rt::DispatchOp dispatch) {
    return symbols.lookup<rt::KernelOp>(dispatch.getKernel());
  }
  rt::DispatchOp onlyWriter(Value buffer, rt::DispatchOp reader);
  bool fuseConversion(rt::DispatchOp convert);
  bool fuseResidual(rt::DispatchOp add);
  bool fuseRotation(rt::DispatchOp append);
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

/// A norm or chain of elementwise operators that `convert` alone reads leaves
/// its rows converted.
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
  if ((!norm && family != "elementwise") ||
      from.getParams().contains("output") ||
      getInt(from, norm ? "dim" : "width") != getInt(kernel, "k"))
    return false;
  OpBuilder b(convert);
  NamedAttrList params(from.getParams());
  params.set("output", b.getStringAttr(int8 ? "int8" : "bf16"));
  for (StringRef name : {"group_size", "zero"})
    if (Attribute value = kernel.getParams().get(name))
      params.set(name, value);
  setParams(producer, params);
  setWrites(producer, convert);
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
  for (Operation *op = linear->getNextNode(); op != add; op = op->getNextNode())
    if (auto between = dyn_cast<rt::DispatchOp>(op))
      for (Value written : between.getWrites())
        if (llvm::is_contained(linear.getReads(), written))
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
    else if (fuseRotation(dispatch))
      ++rotations;
  }
  if (conversions || residuals || rotations)
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
    }
  }
};
} // namespace
} // namespace mlir::llm
