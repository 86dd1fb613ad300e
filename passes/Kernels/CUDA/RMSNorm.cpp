//===- RMSNorm.cpp - rms_norm for the GPU ---------------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block per row. Thread i takes elements 4 i .. 4 i + 3 of each stripe of
// 4 x threads elements (single elements where rows are not 16-byte aligned);
// squares are added per thread, over the warp by a butterfly, over the warps
// in ascending order.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Kernels/CUDA/GPUKernelBuilder.h"
#include "passes/Kernels/CUDA/GPUKernels.h"

namespace mlir::llm {

static constexpr int64_t kMaxThreads = 256;
/// Keeps the bytes of kMaxRows rows within an int64.
static constexpr int64_t kMaxRowElements = int64_t(1) << 28;

LogicalResult generateGPURMSNorm(KernelBuilder &kernel) {
  FailureOr<int64_t> dimOr = kernel.getInt("dim", 1, kMaxRowElements);
  FailureOr<double> epsilon = kernel.getFloat("epsilon");
  if (failed(dimOr) || failed(epsilon))
    return failure();
  int64_t dim = *dimOr;

  // Elements that a thread takes at once.
  int64_t width = dim % 4 == 0 ? 4 : 1;
  int64_t threads =
      std::min<int64_t>(kMaxThreads, llvm::alignTo(dim / width, kWarpSize));
  int64_t warps = threads / kWarpSize;

  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context);
  GPUKernelBuilder b(kernel,
                     {{f32, kMaxRows * dim, /*readOnly=*/true},
                      {f32, dim, /*readOnly=*/true},
                      {f32, kMaxRows * dim, /*readOnly=*/false}},
                     /*numSizes=*/1, threads,
                     /*sharedElements=*/warps > 1 ? warps : 0,
                     rt::ExprAttr::symbol(context, kernel.rowSymbol()));
  Value x = b.buffer(0), scale = b.buffer(1), out = b.buffer(2);
  Value row = b.blockId(), thread = b.threadId();

  b.ifThen(b.less(row, b.size(0)), [&] {
    Value base = b.mul(row, dim);
    Value first = b.mul(thread, width);

    b.at("squares of x");
    Value zero = b.f32(0);
    if (width == 4)
      zero = b.vector4({zero, zero, zero, zero});
    Value sum = b.loop(first, dim, threads * width, zero,
                       [&](Value i, ValueRange acc) -> SmallVector<Value> {
                         Value at = b.add(base, i);
                         Value v = width == 4 ? b.load4(x, at) : b.load(x, at);
                         return {b.fma(v, v, acc[0])};
                       })[0];
    if (width == 4)
      sum = arith::AddFOp::create(
          b, arith::AddFOp::create(b, b.element(sum, 0), b.element(sum, 1)),
          arith::AddFOp::create(b, b.element(sum, 2), b.element(sum, 3)));
    sum = b.warpSum(sum);

    if (warps > 1) {
      b.at("store of a warp's sum");
      b.ifThen(b.equal(b.rem(thread, kWarpSize), 0),
               [&] { b.store(sum, b.shared(), b.div(thread, kWarpSize)); });
      b.at("barrier between the warps' sums");
      gpu::BarrierOp::create(b);
      b.at("sum over the warps");
      sum = b.load(b.shared(), b.index(0));
      for (int64_t warp = 1; warp < warps; ++warp)
        sum = arith::AddFOp::create(b, sum, b.load(b.shared(), b.index(warp)));
    }
    b.at("scaling of x");
    Value mean = arith::DivFOp::create(b, sum, b.f32(dim));
    Value root = b.sqrt(arith::AddFOp::create(b, mean, b.f32(*epsilon)));
    Value factor = arith::DivFOp::create(b, b.f32(1), root);
    if (width == 4)
      factor = b.vector4({factor, factor, factor, factor});
    b.loop(first, dim, threads * width, {},
           [&](Value i, ValueRange) -> SmallVector<Value> {
             Value at = b.add(base, i);
             b.at("x");
             Value v = width == 4 ? b.load4(x, at) : b.load(x, at);
             b.at("scale");
             Value s = width == 4 ? b.load4(scale, i) : b.load(scale, i);
             b.at("out");
             Value y = arith::MulFOp::create(
                 b, arith::MulFOp::create(b, v, factor), s);
             width == 4 ? b.store4(y, out, at) : b.store(y, out, at);
             return {};
           });
  });
  return success();
}

} // namespace mlir::llm
