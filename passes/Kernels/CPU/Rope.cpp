//===- Rope.cpp - Rotary position embedding for a CPU ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Rope.h"

namespace mlir::llm {

/// (a cos - b sin, b cos + a sin), each product and sum rounded as written.
static std::pair<Value, Value> rotate(Emitter &e, Value a, Value b, Value cos,
                                      Value sin) {
  return {e.sub(e.mul(a, cos), e.mul(b, sin)),
          e.add(e.mul(b, cos), e.mul(a, sin))};
}

FailureOr<Rotation> Rotation::parse(const KernelBuilder &kernel, int64_t size) {
  FailureOr<int64_t> rotary = kernel.getInt("rotary_dim"),
                     positions = kernel.getInt("positions");
  if (failed(rotary) || failed(positions))
    return failure();
  if (*rotary > size || *rotary % 2)
    return kernel.kernel().emitOpError("rotary_dim ")
           << *rotary << " is not an even part of size " << size;
  Rotation rotation;
  rotation.size = size;
  rotation.rotary = *rotary;
  rotation.positions = *positions;
  rotation.interleaved = kernel.getBool("interleaved");
  return rotation;
}

SmallVector<Emitter::Buffer> Rotation::buffers(MLIRContext *context) const {
  Type f32 = Float32Type::get(context);
  int64_t table = positions * (rotary / 2);
  return {{IntegerType::get(context, 32)}, {f32, table}, {f32, table}};
}

Value Rotation::angleOf(Emitter &e, Value token) const {
  // A position past the tables is refused by the runtime; clamped here, so
  // that padding rows, which may hold anything, read the tables only.
  Value p = e.maxi(e.idx(0), e.mini(e.toIndex(e.load(position, token)),
                                    e.idx(positions - 1)));
  return e.muli(p, rotary / 2);
}

void Rotation::emit(Emitter &e, Value angle, Value x, Value from, Value out,
                    Value to) const {
  int64_t half = rotary / 2;
  e.forRow(half, [&](Value d, int64_t lanes) {
    Value at = e.addi(angle, d);
    Value cos = e.loadVec(cosines, at, lanes);
    Value sin = e.loadVec(sines, at, lanes);
    if (!interleaved) {
      Value low = e.addi(from, d), lowTo = e.addi(to, d);
      auto [a, b] = rotate(e, e.loadVec(x, low, lanes),
                           e.loadVec(x, e.addi(low, half), lanes), cos, sin);
      e.storeVec(a, out, lowTo);
      e.storeVec(b, out, e.addi(lowTo, half));
      return;
    }
    Value twice = e.muli(d, 2);
    Value pairs = e.loadVec(x, e.addi(from, twice), 2 * lanes);
    SmallVector<int64_t> even, odd, merge;
    for (int64_t i = 0; i < lanes; ++i) {
      even.push_back(2 * i);
      odd.push_back(2 * i + 1);
      merge.append({i, lanes + i});
    }
    Value a = vector::ShuffleOp::create(e, pairs, pairs, even);
    Value b = vector::ShuffleOp::create(e, pairs, pairs, odd);
    auto [ra, rb] = rotate(e, a, b, cos, sin);
    e.storeVec(vector::ShuffleOp::create(e, ra, rb, merge), out,
               e.addi(to, twice));
  });
  e.forRow(size - rotary, [&](Value d, int64_t lanes) {
    e.storeVec(e.loadVec(x, e.addi(e.addi(from, rotary), d), lanes), out,
               e.addi(e.addi(to, rotary), d));
  });
}

static LogicalResult generateRope(KernelBuilder &kernel) {
  FailureOr<int64_t> heads = kernel.getInt("heads"),
                     size = kernel.getInt("size");
  if (failed(heads) || failed(size))
    return failure();
  FailureOr<Rotation> rotation = Rotation::parse(kernel, *size);
  if (failed(rotation))
    return failure();
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context);
  SmallVector<Emitter::Buffer> buffers{{f32}};
  buffers.append(rotation->buffers(context));
  buffers.push_back({f32});
  std::string name = kernel.functionName("");
  Emitter e(kernel, name, buffers, 1);
  Value x = e.buffer(0), out = e.buffer(4);
  rotation->position = e.buffer(1);
  rotation->cosines = e.buffer(2);
  rotation->sines = e.buffer(3);
  e.loop(e.begin(), e.end(), 1, [&](Value t) {
    Value angle = rotation->angleOf(e, t);
    e.loop(e.idx(0), e.idx(*heads), 1, [&](Value h) {
      Value at = e.muli(e.addi(e.muli(t, *heads), h), *size);
      rotation->emit(e, angle, x, at, out, at);
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
