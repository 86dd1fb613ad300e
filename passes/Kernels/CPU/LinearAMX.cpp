//===- LinearAMX.cpp - linear over affine groups by matrix tiles ----------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accuracy level 4 for many tokens, on processors with AMX. An instruction
// multiplies 16 tokens by 16 outputs over up to 64 inputs, and the sums are
// exact, so outputs have the bits of LinearInt8's: a group's integer sum, less
// what its zero points take off, enters the same two chains.
//
// Sums of short groups leave for memory often: what binds is then their way
// through vector registers, which hold the inner chains of one tile (16 tokens,
// 16 outputs). The tiles of the next groups are multiplied meanwhile. Long
// groups take two tiles of tokens by two of outputs, which load least.
//
// Fewer than 16 tokens take tiles with fewer rows. Where the last tile of more
// tokens would be short it starts before, and stores only what is left.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/AMXTiles.h"
#include "passes/Kernels/CPU/Linear.h"
#include "passes/Kernels/CPU/UnpackedPanel.h"

namespace mlir::llm {

/// Rows of a tile, and the outputs of one: i32 lanes of a row.
static constexpr int64_t kTile = AMXTiles::kRows;
/// Inputs of the largest groups that are added to chains in registers.
static constexpr int64_t kShortGroup = 128;
/// Inputs of a block of short groups: as many as leave its weights, and those
/// inputs of a tile, in the first-level cache.
static constexpr int64_t kLeastBlock = 320, kMostBlock = 704;
/// Most tokens of a block, whose sums wait for the next block of inputs.
static constexpr int64_t kBlockTokens = 256;
/// What the rows of a block take of the second-level cache, which is of 2 MiB
/// where there is AMX.
static constexpr int64_t kBlockBytes = 1024 * 1024;

/// Inputs of a multiplication: as many as every group has a multiple of; 0
/// where these would be too few to pay.
static int64_t depthOf(const Layout &layout) {
  int64_t rest = layout.k % layout.groupSize;
  for (int64_t depth : {64, 32})
    if (rest % depth == 0 &&
        (layout.k < layout.groupSize || layout.groupSize % depth == 0))
      return depth;
  return 0;
}

/// Inputs of a block: whole chains, if possible the same for all blocks.
static int64_t blockInputs(const Layout &layout, int64_t scaleGroup) {
  if (layout.k <= kMostBlock)
    return layout.k;
  int64_t most = kMostBlock / scaleGroup * scaleGroup;
  for (int64_t inputs = most; inputs >= kLeastBlock; inputs -= scaleGroup)
    if (layout.k % inputs == 0)
      return inputs;
  return std::min(most ? most : scaleGroup, layout.k);
}

static bool isShort(const Layout &layout) {
  return layout.groupSize <= kShortGroup;
}

bool takesAMX(const KernelTarget &target, const LinearForm &form) {
  const Layout &layout = form.layout;
  if (form.level != 4 || !target.has("amx-int8") || !depthOf(layout) ||
      (layout.bits < 8 && !form.unpacks()))
    return false;
  // A last short group is on its own: it begins a chain.
  int64_t groups = layout.k / layout.groupSize;
  return !isShort(layout) || layout.k % layout.groupSize == 0 ||
         groups % (form.scaleGroup / layout.groupSize) == 0;
}

int64_t rowsWithoutAMX(const LinearForm &form) {
  // Sums of short groups leave tiles as often for few rows as for many, and few
  // do not pay for unpacking.
  return isShort(form.layout) || form.unpacks() ? 32 : 8;
}

namespace {
class AMXEmitter {
public:
  AMXEmitter(KernelBuilder &kernel, const LinearForm &form,
             const LinearVariant &variant);
  void emit();

private:
  using Vectors = SmallVector<Value>;
  /// Outputs of `panel`, at byte `base`, from `column` on, of the `rows` tokens
  /// from `token` on; those before `first` are stored already. Short groups:
  /// number `block` is the first one of the block of inputs, and chains are at
  /// byte `chains` of `outer`.
  struct Pass {
    Value panel, base, column, token, rows, first, block, chains;
  };
  static constexpr int64_t kInputs = AMXTiles::kInputs;
  static constexpr int64_t kWeights = AMXTiles::kWeights;

  void multiply(int64_t sums, int64_t inputs, int64_t weights) {
    tiles.multiply(centred ? "tdpbssd" : "tdpbsud", sums, inputs, weights);
  }
  Value inputsAt(const Pass &pass, int64_t tile, Value input) {
    Value row = e.addi(pass.token, tile * kTile);
    return e.address(codes, e.addi(e.muli(row, stride), input));
  }
  /// The codes of group `g`, from output `column` on, at `input` of its inputs.
  Value weightsAt(const Pass &pass, Value column, Value g, Value input);
  /// The tile at token `t`, or the last whole one.
  Pass tileAt(Value panel, Value base, Value t, Value end, Value rows) {
    Value zero = e.idx(0), token = e.mini(t, e.subi(end, rows));
    return {panel, base, zero, token, rows, e.subi(t, token), zero, zero};
  }
  Value groupAt(const Pass &pass, Value g) {
    return e.addi(pass.base, e.muli(g, layout.groupBytes(layout.groupSize)));
  }
  /// The row of token `m` of a tile, or of the last one that there is.
  Value rowOf(const Pass &pass, int64_t m) {
    return e.addi(pass.token, e.mini(e.idx(m), e.subi(pass.rows, e.idx(1))));
  }

  /// What makes an f32 of the sums of a group and some outputs.
  struct GroupTerms {
    Value scale, zeroCodes, negative;
  };
  GroupTerms termsOf(const Pass &pass, Value column, Value g, int64_t length);
  /// `total` as f32, less what zero points take off.
  Value numberOf(const GroupTerms &terms, Value total, Value row, Value g);

  // Short groups.
  /// Groups whose tiles are multiplied at a time: whole inner chains, where
  /// they are short.
  int64_t groupsAtATime() const { return perScale == 3 ? 3 : kInputs; }
  bool wholeChains() const { return groupsAtATime() % perScale == 0; }
  /// Whether outer chains stay in registers, where inner ones are of a group
  /// each; else they wait in memory.
  bool outerStays() const { return perScale == 1; }
  /// `next`: the pass whose first groups are multiplied meanwhile.
  void doShort(const Pass &pass, const Pass &next, int64_t inputs,
               Value isLast);
  /// Tokens [begin, end) of the `inputs` inputs from group `block` on.
  void doBlock(Value panel, Value base, Value begin, Value end, Value rows,
               Value block, int64_t inputs);
  /// Groups [first, first + count) of `length` inputs, a tile each.
  struct Turn {
    Pass pass;
    Value first;
    int64_t count, length;
  };
  Turn turnOf(const Pass &pass, Value first, int64_t groups);
  /// The first turn of a pass.
  Turn firstTurn(const Pass &pass, int64_t inputs);
  void multiply(const Turn &turn, int64_t number);
  /// Adds the sums of a turn, which is multiplied, to chains; multiplies the
  /// next one meanwhile, a tile as soon as its sums are stored. `chains`, which
  /// go from turn to turn: the outer ones that stay in registers, the inner
  /// ones that are longer than a turn, or none.
  Vectors doTurn(const Turn &turn, const Turn &next, Vectors chains);
  /// Adds those of number `u` of its groups to inner chains.
  void addSums(const Turn &turn, int64_t u, Value place, Vectors &inner);
  /// Adds inner chains to outer ones: to `outer`, or to those in memory.
  void addInner(const Pass &pass, Value g, ArrayRef<Value> inner,
                Vectors &outer);
  void addInner(const Pass &pass, Value g, ArrayRef<Value> inner);
  /// Adds groups [first, first + count), the first turn of which is multiplied.
  Vectors doGroups(const Pass &pass, Value first, int64_t count, Vectors chains,
                   const Turn &next);
  /// The outer chains of a pass, while they are not in registers.
  Vectors loadOuter(const Pass &pass);
  void storeOuter(const Pass &pass, ArrayRef<Value> chains);

  // Long groups.
  void doLong(const Pass &pass, int64_t rowTiles);
  void doLongGroup(const Pass &pass, int64_t rowTiles, Value g, int64_t length);

  const Layout &layout;
  const LinearVariant &variant;
  Emitter e;
  LinearOutput output;
  int64_t stride, depth, scaleGroup;
  int64_t perScale; ///< groups of weights that share a scale of the inputs
  bool centred;     ///< zero points are taken off the codes
  Value codes, tokenScales, offsets;
  AMXTiles tiles;
  std::optional<UnpackedPanel> unpacked;
  Value sums;         ///< bytes: what tiles are stored to
  Value inner, outer; ///< chains of a pass, [token][output]
  Value firstToken;   ///< of those that pass a panel
};
} // namespace

AMXEmitter::AMXEmitter(KernelBuilder &kernel, const LinearForm &form,
                       const LinearVariant &variant)
    : layout(form.layout), variant(variant),
      e(kernel, variant.name,
        int8Buffers(kernel.kernel().getContext(), form, /*single=*/false), 1),
      output(e, form, variant, 3), stride(codeRowStride(layout.k)),
      depth(depthOf(layout)), scaleGroup(form.scaleGroup),
      perScale(scaleGroup / layout.groupSize),
      centred(layout.bits < 8 && !layout.hasFloatZeros()), codes(e.buffer(0)),
      tokenScales(e.buffer(1)), offsets(e.buffer(2)), tiles(e, depth) {
  int64_t inputs = isShort(layout) ? blockInputs(layout, scaleGroup) : layout.k;
  if (layout.bits < 8)
    unpacked.emplace(e, layout, kPanelBlock / kTile,
                     llvm::divideCeil(inputs, layout.groupSize),
                     centred ? UnpackedPanel::Codes::Centred
                             : UnpackedPanel::Codes::Plain);
  sums = e.scratch(e.getIntegerType(8), kInputs * kTile * kTile * 4);
  int64_t tokens = isShort(layout) ? kBlockTokens + kTile : 2 * kTile;
  outer = e.scratch(e.getF32Type(), tokens * kPanelBlock);
  if (!isShort(layout))
    inner = e.scratch(e.getF32Type(), tokens * kPanelBlock);
}

Value AMXEmitter::weightsAt(const Pass &pass, Value column, Value g,
                            Value input) {
  // A word's parts follow each other, so four inputs are one line of a panel.
  Value at = e.addi(e.muli(input, kPanelBlock), e.muli(column, 4));
  if (unpacked)
    return e.address(unpacked->bytes(),
                     e.addi(unpacked->lineOf(e.subi(g, pass.block)), at));
  return e.address(output.weight(), e.addi(groupAt(pass, g), at));
}

AMXEmitter::GroupTerms AMXEmitter::termsOf(const Pass &pass, Value column,
                                           Value g, int64_t length) {
  int64_t scaleSize = layout.scaleType.getIntOrFloatBitWidth() / 8;
  Value scales = e.addi(groupAt(pass, g), layout.codeBytes(length));
  Value zeros = e.addi(scales, kPanelBlock * scaleSize);
  GroupTerms terms;
  terms.scale =
      unpacked ? unpacked->scale(e.subi(g, pass.block), column)
               : e.loadVecAs(layout.scaleType, output.weight(),
                             e.addi(scales, e.muli(column, scaleSize)), kTile);
  if (layout.hasFloatZeros())
    terms.negative =
        e.loadVecAs(layout.zeroType, output.weight(),
                    e.addi(zeros, e.muli(column, scaleSize)), kTile);
  else if (!centred && layout.zeroType)
    terms.zeroCodes = zeroCodes(e, output.weight(), e.addi(zeros, column));
  return terms;
}

Value AMXEmitter::numberOf(const GroupTerms &terms, Value total, Value row,
                           Value g) {
  auto offset = [&] {
    return e.load(offsets, e.addi(e.muli(row, layout.groups()), g));
  };
  if (!centred && !terms.negative) {
    Value less = e.broadcast(offset(), kTile);
    total =
        e.addi(total, terms.zeroCodes ? e.muli(terms.zeroCodes, less) : less);
  }
  Value number = arith::SIToFPOp::create(e, e.f32Vec(kTile), total);
  if (terms.negative) {
    Value less = arith::SIToFPOp::create(e, e.getF32Type(), offset());
    number = e.fma(terms.negative, e.broadcast(less, kTile), number);
  }
  return number;
}

//===----------------------------------------------------------------------===//
// Short groups
//===----------------------------------------------------------------------===//

AMXEmitter::Turn AMXEmitter::turnOf(const Pass &pass, Value first,
                                    int64_t groups) {
  return {pass, first, std::min(groups, groupsAtATime()), layout.groupSize};
}

AMXEmitter::Turn AMXEmitter::firstTurn(const Pass &pass, int64_t inputs) {
  int64_t groups = inputs / layout.groupSize;
  if (!groups)
    return {pass, pass.block, 1, inputs};
  return turnOf(pass, pass.block,
                wholeChains() ? groups : std::min(groups, perScale));
}

void AMXEmitter::multiply(const Turn &turn, int64_t number) {
  Value g = e.addi(turn.first, number);
  Value input = e.muli(g, layout.groupSize);
  tiles.zero(number);
  for (int64_t at = 0; at < turn.length; at += depth) {
    int64_t tile = (number + at / depth) % 2;
    tiles.load(kInputs + tile, inputsAt(turn.pass, 0, e.addi(input, at)),
               stride);
    tiles.load(kWeights + tile,
               weightsAt(turn.pass, turn.pass.column, g, e.idx(at)),
               4 * kPanelBlock);
    multiply(number, kInputs + tile, kWeights + tile);
  }
}

void AMXEmitter::addSums(const Turn &turn, int64_t u, Value place,
                         Vectors &inner) {
  auto ints = VectorType::get({kTile}, e.getI32Type());
  const Pass &pass = turn.pass;
  Value g = e.addi(turn.first, u);
  GroupTerms terms = termsOf(pass, pass.column, g, turn.length);
  for (int64_t m = 0; m < kTile; ++m) {
    Value total = e.loadAt(ints, place, m * kTile * 4);
    Value number = numberOf(terms, total, rowOf(pass, m), g);
    inner[m] = e.fma(number, terms.scale, inner[m]);
  }
}

AMXEmitter::Vectors AMXEmitter::doTurn(const Turn &turn, const Turn &next,
                                       Vectors chains) {
  const Pass &pass = turn.pass;
  Vectors inner = chains;
  for (int64_t u = 0; u < kInputs; ++u) {
    Value place = e.address(sums, e.idx(u * kTile * kTile * 4));
    if (u < turn.count)
      tiles.store(u, place, kTile * 4);
    if (u < next.count)
      multiply(next, u);
    if (u >= turn.count)
      continue;
    if (wholeChains() && u % perScale == 0)
      inner.assign(kTile, e.splat(0, kTile));
    addSums(turn, u, place, inner);
    if (!wholeChains() || (u % perScale != perScale - 1 && u + 1 < turn.count))
      continue;
    Value g = e.addi(turn.first, u);
    if (outerStays())
      addInner(pass, g, inner, chains);
    else
      addInner(pass, g, inner);
  }
  return wholeChains() ? chains : inner;
}

void AMXEmitter::addInner(const Pass &pass, Value g, ArrayRef<Value> inner,
                          Vectors &outer) {
  int64_t scaleGroups = llvm::divideCeil(layout.k, scaleGroup);
  Value s = e.divi(g, perScale);
  for (int64_t m = 0; m < kTile; ++m) {
    Value at = e.addi(e.muli(rowOf(pass, m), scaleGroups), s);
    Value scale = e.broadcast(e.load(tokenScales, at), kTile);
    outer[m] = e.fma(inner[m], scale, outer[m]);
  }
}

void AMXEmitter::addInner(const Pass &pass, Value g, ArrayRef<Value> inner) {
  auto add = [&](const Pass &pass) {
    Vectors outer = loadOuter(pass);
    addInner(pass, g, inner, outer);
    storeOuter(pass, outer);
  };
  // Rows of a whole tile lie at constant distances.
  Pass whole = pass;
  whole.rows = e.idx(kTile);
  Value isWhole =
      arith::CmpIOp::create(e, arith::CmpIPredicate::eq, pass.rows, whole.rows);
  e.ifElse(isWhole, [&] { add(whole); }, [&] { add(pass); });
}

AMXEmitter::Vectors AMXEmitter::loadOuter(const Pass &pass) {
  Value place = e.address(outer, pass.chains);
  Vectors chains;
  for (int64_t m = 0; m < kTile; ++m)
    chains.push_back(e.loadAt(e.f32Vec(kTile), place, m * kPanelBlock * 4));
  return chains;
}

void AMXEmitter::storeOuter(const Pass &pass, ArrayRef<Value> chains) {
  Value place = e.address(outer, pass.chains);
  for (auto [m, chain] : llvm::enumerate(chains))
    e.storeAt(chain, place, static_cast<int64_t>(m) * kPanelBlock * 4);
}

AMXEmitter::Vectors AMXEmitter::doGroups(const Pass &pass, Value first,
                                         int64_t count, Vectors chains,
                                         const Turn &next) {
  int64_t each = groupsAtATime(), whole = count / each, rest = count % each;
  auto turnAt = [&](Value turn, int64_t groups) {
    return turnOf(pass, e.addi(first, e.muli(turn, each)), groups);
  };
  // All turns that a whole one follows.
  if (whole > 1)
    chains =
        e.loop(e.idx(0), e.idx(whole - 1), 1, chains,
               [&](Value at, ValueRange values) {
                 return doTurn(turnAt(at, each), turnAt(e.addi(at, 1), each),
                               Vectors(values));
               });
  Turn last = turnAt(e.idx(whole), rest);
  if (whole)
    chains = doTurn(turnAt(e.idx(whole - 1), each), rest ? last : next,
                    std::move(chains));
  return rest ? doTurn(last, next, std::move(chains)) : chains;
}

void AMXEmitter::doShort(const Pass &pass, const Pass &next, int64_t inputs,
                         Value isLast) {
  // What the next pass stores to, while this one multiplies.
  e.ifThen(isLast, [&] {
    Value column = e.addi(e.muli(next.panel, kPanelBlock), next.column);
    e.loop(next.first, next.rows, 1, [&](Value m) {
      output.prefetch(e.addi(next.token, m), 1, column, 1);
    });
  });
  int64_t groups = inputs / layout.groupSize, rest = inputs % layout.groupSize;
  Turn shortTurn{pass, e.addi(pass.block, groups), 1, rest};
  Turn after = rest ? shortTurn : firstTurn(next, inputs);
  Turn last = firstTurn(next, inputs);
  if (wholeChains()) {
    Vectors chains;
    if (outerStays())
      chains = loadOuter(pass);
    if (groups)
      chains = doGroups(pass, pass.block, groups, chains, after);
    if (rest)
      chains = doTurn(shortTurn, last, chains);
    if (outerStays())
      storeOuter(pass, chains);
  } else {
    // The chains of inputs that share a scale go through several turns.
    Vectors zeros(kTile, e.splat(0, kTile));
    auto groupOf = [&](Value s) {
      return e.addi(pass.block, e.muli(s, perScale));
    };
    auto doScaleGroup = [&](Value s, int64_t count, const Turn &next) {
      Value first = groupOf(s);
      addInner(pass, first, doGroups(pass, first, count, zeros, next));
    };
    int64_t whole = groups / perScale, left = groups % perScale;
    if (whole > 1)
      e.loop(e.idx(0), e.idx(whole - 1), 1, [&](Value s) {
        doScaleGroup(s, perScale,
                     turnOf(pass, groupOf(e.addi(s, 1)), perScale));
      });
    Turn leftTurn = turnOf(pass, groupOf(e.idx(whole)), left);
    if (whole)
      doScaleGroup(e.idx(whole - 1), perScale, left ? leftTurn : after);
    if (left)
      doScaleGroup(e.idx(whole), left, after);
    if (rest)
      addInner(pass, shortTurn.first, doTurn(shortTurn, last, zeros));
  }
  e.ifThen(isLast, [&] {
    Value column = e.addi(e.muli(pass.panel, kPanelBlock), pass.column);
    e.loop(pass.first, pass.rows, 1, [&](Value m) {
      Value at = e.addi(pass.chains, e.muli(m, kPanelBlock * 4));
      output.store(e.loadAt(e.f32Vec(kTile), e.address(outer, at), 0),
                   e.addi(pass.token, m), column);
    });
  });
}

void AMXEmitter::doBlock(Value panel, Value base, Value begin, Value end,
                         Value rows, Value block, int64_t inputs) {
  constexpr int64_t kColumns = kPanelBlock / kTile;
  if (unpacked)
    unpacked->unpack(output.weight(), base, e.idx(0), block, inputs);
  Value isLast = arith::CmpIOp::create(
      e, arith::CmpIPredicate::eq,
      e.addi(e.muli(block, layout.groupSize), inputs), e.idx(layout.k));
  auto passAt = [&](Value i) {
    Value first = e.muli(e.divi(i, kColumns), kTile);
    Value column = e.muli(e.remi(i, kColumns), kTile);
    Pass pass = tileAt(panel, base, e.addi(begin, first), end, rows);
    pass.column = column;
    pass.block = block;
    pass.chains = e.muli(e.addi(e.muli(first, kPanelBlock), column), 4);
    return pass;
  };
  Value zero = e.idx(0), tokens = e.subi(end, begin);
  Value passes = e.muli(e.divi(e.addi(tokens, kTile - 1), kTile), kColumns);
  Turn first = firstTurn(passAt(zero), inputs);
  for (int64_t u = 0; u < first.count; ++u)
    multiply(first, u);
  e.loop(zero, passes, 1, [&](Value i) {
    Value next = e.mini(e.addi(i, 1), e.subi(passes, e.idx(1)));
    doShort(passAt(i), passAt(next), inputs, isLast);
  });
}

//===----------------------------------------------------------------------===//
// Long groups
//===----------------------------------------------------------------------===//

void AMXEmitter::doLongGroup(const Pass &pass, int64_t rowTiles, Value g,
                             int64_t length) {
  constexpr int64_t kVectors = kPanelBlock / kTile, kRow = kPanelBlock * 4;
  for (int64_t tile = 0; tile < rowTiles * kVectors; ++tile)
    tiles.zero(tile);
  e.loop(e.idx(0), e.idx(length), depth, [&](Value at) {
    Value input = e.addi(e.muli(g, layout.groupSize), at);
    // The first tokens fetch weights for the others.
    Value isFirst = arith::CmpIOp::create(e, arith::CmpIPredicate::eq,
                                          pass.token, firstToken);
    if (!unpacked)
      e.ifThen(isFirst, [&] {
        Value lines = e.addi(groupAt(pass, g), e.muli(at, kPanelBlock));
        prefetchWeights(e, output.weight(), lines, depth * kPanelBlock);
      });
    for (int64_t i = 0; i < rowTiles; ++i)
      tiles.load(kInputs + i, inputsAt(pass, i, input), stride);
    for (int64_t j = 0; j < kVectors; ++j)
      tiles.load(kWeights + j, weightsAt(pass, e.idx(j * kTile), g, at), kRow);
    for (int64_t i = 0; i < rowTiles; ++i)
      for (int64_t j = 0; j < kVectors; ++j)
        multiply(i * kVectors + j, kInputs + i, kWeights + j);
  });
  for (int64_t i = 0; i < rowTiles; ++i)
    for (int64_t j = 0; j < kVectors; ++j)
      tiles.store(i * kVectors + j,
                  e.address(sums, e.idx(i * kTile * kRow + j * kTile * 4)),
                  kRow);

  SmallVector<GroupTerms> terms;
  for (int64_t j = 0; j < kVectors; ++j)
    terms.push_back(termsOf(pass, e.idx(j * kTile), g, length));
  int64_t scaleGroups = llvm::divideCeil(layout.k, scaleGroup);
  Value s = e.divi(g, perScale);
  Value isLast =
      arith::CmpIOp::create(e, arith::CmpIPredicate::eq, g,
                            e.mini(e.addi(e.muli(s, perScale), perScale - 1),
                                   e.idx(layout.groups() - 1)));
  if (layout.groups() == 1) {
    e.loop(pass.first, pass.rows, 1, [&](Value m) {
      Value row = e.addi(pass.token, m);
      Value scale = e.broadcast(e.load(tokenScales, row), kTile);
      for (int64_t j = 0; j < kVectors; ++j) {
        Value at = e.addi(e.muli(m, kRow), j * kTile * 4);
        Value total = e.loadVecAs(e.getI32Type(), sums, at, kTile);
        Value number = numberOf(terms[j], total, row, g);
        Value none = e.splat(0, kTile);
        Value sum = e.fma(e.fma(number, terms[j].scale, none), scale, none);
        output.store(sum, row,
                     e.addi(e.muli(pass.panel, kPanelBlock), j * kTile));
      }
    });
    return;
  }
  e.loop(e.idx(0), pass.rows, 1, [&](Value m) {
    Value row = e.addi(pass.token, m);
    auto place = [&](int64_t j) {
      return e.addi(e.muli(m, kPanelBlock), j * kTile);
    };
    for (int64_t j = 0; j < kVectors; ++j) {
      Value total =
          e.loadVecAs(e.getI32Type(), sums, e.muli(place(j), 4), kTile);
      Value number = numberOf(terms[j], total, row, g);
      e.storeVec(
          e.fma(number, terms[j].scale, e.loadVec(inner, place(j), kTile)),
          inner, place(j));
    }
    e.ifThen(isLast, [&] {
      Value scale = e.broadcast(
          e.load(tokenScales, e.addi(e.muli(row, scaleGroups), s)), kTile);
      for (int64_t j = 0; j < kVectors; ++j) {
        e.storeVec(e.fma(e.loadVec(inner, place(j), kTile), scale,
                         e.loadVec(outer, place(j), kTile)),
                   outer, place(j));
        e.storeVec(e.splat(0, kTile), inner, place(j));
      }
    });
  });
}

void AMXEmitter::doLong(const Pass &pass, int64_t rowTiles) {
  if (layout.groups() == 1)
    return doLongGroup(pass, rowTiles, e.idx(0), layout.k);
  e.loop(e.idx(0), e.idx(rowTiles * kTile * kPanelBlock), kTile, [&](Value at) {
    e.storeVec(e.splat(0, kTile), inner, at);
    e.storeVec(e.splat(0, kTile), outer, at);
  });
  int64_t groups = layout.k / layout.groupSize;
  if (groups)
    e.loop(e.idx(0), e.idx(groups), 1,
           [&](Value g) { doLongGroup(pass, rowTiles, g, layout.groupSize); });
  if (int64_t rest = layout.k % layout.groupSize)
    doLongGroup(pass, rowTiles, e.idx(groups), rest);
  e.loop(pass.first, pass.rows, 1, [&](Value m) {
    for (int64_t j = 0; j < kPanelBlock; j += kTile)
      output.store(e.loadVec(outer, e.addi(e.muli(m, kPanelBlock), j), kTile),
                   e.addi(pass.token, m),
                   e.addi(e.muli(pass.panel, kPanelBlock), j));
  });
}

void AMXEmitter::emit() {
  int64_t tokens = kBlockBytes / stride / kTile * kTile;
  tokens = std::clamp(tokens, kTile, kBlockTokens);
  forPanels(
      e, output, variant, tokens, [&](Value panel, Value begin, Value end) {
        Value base = e.muli(panel, layout.panelBytes());
        Value zero = e.idx(0);
        Value rows = e.mini(e.idx(kTile), e.subi(end, begin));
        tiles.configure(rows);
        firstToken = begin;
        if (isShort(layout)) {
          Value chains = e.muli(e.addi(e.subi(end, begin), kTile), kPanelBlock);
          e.loop(zero, chains, kTile,
                 [&](Value at) { e.storeVec(e.splat(0, kTile), outer, at); });
          int64_t inputs = blockInputs(layout, scaleGroup);
          int64_t groups = inputs / layout.groupSize;
          int64_t whole = layout.k / inputs, rest = layout.k % inputs;
          if (whole)
            e.loop(zero, e.idx(whole), 1, [&](Value block) {
              doBlock(panel, base, begin, end, rows, e.muli(block, groups),
                      inputs);
            });
          if (rest)
            doBlock(panel, base, begin, end, rows, e.idx(whole * groups), rest);
          return;
        }
        if (unpacked)
          unpacked->unpack(output.weight(), base, zero, zero, layout.k);
        constexpr int64_t kTwo = 2 * kTile;
        Value count = e.subi(end, begin);
        Value whole = e.addi(begin, e.muli(e.divi(count, kTwo), kTwo));
        e.loop(begin, whole, kTwo, [&](Value token) {
          doLong({panel, base, zero, token, e.idx(kTwo), zero, zero, zero}, 2);
        });
        e.loop(whole, end, kTile,
               [&](Value t) { doLong(tileAt(panel, base, t, end, rows), 1); });
      });
  tiles.release();
  e.finish();
}

void emitAMXLinear(KernelBuilder &kernel, const LinearForm &form,
                   const LinearVariant &variant) {
  AMXEmitter(kernel, form, variant).emit();
}

} // namespace mlir::llm
