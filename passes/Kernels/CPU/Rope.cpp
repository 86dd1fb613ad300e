//===- Rope.cpp - Rotary position embedding for a CPU ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Emitter.h"

namespace mlir::llm {

/// (a cos - b sin, b cos + a sin), each product and sum rounded as written.
static std::pair<Value, Value> rotate(Emitter &e, Value a, Value b, Value cos,
                                      Value sin) {
  return {e.sub(e.mul(a, cos), e.mul(b, sin)),
          e.add(e.mul(b, cos), e.mul(a, sin))};
}

static LogicalResult generateRope(KernelBuilder &kernel) {
  FailureOr<int64_t> heads = kernel.getInt("heads"),
                     size = kernel.getInt("size"),
                     rotary = kernel.getInt("rotary_dim"),
                     positions = kernel.getInt("positions");
  if (failed(heads) || failed(size) || failed(rotary) || failed(positions))
    return failure();
  rt::KernelOp op = kernel.kernel();
  if (*rotary > *size || *rotary % 2)
    return op.emitOpError("rotary_dim ")
           << *rotary << " is not an even part of size " << *size;
  bool interleaved = kernel.getBool("interleaved");
  int64_t half = *rotary / 2;
  Type f32 = Float32Type::get(op.getContext());
  Type i32 = IntegerType::get(op.getContext(), 32);
  std::string name = kernel.functionName("");
  Emitter e(
      kernel, name,
      {{f32}, {i32}, {f32, *positions * half}, {f32, *positions * half}, {f32}},
      1);
  Value x = e.buffer(0), position = e.buffer(1), cosines = e.buffer(2),
        sines = e.buffer(3), out = e.buffer(4);
  e.loop(e.begin(), e.end(), 1, [&](Value t) {
    // A position past the tables is refused by the runtime; clamped here, so
    // that padding rows, which may hold anything, read the tables only.
    Value p = e.maxi(e.idx(0), e.mini(e.toIndex(e.load(position, t)),
                                      e.idx(*positions - 1)));
    Value angle = e.muli(p, half);
    e.loop(e.idx(0), e.idx(*heads), 1, [&](Value h) {
      Value base = e.muli(e.addi(e.muli(t, *heads), h), *size);
      e.forRow(half, [&](Value d, int64_t lanes) {
        Value at = e.addi(angle, d);
        Value cos = e.loadVec(cosines, at, lanes);
        Value sin = e.loadVec(sines, at, lanes);
        if (!interleaved) {
          Value low = e.addi(base, d), high = e.addi(low, half);
          auto [a, b] = rotate(e, e.loadVec(x, low, lanes),
                               e.loadVec(x, high, lanes), cos, sin);
          e.storeVec(a, out, low);
          e.storeVec(b, out, high);
          return;
        }
        Value pairAt = e.addi(base, e.muli(d, 2));
        Value pairs = e.loadVec(x, pairAt, 2 * lanes);
        SmallVector<int64_t> even, odd, merge;
        for (int64_t i = 0; i < lanes; ++i) {
          even.push_back(2 * i);
          odd.push_back(2 * i + 1);
          merge.append({i, lanes + i});
        }
        Value a = vector::ShuffleOp::create(e, pairs, pairs, even);
        Value b = vector::ShuffleOp::create(e, pairs, pairs, odd);
        auto [ra, rb] = rotate(e, a, b, cos, sin);
        e.storeVec(vector::ShuffleOp::create(e, ra, rb, merge), out, pairAt);
      });
      e.forRow(*size - *rotary, [&](Value d, int64_t lanes) {
        Value at = e.addi(e.addi(base, *rotary), d);
        e.storeVec(e.loadVec(x, at, lanes), out, at);
      });
    });
  });
  e.finish();
  kernel.addVariant(name);
  return success();
}

void populateRopeKernels(KernelRegistry &registry) {
  registry.add("cpu", "rope", generateRope);
}

} // namespace mlir::llm
