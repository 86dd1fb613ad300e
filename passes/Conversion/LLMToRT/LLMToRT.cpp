//===- LLMToRT.cpp - Decoder functions to programs ------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToRT/Passes.h"

#include "dialects/Decode/IR/DecodeDialect.h"
#include "dialects/KV/IR/KVDialect.h"
#include "dialects/KV/IR/Planes.h"
#include "dialects/LLM/IR/LLMDialect.h"
#include "dialects/RT/IR/RTDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::llm {
#define GEN_PASS_DEF_CONVERTLLMTORTPASS
#include "passes/Conversion/LLMToRT/Passes.h.inc"
} // namespace mlir::llm

using namespace mlir;
using namespace mlir::llm;
using rt::ExprAttr;
using rt::Lifetime;

namespace {

/// A tensor of the decoder function as a buffer: [rows, width] or [rows].
struct Rows {
  rt::BufferOp buffer;
  ExprAttr rows;    ///< T or R
  StringRef symbol; ///< its name
};

/// Converts one function for one target.
class ProgramBuilder {
public:
  ProgramBuilder(func::FuncOp func, StringRef target, OpBuilder &builder)
      : func(func), target(target), builder(builder),
        context(func.getContext()), symT(ExprAttr::symbol(context, "T")),
        symS(ExprAttr::symbol(context, "S")),
        symR(ExprAttr::symbol(context, "R")),
        symB(ExprAttr::symbol(context, "B")),
        symC(ExprAttr::symbol(context, "C")) {}

  FailureOr<rt::ProgramOp> build(StringRef name);

  unsigned dispatches = 0;
  unsigned kernels = 0;

private:
  LogicalResult convert(Operation *op);
  LogicalResult convertAttend(kv::AttendOp op);
  LogicalResult convertAppend(kv::AppendOp op);
  LogicalResult convertFused(FusedElementwiseOp op);
  LogicalResult convertLinear(LinearOp op);
  LogicalResult convertNorm(Operation *op, Value input, Value scale, Value bias,
                            int64_t axis, double epsilon, StringRef family);
  LogicalResult convertObserve(kv::ObserveOp op);
  LogicalResult convertRope(RopeOp op);
  LogicalResult convertRowGather(GatherOp op);
  LogicalResult convertSplit(SplitOp op);

  /// The rows that a value stands for, or an error at `user`.
  FailureOr<Rows> rowsOf(Operation *user, Value value) {
    auto it = values.find(value);
    if (it == values.end())
      return user->emitOpError("operand of type ")
             << value.getType() << " has no rows in the decoder form";
    return it->second;
  }

  /// The constant buffer of a weight, one per symbol.
  FailureOr<rt::BufferOp> constantOf(Operation *user, Value value) {
    auto get = value.getDefiningOp<GetWeightOp>();
    if (!get)
      return user->emitOpError("needs a weight, not a computed tensor of type ")
             << value.getType();
    rt::BufferOp &buffer = constants[get.getWeight()];
    if (!buffer) {
      auto type = cast<RankedTensorType>(value.getType());
      buffer = makeBuffer(get.getLoc(), Lifetime::constant, get.getWeight(),
                          ExprAttr::constant(context, type.getNumElements()),
                          type.getElementType());
    }
    return buffer;
  }

  rt::BufferOp ioBuffer(Location loc, StringRef name, ExprAttr elements,
                        Type element) {
    rt::BufferOp &buffer = ios[name];
    if (!buffer)
      buffer = makeBuffer(loc, Lifetime::io, name, elements, element);
    return buffer;
  }

  rt::BufferOp makeBuffer(Location loc, Lifetime lifetime, StringRef name,
                          ExprAttr elements, Type element) {
    return rt::BufferOp::create(builder, loc,
                                rt::BufferType::get(context, element), lifetime,
                                name, elements, ExprAttr(), DictionaryAttr(),
                                IntegerAttr(), IntegerAttr(), IntegerAttr());
  }

  /// Result rows: an io buffer where the function returns the value, or the
  /// first observation reads it where it lies.
  Rows defineRows(Value result, const Rows &like, int64_t width) {
    ExprAttr elements = ExprAttr::mul(like.rows, width);
    Type element = cast<RankedTensorType>(result.getType()).getElementType();
    std::string name = result == returnedLogits ? "logits" : "";
    if (auto it = observed.find(result); it != observed.end() && name.empty())
      name = "tap." + it->second.getName().str();
    Rows rows{makeBuffer(result.getLoc(),
                         name.empty() ? Lifetime::transient : Lifetime::io,
                         name, elements, element),
              like.rows, like.symbol};
    values[result] = rows;
    return rows;
  }

  rt::BufferOp plane(Operation *op, kv::CacheType cache, int64_t group,
                     int64_t layer, unsigned index);

  /// A dispatch of the kernel for (family, params), made on first use.
  void dispatch(Location loc, StringRef family, NamedAttrList params,
                ArrayRef<Value> reads, ArrayRef<Value> writes,
                ArrayRef<ExprAttr> sizes, ExprAttr grid);

  /// What a kernel must know of a weight's storage; two dispatches share a
  /// kernel only where this agrees.
  FailureOr<Attribute> weightAttr(Operation *user, StringRef symbol);

  func::FuncOp func;
  StringRef target;
  OpBuilder &builder;
  MLIRContext *context;
  ExprAttr symT, symS, symR, symB, symC;
  Value returnedLogits;
  /// The first observation of each value.
  DenseMap<Value, kv::ObserveOp> observed;
  llvm::StringMap<Operation *> sideRows;
  DenseMap<Value, Rows> values;
  llvm::MapVector<StringRef, rt::BufferOp> constants, ios;
  llvm::StringMap<rt::BufferOp> planes;
  DenseMap<std::pair<StringAttr, DictionaryAttr>, StringAttr> kernelNames;
  llvm::StringMap<unsigned> familyCounts;
  rt::ProgramOp program;
};

} // namespace

FailureOr<rt::ProgramOp> ProgramBuilder::build(StringRef name) {
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("a decoder function has one block"), failure();
  Block &block = func.getBody().front();
  auto ret = cast<func::ReturnOp>(block.getTerminator());
  if (ret.getNumOperands() < 1 ||
      !isa<RankedTensorType>(ret.getOperand(0).getType()))
    return ret.emitOpError("a decoder function returns logits first"),
           failure();
  // A part of a decoder is run for what it hands out.
  bool isPart = func->hasAttr("llm.part");
  if (!isPart)
    returnedLogits = ret.getOperand(0);
  for (Operation &op : block) {
    auto observe = dyn_cast<kv::ObserveOp>(op);
    if (observe)
      observed.try_emplace(observe.getRows(), observe);
    if (!observe && !isa<kv::SupplyOp>(op))
      continue;
    // What comes in may have the name of what goes out.
    auto name = op.getAttrOfType<StringAttr>("name");
    auto [it, isNew] =
        sideRows.try_emplace((observe ? "tap." : "feed.") + name.str(), &op);
    if (isNew)
      continue;
    InFlightDiagnostic error = op.emitOpError("has the name '")
                               << name.getValue() << "' of another one";
    error.attachNote(it->second->getLoc()) << "the other one";
    return failure();
  }

  program = rt::ProgramOp::create(
      builder, func.getLoc(), name, target,
      builder.getStrArrayAttr({"T", "S", "R", "P", "B", "C"}),
      /*row_invariant=*/true, ExprAttr(), StringAttr());
  for (StringRef attr : {"llm.max_context", "llm.vocab", "llm.model"})
    if (Attribute value = func->getAttr(attr))
      program->setAttr(attr, value);
  for (BlockArgument argument : block.getArguments())
    if (isa<kv::CacheType>(argument.getType()))
      program->setAttr("rt.cache", TypeAttr::get(argument.getType()));

  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&program.getBody());
  for (Operation &op : block.without_terminator())
    if (failed(convert(&op)))
      return failure();
  if (returnedLogits && !values.count(returnedLogits))
    return ret.emitOpError("returns logits that no op computes"), failure();
  // Kernels and buffers first, so that the list of dispatches reads as one.
  Block &body = program.getBody().front();
  SmallVector<Operation *> kernelOps, bufferOps;
  for (Operation &op : body) {
    if (isa<rt::KernelOp>(op))
      kernelOps.push_back(&op);
    else if (isa<rt::BufferOp>(op))
      bufferOps.push_back(&op);
  }
  for (Operation *op : llvm::reverse(bufferOps))
    op->moveBefore(&body, body.begin());
  for (Operation *op : llvm::reverse(kernelOps))
    op->moveBefore(&body, body.begin());
  return program;
}

void ProgramBuilder::dispatch(Location loc, StringRef family,
                              NamedAttrList params, ArrayRef<Value> reads,
                              ArrayRef<Value> writes, ArrayRef<ExprAttr> sizes,
                              ExprAttr grid) {
  auto dictionary = params.getDictionary(context);
  StringAttr &name =
      kernelNames[{StringAttr::get(context, family), dictionary}];
  if (!name) {
    name =
        StringAttr::get(context, family + "_" + Twine(familyCounts[family]++));
    OpBuilder::InsertionGuard guard(builder);
    auto kernel = rt::KernelOp::create(builder, loc, name, family, dictionary,
                                       StringAttr());
    builder.createBlock(&kernel.getVariants());
    ++kernels;
  }
  SmallVector<Attribute> sizeAttrs(sizes.begin(), sizes.end());
  rt::DispatchOp::create(builder, loc, FlatSymbolRefAttr::get(name), grid,
                         builder.getArrayAttr(sizeAttrs), reads, writes);
  ++dispatches;
}

FailureOr<Attribute> ProgramBuilder::weightAttr(Operation *user,
                                                StringRef symbol) {
  auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(
      func, StringAttr::get(context, symbol));
  if (!weight)
    return user->emitOpError("no llm.weight is named @") << symbol, failure();
  NamedAttrList attrs;
  if (auto affine = dyn_cast<AffineGroupsFormatAttr>(weight.getFormat())) {
    attrs.set("kind", builder.getStringAttr("affine"));
    attrs.set("bits", builder.getI64IntegerAttr(affine.getBits()));
    attrs.set("group_size", builder.getI64IntegerAttr(affine.getGroupSize()));
    if (affine.getFactors())
      attrs.set("factor_group",
                builder.getI64IntegerAttr(affine.getFactorGroup()));
    attrs.set("zeros",
              builder.getBoolAttr(static_cast<bool>(affine.getZeros())));
  } else {
    attrs.set("kind", builder.getStringAttr("dense"));
    attrs.set("type", TypeAttr::get(weight.getTensorType().getElementType()));
  }
  return attrs.getDictionary(context);
}

LogicalResult ProgramBuilder::convert(Operation *op) {
  Location loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      // Read by the ops that use them.
      .Case<ConstantOp, GetWeightOp>([&](auto) { return success(); })
      .Case([&](kv::ReadStepOp read) -> LogicalResult {
        StringRef field = read.getField();
        bool row = field == "logit_row";
        bool token = field == "token" || field == "position" ||
                     field == "seq" || field == "role";
        if (!row && !token)
          return op->emitOpError("step array '")
                 << field << "' has no rows of tokens or logits";
        ExprAttr rows = row ? symR : symT;
        values[read.getResult()] = {
            ioBuffer(loc, field, rows, builder.getI32Type()), rows,
            row ? "R" : "T"};
        return success();
      })
      .Case([&](kv::SupplyOp supply) -> LogicalResult {
        int64_t width =
            cast<RankedTensorType>(supply.getResult().getType()).getDimSize(1);
        std::string name = "feed." + supply.getName().str();
        values[supply.getResult()] = {makeBuffer(loc, Lifetime::io, name,
                                                 ExprAttr::mul(symT, width),
                                                 builder.getF32Type()),
                                      symT, "T"};
        return success();
      })
      .Case([&](kv::ObserveOp observe) { return convertObserve(observe); })
      .Case([&](EmbeddingOp embedding) -> LogicalResult {
        FailureOr<Rows> ids = rowsOf(op, embedding.getIndices());
        FailureOr<rt::BufferOp> table = constantOf(op, embedding.getTable());
        if (failed(ids) || failed(table))
          return failure();
        FailureOr<Attribute> weight = weightAttr(op, table->getName());
        if (failed(weight))
          return failure();
        auto type = cast<RankedTensorType>(embedding.getTable().getType());
        Rows out = defineRows(embedding.getResult(), *ids, type.getDimSize(1));
        NamedAttrList params;
        params.set("vocab", builder.getI64IntegerAttr(type.getDimSize(0)));
        params.set("dim", builder.getI64IntegerAttr(type.getDimSize(1)));
        params.set("weight", *weight);
        dispatch(loc, "embedding", params, {ids->buffer, *table}, {out.buffer},
                 {ids->rows}, ids->rows);
        return success();
      })
      .Case([&](RMSNormOp norm) {
        return convertNorm(op, norm.getInput(), norm.getScale(), Value(),
                           norm.getAxis(), norm.getEpsilon().convertToDouble(),
                           "rms_norm");
      })
      .Case([&](LayerNormOp norm) {
        return convertNorm(op, norm.getInput(), norm.getScale(), norm.getBias(),
                           norm.getAxis(), norm.getEpsilon().convertToDouble(),
                           "layer_norm");
      })
      .Case([&](LinearOp linear) { return convertLinear(linear); })
      .Case([&](RopeOp rope) { return convertRope(rope); })
      .Case([&](GatherOp gather) { return convertRowGather(gather); })
      .Case([&](SplitOp split) { return convertSplit(split); })
      .Case([&](FusedElementwiseOp fused) { return convertFused(fused); })
      .Case([&](kv::AppendOp append) { return convertAppend(append); })
      .Case([&](kv::AttendOp attend) { return convertAttend(attend); })
      .Default([&](Operation *) -> LogicalResult {
        return op->emitOpError("has no kernel family in the decoder form");
      });
}

LogicalResult ProgramBuilder::convertNorm(Operation *op, Value input,
                                          Value scale, Value bias, int64_t axis,
                                          double epsilon, StringRef family) {
  FailureOr<Rows> x = rowsOf(op, input);
  FailureOr<rt::BufferOp> gain = constantOf(op, scale);
  if (failed(x) || failed(gain))
    return failure();
  auto type = cast<RankedTensorType>(input.getType());
  if (type.getRank() != 2 || (axis != -1 && axis != 1))
    return op->emitOpError("normalizes other than whole rows");
  FailureOr<Attribute> weight = weightAttr(op, gain->getName());
  if (failed(weight))
    return failure();
  NamedAttrList params;
  params.set("dim", builder.getI64IntegerAttr(type.getDimSize(1)));
  params.set("epsilon", builder.getF64FloatAttr(epsilon));
  params.set("weight", *weight);
  params.set("rows", builder.getStringAttr(x->symbol));
  SmallVector<Value> reads = {x->buffer, *gain};
  if (family == "layer_norm") {
    params.set("bias", builder.getBoolAttr(static_cast<bool>(bias)));
    if (bias) {
      FailureOr<rt::BufferOp> shift = constantOf(op, bias);
      if (failed(shift))
        return failure();
      reads.push_back(*shift);
    }
  }
  Rows out = defineRows(op->getResult(0), *x, type.getDimSize(1));
  dispatch(op->getLoc(), family, params, reads, {out.buffer}, {x->rows},
           x->rows);
  return success();
}

LogicalResult ProgramBuilder::convertLinear(LinearOp op) {
  FailureOr<Rows> x = rowsOf(op, op.getInput());
  FailureOr<rt::BufferOp> matrix = constantOf(op, op.getWeight());
  if (failed(x) || failed(matrix))
    return failure();
  FailureOr<Attribute> weight = weightAttr(op, matrix->getName());
  if (failed(weight))
    return failure();
  auto type = cast<RankedTensorType>(op.getWeight().getType());
  int64_t n = type.getDimSize(op.getTransposed() ? 1 : 0);
  int64_t k = type.getDimSize(op.getTransposed() ? 0 : 1);
  NamedAttrList params;
  params.set("n", builder.getI64IntegerAttr(n));
  params.set("k", builder.getI64IntegerAttr(k));
  params.set("bias", builder.getBoolAttr(static_cast<bool>(op.getBias())));
  params.set("accuracy_level",
             builder.getI64IntegerAttr(op.getAccuracyLevel()));
  if (op.getActivationGroup())
    params.set("activation_group",
               builder.getI64IntegerAttr(op.getActivationGroup()));
  params.set("rows", builder.getStringAttr(x->symbol));
  params.set("transposed", builder.getBoolAttr(op.getTransposed()));
  params.set("weight", *weight);
  SmallVector<Value> reads = {x->buffer, *matrix};
  if (op.getBias()) {
    FailureOr<rt::BufferOp> bias = constantOf(op, op.getBias());
    if (failed(bias))
      return failure();
    reads.push_back(*bias);
  }
  Rows out = defineRows(op.getResult(), *x, n);
  // One item per output until --llm-pack-weights has chosen the panel's width.
  dispatch(op.getLoc(), "linear", params, reads, {out.buffer}, {x->rows},
           ExprAttr::constant(context, n));
  return success();
}

LogicalResult ProgramBuilder::convertObserve(kv::ObserveOp op) {
  FailureOr<Rows> rows = rowsOf(op, op.getRows());
  if (failed(rows))
    return failure();
  std::string name = "tap." + op.getName().str();
  if (rows->buffer.getName() == name)
    return success();
  // The buffer has another name already.
  int64_t width = cast<RankedTensorType>(op.getRows().getType()).getDimSize(1);
  rt::BufferOp copy =
      makeBuffer(op.getLoc(), Lifetime::io, name,
                 ExprAttr::mul(rows->rows, width), builder.getF32Type());
  NamedAttrList params;
  params.set("from", builder.getI64IntegerAttr(width));
  params.set("offset", builder.getI64IntegerAttr(0));
  params.set("width", builder.getI64IntegerAttr(width));
  dispatch(op.getLoc(), "columns", params, {rows->buffer}, {copy}, {rows->rows},
           rows->rows);
  return success();
}

LogicalResult ProgramBuilder::convertRope(RopeOp op) {
  FailureOr<Rows> x = rowsOf(op, op.getInput());
  if (failed(x))
    return failure();
  if (!op.getPositions())
    return op.emitOpError("needs positions in the decoder form");
  FailureOr<Rows> positions = rowsOf(op, op.getPositions());
  FailureOr<rt::BufferOp> cos = constantOf(op, op.getCosTable());
  FailureOr<rt::BufferOp> sin = constantOf(op, op.getSinTable());
  if (failed(positions) || failed(cos) || failed(sin))
    return failure();
  FailureOr<Attribute> weight = weightAttr(op, cos->getName());
  if (failed(weight))
    return failure();
  auto type = cast<RankedTensorType>(op.getInput().getType());
  auto table = cast<RankedTensorType>(op.getCosTable().getType());
  int64_t heads = op.getNumHeads(), width = type.getDimSize(1);
  if (heads <= 0 || width % heads != 0)
    return op.emitOpError("rows of ") << width << " do not hold whole heads";
  int64_t rotary =
      op.getRotaryDim() ? op.getRotaryDim() : 2 * table.getDimSize(1);
  if (rotary > width / heads)
    return op.emitOpError("tables turn ")
           << rotary << " elements of a head of " << width / heads;
  NamedAttrList params;
  params.set("heads", builder.getI64IntegerAttr(heads));
  params.set("size", builder.getI64IntegerAttr(width / heads));
  params.set("rotary_dim", builder.getI64IntegerAttr(rotary));
  params.set("interleaved", builder.getBoolAttr(op.getInterleaved()));
  params.set("positions", builder.getI64IntegerAttr(table.getDimSize(0)));
  params.set("weight", *weight);
  Rows out = defineRows(op.getResult(), *x, width);
  dispatch(op.getLoc(), "rope", params,
           {x->buffer, positions->buffer, *cos, *sin}, {out.buffer}, {x->rows},
           x->rows);
  return success();
}

LogicalResult ProgramBuilder::convertRowGather(GatherOp op) {
  FailureOr<Rows> x = rowsOf(op, op.getInput());
  FailureOr<Rows> index = rowsOf(op, op.getIndices());
  if (failed(x) || failed(index))
    return failure();
  auto type = cast<RankedTensorType>(op.getInput().getType());
  if (type.getRank() != 2 || op.getAxis() != 0)
    return op.emitOpError("picks other than rows");
  NamedAttrList params;
  params.set("dim", builder.getI64IntegerAttr(type.getDimSize(1)));
  Rows out = defineRows(op.getResult(), *index, type.getDimSize(1));
  dispatch(op.getLoc(), "gather_rows", params, {x->buffer, index->buffer},
           {out.buffer}, {index->rows}, index->rows);
  return success();
}

LogicalResult ProgramBuilder::convertSplit(SplitOp op) {
  FailureOr<Rows> x = rowsOf(op, op.getInput());
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(op.getInput().getType());
  if (type.getRank() != 2 || normalizeAxis(op.getAxis(), 2) != 1)
    return op.emitOpError("splits other than rows");
  int64_t offset = 0;
  for (Value part : op.getResults()) {
    int64_t width = cast<RankedTensorType>(part.getType()).getDimSize(1);
    if (ShapedType::isDynamic(width))
      return op.emitOpError("splits rows into parts of unknown width");
    NamedAttrList params;
    params.set("from", builder.getI64IntegerAttr(type.getDimSize(1)));
    params.set("offset", builder.getI64IntegerAttr(offset));
    params.set("width", builder.getI64IntegerAttr(width));
    Rows out = defineRows(part, *x, width);
    dispatch(op.getLoc(), "columns", params, {x->buffer}, {out.buffer},
             {x->rows}, x->rows);
    offset += width;
  }
  return success();
}

LogicalResult ProgramBuilder::convertFused(FusedElementwiseOp op) {
  SmallVector<Value> reads;
  SmallVector<bool> broadcast;
  std::optional<Rows> like;
  for (Value input : op.getInputs()) {
    if (cast<RankedTensorType>(input.getType()).getRank() == 1) {
      FailureOr<rt::BufferOp> row = constantOf(op, input);
      if (failed(row))
        return failure();
      reads.push_back(*row);
      broadcast.push_back(true);
      continue;
    }
    FailureOr<Rows> rows = rowsOf(op, input);
    if (failed(rows))
      return failure();
    if (like && like->symbol != rows->symbol)
      return op.emitOpError("mixes rows of tokens and rows of logits");
    like = *rows;
    reads.push_back(rows->buffer);
    broadcast.push_back(false);
  }
  if (!like)
    return op.emitOpError("has no operand with rows");
  int64_t width =
      cast<RankedTensorType>(op.getResult().getType()).getDimSize(1);
  NamedAttrList params;
  params.set("ops", op.getOps());
  params.set("width", builder.getI64IntegerAttr(width));
  params.set("broadcast", builder.getBoolArrayAttr(broadcast));
  Rows out = defineRows(op.getResult(), *like, width);
  dispatch(op.getLoc(), "elementwise", params, reads, {out.buffer},
           {like->rows}, like->rows);
  return success();
}

rt::BufferOp ProgramBuilder::plane(Operation *op, kv::CacheType cache,
                                   int64_t group, int64_t layer,
                                   unsigned index) {
  kv::GroupAttr attr = cache.getGroups()[group];
  kv::PlaneAttr plane = attr.getPlanes()[index];
  std::string name = (Twine("cache.") + Twine(group) + "." + Twine(layer) +
                      "." + plane.getName())
                         .str();
  rt::BufferOp &buffer = planes[name];
  if (buffer)
    return buffer;
  int64_t width = 1;
  for (int64_t dim : plane.getShape())
    width *= dim;
  buffer = makeBuffer(op->getLoc(), Lifetime::state, name,
                      ExprAttr::mul(symC, width), plane.getElementType());
  buffer.setGroup(group);
  buffer.setLayer(layer);
  buffer.setPlane(index);
  return buffer;
}

namespace {
/// How attention is cut into items on a CPU.
struct AttentionTiling {
  AttentionTiling(int64_t heads, int64_t kvHeads, int64_t size,
                  int64_t valueSize, Type element) {
    // About 96 rows suffice to make loading a chunk cheap; a step of few
    // tokens is cut finer, so that there are items for many threads.
    constexpr int64_t kRows = 96, kTokens = 32, kElements = 1 << 17,
                      kItems = 32, kSplit = 8, kRun = 1024;
    int64_t group = std::max<int64_t>(1, heads / kvHeads);
    int64_t rows = kElements / (size + 2 * valueSize);
    tile = std::clamp<int64_t>(std::min(kRows, rows) / group, 1, kTokens);
    minTiles = (kItems + kvHeads - 1) / kvHeads;
    // Heads that are read together make runs of memory that are long enough
    // to stream.
    int64_t bytes = (element.getIntOrFloatBitWidth() + 7) / 8;
    for (int64_t groups : {2, 3, 4})
      if (kvHeads % groups == 0 &&
          kvHeads / groups * std::min(size, valueSize) * bytes >= kRun)
        headGroups = groups;
    while (headGroups < kvHeads && heads / headGroups > rows) {
      ++headGroups;
      while (kvHeads % headGroups)
        ++headGroups;
    }
    split = std::clamp<int64_t>(rows / (heads / headGroups), 0, kSplit);
  }
  int64_t tile, minTiles, headGroups = 1, split;
};
} // namespace

static std::string perGroup(StringRef name, int64_t group) {
  return (name + "." + Twine(group)).str();
}

/// Whether kernels for a CPU keep keys and values in blocks of 16 slots: pages
/// are whole blocks, and keys whole pairs.
static bool inBlocks(kv::GroupAttr group) {
  constexpr int64_t kSlots = 16;
  if (!group.getPageSize() || group.getPageSize() % kSlots)
    return false;
  std::optional<unsigned> key = kv::findTokenPlane(group, "k");
  if (!key || !kv::findTokenPlane(group, "v"))
    return false;
  int64_t width = 1;
  for (int64_t dim : group.getPlanes()[*key].getShape())
    width *= dim;
  return width / group.getKvHeads() % 2 == 0;
}

LogicalResult ProgramBuilder::convertAppend(kv::AppendOp op) {
  kv::CacheType cache = op.getCache().getType();
  int64_t group = op.getGroup();
  Type i32 = builder.getI32Type();
  StringRef slotName = StringAttr::get(context, perGroup("slot", group));
  rt::BufferOp slot = ioBuffer(op.getLoc(), slotName, symT, i32);
  rt::BufferOp seq = ioBuffer(op.getLoc(), "seq", symT, i32);
  unsigned index = 0;
  kv::GroupAttr attr = cache.getGroups()[group];
  for (auto [i, planeAttr] : llvm::enumerate(attr.getPlanes())) {
    if (planeAttr.getGranularity() != kv::Granularity::token ||
        kv::isScalePlane(attr, i))
      continue;
    FailureOr<Rows> rows = rowsOf(op, op.getRows()[index++]);
    if (failed(rows))
      return failure();
    int64_t width = 1;
    for (int64_t dim : planeAttr.getShape())
      width *= dim;
    NamedAttrList params;
    params.set("width", builder.getI64IntegerAttr(width));
    params.set("cache_type", TypeAttr::get(planeAttr.getElementType()));
    StringRef name = planeAttr.getName();
    if (target == "cpu" && inBlocks(attr) && (name == "k" || name == "v")) {
      params.set("heads", builder.getI64IntegerAttr(attr.getKvHeads()));
      params.set("plane", builder.getStringAttr(name == "k" ? "key_blocks"
                                                            : "value_blocks"));
    }
    SmallVector<Value> writes{plane(op, cache, group, op.getLayer(), i)};
    if (std::optional<unsigned> scale = kv::scaleOfPlane(attr, i)) {
      params.set("heads", builder.getI64IntegerAttr(attr.getKvHeads()));
      writes.push_back(plane(op, cache, group, op.getLayer(), *scale));
    }
    dispatch(op.getLoc(), "kv_append", params, {rows->buffer, slot, seq},
             writes, {symT}, symT);
  }
  return success();
}

LogicalResult ProgramBuilder::convertAttend(kv::AttendOp op) {
  FailureOr<Rows> query = rowsOf(op, op.getQuery());
  if (failed(query))
    return failure();
  if (op.getSink())
    return op.emitOpError("attention sinks have no kernel yet");
  if (op.getMass())
    return op.emitOpError("attention mass has no kernel yet");
  kv::CacheType cache = op.getCache().getType();
  int64_t group = op.getGroup(), heads = op.getNumHeads();
  kv::GroupAttr attr = cache.getGroups()[group];
  std::optional<unsigned> key, value;
  for (auto [i, plane] : llvm::enumerate(attr.getPlanes())) {
    if (plane.getName() == "k")
      key = i;
    if (plane.getName() == "v")
      value = i;
  }
  if (!key || !value)
    return op.emitOpError("the cache group has no planes named k and v");
  if (!attr.getKeysRotated() && op->hasAttr("rotate_on_read"))
    return op.emitOpError("rotation on read has no kernel yet");
  kv::PlaneAttr valuePlane = attr.getPlanes()[*value];
  Type i32 = builder.getI32Type();
  Location loc = op.getLoc();
  ExprAttr one = ExprAttr::constant(context, 1);
  auto named = [&](StringRef name) -> StringRef {
    return StringAttr::get(context, perGroup(name, group));
  };
  rt::BufferOp seq = ioBuffer(loc, "seq", symT, i32);
  rt::BufferOp begin = ioBuffer(loc, "q_begin", ExprAttr::add(symS, one), i32);
  rt::BufferOp length = ioBuffer(loc, named("kv_len"), symS, i32);
  rt::BufferOp table =
      ioBuffer(loc, named("block_table"), ExprAttr::mul(symS, symB), i32);
  int64_t width = cast<RankedTensorType>(op.getQuery().getType()).getDimSize(1);
  int64_t valueSize = 1;
  for (int64_t dim : valuePlane.getShape())
    valueSize *= dim;
  valueSize /= attr.getKvHeads();
  NamedAttrList params;
  params.set("heads", builder.getI64IntegerAttr(heads));
  params.set("kv_heads", builder.getI64IntegerAttr(attr.getKvHeads()));
  params.set("size", builder.getI64IntegerAttr(width / heads));
  params.set("value_size", builder.getI64IntegerAttr(valueSize));
  params.set("scale", op.getScaleAttr());
  params.set("softcap", op.getSoftcapAttr());
  params.set("window", builder.getI64IntegerAttr(op.getWindow()));
  params.set("page_size", builder.getI64IntegerAttr(attr.getPageSize()));
  params.set("cache_type", TypeAttr::get(valuePlane.getElementType()));
  SmallVector<Value> reads = {query->buffer,
                              plane(op, cache, group, op.getLayer(), *key),
                              plane(op, cache, group, op.getLayer(), *value),
                              seq,
                              begin,
                              length,
                              table};
  for (unsigned index : {*key, *value})
    if (std::optional<unsigned> scale = kv::scaleOfPlane(attr, index))
      reads.push_back(plane(op, cache, group, op.getLayer(), *scale));
  Rows out = defineRows(op.getOutput(), *query, heads * valueSize);
  if (target != "cpu") {
    dispatch(loc, "attention", params, reads, {out.buffer}, {symT, symB},
             ExprAttr::mul(symT, attr.getKvHeads()));
    return success();
  }
  auto constant = [&](int64_t x) { return ExprAttr::constant(context, x); };
  AttentionTiling tiling(heads, attr.getKvHeads(), width / heads, valueSize,
                         valuePlane.getElementType());
  params.set("tile", builder.getI64IntegerAttr(tiling.tile));
  params.set("head_groups", builder.getI64IntegerAttr(tiling.headGroups));
  params.set("split", builder.getI64IntegerAttr(tiling.split));
  if (inBlocks(attr))
    params.set("planes", builder.getStringAttr("blocks"));
  ExprAttr tiles = ExprAttr::max(ExprAttr::ceilDiv(symT, constant(tiling.tile)),
                                 constant(tiling.minTiles));
  ExprAttr items = ExprAttr::mul(tiles, attr.getKvHeads());
  // Slots of a sequence at most, in spans of 256.
  ExprAttr slots =
      attr.getPageSize() ? ExprAttr::mul(symB, attr.getPageSize()) : symC;
  ExprAttr spans = ExprAttr::ceilDiv(slots, constant(256));
  ExprAttr few = ExprAttr::min(symT, constant(tiling.split));
  rt::BufferOp partials = makeBuffer(
      loc, Lifetime::transient, "",
      ExprAttr::mul(ExprAttr::mul(few, spans), heads * (valueSize + 2)),
      builder.getF32Type());
  dispatch(loc, "attention", params, reads, {out.buffer, partials},
           {symT, symB, symS, items, spans}, items);
  NamedAttrList mergeParams;
  for (StringRef name :
       {"heads", "kv_heads", "value_size", "window", "split", "cache_type"})
    mergeParams.set(name, params.get(name));
  dispatch(loc, "attention_merge", mergeParams, {partials, seq, begin, length},
           {out.buffer}, {symT, spans}, ExprAttr::mul(few, attr.getKvHeads()));
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct ConvertLLMToRTPass
    : public mlir::llm::impl::ConvertLLMToRTPassBase<ConvertLLMToRTPass> {
  using ConvertLLMToRTPassBase::ConvertLLMToRTPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (targets.empty())
      targets.push_back("cpu");
    OpBuilder builder(&getContext());
    SmallVector<func::FuncOp> models;
    for (auto func : module.getOps<func::FuncOp>())
      if (func->hasAttr("llm.model") && !func->hasAttr("llm.layer"))
        models.push_back(func);
    for (func::FuncOp func : models)
      if (failed(convertModel(func, builder)))
        return signalPassFailure();
    for (auto loop :
         llvm::make_early_inc_range(module.getOps<decode::LoopOp>()))
      if (failed(convertLoop(loop, builder)))
        return signalPassFailure();
  }

  LogicalResult convertModel(func::FuncOp func, OpBuilder &builder) {
    std::string name = func.getName().str();
    for (auto [i, target] : llvm::enumerate(targets)) {
      builder.setInsertionPoint(func);
      ProgramBuilder program(func, target, builder);
      FailureOr<rt::ProgramOp> op =
          program.build(i == 0 ? name : name + "." + target);
      if (failed(op))
        return failure();
      numDispatches += program.dispatches;
      numKernels += program.kernels;
    }
    // No loop runs a part, so that an iteration of its own does.
    if (func->hasAttr("llm.part")) {
      auto iteration =
          rt::IterationOp::create(builder, func.getLoc(), "part", StringAttr());
      OpBuilder::InsertionGuard guard(builder);
      builder.createBlock(&iteration.getBody());
      rt::CallOp::create(builder, func.getLoc(), name);
    }
    func.erase();
    return success();
  }

  static bool dropsDrafts(Operation &op) {
    auto rollback = dyn_cast<kv::RollbackOp>(op);
    return rollback && rollback.getLength().getDefiningOp<decode::AcceptOp>();
  }

  /// An iteration is a straight list: calls of programs and what picks tokens.
  static LogicalResult convertLoop(decode::LoopOp loop, OpBuilder &builder) {
    builder.setInsertionPoint(loop);
    auto iteration = rt::IterationOp::create(builder, loop.getLoc(),
                                             loop.getSymName(), StringAttr());
    builder.createBlock(&iteration.getBody());
    for (Operation &op : loop.getBody().front().without_terminator()) {
      if (auto call = dyn_cast<func::CallOp>(op))
        rt::CallOp::create(builder, op.getLoc(), call.getCallee());
      else if (isa<decode::SampleOp>(op))
        rt::SampleOp::create(builder, op.getLoc());
      else if (auto draft = dyn_cast<decode::DraftOp>(op))
        rt::DraftOp::create(builder, op.getLoc(), draft.getLookup(),
                            draft.getDrafts().getType().getTokens(),
                            draft.getCosts());
      else if (isa<decode::AcceptOp>(op))
        rt::AcceptOp::create(builder, op.getLoc());
      else if (isa<decode::VerifyOp>(op) || dropsDrafts(op))
        // A step has the drafts that precede it, and rt.accept drops what
        // decode.accept says.
        continue;
      else
        return op.emitOpError("has no place in an rt.iteration");
    }
    loop.erase();
    return success();
  }
};
} // namespace
