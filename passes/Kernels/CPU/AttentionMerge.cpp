//===- AttentionMerge.cpp - Spans of attention put together ---------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/Attention.h"

#include <cmath>
#include <limits>

namespace mlir::llm {

void emitAttentionMerge(Emitter &e, Value maxima, Value sums, Value outputs,
                        Value row, Value outputAt, int64_t valueSize,
                        Value spanMax, Value spanSum, Value source,
                        Value from) {
  Value oldMax = e.load(maxima, row);
  // A row that sees nothing yet has no maximum.
  Value newMax = e.larger(e.larger(oldMax, spanMax),
                          e.f32(std::numeric_limits<float>::lowest()));
  Value oldFactor = e.exp2(e.sub(oldMax, newMax), 5);
  Value spanFactor = e.exp2(e.sub(spanMax, newMax), 5);
  e.store(newMax, maxima, row);
  e.store(e.fma(spanSum, spanFactor, e.mul(e.load(sums, row), oldFactor)), sums,
          row);
  e.forRow(valueSize, [&](Value d, int64_t lanes) {
    Value at = e.addi(outputAt, d);
    Value kept =
        e.mul(e.loadVec(outputs, at, lanes), e.broadcast(oldFactor, lanes));
    e.storeVec(e.fma(e.loadVec(source, e.addi(from, d), lanes),
                     e.broadcast(spanFactor, lanes), kept),
               outputs, at);
  });
}

void emitAttentionResult(Emitter &e, Value sums, Value outputs, Value row,
                         Value outputAt, int64_t valueSize, Value out,
                         Value to) {
  Value inverse = e.div(e.f32(1), e.load(sums, row));
  e.forRow(valueSize, [&](Value d, int64_t lanes) {
    Value x = e.loadVec(outputs, e.addi(outputAt, d), lanes);
    // Slots of weight zero can turn -0 into 0, nothing else: there is one zero.
    e.storeVec(e.add(e.mul(x, e.broadcast(inverse, lanes)), e.splat(0, lanes)),
               out, e.addi(to, d));
  });
}

LogicalResult generateAttentionMerge(KernelBuilder &kernel) {
  FailureOr<int64_t> heads = kernel.getInt("heads"),
                     kvHeads = kernel.getInt("kv_heads"),
                     valueSize = kernel.getInt("value_size", 1, 4096),
                     window = kernel.getInt("window", 0),
                     split = kernel.getInt("split", 0, 4096);
  FailureOr<Type> cacheType = kernel.getCacheType("cache_type");
  if (failed(heads) || failed(kvHeads) || failed(valueSize) || failed(window) ||
      failed(split) || failed(cacheType))
    return failure();
  if (*heads % *kvHeads)
    return kernel.kernel().emitOpError() << *heads << " heads do not share "
                                         << *kvHeads << " kv heads evenly";
  MLIRContext *context = kernel.kernel().getContext();
  Type f32 = Float32Type::get(context), i32 = IntegerType::get(context, 32);
  std::string name = kernel.functionName("");
  Emitter e(kernel, name, {{f32}, {i32}, {i32}, {i32}, {f32}}, 2);
  Value partials = e.buffer(0), out = e.buffer(4);
  Value maxima = e.scratch(f32, 1), sums = e.scratch(f32, 1),
        outputs = e.scratch(f32, *valueSize);
  int64_t group = *heads / *kvHeads, record = *valueSize + 2;
  constexpr int64_t kSlots = AttentionEmitter::kSpan * AttentionEmitter::kChunk;
  Value zero = e.idx(0);
  auto emitRow = [&](Value row, Value first, Value last) {
    e.store(e.f32(-INFINITY), maxima, zero);
    e.store(e.f32(0), sums, zero);
    e.forRow(*valueSize, [&](Value d, int64_t lanes) {
      e.storeVec(e.splat(0, lanes), outputs, d);
    });
    e.loop(first, last, 1, [&](Value span) {
      Value from = e.muli(e.addi(e.muli(row, e.size(1)), span), record);
      emitAttentionMerge(e, maxima, sums, outputs, zero, zero, *valueSize,
                         e.load(partials, e.addi(from, *valueSize)),
                         e.load(partials, e.addi(from, *valueSize + 1)),
                         partials, from);
    });
    emitAttentionResult(e, sums, outputs, zero, zero, *valueSize, out,
                        e.muli(row, *valueSize));
  };
  auto emitItem = [&](Value item) {
    Value t = e.divi(item, *kvHeads), seq = e.load(e.buffer(1), t);
    Value firstRow = e.muli(item, group);
    e.ifElse(
        e.less(seq, e.i32(0)),
        [&] {
          e.forRow(group * *valueSize, [&](Value d, int64_t lanes) {
            e.storeVec(e.splat(0, lanes), out,
                       e.addi(e.muli(firstRow, *valueSize), d));
          });
        },
        [&] {
          Value s = e.toIndex(seq);
          Value end = e.toIndex(e.load(e.buffer(2), e.addi(s, 1)));
          Value behind = e.subi(e.subi(end, e.idx(1)), t);
          Value count = e.subi(e.toIndex(e.load(e.buffer(3), s)), behind);
          Value low =
              *window ? e.maxi(zero, e.subi(count, e.idx(*window))) : zero;
          Value first = e.divi(low, kSlots),
                last = e.divi(e.addi(count, kSlots - 1), kSlots);
          e.loop(zero, e.idx(group), 1,
                 [&](Value g) { emitRow(e.addi(firstRow, g), first, last); });
        });
  };
  // As `attention` merges.
  bool flushes = takesTiles(kernel.target(), *cacheType);
  Value control = flushes ? e.flushDenormals() : Value();
  // With more tokens `attention` has written the output itself.
  e.ifThen(e.less(e.size(0), e.idx(*split + 1)),
           [&] { e.loop(e.begin(), e.end(), 1, emitItem); });
  if (flushes)
    e.restoreDenormals(control);
  e.finish();
  kernel.addVariant(name);
  return success();
}

} // namespace mlir::llm
