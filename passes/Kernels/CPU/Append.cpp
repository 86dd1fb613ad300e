//===- Append.cpp - Storing rows in the cache -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/CachePlane.h"
#include "passes/Kernels/CPU/Quantize.h"
#include "passes/Kernels/CPU/Rope.h"

#include <cmath>
#include <optional>

namespace mlir::llm {

namespace {
/// An 8-bit float: where f32 bits begin to be its bits.
struct SmallFloat {
  int64_t mantissa; ///< bits
  int64_t bias;
  int64_t largest; ///< code of the largest finite magnitude
  float maximum;   ///< its value
};
constexpr SmallFloat kE4M3{3, 7, 0x7e, 448};
constexpr SmallFloat kE5M2{2, 15, 0x7b, 57344};
} // namespace

/// f32 lanes as codes of `format` (i32): to nearest, ties to even, what is too
/// large to the largest; NaN stays NaN.
static Value toSmallFloat(Emitter &e, Value x, const SmallFloat &format) {
  int64_t lanes = cast<VectorType>(x.getType()).getDimSize(0);
  auto words = VectorType::get({lanes}, e.getI32Type());
  auto constant = [&](int64_t value) { return e.splatInt(value, lanes, 32); };
  auto compare = [&](arith::CmpIPredicate predicate, Value a,
                     int64_t b) -> Value {
    return arith::CmpIOp::create(e, predicate, a, constant(b));
  };
  int64_t shift = 23 - format.mantissa;
  Value bits = arith::BitcastOp::create(e, words, x);
  Value magnitude = arith::AndIOp::create(e, bits, constant(0x7fffffff));
  // Normal numbers: the upper bits, rounded, with another bias.
  Value odd = arith::AndIOp::create(
      e, arith::ShRUIOp::create(e, magnitude, constant(shift)), constant(1));
  Value rounded =
      e.addi(e.addi(magnitude, odd), constant((1 << (shift - 1)) - 1));
  Value normal = e.subi(arith::ShRUIOp::create(e, rounded, constant(shift)),
                        constant((127 - format.bias) << format.mantissa));
  // Subnormal ones: a sum whose last bit is theirs.
  int64_t exponent = 23 + 1 - format.bias - format.mantissa;
  float anchor = std::ldexp(1.0f, static_cast<int>(exponent));
  Value sum = e.add(arith::BitcastOp::create(e, e.f32Vec(lanes), magnitude),
                    e.splat(anchor, lanes));
  Value tiny =
      e.subi(arith::BitcastOp::create(e, words, sum),
             arith::BitcastOp::create(e, words, e.splat(anchor, lanes)));
  Value code = e.select(
      compare(arith::CmpIPredicate::ult, magnitude, (128 - format.bias) << 23),
      tiny, normal);
  code = arith::MinUIOp::create(e, code, constant(format.largest));
  code = e.select(compare(arith::CmpIPredicate::ugt, magnitude, 0x7f800000),
                  constant(0x7f), code);
  Value sign = arith::AndIOp::create(
      e, arith::ShRUIOp::create(e, bits, constant(24)), constant(0x80));
  return arith::OrIOp::create(e, code, sign);
}

namespace {
/// Emits the function of one kv_append.
class AppendEmitter {
public:
  explicit AppendEmitter(KernelBuilder &kernel) : kernel(kernel) {}
  LogicalResult readParams();
  void emit();

private:
  enum class Plane { Rows, KeyBlocks, ValueBlocks };

  /// A token's head: where its elements begin in `source`.
  Value headOf(Value token, Value head, Value scratchAt);
  /// The factor of codes, its scale stored at `scaleAt`; 1 lane of nothing
  /// where the cache holds numbers.
  Value emitScale(Value from, Value scaleAt);
  /// f32 lanes as bits of the cache's type.
  Value toStored(Value x, Value inverse);
  void storeRaw(Value value, Value at) {
    vector::StoreOp::create(*e, value, plane, ValueRange{at});
  }
  void emitToken(Value token, Value slot);
  void emitElements(Value from, Value inverse, Value slot, Value head);
  void storeEveryOther(Value value, Value at, Value isOdd);
  Value isRun(Value token, Value slot);
  void emitRun(Value token, Value slot);
  void emitKeyRun(function_ref<Value(Value, Value, int64_t)> load, Value to);

  KernelBuilder &kernel;
  Emitter *e = nullptr;
  int64_t heads = 1, size = 0, unit = 1;
  Type cacheType, stored;
  bool codes = false;
  Plane kind = Plane::Rows;
  std::optional<Rotation> rotation;
  BlockPlane blocks{}, scaleBlocks{};
  Value x, slots, seqs, plane, scales;
  Value source;   ///< x, or `rotated`
  Value rotated;  ///< [16][size], scratch
  Value inverses; ///< [16], scratch
};
} // namespace

LogicalResult AppendEmitter::readParams() {
  FailureOr<int64_t> width = kernel.getInt("width");
  FailureOr<Type> type = kernel.getCacheType("cache_type");
  if (failed(width) || failed(type))
    return failure();
  rt::KernelOp op = kernel.kernel();
  cacheType = *type;
  codes = cacheType.getIntOrFloatBitWidth() == 8;
  unit = BlockPlane::unitOf(cacheType);
  if (auto name = op.getParams().getAs<StringAttr>("plane")) {
    if (name == "key_blocks")
      kind = Plane::KeyBlocks;
    else if (name == "value_blocks")
      kind = Plane::ValueBlocks;
    else if (name != "rows")
      return op.emitOpError("plane is 'rows', 'key_blocks' or 'value_blocks', "
                            "not ")
             << name;
  }
  bool rotates = op.getParams().contains("rotary_dim");
  if (codes || kind != Plane::Rows || rotates) {
    FailureOr<int64_t> count = kernel.getInt("heads");
    if (failed(count))
      return failure();
    heads = *count;
    if (*width % heads)
      return op.emitOpError()
             << *width << " elements are not rows of " << heads << " heads";
  }
  size = *width / heads;
  if (kind == Plane::KeyBlocks && size % unit)
    return op.emitOpError()
           << "keys of " << size << " elements do not make pairs in blocks";
  if (rotates) {
    FailureOr<Rotation> parsed = Rotation::parse(kernel, size);
    if (failed(parsed))
      return failure();
    rotation = *parsed;
  }
  blocks = {heads, size, unit};
  scaleBlocks = {heads, 1, 1};
  return success();
}

Value AppendEmitter::headOf(Value token, Value head, Value scratchAt) {
  Value from = e->muli(e->addi(e->muli(token, heads), head), size);
  if (!rotation)
    return from;
  rotation->emit(*e, rotation->angleOf(*e, token), x, from, rotated, scratchAt);
  return scratchAt;
}

Value AppendEmitter::emitScale(Value from, Value scaleAt) {
  if (!codes)
    return {};
  float largest = isa<Float8E4M3FNType>(cacheType) ? kE4M3.maximum
                  : isa<Float8E5M2Type>(cacheType) ? kE5M2.maximum
                                                   : 127;
  GroupScale scale = scaleOf(*e, magnitudeOf(*e, source, from, size), largest);
  e->store(scale.scale, scales, scaleAt);
  return scale.inverse;
}

Value AppendEmitter::toStored(Value x, Value inverse) {
  int64_t lanes = cast<VectorType>(x.getType()).getDimSize(0);
  auto type = VectorType::get({lanes}, stored);
  if (!codes)
    return arith::BitcastOp::create(*e, type, e->narrow(x, cacheType));
  Value scaled = e->mul(x, e->broadcast(inverse, lanes));
  Value code =
      isa<Float8E4M3FNType>(cacheType) ? toSmallFloat(*e, scaled, kE4M3)
      : isa<Float8E5M2Type>(cacheType) ? toSmallFloat(*e, scaled, kE5M2)
                                       : toInt8(*e, scaled);
  return arith::TruncIOp::create(*e, type, code);
}

/// Stores the elements of one head in one slot.
void AppendEmitter::emitElements(Value from, Value inverse, Value slot,
                                 Value head) {
  Value block = e->divi(slot, kSlotBlock), lane = e->remi(slot, kSlotBlock);
  Value base = blockElement(*e, blocks, block, head);
  if (kind == Plane::Rows)
    base = e->muli(e->addi(e->muli(slot, heads), head), size);
  else if (kind == Plane::KeyBlocks)
    base = e->addi(base, e->muli(lane, unit));
  else
    base = e->addi(base, e->muli(e->divi(lane, unit), size * unit));
  Value isOdd = arith::CmpIOp::create(*e, arith::CmpIPredicate::ne,
                                      e->remi(lane, 2), e->idx(0));
  e->forRow(size, [&](Value d, int64_t lanes) {
    Value value =
        toStored(e->loadVec(source, e->addi(from, d), lanes), inverse);
    if (kind == Plane::Rows || (kind == Plane::ValueBlocks && unit == 1))
      return storeRaw(value, e->addi(base, d));
    // Apart from each other: values in every other element, keys by units.
    bool isKey = kind == Plane::KeyBlocks;
    if (!isKey && e->width() >= 16)
      return storeEveryOther(value, e->addi(base, e->muli(d, unit)), isOdd);
    int64_t count = isKey ? unit : 1, stride = isKey ? kSlotBlock : unit;
    Value to = e->addi(base, e->muli(d, stride));
    if (!isKey)
      to = e->addi(to, e->remi(lane, unit));
    for (int64_t i = 0; i < lanes; i += count)
      storeRaw(e->lanesOf(value, i, count), e->addi(to, i * stride));
  });
}

/// Stores lanes to every other element from `at` on, the odd ones where `isOdd`
/// holds. What is between them may be another thread's.
void AppendEmitter::storeEveryOther(Value value, Value at, Value isOdd) {
  auto lanes = cast<VectorType>(value.getType()).getDimSize(0);
  SmallVector<int64_t> twice;
  SmallVector<bool> even;
  for (int64_t i = 0; i < 2 * lanes; ++i) {
    twice.push_back(i / 2);
    even.push_back(i % 2 == 0);
  }
  auto type = VectorType::get({2 * lanes}, e->getI1Type());
  Value mask = arith::ConstantOp::create(
      *e, cast<TypedAttr>(DenseElementsAttr::get(type, ArrayRef<bool>(even))));
  mask = arith::XOrIOp::create(*e, mask, e->broadcast(isOdd, 2 * lanes));
  vector::MaskedStoreOp::create(
      *e, plane, ValueRange{at}, mask,
      vector::ShuffleOp::create(*e, value, value, twice));
}

void AppendEmitter::emitToken(Value token, Value slot) {
  e->loop(e->idx(0), e->idx(heads), 1, [&](Value h) {
    Value from = headOf(token, h, e->idx(0));
    Value scaleAt = e->addi(e->muli(slot, heads), h);
    if (kind != Plane::Rows)
      scaleAt =
          e->addi(blockElement(*e, scaleBlocks, e->divi(slot, kSlotBlock), h),
                  e->remi(slot, kSlotBlock));
    emitElements(from, emitScale(from, scaleAt), slot, h);
  });
}

/// i1: whether the tokens from `token` on fill the block that begins at `slot`.
Value AppendEmitter::isRun(Value token, Value slot) {
  Value exists = arith::AndIOp::create(
      *e,
      arith::CmpIOp::create(*e, arith::CmpIPredicate::sge, token, e->idx(0)),
      e->less(e->addi(token, kSlotBlock - 1), e->size(0)));
  auto check = scf::IfOp::create(*e, TypeRange{e->getI1Type()}, exists,
                                 /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*e);
  e->setInsertionPointToEnd(check.thenBlock());
  SmallVector<int32_t> lanes(kSlotBlock);
  for (int64_t i = 0; i < kSlotBlock; ++i)
    lanes[i] = static_cast<int32_t>(i);
  Value want = e->addi(
      arith::ConstantOp::create(*e,
                                cast<TypedAttr>(e->getI32VectorAttr(lanes))),
      e->broadcast(arith::IndexCastOp::create(*e, e->getI32Type(), slot),
                   kSlotBlock));
  Value other =
      arith::XOrIOp::create(*e, e->loadRaw(slots, token, kSlotBlock), want);
  // Padding has a negative sequence.
  Value padding = arith::ShRSIOp::create(
      *e, e->loadRaw(seqs, token, kSlotBlock), e->splatInt(31, kSlotBlock, 32));
  Value any = vector::ReductionOp::create(
      *e, vector::CombiningKind::OR, arith::OrIOp::create(*e, other, padding));
  Value all =
      arith::CmpIOp::create(*e, arith::CmpIPredicate::eq, any, e->i32(0));
  scf::YieldOp::create(*e, all);
  e->setInsertionPointToEnd(check.elseBlock());
  Value no = arith::ConstantOp::create(*e, e->getBoolAttr(false));
  scf::YieldOp::create(*e, no);
  return check.getResult(0);
}

/// Stores the 16 tokens from `token` on, which fill the block of `slot`.
void AppendEmitter::emitRun(Value token, Value slot) {
  Value block = e->divi(slot, kSlotBlock);
  e->loop(e->idx(0), e->idx(heads), 1, [&](Value h) {
    if (rotation || codes)
      e->loop(e->idx(0), e->idx(kSlotBlock), 1, [&](Value i) {
        Value from = headOf(e->addi(token, i), h, e->muli(i, size));
        if (codes)
          e->store(
              emitScale(from,
                        e->addi(blockElement(*e, scaleBlocks, block, h), i)),
              inverses, i);
      });
    Value to = blockElement(*e, blocks, block, h);
    auto load = [&](Value i, Value d, int64_t lanes) {
      Value from =
          rotation
              ? e->muli(i, size)
              : e->muli(e->addi(e->muli(e->addi(token, i), heads), h), size);
      return toStored(e->loadVec(source, e->addi(from, d), lanes),
                      codes ? e->load(inverses, i) : Value());
    };
    if (kind == Plane::KeyBlocks)
      return emitKeyRun(load, to);
    e->loop(e->idx(0), e->idx(kSlotBlock / unit), 1, [&](Value line) {
      Value first = e->muli(line, unit);
      Value at = e->addi(to, e->muli(first, size));
      e->forRow(size, [&](Value d, int64_t lanes) {
        Value value = load(first, d, lanes);
        if (unit == 2) {
          SmallVector<int64_t> merge;
          for (int64_t i = 0; i < lanes; ++i)
            merge.append({i, lanes + i});
          value = vector::ShuffleOp::create(
              *e, value, load(e->addi(first, 1), d, lanes), merge);
        }
        storeRaw(value, e->addi(at, e->muli(d, unit)));
      });
    });
  });
}

/// Transposes a head's keys of 16 slots, by units.
void AppendEmitter::emitKeyRun(function_ref<Value(Value, Value, int64_t)> load,
                               Value to) {
  int64_t width = e->width();
  unsigned bits = static_cast<unsigned>(unit) * stored.getIntOrFloatBitWidth();
  auto whole = VectorType::get({width}, e->getIntegerType(bits));
  auto words = VectorType::get({width}, e->getI32Type());
  forParts(*e, size, width * unit, [&](Value d, int64_t count) {
    for (int64_t first = 0; first < kSlotBlock; first += width) {
      SmallVector<Value> rows;
      for (int64_t i = 0; i < width; ++i) {
        Value row = padTo(*e, load(e->idx(first + i), d, count), width * unit);
        row = e->bitcast(row, whole);
        rows.push_back(bits == 32 ? row
                                  : arith::ExtUIOp::create(*e, words, row));
      }
      SmallVector<Value> columns = transpose(*e, rows);
      for (int64_t i = 0; i < count / unit; ++i) {
        Value column = columns[i];
        if (bits != 32)
          column = arith::TruncIOp::create(*e, whole, column);
        column = e->bitcast(column, VectorType::get({width * unit}, stored));
        storeRaw(column, e->addi(e->addi(to, e->muli(d, kSlotBlock)),
                                 (i * kSlotBlock + first) * unit));
      }
    }
  });
}

void AppendEmitter::emit() {
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context), i32 = IntegerType::get(context, 32);
  // The backend handles a lone f16 or bf16 badly: planes of them hold bits.
  stored = cacheType.isF32()
               ? f32
               : IntegerType::get(context, cacheType.getIntOrFloatBitWidth());
  SmallVector<Emitter::Buffer> buffers{{f32}, {i32}, {i32}};
  if (rotation)
    buffers.append(rotation->buffers(context));
  auto written = static_cast<unsigned>(buffers.size());
  buffers.push_back({stored});
  if (codes)
    buffers.push_back({f32});
  std::string name = kernel.functionName("");
  Emitter emitter(kernel, name, buffers, 1);
  e = &emitter;
  x = source = e->buffer(0);
  slots = e->buffer(1);
  seqs = e->buffer(2);
  plane = e->buffer(written);
  if (codes) {
    scales = e->buffer(written + 1);
    inverses = e->scratch(f32, kSlotBlock);
  }
  if (rotation) {
    rotation->position = e->buffer(3);
    rotation->cosines = e->buffer(4);
    rotation->sines = e->buffer(5);
    source = rotated = e->scratch(f32, kSlotBlock * size);
  }
  e->loop(e->begin(), e->end(), 1, [&](Value t) {
    // Padding has no slot.
    Value real = arith::CmpIOp::create(*e, arith::CmpIPredicate::sge,
                                       e->load(seqs, t), e->i32(0));
    e->ifThen(real, [&] {
      Value slot = e->toIndex(e->load(slots, t));
      if (kind == Plane::Rows)
        return emitToken(t, slot);
      // Where the step fills a block, its first token stores all of it.
      Value lane = e->remi(slot, kSlotBlock);
      Value first = e->subi(t, lane);
      e->ifElse(
          isRun(first, e->subi(slot, lane)),
          [&] {
            Value isFirst = arith::CmpIOp::create(*e, arith::CmpIPredicate::eq,
                                                  lane, e->idx(0));
            e->ifThen(isFirst, [&] { emitRun(t, slot); });
          },
          [&] { emitToken(t, slot); });
    });
  });
  e->finish();
  kernel.addVariant(name);
}

static LogicalResult generateKVAppend(KernelBuilder &kernel) {
  AppendEmitter emitter(kernel);
  if (failed(emitter.readParams()))
    return failure();
  emitter.emit();
  return success();
}

void populateAppendKernels(KernelRegistry &registry) {
  registry.add("cpu", "kv_append", generateKVAppend);
}

} // namespace mlir::llm
