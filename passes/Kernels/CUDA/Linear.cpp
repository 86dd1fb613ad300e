//===- Linear.cpp - linear over int4 weights for the GPU ------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block per panel of 8 outputs and row of x. Warps take the tiles of 128 k's
// in turn; a lane multiplies its 4 elements of x with the codes of all 8
// outputs, which it gets in one load of 16 bytes. Sums go over the lanes by a
// butterfly that halves the outputs as it goes, over the warps in ascending
// order. So the order depends on k alone.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Kernels/CUDA/GPUAffineLayout.h"
#include "passes/Kernels/CUDA/GPUKernelBuilder.h"
#include "passes/Kernels/CUDA/GPUKernels.h"
#include "passes/Kernels/Layouts.h"

namespace mlir::llm {

static constexpr int64_t kMaxWarps = 4;

/// The layout that the kernel's parameters describe.
static FailureOr<GPUAffineLayout> readLayout(KernelBuilder &kernel, int64_t n,
                                             int64_t k) {
  rt::KernelOp op = kernel.kernel();
  auto dict = op.getParams().getAs<DictionaryAttr>("layout");
  if (!dict)
    return op.emitOpError("has no layout; --llm-pack-weights sets it");
  FailureOr<Layout> layout =
      Layout::parse(dict, [&] { return op.emitOpError(); });
  if (failed(layout))
    return failure();
  if (layout->kind != Layout::Kind::GPUAffine)
    return op.emitOpError("has the layout ")
           << dict << "; the GPU's linear reads 'gpu_affine'";
  if (layout->n != n || layout->k != k)
    return op.emitOpError("is ") << n << " x " << k << ", its layout "
                                 << layout->n << " x " << layout->k;
  return layout->gpuAffine();
}

/// x[row base + k .. + 3], zero beyond the end of the row.
static Value loadActivations(GPUKernelBuilder &b, Value x, Value base, Value at,
                             int64_t k) {
  auto zeros = [&] {
    Value zero = b.f32(0);
    return b.vector4({zero, zero, zero, zero});
  };
  if (k % GPUAffineLayout::kTileK == 0)
    return b.load4(x, b.add(base, at));
  if (k % 4 == 0)
    return b.ifElse(
        b.less(at, k), [&] { return b.load4(x, b.add(base, at)); }, zeros);
  // Rows are not aligned to 16 bytes.
  SmallVector<Value> elements;
  for (int64_t e = 0; e < 4; ++e) {
    Value i = b.add(at, e);
    elements.push_back(b.ifElse(
        b.less(i, k), [&] { return b.load(x, b.add(base, i)); },
        [&] { return b.f32(0); }));
  }
  return b.vector4(elements);
}

/// The code at `shift` of `word`, less its zero point (8 where `zero` is null).
/// The code becomes the low mantissa bits of 2^23, so that the conversion is a
/// subtraction, and exact.
static Value dequantize(GPUKernelBuilder &b, Value word, int64_t shift,
                        Value zero) {
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  Value bits = arith::ShRUIOp::create(b, word, constant(shift));
  bits = arith::AndIOp::create(b, bits, constant(15));
  bits = arith::OrIOp::create(b, bits, constant(0x4B000000));
  Value value = arith::BitcastOp::create(b, b.getF32Type(), bits);
  if (!zero)
    return arith::SubFOp::create(b, value, b.f32(8388608.0f + 8));
  value = arith::SubFOp::create(b, value, b.f32(8388608.0f));
  return arith::SubFOp::create(b, value, zero);
}

/// Adds one tile's products to the 8 sums of a lane.
static SmallVector<Value> addTile(GPUKernelBuilder &b,
                                  const GPUAffineLayout &layout, Value weight,
                                  Value tileBase, Value lane, Value x,
                                  ValueRange sums) {
  b.at("codes");
  Value codes = b.load4(weight, b.add(tileBase, b.mul(lane, 4)));
  // The group of a lane's k's within the tile.
  Value parameters = tileBase;
  if (layout.groupsPerTile() > 1)
    parameters = b.add(tileBase, b.mul(b.div(lane, layout.groupSize / 4),
                                       GPUAffineLayout::kBlock));
  auto loadGroup = [&](int64_t offset, int64_t half) {
    Value words = b.load4(weight, b.add(parameters, offset + half * 4));
    return vector::BitCastOp::create(b, VectorType::get({4}, b.getF32Type()),
                                     words)
        .getResult();
  };
  SmallVector<Value> scales, zeros;
  for (int64_t half = 0; half < 2; ++half) {
    b.at("scales");
    scales.push_back(loadGroup(layout.scalesOffset(), half));
    b.at("zeros");
    if (layout.zeros)
      zeros.push_back(loadGroup(layout.zerosOffset(), half));
  }
  b.at("products");
  SmallVector<Value> xs, next;
  for (int64_t e = 0; e < 4; ++e)
    xs.push_back(b.element(x, e));
  for (int64_t r = 0; r < GPUAffineLayout::kBlock; ++r) {
    Value word = b.element(codes, r / 2);
    Value zero = layout.zeros ? b.element(zeros[r / 4], r % 4) : Value();
    Value product;
    for (int64_t e = 0; e < 4; ++e) {
      Value w = dequantize(b, word, r % 2 * 16 + e * 4, zero);
      product = e ? b.fma(w, xs[e], product)
                  : arith::MulFOp::create(b, w, xs[e]).getResult();
    }
    next.push_back(b.fma(product, b.element(scales[r / 4], r % 4), sums[r]));
  }
  return next;
}

/// Sums over the warp: afterwards lane l holds output l / 4.
static Value reduceOverWarp(GPUKernelBuilder &b, Value lane,
                            SmallVector<Value> sums) {
  int64_t mask = kWarpSize / 2;
  for (; sums.size() > 1; mask /= 2) {
    Value upper = b.equal(b.rem(b.div(lane, mask), 2), 1);
    size_t half = sums.size() / 2;
    for (size_t i = 0; i < half; ++i) {
      Value keep = arith::SelectOp::create(b, upper, sums[i + half], sums[i]);
      Value send = arith::SelectOp::create(b, upper, sums[i], sums[i + half]);
      sums[i] = arith::AddFOp::create(b, keep, b.shuffleXor(send, mask));
    }
    sums.resize(half);
  }
  for (; mask; mask /= 2)
    sums[0] = arith::AddFOp::create(b, sums[0], b.shuffleXor(sums[0], mask));
  return sums[0];
}

LogicalResult generateGPULinear(KernelBuilder &kernel) {
  constexpr int64_t block = GPUAffineLayout::kBlock;
  FailureOr<int64_t> n = kernel.getInt("n", 1, GPUAffineLayout::kMaxSize);
  FailureOr<int64_t> k = kernel.getInt("k", 1, GPUAffineLayout::kMaxSize);
  if (failed(n) || failed(k))
    return failure();
  auto accuracy =
      kernel.kernel().getParams().getAs<IntegerAttr>("accuracy_level");
  if (accuracy && accuracy.getInt() == 4)
    return kernel.kernel().emitOpError(
        "accuracy_level 4 reads int8 activations, for which the GPU has no "
        "kernel; levels 0 to 3 compute in f32");
  bool bias = kernel.getBool("bias");
  FailureOr<GPUAffineLayout> layout = readLayout(kernel, *n, *k);
  if (failed(layout))
    return failure();

  int64_t warps = std::min(kMaxWarps, layout->tiles());
  int64_t threads = warps * kWarpSize;
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context);
  SmallVector<KernelBuffer> buffers = {
      {f32, kMaxRows * *k, /*readOnly=*/true},
      {IntegerType::get(context, 32), layout->words(), /*readOnly=*/true}};
  if (bias)
    buffers.push_back({f32, *n, /*readOnly=*/true});
  buffers.push_back({f32, kMaxRows * *n, /*readOnly=*/false});

  GPUKernelBuilder b(
      kernel, buffers, /*numSizes=*/1, threads,
      /*sharedElements=*/warps * block,
      rt::ExprAttr::mul(rt::ExprAttr::symbol(context, kernel.rowSymbol()),
                        layout->panels()));
  Value x = b.buffer(0), weight = b.buffer(1);
  Value out = b.buffer(bias ? 3 : 2);
  Value item = b.blockId(), thread = b.threadId();
  Value row = b.div(item, layout->panels());
  Value panel = b.rem(item, layout->panels());

  b.ifThen(b.less(row, b.size(0)), [&] {
    Value warp = b.div(thread, kWarpSize);
    Value lane = b.rem(thread, kWarpSize);
    Value rowBase = b.mul(row, *k);
    Value panelBase = b.mul(panel, layout->tiles() * layout->tileWords());
    SmallVector<Value> sums(block, b.f32(0));
    sums = b.loop(
        warp, layout->tiles(), warps, sums, [&](Value tile, ValueRange acc) {
          b.at("x");
          Value at =
              b.add(b.mul(tile, GPUAffineLayout::kTileK), b.mul(lane, 4));
          Value xs = loadActivations(b, x, rowBase, at, *k);
          Value tileBase = b.add(panelBase, b.mul(tile, layout->tileWords()));
          return addTile(b, *layout, weight, tileBase, lane, xs, acc);
        });
    b.at("sum over the lanes");
    Value sum = reduceOverWarp(b, lane, sums);

    b.at("store of a warp's sums");
    b.ifThen(b.equal(b.rem(lane, 4), 0), [&] {
      b.store(sum, b.shared(), b.add(b.mul(warp, block), b.div(lane, 4)));
    });
    b.at("barrier between the warps' sums");
    gpu::BarrierOp::create(b);

    auto write = [&](Value column) {
      b.at("sum over the warps");
      Value total = b.load(b.shared(), thread);
      for (int64_t w = 1; w < warps; ++w)
        total = arith::AddFOp::create(
            b, total, b.load(b.shared(), b.add(thread, w * block)));
      b.at("bias");
      if (bias)
        total = arith::AddFOp::create(b, total, b.load(b.buffer(2), column));
      b.at("out");
      b.store(total, out, b.add(b.mul(row, *n), column));
    };
    b.at("guard of the block's outputs");
    b.ifThen(b.less(thread, block), [&] {
      Value column = b.add(b.mul(panel, block), thread);
      if (*n % block == 0)
        return write(column);
      b.at("guard of the last panel");
      b.ifThen(b.less(column, *n), [&] { write(column); });
    });
  });
  return success();
}

} // namespace mlir::llm
