//===- Reductions.cpp - Lowering of reductions along axes -----------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Conversion/LLMToLinalg/Lowerings.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace mlir::llm;

using Pred = TensorEmitter::Predicate;
using CmpF = arith::CmpFPredicate;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

static bool isFloat(Type type) { return isa<FloatType>(type); }
static bool isUnsigned(Type type) {
  return type.isUnsignedInteger() || type.isInteger(1);
}

/// The value that max (or min) starts from.
static Value extreme(TensorEmitter &e, Type logical, bool lowest) {
  Type type = computeType(logical);
  if (isFloat(type))
    return e.constant(type, lowest ? -kInfinity : kInfinity);
  unsigned width = type.getIntOrFloatBitWidth();
  APInt bits = isUnsigned(logical) ? (lowest ? APInt::getZero(width)
                                             : APInt::getMaxValue(width))
               : lowest            ? APInt::getSignedMinValue(width)
                                   : APInt::getSignedMaxValue(width);
  return arith::ConstantOp::create(e, IntegerAttr::get(type, bits));
}

/// The larger (or smaller) of two computed elements; NaN wins.
static Value better(TensorEmitter &e, Type logical, bool largest, Value a,
                    Value b) {
  if (isFloat(a.getType()))
    return largest ? arith::MaximumFOp::create(e, a, b).getResult()
                   : arith::MinimumFOp::create(e, a, b).getResult();
  if (isUnsigned(logical))
    return largest ? arith::MaxUIOp::create(e, a, b).getResult()
                   : arith::MinUIOp::create(e, a, b).getResult();
  return largest ? e.max(a, b) : e.min(a, b);
}

//===----------------------------------------------------------------------===//
// llm.reduce
//===----------------------------------------------------------------------===//

namespace {
/// One element of the result of an llm.reduce.
struct Reduction {
  TensorEmitter &e;
  ReduceOp op;
  Type logical, compute;
  SmallVector<Value> sizes; ///< of the reduced axes
  function_ref<Value(ValueRange)> read;

  using Step = function_ref<Value(Value, Value)>;
  Value fold(Value init, Step step) {
    return e.loops(sizes, init,
                   [&](ValueRange at, ValueRange acc) -> SmallVector<Value> {
                     return {step(acc[0], read(at))};
                   })[0];
  }
  Value zero() { return e.constant(compute, 0); }
  Value sum() {
    return fold(zero(), [&](Value acc, Value x) { return e.add(acc, x); });
  }
  Value sumOfSquares() {
    return fold(zero(),
                [&](Value acc, Value x) { return e.add(acc, e.mul(x, x)); });
  }
  Value count() {
    Value number = e.fromIndex(e.product(sizes), e.getI64Type());
    return e.convert(number, e.getI64Type(), compute);
  }
  /// A function of floats, applied to an element of any type.
  Value through(Value x, function_ref<Value(Value)> function) {
    if (isFloat(compute))
      return function(x);
    Type f64 = e.getF64Type();
    return e.convert(function(e.convert(x, logical, f64)), f64, logical);
  }
  Value root(Value x) {
    return through(x, [&](Value v) { return math::SqrtOp::create(e, v); });
  }
  Value log(Value x) {
    return through(x, [&](Value v) { return math::LogOp::create(e, v); });
  }
  Value logSumExp();
  Value run();
};
} // namespace

Value Reduction::logSumExp() {
  if (!isFloat(compute)) {
    Type f64 = e.getF64Type();
    Value total = fold(e.constant(f64, 0), [&](Value acc, Value x) {
      return e.add(acc, math::ExpOp::create(e, e.convert(x, logical, f64)));
    });
    return e.convert(math::LogOp::create(e, total), f64, logical);
  }
  Value largest = fold(extreme(e, logical, true), [&](Value acc, Value x) {
    return arith::MaximumFOp::create(e, acc, x).getResult();
  });
  // An infinite maximum (or none) must not turn the differences into NaN.
  Value finite =
      arith::CmpFOp::create(e, CmpF::OLT, math::AbsFOp::create(e, largest),
                            e.constant(compute, kInfinity));
  Value shift = e.select(finite, largest, zero());
  Value total = fold(zero(), [&](Value acc, Value x) {
    return e.add(acc, math::ExpOp::create(e, e.sub(x, shift)));
  });
  return e.add(math::LogOp::create(e, total), shift);
}

Value Reduction::run() {
  switch (op.getKind()) {
  case ReductionKind::sum:
    return sum();
  case ReductionKind::mean: {
    Value total = sum(), number = count();
    if (isFloat(compute))
      return arith::DivFOp::create(e, total, number);
    // The mean of nothing divides by one.
    Value safe =
        e.select(e.cmp(Pred::eq, number, 0), e.constantInt(compute, 1), number);
    return isUnsigned(logical)
               ? arith::DivUIOp::create(e, total, safe).getResult()
               : arith::DivSIOp::create(e, total, safe).getResult();
  }
  case ReductionKind::max:
  case ReductionKind::min: {
    bool largest = op.getKind() == ReductionKind::max;
    return fold(extreme(e, logical, largest), [&](Value acc, Value x) {
      return better(e, logical, largest, acc, x);
    });
  }
  case ReductionKind::prod:
    return fold(e.constant(compute, 1),
                [&](Value acc, Value x) { return e.mul(acc, x); });
  case ReductionKind::sum_square:
    return sumOfSquares();
  case ReductionKind::l1:
    return fold(zero(), [&](Value acc, Value x) -> Value {
      if (isFloat(compute))
        return e.add(acc, math::AbsFOp::create(e, x));
      return e.add(acc, isUnsigned(logical)
                            ? x
                            : math::AbsIOp::create(e, x).getResult());
    });
  case ReductionKind::l2:
    return root(sumOfSquares());
  case ReductionKind::log_sum:
    return log(sum());
  case ReductionKind::log_sum_exp:
    return logSumExp();
  }
  llvm_unreachable("a reduction of no kind");
}

static Value lowerReduce(TensorEmitter &e, ReduceOp op,
                         ReduceOp::Adaptor adaptor) {
  Value input = adaptor.getInput();
  Type logical = elementOf(op.getInput());
  SmallVector<Value> from = e.dims(input), sizes, reduced;
  SmallVector<bool> gone(from.size(), false);
  for (int64_t axis : op.getAxes())
    gone[*normalizeAxis(axis, from.size())] = true;
  for (auto [i, size] : llvm::enumerate(from)) {
    if (gone[i])
      reduced.push_back(size);
    if (!gone[i])
      sizes.push_back(size);
    else if (op.getKeepdims())
      sizes.push_back(e.idx(1));
  }
  return e.generate(storageTensor(op.getType()), sizes,
                    [&](ValueRange ivs) -> Value {
                      auto read = [&](ValueRange inner) {
                        SmallVector<Value> at;
                        size_t next = 0, kept = 0;
                        for (bool each : gone) {
                          if (each) {
                            at.push_back(inner[next++]);
                            kept += op.getKeepdims();
                          } else {
                            at.push_back(ivs[kept++]);
                          }
                        }
                        return e.read(input, at, logical);
                      };
                      Reduction reduction{
                          e, op, logical, computeType(logical), reduced, read};
                      return e.narrow(reduction.run(), logical);
                    });
}

//===----------------------------------------------------------------------===//
// Softmax and norms: statistics per row, then the result
//===----------------------------------------------------------------------===//

/// A tensor of `type`'s shape with `axis` (and those after it, where `rest`)
/// of size 1, of elements `element`.
static RankedTensorType rowType(RankedTensorType type, int64_t axis, bool rest,
                                Type element) {
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t i = axis; i < (rest ? type.getRank() : axis + 1); ++i)
    shape[i] = 1;
  return RankedTensorType::get(shape, element);
}

static Value lowerSoftmax(TensorEmitter &e, SoftmaxOp op,
                          SoftmaxOp::Adaptor adaptor) {
  Value input = adaptor.getInput();
  RankedTensorType type = storageTensor(op.getType());
  Type logical = elementOf(op.getInput()), compute = computeType(logical);
  std::optional<int64_t> axis = normalizeAxis(op.getAxis(), type.getRank());
  if (!axis) {
    op.emitOpError("axis ") << op.getAxis() << " is outside " << type;
    return {};
  }
  SmallVector<Value> sizes = e.dims(input), rowSizes = sizes;
  rowSizes[*axis] = e.idx(1);
  RankedTensorType rows = rowType(type, *axis, false, compute);
  auto overRow = [&](Value init, function_ref<Value(Value, ValueRange)> step) {
    return e.generate(rows, rowSizes, [&](ValueRange row) {
      return e.loop(sizes[*axis], init,
                    [&](Value i, ValueRange acc) -> SmallVector<Value> {
                      SmallVector<Value> at(row);
                      at[*axis] = i;
                      return {step(acc[0], at)};
                    })[0];
    });
  };
  auto atRow = [&](Value tensor, ValueRange ivs) {
    SmallVector<Value> at(ivs);
    at[*axis] = e.idx(0);
    return e.extract(tensor, at);
  };
  Value largest =
      overRow(extreme(e, logical, true), [&](Value acc, ValueRange at) {
        return arith::MaximumFOp::create(e, acc, e.read(input, at, logical))
            .getResult();
      });
  Value shifted = e.generate(type.clone(compute), sizes, [&](ValueRange ivs) {
    Value x = e.sub(e.read(input, ivs, logical), atRow(largest, ivs));
    return op.getLog() ? x : math::ExpOp::create(e, x).getResult();
  });
  Value total = overRow(e.constant(compute, 0), [&](Value acc, ValueRange at) {
    Value x = e.extract(shifted, at);
    return e.add(acc, op.getLog() ? math::ExpOp::create(e, x).getResult() : x);
  });
  if (op.getLog())
    total = e.generate(rows, rowSizes, [&](ValueRange row) {
      return math::LogOp::create(e, e.extract(total, row));
    });
  return e.generate(type, sizes, [&](ValueRange ivs) {
    Value x = e.extract(shifted, ivs), t = atRow(total, ivs);
    Value y =
        op.getLog() ? e.sub(x, t) : arith::DivFOp::create(e, x, t).getResult();
    return e.narrow(y, logical);
  });
}

/// Layer normalization, and RMS normalization where `centred` is false.
template <typename OpTy>
static Value lowerNorm(TensorEmitter &e, OpTy op,
                       typename OpTy::Adaptor adaptor, bool centred,
                       Value bias) {
  Value input = adaptor.getInput(), scale = adaptor.getScale();
  RankedTensorType type = storageTensor(op.getType());
  Type logical = elementOf(op.getInput()), compute = computeType(logical);
  Type scaleType = elementOf(op.getScale()), result = elementOf(op.getResult());
  int64_t rank = type.getRank(), axis = *normalizeAxis(op.getAxis(), rank);
  SmallVector<Value> sizes = e.dims(input), rowSizes = sizes, inner;
  for (int64_t i = axis; i < rank; ++i) {
    inner.push_back(sizes[i]);
    rowSizes[i] = e.idx(1);
  }
  // Scale and bias broadcast to the input, never the other way.
  for (Value operand : {scale, bias}) {
    if (!operand)
      continue;
    SmallVector<Value> own = e.dims(operand);
    if (own.size() > sizes.size()) {
      op.emitOpError("scale and bias have no more axes than the input");
      return {};
    }
    for (size_t i = 0; i < own.size(); ++i)
      e.check(e.lor(e.cmp(Pred::eq, own[i], 1),
                    e.cmp(Pred::eq, own[i], sizes[rank - own.size() + i])),
              "scale and bias do not fit the input");
  }
  RankedTensorType rows = rowType(type, axis, true, compute);
  auto sumOver = [&](ValueRange row, function_ref<Value(Value)> term) {
    return e.loops(inner, e.constant(compute, 0),
                   [&](ValueRange at, ValueRange acc) -> SmallVector<Value> {
                     SmallVector<Value> full(row.take_front(axis));
                     llvm::append_range(full, at);
                     return {e.add(acc[0], term(e.read(input, full, logical)))};
                   })[0];
  };
  Value number = e.convert(e.fromIndex(e.product(inner), e.getI64Type()),
                           e.getI64Type(), compute);
  Value mean;
  if (centred)
    mean = e.generate(rows, rowSizes, [&](ValueRange row) {
      return arith::DivFOp::create(e, sumOver(row, [](Value x) { return x; }),
                                   number);
    });
  Value inverse = e.generate(rows, rowSizes, [&](ValueRange row) {
    Value m = mean ? e.extract(mean, row) : Value();
    Value total = sumOver(row, [&](Value x) {
      Value d = m ? e.sub(x, m) : x;
      return e.mul(d, d);
    });
    Value variance = arith::DivFOp::create(e, total, number);
    Value epsilon = e.constant(compute, op.getEpsilon().convertToDouble());
    Value root = math::SqrtOp::create(e, e.add(variance, epsilon));
    return arith::DivFOp::create(e, e.constant(compute, 1), root);
  });
  return e.generate(type, sizes, [&](ValueRange ivs) {
    SmallVector<Value> row(ivs);
    for (int64_t i = axis; i < rank; ++i)
      row[i] = e.idx(0);
    Value x = e.read(input, ivs, logical);
    if (mean)
      x = e.sub(x, e.extract(mean, row));
    auto operand = [&](Value tensor, Type elements) {
      Value v = e.read(tensor, e.broadcastIndices(tensor, ivs), elements);
      return e.convert(v, computeType(elements), compute);
    };
    Value y =
        e.mul(e.mul(x, e.extract(inverse, row)), operand(scale, scaleType));
    if (bias)
      y = e.add(y, operand(bias, scaleType));
    return e.narrow(e.convert(y, compute, computeType(result)), result);
  });
}

static Value lowerLayerNorm(TensorEmitter &e, LayerNormOp op,
                            LayerNormOp::Adaptor adaptor) {
  return lowerNorm(e, op, adaptor, true, adaptor.getBias());
}

static Value lowerRMSNorm(TensorEmitter &e, RMSNormOp op,
                          RMSNormOp::Adaptor adaptor) {
  return lowerNorm(e, op, adaptor, false, {});
}

void mlir::llm::populateReductionLowerings(RewritePatternSet &patterns,
                                           const TypeConverter &types) {
  addLowering<ReduceOp, lowerReduce>(patterns, types);
  addLowering<SoftmaxOp, lowerSoftmax>(patterns, types);
  addLowering<LayerNormOp, lowerLayerNorm>(patterns, types);
  addLowering<RMSNormOp, lowerRMSNorm>(patterns, types);
}
