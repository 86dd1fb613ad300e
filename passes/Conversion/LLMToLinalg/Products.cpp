//===- Products.cpp - Lowering of matrix products -------------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Lowerings.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::llm;

/// acc + a * b; the sum may be taken in another order, so that it vectorises.
static Value multiplyAdd(TensorEmitter &e, Value acc, Value a, Value b) {
  if (!isa<FloatType>(acc.getType()))
    return e.add(acc, e.mul(a, b));
  auto flags = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
  Value product = arith::MulFOp::create(e, a, b, flags);
  return arith::AddFOp::create(e, acc, product, flags);
}

/// acc[m, n] = sum over k of lhs(m, k) * rhs(k, n), where `lhs` and `rhs` give
/// computed elements. Rows of the right operand run innermost: they lie
/// contiguous where rhs is [.., K, N].
static Value productByRows(TensorEmitter &e, RankedTensorType type,
                           ValueRange sizes, Value k, TensorEmitter::Body lhs,
                           TensorEmitter::Body rhs) {
  Value zero = e.constant(type.getElementType(), 0);
  Value init = e.generate(type, sizes, [&](ValueRange) { return zero; });
  SmallVector<Value> outer(sizes.drop_back());
  outer.push_back(k);
  return e.loops(outer, init, [&](ValueRange at, ValueRange state) {
    Value a = lhs(at);
    return e.loop(sizes.back(), state,
                  [&](Value n, ValueRange inner) -> SmallVector<Value> {
                    SmallVector<Value> place(at.drop_back());
                    place.push_back(n);
                    SmallVector<Value> right(at);
                    right.push_back(n);
                    Value old = e.extract(inner[0], place);
                    Value sum = multiplyAdd(e, old, a, rhs(right));
                    return {tensor::InsertOp::create(e, sum, inner[0], place)};
                  });
  })[0];
}

static Value lowerMatMul(TensorEmitter &e, MatMulOp op,
                         MatMulOp::Adaptor adaptor) {
  Value lhs = adaptor.getLhs(), rhs = adaptor.getRhs();
  Type logical = elementOf(op.getLhs());
  Type compute = computeType(logical);
  int64_t lhsRank = cast<RankedTensorType>(lhs.getType()).getRank();
  int64_t rhsRank = cast<RankedTensorType>(rhs.getType()).getRank();
  SmallVector<Value> lhsSizes = e.dims(lhs), rhsSizes = e.dims(rhs);
  Value k = lhsSizes.back();
  Value rhsK = rhsSizes[rhsRank == 1 ? 0 : rhsRank - 2];
  e.check(e.cmp(TensorEmitter::Predicate::eq, k, rhsK),
          "the inner sizes differ");

  // Batch sizes broadcast from the right, as the operands' own do.
  int64_t lhsBatch = std::max<int64_t>(lhsRank - 2, 0);
  int64_t rhsBatch = std::max<int64_t>(rhsRank - 2, 0);
  int64_t batch = std::max(lhsBatch, rhsBatch);
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < batch; ++i) {
    int64_t l = i - (batch - lhsBatch), r = i - (batch - rhsBatch);
    Value a = l >= 0 ? lhsSizes[l] : e.idx(1);
    Value b = r >= 0 ? rhsSizes[r] : e.idx(1);
    Value isOne = e.cmp(TensorEmitter::Predicate::eq, a, 1);
    e.check(e.lor(e.cmp(TensorEmitter::Predicate::eq, a, b),
                  e.lor(isOne, e.cmp(TensorEmitter::Predicate::eq, b, 1))),
            "the batch sizes do not broadcast");
    sizes.push_back(e.select(isOne, b, a));
  }
  if (lhsRank > 1)
    sizes.push_back(lhsSizes[lhsRank - 2]);
  if (rhsRank > 1)
    sizes.push_back(rhsSizes.back());

  auto batchAt = [&](ValueRange ivs, ArrayRef<Value> own, int64_t count) {
    SmallVector<Value> at;
    for (int64_t i = 0; i < count; ++i) {
      Value isOne = e.cmp(TensorEmitter::Predicate::eq, own[i], 1);
      at.push_back(e.select(isOne, e.idx(0), ivs[batch - count + i]));
    }
    return at;
  };
  auto readLhs = [&](ValueRange ivs, Value kk) {
    SmallVector<Value> at = batchAt(ivs, lhsSizes, lhsBatch);
    if (lhsRank > 1)
      at.push_back(ivs[batch]);
    at.push_back(kk);
    return e.read(lhs, at, logical);
  };
  auto readRhs = [&](ValueRange ivs, Value kk, Value n) {
    SmallVector<Value> at = batchAt(ivs, rhsSizes, rhsBatch);
    at.push_back(kk);
    if (rhsRank > 1)
      at.push_back(n);
    return e.read(rhs, at, logical);
  };

  RankedTensorType type = storageTensor(op.getType());
  if (rhsRank == 1)
    return e.generate(type, sizes, [&](ValueRange ivs) {
      Value sum = e.loop(k, e.constant(compute, 0),
                         [&](Value kk, ValueRange acc) -> SmallVector<Value> {
                           return {multiplyAdd(e, acc[0], readLhs(ivs, kk),
                                               readRhs(ivs, kk, {}))};
                         })[0];
      return e.narrow(sum, logical);
    });
  Value sums = productByRows(
      e, type.clone(compute), sizes, k,
      [&](ValueRange at) { return readLhs(at, at.back()); },
      [&](ValueRange at) { return readRhs(at, at[at.size() - 2], at.back()); });
  if (compute == type.getElementType())
    return sums;
  return e.map(type, sums,
               [&](ValueRange args) { return e.narrow(args[0], logical); });
}

static Value lowerLinear(TensorEmitter &e, LinearOp op,
                         LinearOp::Adaptor adaptor) {
  Value input = adaptor.getInput(), weight = adaptor.getWeight();
  Type logical = elementOf(op.getInput()), stored = elementOf(op.getWeight());
  Type result = elementOf(op.getResult());
  Type compute = computeType(logical);
  SmallVector<Value> sizes = e.dims(input);
  Value k = sizes.back();
  bool transposed = op.getTransposed();
  e.check(
      e.cmp(TensorEmitter::Predicate::eq, k, e.dim(weight, transposed ? 0 : 1)),
      "the input's features do not fit the weight");
  sizes.back() = e.dim(weight, transposed ? 1 : 0);
  if (adaptor.getBias())
    e.check(e.cmp(TensorEmitter::Predicate::eq, sizes.back(),
                  e.dim(adaptor.getBias(), 0)),
            "the bias does not fit the weight");
  auto readInput = [&](ValueRange ivs, Value kk) {
    SmallVector<Value> at(ivs.take_front(sizes.size() - 1));
    at.push_back(kk);
    return e.read(input, at, logical);
  };
  auto readWeight = [&](Value n, Value kk) {
    Value element = transposed ? e.read(weight, {kk, n}, stored)
                               : e.read(weight, {n, kk}, stored);
    return e.convert(element, computeType(stored), compute);
  };
  auto finish = [&](Value sum, Value n) {
    if (adaptor.getBias()) {
      Type type = elementOf(op.getBias());
      Value bias = e.read(adaptor.getBias(), n, type);
      sum = e.add(sum, e.convert(bias, computeType(type), compute));
    }
    return e.narrow(e.convert(sum, compute, computeType(result)), result);
  };
  RankedTensorType type = storageTensor(op.getType());
  if (transposed) {
    Value sums = productByRows(
        e, type.clone(compute), sizes, k,
        [&](ValueRange at) { return readInput(at, at.back()); },
        [&](ValueRange at) {
          return readWeight(at.back(), at[at.size() - 2]);
        });
    return e.generate(type, sizes, [&](ValueRange ivs) {
      return finish(e.extract(sums, ivs), ivs.back());
    });
  }
  return e.generate(type, sizes, [&](ValueRange ivs) {
    Value sum = e.loop(k, e.constant(compute, 0),
                       [&](Value kk, ValueRange acc) -> SmallVector<Value> {
                         return {multiplyAdd(e, acc[0], readInput(ivs, kk),
                                             readWeight(ivs.back(), kk))};
                       })[0];
    return finish(sum, ivs.back());
  });
}

void mlir::llm::populateProductLowerings(RewritePatternSet &patterns,
                                         const TypeConverter &types) {
  addLowering<MatMulOp, lowerMatMul>(patterns, types);
  addLowering<LinearOp, lowerLinear>(patterns, types);
}
