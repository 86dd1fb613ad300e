//===- LinearInt8.cpp - linear over affine groups from int8 ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accuracy level 4. Lanes are outputs. A group is summed exactly in int32,
// starting from what its zero points take off, then scaled and added in f32:
// a chain over the ascending groups of weights that share a scale of the
// inputs, which that scale takes into a chain over these, whatever the tile.
// The outer chains wait in memory: registers are for the inner ones.
//
// Unpacking and the scales of short groups cost less the more tokens share
// them: tiles of 12 tokens and one register of outputs, where every input is
// used once and becomes the broadcast operand of its dot product. Long groups
// take 6 tokens and two registers, which load less. Few tokens take two, for
// chains enough to hide a dot product's latency.
//
// Where factors split a group, the sums of a part, which fit into 16 bits, are
// multiplied by its factor in integers. Many tokens find the codes multiplied,
// where bytes of all values can be: then the parts of a group are one sum.
//
// With AVX2 it is instructions that bind. One or two tokens take the whole
// panel, which is then read in the order in which it lies; four take one
// register, or two where groups are long or codes are unpacked: with one,
// loads bind, five for four products, and sums of parts may wait in memory.
// Such a pass touches every line of half a panel, and the next pass the same
// ones: each fetches a part of the panel that follows, or every other pass
// would wait for memory and the rest leave it idle.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/Kernels/CPU/Linear.h"
#include "passes/Kernels/CPU/UnpackedPanel.h"

namespace mlir::llm {

/// Inputs of a group from which tiles have two registers of outputs (measured
/// with groups of 32 to 2048).
static constexpr int64_t kWideGroup = 128;

/// Inputs from which the lines that a tile will store to are fetched before its
/// sums (measured: 3 % with 2048, a loss with 576).
static constexpr int64_t kLongInputs = 2048;

namespace {
/// How unsigned codes and signed inputs are multiplied and summed by fours.
enum class Dot {
  VNNI,   ///< one instruction
  Shorts, ///< codes of up to 4 bits: pairs, several of them added in 16 bits
  Signs,  ///< codes of 8 bits, less 128: magnitudes times signed inputs
  Halves, ///< even and odd bytes apart, widened
};

class Int8Emitter {
public:
  Int8Emitter(KernelBuilder &kernel, const LinearForm &form,
              const LinearVariant &variant);
  void emit();

private:
  using Vectors = SmallVector<Value>;
  /// What one pass over k computes: `vectors` registers from output `column` of
  /// `panel`, at byte `base`, for `tile` tokens from `token` on.
  struct Pass {
    Value panel, base, column, token;
    int64_t tile, vectors;
  };
  /// Bytes from a word of outputs to the next one.
  int64_t lineBytes() const {
    return unpacked ? unpacked->lineBytes() : kPanelBlock * 4;
  }
  /// Registers of outputs of a tile.
  int64_t vectorsOf(int64_t tile) const;
  /// Runs `body(column)` for the panel, `vectors` registers of outputs each.
  void forColumns(int64_t vectors, function_ref<void(Value)> body);
  /// All of k at once, to the output.
  void doPass(const Pass &pass);
  /// Adds the `length` inputs that share scale `s` to the outer sums.
  Vectors doScaleGroup(const Pass &pass, Value s, int64_t length,
                       Vectors outer);
  /// Adds a group of weights to the inner sums.
  Vectors doGroup(const Pass &pass, Value g, int64_t length, Vectors inner);
  /// Adds the `inputs` inputs of a part of a group, times its factor, to
  /// integer sums. Its lines begin at `lines`, its inputs at `x`; it is number
  /// `part` of the group whose factors, of the outputs, are at `factorsAt`,
  /// and `sum` of its row.
  Vectors doPart(const Pass &pass, Value lines, Value x, int64_t inputs,
                 Value factorsAt, Value part, Value sum, Vectors sums);
  /// All parts of a group of `length` inputs.
  Vectors doParts(const Pass &pass, Value lines, Value x, int64_t length,
                  Value factorsAt, Value g);
  /// Adds `length` inputs of a group, whose lines begin at `lines`.
  Vectors doInputs(const Pass &pass, Value lines, Value x, int64_t length,
                   Vectors sums);
  /// Adds `count` words of a group, the first one number `word`, at `line`, to
  /// the sums.
  Vectors doWords(const Pass &pass, Value word, Value line, Value x,
                  int64_t count, Vectors sums);
  /// One word: its first input is number `first` of those at the address.
  void doWord(const Pass &pass, Value line, Value inputs, int64_t first,
              Vectors &sums);
  /// Integer sums before the first product: of a group of `length` inputs, or
  /// of part `sum` of a row.
  Vectors firstSums(const Pass &pass, Value zeros, Value g, int64_t length);
  Vectors firstPartSums(const Pass &pass, Value sum);
  /// The scales of register `j` of group `g`, which are at byte `at`.
  Value scaleAt(Value g, int64_t j, Value at) {
    if (unpacked)
      return unpacked->scale(g, j);
    if (layout.factorGroup)
      return scalesOf(e,
                      e.loadVecAs(e.getI32Type(), output.weight(), at, width));
    return e.loadVecAs(layout.scaleType, output.weight(), at, width);
  }
  /// Sums that few tokens keep apart for each register, by position in a byte,
  /// for shorter chains; integer sums are exact in any order.
  int64_t chainsOf(const Pass &pass) const {
    bool few = kind == Dot::VNNI && pass.tile * pass.vectors <= 4;
    return few ? 8 / layout.bits : 1;
  }
  /// What zero points take off the products of token `m` and group `g`.
  Value offsetOf(const Pass &pass, int64_t m, Value g, int64_t length);
  Value addChains(ArrayRef<Value> sums, int64_t index, int64_t chains) {
    Value total = sums[index * chains];
    for (int64_t c = 1; c < chains; ++c)
      total = e.addi(total, sums[index * chains + c]);
    return total;
  }
  Value dot(Value acc, Value weights, Value inputs);
  Value addPairs(Value acc, Value a, Value b);
  Value call(StringRef name, Type type, ValueRange args);
  /// Where one of `groups` values a token lies: that of `g`, of token `m`.
  Value tokenAt(const Pass &pass, int64_t m, Value g, int64_t groups) {
    return e.addi(e.addi(e.muli(pass.token, groups), g), m * groups);
  }
  /// Below AVX-512, where a pass takes a part of the outputs: sets out to fetch
  /// as large a part of the panel after it, in the share of group `g`. Then all
  /// passes wait for memory as long; lines ahead of its own would be those of
  /// the next pass, too.
  void beginShare(const Pass &pass, Value g);
  /// Fetches what stands in it for word `word` + `w` of the group.
  void prefetchShare(const Pass &pass, Value word, int64_t w) {
    int64_t bytes = pass.vectors * width * 4;
    if (share && w * bytes % 64 == 0)
      prefetchAt(e.addi(e.addi(share, e.muli(word, bytes)), w * bytes));
  }
  void prefetchAt(Value byte) {
    memref::PrefetchOp::create(e, output.weight(), ValueRange{byte},
                               /*isWrite=*/false, /*localityHint=*/2,
                               /*isDataCache=*/true);
  }
  /// Fetches what follows the `count` bytes at `at` by `ahead`.
  void prefetch(Value at, int64_t count) {
    for (int64_t byte = 0; ahead && byte < count; byte += 64)
      prefetchAt(e.addi(e.addi(at, ahead), byte));
  }
  bool hasParts() const { return layout.factorGroup && !isMultiplied(); }
  /// Whether codes are unpacked as products with factors.
  bool isMultiplied() const {
    return layout.factorGroup && variant.unpacks && kind == Dot::VNNI;
  }
  bool isWide() const {
    return !hasParts() && std::min(layout.groupSize, layout.k) >= kWideGroup;
  }
  /// Words whose products are summed in 16 bits before they are widened.
  int64_t chunkWords() const {
    if (kind != Dot::Shorts)
      return 1;
    int64_t largest = 2 * 127 * ((1 << layout.bits) - 1);
    return 32767 / largest / (8 / layout.bits);
  }

  const Layout &layout;
  const LinearVariant &variant;
  Emitter e;
  LinearOutput output;
  int64_t width, stride;
  Dot kind;
  /// Inputs that share a scale, and such groups of a row.
  int64_t scaleGroup, scaleGroups;
  Value codes, tokenScales, offsets;
  /// What many tokens find unpacked.
  std::optional<UnpackedPanel> unpacked;
  Value ahead; ///< bytes from a group to what is fetched meanwhile
  Value share; ///< the byte at which what is fetched in its place begins
};
} // namespace

static Dot dotKind(const KernelTarget &target, int64_t width, int64_t bits) {
  if (target.has("avx512vnni") || (width < 16 && target.has("avxvnni")))
    return Dot::VNNI;
  if (width == 4 && !target.has("ssse3"))
    return Dot::Halves;
  if (bits <= 4)
    return Dot::Shorts;
  return width < 16 ? Dot::Signs : Dot::Halves;
}

SmallVector<Emitter::Buffer> int8Buffers(MLIRContext *context,
                                         const LinearForm &form, bool single) {
  auto rows = [&](int64_t length) { return single ? length : kUnbounded; };
  const Layout &layout = form.layout;
  SmallVector<Emitter::Buffer> buffers{
      {IntegerType::get(context, 8), rows(codeRowStride(layout.k))},
      {Float32Type::get(context),
       rows(llvm::divideCeil(layout.k, form.scaleGroup))},
      {IntegerType::get(context, 32), rows(layout.sums())}};
  addLinearBuffers(buffers, context, form, single);
  return buffers;
}

Int8Emitter::Int8Emitter(KernelBuilder &kernel, const LinearForm &form,
                         const LinearVariant &variant)
    : layout(form.layout), variant(variant),
      e(kernel, variant.name,
        int8Buffers(kernel.kernel().getContext(), form, variant.single()), 1),
      output(e, form, variant, 3), width(e.width()),
      stride(codeRowStride(layout.k)),
      kind(dotKind(kernel.target(), e.width(), layout.bits)),
      scaleGroup(form.scaleGroup),
      scaleGroups(llvm::divideCeil(layout.k, form.scaleGroup)),
      codes(e.buffer(0)), tokenScales(e.buffer(1)), offsets(e.buffer(2)) {}

Value Int8Emitter::call(StringRef name, Type type, ValueRange args) {
  return e.intrinsic(name, type, args);
}

/// acc + the products of 16-bit neighbours, two to an i32 lane.
Value Int8Emitter::addPairs(Value acc, Value a, Value b) {
  auto shorts = VectorType::get({2 * width}, e.getIntegerType(16));
  StringRef name = width == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                   : width == 8 ? "llvm.x86.avx2.pmadd.wd"
                                : "llvm.x86.sse2.pmadd.wd";
  return e.addi(acc, call(name, acc.getType(),
                          {e.bitcast(a, shorts), e.bitcast(b, shorts)}));
}

/// acc + the products of codes and inputs, four to an i32 lane, exact; with
/// `Shorts` two to an i16 lane, and no `acc` stands for 0.
Value Int8Emitter::dot(Value acc, Value weights, Value inputs) {
  auto bytes = VectorType::get({4 * width}, e.getIntegerType(8));
  auto shorts = VectorType::get({2 * width}, e.getIntegerType(16));
  bool wide = width == 16;
  auto multiply = [&](Value w, Value x) {
    return call(wide         ? "llvm.x86.avx512.pmaddubs.w.512"
                : width == 8 ? "llvm.x86.avx2.pmadd.ub.sw"
                             : "llvm.x86.ssse3.pmadd.ub.sw.128",
                shorts, {w, x});
  };
  switch (kind) {
  case Dot::VNNI:
    return call(wide ? "llvm.x86.avx512.vpdpbusd.512"
                     : "llvm.x86.avx512.vpdpbusd.256",
                acc.getType(),
                {acc, e.bitcast(weights, bytes), e.bitcast(inputs, bytes)});
  case Dot::Shorts: {
    Value pairs = multiply(e.bitcast(weights, bytes), e.bitcast(inputs, bytes));
    return acc ? e.addi(acc, pairs) : pairs;
  }
  case Dot::Signs: {
    // 128 * 127 * 2 stays within 16 bits.
    Value w = e.bitcast(weights, bytes);
    Value pairs = multiply(math::AbsIOp::create(e, w),
                           call(width == 8 ? "llvm.x86.avx2.psign.b"
                                           : "llvm.x86.ssse3.psign.b.128",
                                bytes, {e.bitcast(inputs, bytes), w}));
    return addPairs(acc, pairs, e.splatInt(1, 2 * width, 16));
  }
  case Dot::Halves: {
    Value w = e.bitcast(weights, shorts), x = e.bitcast(inputs, shorts);
    Value eight = e.splatInt(8, 2 * width, 16);
    Value evenW = arith::AndIOp::create(e, w, e.splatInt(0xff, 2 * width, 16));
    Value oddW = arith::ShRUIOp::create(e, w, eight);
    Value evenX =
        arith::ShRSIOp::create(e, arith::ShLIOp::create(e, x, eight), eight);
    Value oddX = arith::ShRSIOp::create(e, x, eight);
    return addPairs(addPairs(acc, evenW, evenX), oddW, oddX);
  }
  }
  llvm_unreachable("all kinds are handled");
}

Int8Emitter::Vectors Int8Emitter::doWords(const Pass &pass, Value word,
                                          Value line, Value x, int64_t count,
                                          Vectors sums) {
  Vectors parts;
  if (kind == Dot::Shorts)
    parts.resize(sums.size());
  else
    parts = sums;
  Value inputs = e.address(codes, x);
  for (int64_t w = 0; w < count; ++w) {
    prefetchShare(pass, word, w);
    doWord(pass, e.addi(line, w * lineBytes()), inputs, w * layout.wordInputs(),
           parts);
  }
  if (kind != Dot::Shorts)
    return parts;
  Value ones = e.splatInt(1, 2 * width, 16);
  for (auto [sum, part] : llvm::zip_equal(sums, parts))
    sum = addPairs(sum, part, ones);
  return sums;
}

void Int8Emitter::doWord(const Pass &pass, Value line, Value inputs,
                         int64_t first, Vectors &sums) {
  int64_t parts = 8 / layout.bits;
  int64_t chains = sums.size() / (pass.tile * pass.vectors);
  Vectors words;
  if (!unpacked) {
    prefetch(line, pass.vectors * width * 4);
    for (int64_t j = 0; j < pass.vectors; ++j)
      words.push_back(e.loadVecAs(e.getI32Type(), output.weight(),
                                  e.addi(line, j * width * 4), width));
  }
  for (int64_t i = 0; i < parts; ++i) {
    Vectors weights;
    for (int64_t j = 0; j < pass.vectors; ++j) {
      if (unpacked)
        weights.push_back(unpacked->codes(line, i, j));
      else
        weights.push_back(codesOf(e, layout, words[j], i));
      if (kind == Dot::Signs)
        weights.back() = arith::XOrIOp::create(
            e, weights.back(), e.splatInt(int32_t(0x80808080), width, 32));
    }
    for (int64_t m = 0; m < pass.tile; ++m) {
      Value four = e.loadAt(e.getI32Type(), inputs, first + m * stride + 4 * i);
      Value input = e.broadcast(four, width);
      for (int64_t j = 0; j < pass.vectors; ++j) {
        Value &sum = sums[(m * pass.vectors + j) * chains + i % chains];
        sum = dot(sum, weights[j], input);
      }
    }
  }
}

Value Int8Emitter::offsetOf(const Pass &pass, int64_t m, Value g,
                            int64_t length) {
  if (!isMultiplied())
    return e.load(offsets, tokenAt(pass, m, g, layout.groups()));
  // Codes are 128 more than what they stand for, not 8.
  int64_t parts = layout.partsOfGroup();
  auto used =
      static_cast<int64_t>(llvm::divideCeil(length, layout.factorGroup));
  Value total;
  for (int64_t i = 0; i < used; ++i) {
    Value sum = e.addi(e.muli(g, parts), i);
    Value part = e.load(offsets, tokenAt(pass, m, sum, layout.sums()));
    total = total ? e.addi(total, part) : part;
  }
  return e.muli(total, e.i32(128 / static_cast<int32_t>(layout.commonZero())));
}

Int8Emitter::Vectors Int8Emitter::firstSums(const Pass &pass, Value zeros,
                                            Value g, int64_t length) {
  int64_t chains = chainsOf(pass);
  Vectors sums(pass.tile * pass.vectors * chains, e.splatInt(0, width, 32));
  // With `Signs`, zero points are less 128, too.
  int64_t less = kind == Dot::Signs ? 128 : 0;
  if (layout.hasFloatZeros() ? !less : !layout.zeroType && less)
    return sums;
  Vectors codesOfZeros;
  if (layout.zeroType)
    for (int64_t j = 0; j < pass.vectors; ++j) {
      Value code = e.splatInt(0, width, 32);
      if (!layout.hasFloatZeros())
        code = zeroCodes(e, output.weight(), e.addi(zeros, j * width));
      codesOfZeros.push_back(
          less ? arith::SubIOp::create(e, code, e.splatInt(less, width, 32))
               : code);
    }
  for (int64_t m = 0; m < pass.tile; ++m) {
    Value offset = e.broadcast(offsetOf(pass, m, g, length), width);
    for (int64_t j = 0; j < pass.vectors; ++j)
      sums[(m * pass.vectors + j) * chains] =
          layout.zeroType ? e.muli(codesOfZeros[j], offset) : offset;
  }
  return sums;
}

Int8Emitter::Vectors Int8Emitter::doInputs(const Pass &pass, Value lines,
                                           Value x, int64_t length,
                                           Vectors sums) {
  int64_t perWord = layout.wordInputs();
  auto wordsAt = [&](Value word, int64_t count, Vectors values) {
    return doWords(pass, word, e.addi(lines, e.muli(word, lineBytes())),
                   e.addi(x, e.muli(word, perWord)), count, std::move(values));
  };
  // Longer bodies than that of a short group end in spilled registers; LLVM
  // unrolls a loop itself.
  constexpr int64_t kUnrolled = 8;
  int64_t words = (length + perWord - 1) / perWord, chunk = chunkWords();
  int64_t looped = words <= kUnrolled ? 0 : words / chunk * chunk;
  if (looped)
    sums = e.loop(e.idx(0), e.idx(looped), chunk, sums,
                  [&](Value word, ValueRange values) {
                    return wordsAt(word, chunk, Vectors(values));
                  });
  for (int64_t w = looped; w < words; w += chunk)
    sums = wordsAt(e.idx(w), std::min(chunk, words - w), std::move(sums));
  return sums;
}

Int8Emitter::Vectors Int8Emitter::firstPartSums(const Pass &pass, Value sum) {
  int64_t chains = chainsOf(pass);
  Vectors sums(pass.tile * pass.vectors * chains, e.splatInt(0, width, 32));
  for (int64_t m = 0; m < pass.tile; ++m) {
    Value offset = e.load(offsets, tokenAt(pass, m, sum, layout.sums()));
    offset = e.broadcast(offset, width);
    // One of a lane's two sums takes all of it: 16 bits hold what it comes to.
    if (kind == Dot::Shorts)
      offset = e.bitcast(
          arith::AndIOp::create(e, offset, e.splatInt(0xffff, width, 32)),
          VectorType::get({2 * width}, e.getIntegerType(16)));
    for (int64_t j = 0; j < pass.vectors; ++j)
      sums[(m * pass.vectors + j) * chains] = offset;
  }
  return sums;
}

Int8Emitter::Vectors Int8Emitter::doPart(const Pass &pass, Value lines, Value x,
                                         int64_t inputs, Value factorsAt,
                                         Value part, Value sum, Vectors sums) {
  int64_t chains = chainsOf(pass), perWord = layout.wordInputs();
  auto words = static_cast<int64_t>(llvm::divideCeil(inputs, perWord));
  Vectors parts = firstPartSums(pass, sum);
  Value address = e.address(codes, x);
  Value first = e.muli(part, layout.factorGroup / perWord);
  for (int64_t w = 0; w < words; ++w) {
    prefetchShare(pass, first, w);
    doWord(pass, e.addi(lines, w * lineBytes()), address, w * perWord, parts);
  }
  for (int64_t j = 0; j < pass.vectors; ++j) {
    // Where sums are whole, what is not the factor meets their sign.
    Value factor;
    if (unpacked)
      factor = unpacked->factorPairs(sum, j);
    else
      factor =
          factorPairsOf(e,
                        e.loadVecAs(e.getI32Type(), output.weight(),
                                    e.addi(factorsAt, j * width * 4), width),
                        part, kind == Dot::Shorts);
    for (int64_t m = 0; m < pass.tile; ++m) {
      int64_t index = m * pass.vectors + j;
      sums[index] =
          addPairs(sums[index], addChains(parts, index, chains), factor);
    }
  }
  return sums;
}

Int8Emitter::Vectors Int8Emitter::doParts(const Pass &pass, Value lines,
                                          Value x, int64_t length,
                                          Value factorsAt, Value g) {
  int64_t each = layout.factorGroup, whole = length / each;
  Value first = e.muli(g, layout.partsOfGroup());
  Vectors sums(pass.tile * pass.vectors, e.splatInt(0, width, 32));
  auto partAt = [&](Value part, int64_t inputs, Vectors sums) {
    Value input = e.muli(part, each);
    return doPart(
        pass,
        e.addi(lines, e.muli(part, each / layout.wordInputs() * lineBytes())),
        e.addi(x, input), inputs, factorsAt, part, e.addi(first, part),
        std::move(sums));
  };
  // Few tokens leave registers of AVX-512 for all parts at once.
  if (width == 16 && pass.tile * pass.vectors <= 4)
    for (int64_t i = 0; i < whole; ++i)
      sums = partAt(e.idx(i), each, std::move(sums));
  else if (whole)
    sums = e.loop(e.idx(0), e.idx(whole), 1, sums,
                  [&](Value part, ValueRange values) {
                    return partAt(part, each, Vectors(values));
                  });
  if (length % each)
    sums = partAt(e.idx(whole), length % each, std::move(sums));
  return sums;
}

void Int8Emitter::beginShare(const Pass &pass, Value g) {
  int64_t bytes = layout.groupBytes(layout.groupLength(0)) * pass.vectors *
                  width / kPanelBlock;
  Value part = e.addi(e.muli(pass.column, layout.panelBytes() / kPanelBlock),
                      e.muli(g, bytes));
  share = e.mini(e.addi(e.addi(pass.base, layout.panelBytes()), part),
                 e.idx(layout.size() - bytes));
}

Int8Emitter::Vectors Int8Emitter::doGroup(const Pass &pass, Value g,
                                          int64_t length, Vectors inner) {
  Value group =
      e.addi(pass.base, e.muli(g, layout.groupBytes(layout.groupSize)));
  int64_t scaleSize =
      layout.factorGroup ? 4 : layout.scaleType.getIntOrFloatBitWidth() / 8;
  int64_t scalesAt = layout.codeBytes(length);
  int64_t zerosAt = scalesAt + kPanelBlock * scaleSize;
  ahead = share = {};
  if (width < 16 && pass.vectors * width < kPanelBlock) {
    beginShare(pass, g);
  } else if (!unpacked) {
    // Clamped once a group, so that all its lines lie in the buffer.
    int64_t period = layout.groupBytes(layout.groupSize);
    Value last = e.idx(layout.size() - layout.groupBytes(length));
    Value next = e.mini(e.addi(group, prefetchDistance(period)), last);
    ahead = e.subi(next, group);
  }
  Value scales =
      e.addi(e.addi(group, scalesAt), e.muli(pass.column, scaleSize));
  Value zeros = group;
  if (layout.zeroType)
    zeros = e.addi(
        e.addi(group, zerosAt),
        e.muli(pass.column, layout.zeroType.getIntOrFloatBitWidth() / 8));
  Value lines =
      unpacked ? unpacked->lineOf(g) : e.addi(group, e.muli(pass.column, 4));
  Value x = e.addi(e.muli(pass.token, stride), e.muli(g, layout.groupSize));

  Vectors sums = hasParts() ? doParts(pass, lines, x, length, scales, g)
                            : doInputs(pass, lines, x, length,
                                       firstSums(pass, zeros, g, length));

  // What follows the codes, too: one line that is missing holds up a group.
  prefetch(e.addi(group, scalesAt), layout.groupBytes(length) - scalesAt);
  prefetchShare(pass, e.idx(layout.codeBytes(length) / (kPanelBlock * 4)), 0);

  Vectors scale, negative;
  for (int64_t j = 0; j < pass.vectors; ++j) {
    scale.push_back(scaleAt(g, j, e.addi(scales, j * width * scaleSize)));
    if (layout.hasFloatZeros())
      negative.push_back(e.loadVecAs(layout.zeroType, output.weight(),
                                     e.addi(zeros, j * width * scaleSize),
                                     width));
  }
  int64_t chains = sums.size() / inner.size();
  for (int64_t m = 0; m < pass.tile; ++m) {
    for (int64_t j = 0; j < pass.vectors; ++j) {
      int64_t index = m * pass.vectors + j;
      Value total = addChains(sums, index, chains);
      Value number = arith::SIToFPOp::create(e, e.f32Vec(width), total);
      if (layout.hasFloatZeros()) {
        Value offset = arith::SIToFPOp::create(
            e, e.getF32Type(),
            e.load(offsets, tokenAt(pass, m, g, layout.groups())));
        number = e.fma(negative[j], e.broadcast(offset, width), number);
      }
      inner[index] = e.fma(number, scale[j], inner[index]);
    }
  }
  return inner;
}

int64_t Int8Emitter::vectorsOf(int64_t tile) const {
  if (width < 16)
    return tile <= 2 ? 4 : isWide() || variant.unpacks ? 2 : 1;
  return tile <= 6 ? 2 : 1;
}

void Int8Emitter::forColumns(int64_t vectors, function_ref<void(Value)> body) {
  if (vectors * width == kPanelBlock)
    return body(e.idx(0));
  e.loop(e.idx(0), e.idx(kPanelBlock), vectors * width, body);
}

Int8Emitter::Vectors Int8Emitter::doScaleGroup(const Pass &pass, Value s,
                                               int64_t length, Vectors outer) {
  int64_t each = layout.groupSize, whole = length / each;
  Value first = e.muli(s, scaleGroup / each);
  Vectors inner(outer.size(), e.splat(0, width));
  auto group = [&](Value g, ValueRange values) {
    return doGroup(pass, g, each, Vectors(values));
  };
  if (whole == 1)
    inner = group(first, inner);
  else if (whole)
    inner = e.loop(first, e.addi(first, whole), 1, inner, group);
  if (length % each)
    inner =
        doGroup(pass, e.addi(first, whole), length % each, std::move(inner));
  for (int64_t m = 0; m < pass.tile; ++m) {
    Value at = tokenAt(pass, m, s, scaleGroups);
    Value scale = e.broadcast(e.load(tokenScales, at), width);
    for (int64_t j = 0; j < pass.vectors; ++j) {
      Value &sum = outer[m * pass.vectors + j];
      sum = e.fma(inner[m * pass.vectors + j], scale, sum);
    }
  }
  return outer;
}

void Int8Emitter::doPass(const Pass &pass) {
  int64_t whole = layout.k / scaleGroup;
  Vectors sums(pass.tile * pass.vectors, e.splat(0, width));
  if (variant.unpacks && layout.k >= kLongInputs)
    output.prefetch(pass.token, pass.tile,
                    e.addi(e.muli(pass.panel, kPanelBlock), pass.column),
                    pass.vectors);
  if (whole)
    sums = e.loop(e.idx(0), e.idx(whole), 1, sums,
                  [&](Value s, ValueRange values) {
                    return doScaleGroup(pass, s, scaleGroup, Vectors(values));
                  });
  if (int64_t rest = layout.k % scaleGroup)
    sums = doScaleGroup(pass, e.idx(whole), rest, std::move(sums));
  Value first = e.addi(e.muli(pass.panel, kPanelBlock), pass.column);
  for (int64_t m = 0; m < pass.tile; ++m)
    for (int64_t j = 0; j < pass.vectors; ++j)
      output.store(sums[m * pass.vectors + j], e.addi(pass.token, m),
                   e.addi(first, j * width));
}

void Int8Emitter::emit() {
  SmallVector<int64_t> tiles{4, 2, 1};
  if (width == 16) {
    if (!variant.many())
      tiles.insert(tiles.begin(), 8);
    if (variant.many() && isWide())
      tiles.insert(tiles.begin(), 6);
    else if (variant.many() || variant.high > 12)
      tiles.insert(tiles.begin(), 12);
  }
  if (variant.unpacks)
    unpacked.emplace(e, layout, vectorsOf(tiles.front()), layout.groups(),
                     isMultiplied() ? UnpackedPanel::Codes::Raised
                                    : UnpackedPanel::Codes::Plain,
                     /*pairs=*/kind == Dot::Shorts);
  // A quarter or half of a panel stays in the first-level cache while all
  // tokens pass; registers of AVX-512 hold tokens enough to read it anew for
  // each tile, unless they are to find it unpacked.
  bool columnsFirst = variant.unpacks || (width < 16 && variant.many());
  int64_t block = blockRows(stride, tiles.front());
  forPanels(e, output, variant, block,
            [&](Value panel, Value begin, Value end) {
              Value base = e.muli(panel, layout.panelBytes());
              auto forTiles = [&](function_ref<void(Value, int64_t)> body) {
                forTokenTiles(e, variant, begin, end, tiles, body);
              };
              if (columnsFirst) {
                int64_t vectors = vectorsOf(tiles.front());
                return forColumns(vectors, [&](Value column) {
                  if (variant.unpacks)
                    unpacked->unpack(output.weight(), base, column, e.idx(0),
                                     layout.k);
                  forTiles([&](Value token, int64_t tile) {
                    doPass({panel, base, column, token, tile, vectors});
                  });
                });
              }
              forTiles([&](Value token, int64_t tile) {
                int64_t vectors = vectorsOf(tile);
                forColumns(vectors, [&](Value column) {
                  doPass({panel, base, column, token, tile, vectors});
                });
              });
            });
  e.finish();
}

void emitInt8Linear(KernelBuilder &kernel, const LinearForm &form,
                    const LinearVariant &variant) {
  Int8Emitter(kernel, form, variant).emit();
}

} // namespace mlir::llm
