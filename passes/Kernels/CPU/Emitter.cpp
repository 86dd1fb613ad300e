//===- Emitter.cpp - Writing vector code for a CPU ------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Emitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

namespace mlir::llm {

static OpBuilder atEnd(Operation *code) {
  return OpBuilder::atBlockEnd(&code->getRegion(0).front());
}

Emitter::Emitter(KernelBuilder &kernel, StringRef name,
                 ArrayRef<Buffer> buffers, unsigned numSizes)
    : ImplicitLocOpBuilder(kernel.kernel().getLoc(),
                           atEnd(kernel.codeModule())),
      lanes(kernel.target().vectorWidth) {
  SmallVector<Type> args;
  for (const Buffer &buffer : buffers)
    args.push_back(MemRefType::get({buffer.length}, buffer.type));
  args.append(numSizes, getI64Type());
  args.append(2, getIndexType());
  fn = func::FuncOp::create(*this, name, getFunctionType(args, {}));
  setInsertionPointToStart(fn.addEntryBlock());
}

void Emitter::finish() { func::ReturnOp::create(*this); }

Value Emitter::size(unsigned i) {
  unsigned first = 0;
  while (!fn.getArgument(first).getType().isInteger(64))
    ++first;
  return arith::IndexCastOp::create(*this, getIndexType(),
                                    fn.getArgument(first + i));
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value Emitter::idx(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}
Value Emitter::i32(int64_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
}
Value Emitter::f32(float value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}
Value Emitter::splat(float value, int64_t count) {
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(f32Vec(count), value));
}
Value Emitter::splatInt(int64_t value, int64_t count, unsigned bits) {
  auto type = VectorType::get({count}, getIntegerType(bits));
  return arith::ConstantOp::create(
      *this, DenseElementsAttr::get(
                 type, APInt(bits, static_cast<uint64_t>(value), true)));
}
Value Emitter::broadcast(Value scalar, int64_t count) {
  return vector::BroadcastOp::create(
      *this, VectorType::get({count}, scalar.getType()), scalar);
}

/// `type` with another element type.
static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), element);
  return element;
}

static Value constantLike(ImplicitLocOpBuilder &b, Type type, uint64_t value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attr = b.getIntegerAttr(element, static_cast<int64_t>(value));
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, cast<Attribute>(attr));
  return arith::ConstantOp::create(b, attr);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Emitter::addi(Value a, Value b) {
  return arith::AddIOp::create(*this, a, b);
}
Value Emitter::subi(Value a, Value b) {
  return arith::SubIOp::create(*this, a, b);
}
Value Emitter::muli(Value a, Value b) {
  return arith::MulIOp::create(*this, a, b);
}
// Indices are never negative: unsigned division lets powers of two be shifts.
Value Emitter::divi(Value a, int64_t b) {
  return arith::DivUIOp::create(*this, a, idx(b));
}
Value Emitter::remi(Value a, int64_t b) {
  return arith::RemUIOp::create(*this, a, idx(b));
}
Value Emitter::mini(Value a, Value b) {
  return arith::MinSIOp::create(*this, a, b);
}
Value Emitter::maxi(Value a, Value b) {
  return arith::MaxSIOp::create(*this, a, b);
}
Value Emitter::add(Value a, Value b) {
  return arith::AddFOp::create(*this, a, b);
}
Value Emitter::sub(Value a, Value b) {
  return arith::SubFOp::create(*this, a, b);
}
Value Emitter::mul(Value a, Value b) {
  return arith::MulFOp::create(*this, a, b);
}
Value Emitter::div(Value a, Value b) {
  return arith::DivFOp::create(*this, a, b);
}
Value Emitter::max(Value a, Value b) {
  return arith::MaximumFOp::create(*this, a, b);
}
Value Emitter::min(Value a, Value b) {
  return arith::MinimumFOp::create(*this, a, b);
}
Value Emitter::larger(Value a, Value b) {
  Value above = arith::CmpFOp::create(*this, arith::CmpFPredicate::OGT, a, b);
  return select(above, a, b);
}
Value Emitter::fma(Value a, Value b, Value c) {
  return math::FmaOp::create(*this, a, b, c);
}
Value Emitter::exp(Value a) { return math::ExpOp::create(*this, a); }

/// 1.5 * 2^23: what it is added to is rounded to an integer, which is then in
/// the low bits.
static constexpr float kShifter = 12582912.0f;

/// 2^(x * scale) for one in [-1/2, 1/2], by a polynomial in `x` of `degree`.
static Value smallExp2(Emitter &e, Value x, int64_t degree, double scale = 1) {
  // Least relative error on [-1/2, 1/2] with 2^0 = 1 exactly.
  static constexpr float kDegree3[] = {1, 0.6932829022f, 0.2422109544f,
                                       0.0550089292f};
  static constexpr float kDegree5[] = {1,
                                       0.6931470037f,
                                       0.2402224243f,
                                       0.0555073358f,
                                       0.0096715130f,
                                       0.0013264727f};
  ArrayRef<float> terms = degree == 3 ? ArrayRef(kDegree3) : ArrayRef(kDegree5);
  Value sum;
  for (auto i = static_cast<int64_t>(terms.size()); i-- > 0;) {
    double term = terms[i] * std::pow(scale, i);
    Value constant = e.splatLike(x, static_cast<float>(term));
    sum = sum ? e.fma(sum, x, constant) : constant;
  }
  return sum;
}

/// The low 9 bits of `shifted` where a float has its sign and exponent.
static Value exponentOf(Emitter &e, Value shifted) {
  Type bits = withElement(shifted.getType(), e.getI32Type());
  return arith::ShLIOp::create(e, arith::BitcastOp::create(e, bits, shifted),
                               constantLike(e, bits, 23));
}

Value Emitter::splatLike(Value a, float value) {
  if (auto vector = dyn_cast<VectorType>(a.getType()))
    return splat(value, vector.getDimSize(0));
  return f32(value);
}

Value Emitter::zeroBelow(Value a, float least, Value value) {
  Value below = arith::CmpFOp::create(*this, arith::CmpFPredicate::OLT, a,
                                      splatLike(a, least));
  return select(below, splatLike(a, 0), value);
}

Value Emitter::exp2(Value a, int64_t degree) {
  Value shifter = splatLike(a, kShifter);
  Value shifted = add(a, shifter);
  Value fraction = sub(a, sub(shifted, shifter));
  Value exponent = exponentOf(*this, shifted);
  Value sum = arith::BitcastOp::create(*this, exponent.getType(),
                                       smallExp2(*this, fraction, degree));
  Value scaled =
      arith::BitcastOp::create(*this, a.getType(), addi(sum, exponent));
  return zeroBelow(a, -126, scaled);
}

Value Emitter::expUpTo87(Value a) {
  // 127 more: the exponent of a float, which keeps a NaN by a multiplication.
  Value shifter = splatLike(a, kShifter + 127);
  Value shifted = fma(a, splatLike(a, M_LOG2E), shifter);
  Value integer = sub(shifted, shifter);
  // What is left of `a`. ln 2 in two parts: the first one's product with an
  // integer is exact, whether fused or not (Cody and Waite, 1980).
  Value rest = fma(integer, splatLike(a, -0.693359375f), a);
  rest = fma(integer, splatLike(a, 2.12194440e-4f), rest);
  Value power =
      arith::BitcastOp::create(*this, a.getType(), exponentOf(*this, shifted));
  return zeroBelow(a, -87, mul(smallExp2(*this, rest, 5, M_LOG2E), power));
}

Value Emitter::sqrt(Value a) { return math::SqrtOp::create(*this, a); }
Value Emitter::less(Value a, Value b) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, a, b);
}
Value Emitter::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(*this, condition, a, b);
}
Value Emitter::toIndex(Value a) {
  return arith::IndexCastOp::create(*this, getIndexType(), a);
}

Value Emitter::bitcast(Value value, VectorType type) {
  return vector::BitCastOp::create(*this, type, value);
}
Value Emitter::intrinsic(StringRef name, Type type, ValueRange arguments) {
  return LLVM::CallIntrinsicOp::create(*this, type, getStringAttr(name),
                                       arguments)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Emitter::load(Value memref, Value index) {
  return memref::LoadOp::create(*this, memref, ValueRange{index});
}

void Emitter::store(Value value, Value memref, Value index) {
  memref::StoreOp::create(*this, value, memref, ValueRange{index});
}

Value Emitter::loadRaw(Value memref, Value index, int64_t count) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return vector::LoadOp::create(*this, VectorType::get({count}, element),
                                memref, ValueRange{index});
}

Value Emitter::loadVec(Value memref, Value index, int64_t count) {
  return widen(loadRaw(memref, index, count));
}

void Emitter::storeVec(Value value, Value memref, Value index) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  vector::StoreOp::create(*this, narrow(value, element), memref,
                          ValueRange{index});
}

Value Emitter::loadVecAs(Type type, Value bytes, Value offset, int64_t count) {
  bool isByte = type.isUnsignedInteger(8);
  Type stored = isByte ? Type(getIntegerType(8)) : type;
  int64_t size = type.getIntOrFloatBitWidth() / 8;
  Value raw = loadRaw(bytes, offset, count * size);
  auto storedType = VectorType::get({count}, stored);
  if (raw.getType() != storedType)
    raw = vector::BitCastOp::create(*this, storedType, raw);
  if (isByte)
    return arith::UIToFPOp::create(*this, f32Vec(count), raw);
  return widen(raw);
}

Value Emitter::loadAs(Type type, Value bytes, Value offset) {
  return vector::ExtractOp::create(*this, loadVecAs(type, bytes, offset, 1), 0);
}

Value Emitter::widen(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  Type f32Type = withElement(value.getType(), getF32Type());
  if (element.isF16())
    return arith::ExtFOp::create(*this, f32Type, value);
  if (!element.isBF16())
    return value;
  // bf16 is the upper half of an f32. Spelled in integers: without AVX-512
  // BF16 the backend would call a library.
  Type i16 = withElement(value.getType(), getIntegerType(16));
  Type i32Type = withElement(value.getType(), getI32Type());
  Value bits = arith::BitcastOp::create(*this, i16, value);
  Value wide = arith::ExtUIOp::create(*this, i32Type, bits);
  Value shifted =
      arith::ShLIOp::create(*this, wide, constantLike(*this, i32Type, 16));
  return arith::BitcastOp::create(*this, f32Type, shifted);
}

Value Emitter::narrow(Value value, Type element) {
  Type type = withElement(value.getType(), element);
  if (element.isF16())
    return arith::TruncFOp::create(*this, type, value);
  if (!element.isBF16())
    return value;
  // Round to nearest even: add 0x7fff and the lowest kept bit. A NaN, whose
  // rounding could carry into infinity, is made quiet instead.
  Type i32Type = withElement(value.getType(), getI32Type());
  auto constant = [&](uint64_t v) { return constantLike(*this, i32Type, v); };
  Value bits = arith::BitcastOp::create(*this, i32Type, value);
  Value upper = arith::ShRUIOp::create(*this, bits, constant(16));
  Value odd = arith::AndIOp::create(*this, upper, constant(1));
  Value rounded = addi(addi(bits, odd), constant(0x7fff));
  Value quiet = arith::OrIOp::create(*this, bits, constant(0x400000));
  Value isNaN =
      arith::CmpFOp::create(*this, arith::CmpFPredicate::UNO, value, value);
  Value chosen = arith::ShRUIOp::create(*this, select(isNaN, quiet, rounded),
                                        constant(16));
  Type i16 = withElement(value.getType(), getIntegerType(16));
  return arith::BitcastOp::create(*this, type,
                                  arith::TruncIOp::create(*this, i16, chosen));
}

Value Emitter::loadPair(Value memref, Value index) {
  Value pair = loadRaw(memref, index, 2);
  return vector::ExtractOp::create(
      *this, bitcast(pair, VectorType::get({1}, getI32Type())), 0);
}

Value Emitter::address(Value bytes, Value offset) {
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(*this, bytes);
  Value sum =
      arith::IndexCastOp::create(*this, getI64Type(), addi(base, offset));
  // Nothing is executed: what the optimizer cannot see through it cannot split.
  auto opaque = LLVM::InlineAsmOp::create(
      *this, TypeRange{getI64Type()}, ValueRange{sum}, "", "=r,0",
      /*has_side_effects=*/false, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  return LLVM::IntToPtrOp::create(
      *this, LLVM::LLVMPointerType::get(getContext()), opaque.getResult(0));
}

static Value offsetBy(Emitter &e, Value address, int64_t offset) {
  return LLVM::GEPOp::create(
      e, address.getType(), e.getI8Type(), address,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

Value Emitter::loadAt(Type type, Value address, int64_t offset) {
  return LLVM::LoadOp::create(*this, type, offsetBy(*this, address, offset),
                              /*alignment=*/1);
}

void Emitter::storeAt(Value value, Value address, int64_t offset) {
  LLVM::StoreOp::create(*this, value, offsetBy(*this, address, offset),
                        /*alignment=*/1);
}

/// Loads MXCSR from `control`.
static void setControl(Emitter &e, Value control) {
  LLVM::CallIntrinsicOp::create(e, e.getStringAttr("llvm.x86.sse.ldmxcsr"),
                                e.address(control, e.idx(0)));
}

Value Emitter::flushDenormals() {
  // Bit 15 is for results, bit 6 for operands.
  constexpr int64_t kZeros = 0x8040;
  Value before = scratch(getI32Type(), 1), during = scratch(getI32Type(), 1);
  LLVM::CallIntrinsicOp::create(*this, getStringAttr("llvm.x86.sse.stmxcsr"),
                                address(before, idx(0)));
  store(arith::OrIOp::create(*this, load(before, idx(0)), i32(kZeros)), during,
        idx(0));
  setControl(*this, during);
  return before;
}

void Emitter::restoreDenormals(Value control) { setControl(*this, control); }

Value Emitter::scratch(Type element, int64_t length) {
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&fn.getBody().front());
  return memref::AllocaOp::create(*this, MemRefType::get({length}, element),
                                  getI64IntegerAttr(64));
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Value Emitter::lanesOf(Value vector, int64_t first, int64_t count) {
  if (cast<VectorType>(vector.getType()).getDimSize(0) == count)
    return vector;
  return vector::ExtractStridedSliceOp::create(
      *this, vector, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{count},
      ArrayRef<int64_t>{1});
}

Value Emitter::reduce(Value vector, function_ref<Value(Value, Value)> combine) {
  int64_t count = cast<VectorType>(vector.getType()).getDimSize(0);
  Value rest;
  while (count > 1) {
    if (count % 2) {
      Value last = vector::ExtractOp::create(*this, vector, count - 1);
      rest = rest ? combine(rest, last) : last;
      vector = lanesOf(vector, 0, count - 1);
      --count;
      continue;
    }
    count /= 2;
    vector = combine(lanesOf(vector, 0, count), lanesOf(vector, count, count));
  }
  Value first = vector::ExtractOp::create(*this, vector, 0);
  return rest ? combine(first, rest) : first;
}

Value Emitter::reduceAdd(Value vector) {
  return reduce(vector, [&](Value a, Value b) { return add(a, b); });
}

Value Emitter::reduceMax(Value vector) {
  return reduce(vector, [&](Value a, Value b) { return larger(a, b); });
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

SmallVector<Value>
Emitter::loop(Value low, Value high, int64_t step, ValueRange inits,
              function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto op = scf::ForOp::create(*this, low, high, idx(step), inits);
  OpBuilder::InsertionGuard guard(*this);
  // Without initial values the builder has made the terminator already.
  if (inits.empty()) {
    setInsertionPoint(op.getBody()->getTerminator());
    body(op.getInductionVar(), {});
  } else {
    setInsertionPointToEnd(op.getBody());
    scf::YieldOp::create(*this,
                         body(op.getInductionVar(), op.getRegionIterArgs()));
  }
  return SmallVector<Value>(op.getResults());
}

void Emitter::loop(Value low, Value high, int64_t step,
                   function_ref<void(Value)> body) {
  loop(low, high, step, {}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

void Emitter::ifThen(Value condition, function_ref<void()> body) {
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPoint(op.thenYield());
  body();
}

void Emitter::ifElse(Value condition, function_ref<void()> yes,
                     function_ref<void()> no) {
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPoint(op.thenYield());
  yes();
  setInsertionPoint(op.elseYield());
  no();
}

void Emitter::forRow(int64_t dim, function_ref<void(Value, int64_t)> body) {
  int64_t full = dim / lanes * lanes;
  if (full)
    loop(idx(0), idx(full), lanes, [&](Value d) { body(d, lanes); });
  if (dim != full)
    body(idx(full), dim - full);
}

Value Emitter::sumRow(int64_t dim,
                      function_ref<Value(Value, int64_t, Value)> body) {
  constexpr int64_t kSums = 4;
  int64_t full = dim / (kSums * lanes) * (kSums * lanes);
  SmallVector<Value> sums(kSums, splat(0, lanes));
  if (full)
    sums = loop(idx(0), idx(full), kSums * lanes, sums,
                [&](Value d, ValueRange acc) {
                  SmallVector<Value> next;
                  for (int64_t i = 0; i < kSums; ++i)
                    next.push_back(body(addi(d, i * lanes), lanes, acc[i]));
                  return next;
                });
  int64_t at = full;
  for (int64_t i = 0; at + lanes <= dim; ++i, at += lanes)
    sums[i] = body(idx(at), lanes, sums[i]);
  Value total = reduceAdd(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
  if (at < dim)
    total = add(total, reduceAdd(body(idx(at), dim - at, splat(0, dim - at))));
  return total;
}

void populateCPUKernels(KernelRegistry &registry) {
  populateAppendKernels(registry);
  populateAttentionKernels(registry);
  populateElementwiseKernels(registry);
  populateLinearKernels(registry);
  populateNormKernels(registry);
  populateRopeKernels(registry);
  populateRowOutputKernels(registry);
  populateRowKernels(registry);
}

} // namespace mlir::llm
