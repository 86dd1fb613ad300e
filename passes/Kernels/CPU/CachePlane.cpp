//===- CachePlane.cpp - How planes of the cache lie in memory -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/CPU/CachePlane.h"

namespace mlir::llm {

SmallVector<Value> transpose(Emitter &e, ArrayRef<Value> rows) {
  auto n = static_cast<int64_t>(rows.size());
  auto shuffle = [&](Value a, Value b, function_ref<int64_t(int64_t)> from) {
    SmallVector<int64_t> mask;
    for (int64_t i = 0; i < n; ++i)
      mask.push_back(from(i));
    return Value(vector::ShuffleOp::create(e, a, b, mask));
  };
  // Interleaves units of `unit` lanes of a and b, from the lower (upper) half
  // of every 128-bit lane.
  auto interleave = [&](Value a, Value b, int64_t unit, bool upper) {
    return shuffle(a, b, [&](int64_t i) {
      int64_t lane = i / 4 * 4, piece = i % 4 / unit;
      return piece % 2 * n + lane + (upper ? 2 : 0) + piece / 2 * unit +
             i % unit;
    });
  };
  SmallVector<Value> next(n);
  for (int64_t i = 0; i < n; i += 4) {
    Value ab = interleave(rows[i], rows[i + 1], 1, false),
          abUpper = interleave(rows[i], rows[i + 1], 1, true),
          cd = interleave(rows[i + 2], rows[i + 3], 1, false),
          cdUpper = interleave(rows[i + 2], rows[i + 3], 1, true);
    next[i] = interleave(ab, cd, 2, false);
    next[i + 1] = interleave(ab, cd, 2, true);
    next[i + 2] = interleave(abUpper, cdUpper, 2, false);
    next[i + 3] = interleave(abUpper, cdUpper, 2, true);
  }
  if (n == 4)
    return next;
  // Now lane L of next[4 k + j] is column 4 L + j of rows 4 k to 4 k + 3: a
  // transposition of lanes between the k's is left.
  SmallVector<Value> result(n);
  int64_t lanes = n / 4;
  for (int64_t j = 0; j < 4; ++j) {
    SmallVector<Value> quads;
    for (int64_t k = 0; k < lanes; ++k)
      quads.push_back(next[4 * k + j]);
    // Picks lanes (a, b) of x, then (a, b) of y, for 4; for 2, a of both.
    auto pick = [&](Value x, Value y, int64_t a, int64_t b) {
      int64_t half = lanes / 2;
      return shuffle(x, y, [&](int64_t i) {
        int64_t lane = i / 4, within = lane % half;
        return lane / half * n + (within ? b : a) * 4 + i % 4;
      });
    };
    if (lanes == 2) {
      result[j] = pick(quads[0], quads[1], 0, 0);
      result[4 + j] = pick(quads[0], quads[1], 1, 1);
      continue;
    }
    Value low0 = pick(quads[0], quads[1], 0, 1),
          low1 = pick(quads[2], quads[3], 0, 1),
          high0 = pick(quads[0], quads[1], 2, 3),
          high1 = pick(quads[2], quads[3], 2, 3);
    result[j] = pick(low0, low1, 0, 2);
    result[4 + j] = pick(low0, low1, 1, 3);
    result[8 + j] = pick(high0, high1, 0, 2);
    result[12 + j] = pick(high0, high1, 1, 3);
  }
  return result;
}

Value reduceMaxEach(Emitter &e, ArrayRef<Value> vectors) {
  auto count = static_cast<int64_t>(vectors.size());
  SmallVector<Value> rest(vectors);
  // A vector holds what is left of some rows, `part` lanes of each.
  for (int64_t part = count; part > 1; part /= 2) {
    SmallVector<Value> next;
    for (size_t i = 0; i < rest.size(); i += 2) {
      auto halves = [&](int64_t offset) -> Value {
        SmallVector<int64_t> mask;
        for (int64_t row = 0; row < 2 * count; row += part)
          for (int64_t lane = 0; lane < part / 2; ++lane)
            mask.push_back(row + offset + lane);
        return vector::ShuffleOp::create(e, rest[i], rest[i + 1], mask);
      };
      next.push_back(e.larger(halves(0), halves(part / 2)));
    }
    rest = std::move(next);
  }
  return rest[0];
}

Value padTo(Emitter &e, Value value, int64_t count) {
  auto type = cast<VectorType>(value.getType());
  int64_t lanes = type.getDimSize(0);
  if (lanes == count)
    return value;
  SmallVector<int64_t> mask;
  for (int64_t i = 0; i < count; ++i)
    mask.push_back(std::min(i, lanes));
  Value zero = arith::ConstantOp::create(e, e.getZeroAttr(type));
  return vector::ShuffleOp::create(e, value, zero, mask);
}

Value blockElement(Emitter &e, const BlockPlane &plane, Value block, Value head,
                   int64_t offset) {
  Value part = e.addi(e.muli(block, plane.heads), head);
  return e.addi(e.muli(part, kSlotBlock * plane.size), offset);
}

void forParts(Emitter &e, int64_t dim, int64_t step,
              function_ref<void(Value, int64_t)> body) {
  int64_t full = dim / step * step;
  if (full)
    e.loop(e.idx(0), e.idx(full), step, [&](Value d) { body(d, step); });
  if (dim != full)
    body(e.idx(full), dim - full);
}

} // namespace mlir::llm
