//===- GPUKernelBuilder.h - Writing gpu.func kernels ------------*- C++ -*-===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the GPU generators share. The IR they write is gpu, 1-D vector, arith,
// memref and scf over flat buffers, and works for PTX and for the emulator.
//
//===----------------------------------------------------------------------===//
#ifndef LLM_PASSES_KERNELS_CUDA_GPUKERNELBUILDER_H
#define LLM_PASSES_KERNELS_CUDA_GPUKERNELBUILDER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Kernels/KernelFamily.h"

namespace mlir::llm {

/// Lanes of a warp.
inline constexpr int64_t kWarpSize = 32;

/// The most rows (T or R) of a dispatch: what a grid's x dimension can hold.
/// Declared buffer bounds are this many rows.
inline constexpr int64_t kMaxRows = (int64_t(1) << 31) - 1;

/// An operand of a kernel: `elements` of `type`, flat, in global memory.
struct KernelBuffer {
  Type type;
  int64_t elements;
  bool readOnly;
};

/// Builds one kernel. Locations carry a label for what is being accessed, so
/// that the emulator can say more than the kernel's name.
class GPUKernelBuilder : public ImplicitLocOpBuilder {
public:
  /// Appends a function to the kernel's gpu.module: the operands, then
  /// `numSizes` i64 arguments, run by blocks of `blockThreads`. There are
  /// `sharedElements` f32 of shared memory. The kernel gets a variant for it,
  /// and its dispatches a grid of `grid` blocks.
  GPUKernelBuilder(KernelBuilder &kernel, ArrayRef<KernelBuffer> buffers,
                   unsigned numSizes, int64_t blockThreads,
                   int64_t sharedElements, rt::ExprAttr grid);

  Value buffer(unsigned i) { return func.getArgument(i); }
  /// Size argument `i`, as an index.
  Value size(unsigned i);
  Value shared() { return func.getWorkgroupAttributions()[0]; }

  /// Labels what is built from here on.
  void at(llvm::StringRef what);

  Value index(int64_t value);
  Value f32(float value);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b);
  Value mul(Value a, int64_t b);
  Value div(Value a, int64_t b);
  Value rem(Value a, int64_t b);
  Value less(Value a, Value b);
  Value less(Value a, int64_t b);
  Value equal(Value a, int64_t b);

  Value blockId();
  Value threadId();

  /// One element.
  Value load(Value buffer, Value at);
  void store(Value value, Value buffer, Value at);
  /// Four elements of 32 bits from a 16-byte boundary.
  Value load4(Value buffer, Value at);
  void store4(Value value, Value buffer, Value at);

  Value element(Value vector, int64_t i);
  Value vector4(llvm::ArrayRef<Value> elements);
  /// a * b + c in one rounding, on f32 or on vectors of it.
  Value fma(Value a, Value b, Value c);
  /// The correctly rounded square root of an f32.
  Value sqrt(Value value);
  /// The value of the lane whose number differs in the bits of `mask`.
  Value shuffleXor(Value value, int64_t mask);
  /// The sum over the warp, the same bits in every lane.
  Value warpSum(Value value);

  void ifThen(Value condition, llvm::function_ref<void()> body);
  Value ifElse(Value condition, llvm::function_ref<Value()> thenValue,
               llvm::function_ref<Value()> elseValue);
  /// for (i = from; i < to; i += step), carrying `init`.
  llvm::SmallVector<Value>
  loop(Value from, int64_t to, int64_t step, llvm::ArrayRef<Value> init,
       llvm::function_ref<llvm::SmallVector<Value>(Value i, ValueRange carried)>
           body);

private:
  gpu::GPUFuncOp func;
  Location kernelLoc;
};

} // namespace mlir::llm

#endif // LLM_PASSES_KERNELS_CUDA_GPUKERNELBUILDER_H
