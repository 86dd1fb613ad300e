//===- LinearAffine.cpp - linear over affine groups for a CPU -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes are outputs, as in the dense kernels. In f32 a weight is dequantized in
// registers, (q - z) * s rounded once, and multiplied into the same chain over
// ascending k that a dense weight of these values would have. With int8 inputs
// (accuracy level 4) a group is summed exactly in int32, then scaled and added.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Linear.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace mlir::llm {

namespace {
/// One function of an affine `linear`.
class AffineEmitter {
public:
  AffineEmitter(KernelBuilder &kernel, const Layout &layout, bool hasBias,
                bool int8, StringRef name, bool single);
  void emit();

private:
  using Vectors = SmallVector<Value>;
  /// Scales and zeros of a group of `length` inputs at byte `group`.
  void loadScales(Value group, int64_t length);
  /// The codes of word `word` of vector `j`: u32 of packed codes per lane.
  Value loadWord(Value group, Value word, int64_t j);
  Vectors groupF32(Value group, Value firstInput, int64_t length, Value token,
                   int64_t tile, Vectors acc);
  Vectors groupInt8(Value group, Value g, int64_t length, Value token,
                    int64_t tile, Vectors acc);
  Value dot(Value acc, Value weights, Value inputs);

  const Layout &layout;
  bool hasBias, int8, single;
  int64_t inputs; ///< buffers before the weight
  Emitter e;
  int64_t width, vectors;
  bool vnni;
  Value weight;
  Vectors scales, zeros;
};
} // namespace

static SmallVector<Emitter::Buffer> affineBuffers(MLIRContext *context,
                                                  const Layout &layout,
                                                  bool hasBias, bool int8,
                                                  bool single) {
  Type f32 = Float32Type::get(context), i8 = IntegerType::get(context, 8);
  auto rows = [&](int64_t length) { return single ? length : kUnbounded; };
  SmallVector<Emitter::Buffer> buffers;
  if (int8) {
    buffers.push_back({i8, rows(layout.groups() * layout.groupSize)});
    buffers.append(2, {f32, rows(layout.groups())});
  } else {
    buffers.push_back({f32, rows(layout.k)});
  }
  buffers.push_back({i8, layout.elements()});
  if (hasBias)
    buffers.push_back({f32, layout.n});
  buffers.push_back({f32, rows(layout.n)});
  return buffers;
}

AffineEmitter::AffineEmitter(KernelBuilder &kernel, const Layout &layout,
                             bool hasBias, bool int8, StringRef name,
                             bool single)
    : layout(layout), hasBias(hasBias), int8(int8), single(single),
      inputs(int8 ? 3 : 1), e(kernel, name,
                              affineBuffers(kernel.kernel().getContext(),
                                            layout, hasBias, int8, single),
                              1),
      width(e.width()), vectors(kPanelBlock / width),
      vnni(kernel.target().has("avx512vnni")) {
  weight = e.buffer(inputs);
}

void AffineEmitter::loadScales(Value group, int64_t length) {
  scales.clear();
  zeros.clear();
  int64_t size = layout.scaleType.getIntOrFloatBitWidth() / 8;
  int64_t at = layout.codeBytes(length);
  for (int64_t j = 0; j < vectors; ++j)
    scales.push_back(e.loadVecAs(layout.scaleType, weight,
                                 e.addi(group, at + j * width * size), width));
  at += kPanelBlock * size;
  for (int64_t j = 0; j < vectors; ++j) {
    if (!layout.zeroType) {
      zeros.push_back(
          e.splat(static_cast<float>(1 << (layout.bits - 1)), width));
      continue;
    }
    int64_t zeroSize = layout.zeroType.getIntOrFloatBitWidth() / 8;
    zeros.push_back(e.loadVecAs(layout.zeroType, weight,
                                e.addi(group, at + j * width * zeroSize),
                                width));
  }
}

Value AffineEmitter::loadWord(Value group, Value word, int64_t j) {
  Value line = e.addi(e.muli(word, kPanelBlock * 4), j * width * 4);
  return e.loadVecAs(e.getI32Type(), weight, e.addi(group, line), width);
}

/// Adds the inputs of a group to `acc` [token * vectors + vector].
AffineEmitter::Vectors AffineEmitter::groupF32(Value group, Value firstInput,
                                               int64_t length, Value token,
                                               int64_t tile, Vectors acc) {
  loadScales(group, length);
  int64_t perWord = layout.wordInputs(), bits = layout.bits;
  Value x = e.addi(e.muli(token, layout.k), firstInput);
  auto doWord = [&](Value word, int64_t count, Vectors sums) {
    prefetchWeights(e, weight, e.addi(group, e.muli(word, kPanelBlock * 4)),
                    kPanelBlock * 4);
    Vectors words;
    for (int64_t j = 0; j < vectors; ++j)
      words.push_back(loadWord(group, word, j));
    Value at = e.addi(x, e.muli(word, perWord));
    Value mask = e.splatInt((1 << bits) - 1, width, 32);
    for (int64_t i = 0; i < count; ++i) {
      Value shift = e.splatInt(8 * (i % 4) + bits * (i / 4), width, 32);
      Vectors weights;
      for (int64_t j = 0; j < vectors; ++j) {
        Value code = arith::AndIOp::create(
            e, arith::ShRUIOp::create(e, words[j], shift), mask);
        Value number = arith::SIToFPOp::create(e, e.f32Vec(width), code);
        weights.push_back(e.mul(e.sub(number, zeros[j]), scales[j]));
      }
      for (int64_t m = 0; m < tile; ++m) {
        Value input = e.broadcast(
            e.load(e.buffer(0), e.addi(at, m * layout.k + i)), width);
        for (int64_t j = 0; j < vectors; ++j)
          sums[m * vectors + j] =
              e.fma(input, weights[j], sums[m * vectors + j]);
      }
    }
    return sums;
  };
  int64_t whole = length / perWord;
  if (whole)
    acc = e.loop(e.idx(0), e.idx(whole), 1, acc,
                 [&](Value word, ValueRange sums) {
                   return doWord(word, perWord, Vectors(sums));
                 });
  if (length % perWord)
    acc = doWord(e.idx(whole), length % perWord, acc);
  return acc;
}

/// acc + the products of unsigned bytes (of at most `bits` bits) and signed
/// bytes, four to an i32 lane, exact.
Value AffineEmitter::dot(Value acc, Value weights, Value inputs) {
  auto call = [&](StringRef name, Type type, ValueRange args) -> Value {
    return LLVM::CallIntrinsicOp::create(e, type, e.getStringAttr(name), args)
        .getResult(0);
  };
  auto bytes = VectorType::get({4 * width}, e.getIntegerType(8));
  auto shorts = VectorType::get({2 * width}, e.getIntegerType(16));
  bool wide = width == 16;
  if (vnni)
    return call("llvm.x86.avx512.vpdpbusd.512", acc.getType(),
                {acc, vector::BitCastOp::create(e, bytes, weights),
                 vector::BitCastOp::create(e, bytes, inputs)});
  StringRef pairs =
      wide ? "llvm.x86.avx512.pmaddw.d.512" : "llvm.x86.avx2.pmadd.wd";
  if (layout.bits <= 4) {
    // 15 * 127 * 2 stays within 16 bits.
    Value sums = call(wide ? "llvm.x86.avx512.pmaddubs.w.512"
                           : "llvm.x86.avx2.pmadd.ub.sw",
                      shorts,
                      {vector::BitCastOp::create(e, bytes, weights),
                       vector::BitCastOp::create(e, bytes, inputs)});
    return e.addi(
        acc, call(pairs, acc.getType(), {sums, e.splatInt(1, 2 * width, 16)}));
  }
  // 255 * 127 * 2 does not: even and odd bytes apart, widened.
  Value w = vector::BitCastOp::create(e, shorts, weights);
  Value x = vector::BitCastOp::create(e, shorts, inputs);
  Value eight = e.splatInt(8, 2 * width, 16);
  Value evenW = arith::AndIOp::create(e, w, e.splatInt(0xff, 2 * width, 16));
  Value oddW = arith::ShRUIOp::create(e, w, eight);
  Value evenX =
      arith::ShRSIOp::create(e, arith::ShLIOp::create(e, x, eight), eight);
  Value oddX = arith::ShRSIOp::create(e, x, eight);
  acc = e.addi(acc, call(pairs, acc.getType(), {evenW, evenX}));
  return e.addi(acc, call(pairs, acc.getType(), {oddW, oddX}));
}

AffineEmitter::Vectors AffineEmitter::groupInt8(Value group, Value g,
                                                int64_t length, Value token,
                                                int64_t tile, Vectors acc) {
  int64_t perWord = layout.wordInputs(), bits = layout.bits;
  int64_t row = layout.groups() * layout.groupSize;
  Value x = e.addi(e.muli(token, row), e.muli(g, layout.groupSize));
  // One token alone keeps a sum per position in the byte, for shorter chains;
  // integer sums are exact in any order.
  int64_t chains = tile == 1 ? 8 / bits : 1;
  auto sumAt = [&](int64_t m, int64_t j, int64_t c) {
    return (m * vectors + j) * chains + c;
  };
  auto doWord = [&](Value word, Vectors sums) {
    Value at = e.addi(x, e.muli(word, perWord));
    prefetchWeights(e, weight, e.addi(group, e.muli(word, kPanelBlock * 4)),
                    kPanelBlock * 4);
    Vectors words;
    for (int64_t j = 0; j < vectors; ++j)
      words.push_back(loadWord(group, word, j));
    int64_t byteMask = (1 << bits) - 1;
    Value mask = e.splatInt(byteMask * 0x01010101, width, 32);
    for (int64_t i = 0; i < 8 / bits; ++i) {
      Vectors weights;
      for (Value packed : words) {
        if (bits < 8)
          packed = arith::AndIOp::create(
              e,
              arith::ShRUIOp::create(e, packed,
                                     e.splatInt(bits * i, width, 32)),
              mask);
        weights.push_back(packed);
      }
      for (int64_t m = 0; m < tile; ++m) {
        Value four =
            e.loadAs(e.getI32Type(), e.buffer(0), e.addi(at, m * row + 4 * i));
        Value input = e.broadcast(four, width);
        for (int64_t j = 0; j < vectors; ++j) {
          Value &sum = sums[sumAt(m, j, i % chains)];
          sum = dot(sum, weights[j], input);
        }
      }
    }
    return sums;
  };
  int64_t words = (length + perWord - 1) / perWord;
  Vectors sums(tile * vectors * chains, e.splatInt(0, width, 32));
  if (words <= 8) {
    for (int64_t w = 0; w < words; ++w)
      sums = doWord(e.idx(w), sums);
  } else {
    sums = e.loop(e.idx(0), e.idx(words), 1, sums,
                  [&](Value word, ValueRange values) {
                    return doWord(word, Vectors(values));
                  });
  }
  loadScales(group, length);
  for (int64_t m = 0; m < tile; ++m) {
    Value at = e.addi(e.muli(e.addi(token, m), layout.groups()), g);
    Value scale = e.broadcast(e.load(e.buffer(1), at), width);
    Value sumOfCodes = e.broadcast(e.load(e.buffer(2), at), width);
    for (int64_t j = 0; j < vectors; ++j) {
      Value total = sums[sumAt(m, j, 0)];
      for (int64_t c = 1; c < chains; ++c)
        total = e.addi(total, sums[sumAt(m, j, c)]);
      Value number = arith::SIToFPOp::create(e, e.f32Vec(width), total);
      Value negative = arith::NegFOp::create(e, zeros[j]);
      Value centred = e.fma(negative, sumOfCodes, number);
      acc[m * vectors + j] =
          e.fma(centred, e.mul(scales[j], scale), acc[m * vectors + j]);
    }
  }
  return acc;
}

void AffineEmitter::emit() {
  Value bias = hasBias ? e.buffer(inputs + 1) : Value();
  Value out = e.buffer(inputs + (hasBias ? 2 : 1));
  int64_t last = layout.groups() - 1;
  int64_t bytes = layout.groupBytes(layout.groupSize);
  SmallVector<int64_t> tiles =
      int8 ? SmallVector<int64_t>{6, 2, 1} : SmallVector<int64_t>{8, 4, 1};
  if (width < 16)
    tiles = {2, 1};
  e.loop(e.begin(), e.end(), 1, [&](Value panel) {
    Value base = e.muli(panel, layout.panelBytes());
    forTokenTiles(e, e.size(0), single, tiles, [&](Value t, int64_t tile) {
      auto doGroup = [&](Value g, int64_t length, Vectors acc) {
        Value at = e.addi(base, e.muli(g, bytes));
        if (int8)
          return groupInt8(at, g, length, t, tile, std::move(acc));
        return groupF32(at, e.muli(g, layout.groupSize), length, t, tile,
                        std::move(acc));
      };
      Vectors acc(tile * vectors, e.splat(0, width));
      if (last)
        acc = e.loop(e.idx(0), e.idx(last), 1, acc,
                     [&](Value g, ValueRange values) {
                       return doGroup(g, layout.groupSize, Vectors(values));
                     });
      acc = doGroup(e.idx(last), layout.groupLength(last), acc);
      for (int64_t m = 0; m < tile; ++m)
        storePanelRow(e, ArrayRef(acc).slice(m * vectors, vectors), bias, out,
                      e.muli(e.addi(t, m), layout.n), panel, layout.n);
    });
  });
  e.finish();
}

void emitAffineLinear(KernelBuilder &kernel, const Layout &layout, bool hasBias,
                      bool int8, StringRef name, bool single) {
  AffineEmitter(kernel, layout, hasBias, int8, name, single).emit();
}

//===----------------------------------------------------------------------===//
// quantize_rows
//===----------------------------------------------------------------------===//

/// Codes, scale and sum of the group of `length` inputs at `from`.
static void quantizeGroup(Emitter &e, Value from, Value to, Value at,
                          int64_t length) {
  int64_t width = e.width(), full = length / width * width;
  Value x = e.buffer(0), codes = e.buffer(1);
  auto magnitude = [&](Value offset, int64_t lanes) -> Value {
    return math::AbsFOp::create(e, e.loadVec(x, e.addi(from, offset), lanes));
  };
  Value top = e.f32(0);
  if (full) {
    SmallVector<Value> tops =
        e.loop(e.idx(0), e.idx(full), width, {e.splat(0, width)},
               [&](Value d, ValueRange values) -> SmallVector<Value> {
                 return {e.larger(magnitude(d, width), values[0])};
               });
    top = e.reduceMax(tops[0]);
  }
  if (length > full)
    top = e.larger(e.reduceMax(magnitude(e.idx(full), length - full)), top);
  Value scale = e.div(top, e.f32(127));
  // Below this the reciprocal could overflow: the group counts as zero.
  Value tiny = arith::CmpFOp::create(e, arith::CmpFPredicate::OLT, scale,
                                     e.f32(0x1p-120f));
  Value inverse = e.select(tiny, e.f32(0), e.div(e.f32(1), scale));
  auto quantize = [&](Value offset, int64_t lanes) {
    Value scaled = e.mul(e.loadVec(x, e.addi(from, offset), lanes),
                         e.broadcast(inverse, lanes));
    Value code =
        arith::FPToSIOp::create(e, VectorType::get({lanes}, e.getI32Type()),
                                math::RoundEvenOp::create(e, scaled));
    Value narrow = arith::TruncIOp::create(
        e, VectorType::get({lanes}, e.getIntegerType(8)), code);
    e.storeVec(narrow, codes, e.addi(to, offset));
    return code;
  };
  auto total = [&](Value code) -> Value {
    return vector::ReductionOp::create(e, vector::CombiningKind::ADD, code);
  };
  Value sum = e.i32(0);
  if (full) {
    SmallVector<Value> sums =
        e.loop(e.idx(0), e.idx(full), width, {e.splatInt(0, width, 32)},
               [&](Value d, ValueRange values) -> SmallVector<Value> {
                 return {e.addi(values[0], quantize(d, width))};
               });
    sum = total(sums[0]);
  }
  if (length > full)
    sum = e.addi(sum, total(quantize(e.idx(full), length - full)));
  e.store(scale, e.buffer(2), at);
  e.store(arith::SIToFPOp::create(e, e.getF32Type(), sum), e.buffer(3), at);
}

static LogicalResult generateQuantizeRows(KernelBuilder &kernel) {
  FailureOr<int64_t> k = kernel.getInt("k"),
                     groupSize = kernel.getInt("group_size");
  if (failed(k) || failed(groupSize))
    return failure();
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context), i8 = IntegerType::get(context, 8);
  std::string name = kernel.functionName("");
  Emitter e(kernel, name, {{f32}, {i8}, {f32}, {f32}}, 1);
  int64_t last = (*k - 1) / *groupSize, groups = last + 1;
  e.loop(e.begin(), e.end(), 1, [&](Value t) {
    Value from = e.muli(t, *k), to = e.muli(t, groups * *groupSize),
          at = e.muli(t, groups);
    if (last)
      e.loop(e.idx(0), e.idx(last), 1, [&](Value g) {
        Value offset = e.muli(g, *groupSize);
        quantizeGroup(e, e.addi(from, offset), e.addi(to, offset),
                      e.addi(at, g), *groupSize);
      });
    int64_t offset = last * *groupSize;
    quantizeGroup(e, e.addi(from, offset), e.addi(to, offset), e.addi(at, last),
                  *k - offset);
    Value zero = arith::ConstantOp::create(e, e.getI8IntegerAttr(0));
    e.loop(e.idx(*k), e.idx(groups * *groupSize), 1,
           [&](Value i) { e.store(zero, e.buffer(1), e.addi(to, i)); });
  });
  e.finish();
  kernel.addVariant(name);
  return success();
}

void populateQuantizeKernels(KernelRegistry &registry) {
  registry.add("cpu", "quantize_rows", generateQuantizeRows);
}

} // namespace mlir::llm
