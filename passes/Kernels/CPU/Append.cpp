//===- Append.cpp - Storing rows in the cache -----------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Quantize.h"

#include <cmath>

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

/// Codes and scale of the elements of one head.
static void quantizeHead(Emitter &e, Type type, Value from, Value to,
                         Value scaleAt, int64_t size) {
  Value x = e.buffer(0), plane = e.buffer(3), scales = e.buffer(4);
  const SmallFloat *format = isa<Float8E4M3FNType>(type) ? &kE4M3
                             : isa<Float8E5M2Type>(type) ? &kE5M2
                                                         : nullptr;
  GroupScale scale =
      scaleOf(e, magnitudeOf(e, x, from, size), format ? format->maximum : 127);
  e.store(scale.scale, scales, scaleAt);
  e.forRow(size, [&](Value d, int64_t lanes) {
    Value scaled = e.mul(e.loadVec(x, e.addi(from, d), lanes),
                         e.broadcast(scale.inverse, lanes));
    Value code = format ? toSmallFloat(e, scaled, *format) : toInt8(e, scaled);
    Value bytes = arith::TruncIOp::create(
        e, VectorType::get({lanes}, e.getIntegerType(8)), code);
    vector::StoreOp::create(e, bytes, plane, ValueRange{e.addi(to, d)});
  });
}

static LogicalResult generateKVAppend(KernelBuilder &kernel) {
  FailureOr<int64_t> width = kernel.getInt("width");
  FailureOr<Type> cacheType = kernel.getCacheType("cache_type");
  if (failed(width) || failed(cacheType))
    return failure();
  bool codes = cacheType->getIntOrFloatBitWidth() == 8;
  int64_t heads = 1;
  if (codes) {
    FailureOr<int64_t> count = kernel.getInt("heads");
    if (failed(count))
      return failure();
    heads = *count;
    if (*width % heads)
      return kernel.kernel().emitOpError()
             << *width << " elements are not rows of " << heads << " heads";
  }
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context), i32 = IntegerType::get(context, 32);
  std::string name = kernel.functionName("");
  SmallVector<Emitter::Buffer> buffers{{f32}, {i32}, {i32}};
  if (codes)
    buffers.append({{IntegerType::get(context, 8)}, {f32}});
  else
    buffers.push_back({*cacheType});
  Emitter e(kernel, name, buffers, 1);
  Value x = e.buffer(0), slots = e.buffer(1), seqs = e.buffer(2),
        plane = e.buffer(3);
  e.loop(e.begin(), e.end(), 1, [&](Value t) {
    // Padding has no slot.
    Value real = arith::CmpIOp::create(e, arith::CmpIPredicate::sge,
                                       e.load(seqs, t), e.i32(0));
    e.ifThen(real, [&] {
      Value slot = e.toIndex(e.load(slots, t));
      if (codes) {
        int64_t size = *width / heads;
        e.loop(e.idx(0), e.idx(heads), 1, [&](Value h) {
          Value row = e.addi(e.muli(t, heads), h);
          Value at = e.addi(e.muli(slot, heads), h);
          quantizeHead(e, *cacheType, e.muli(row, size), e.muli(at, size), at,
                       size);
        });
        return;
      }
      Value from = e.muli(t, *width), to = e.muli(slot, *width);
      e.forRow(*width, [&](Value d, int64_t lanes) {
        e.storeVec(e.loadVec(x, e.addi(from, d), lanes), plane, e.addi(to, d));
      });
    });
  });
  e.finish();
  kernel.addVariant(name);
  return success();
}

void populateAppendKernels(KernelRegistry &registry) {
  registry.add("cpu", "kv_append", generateKVAppend);
}

} // namespace mlir::llm
